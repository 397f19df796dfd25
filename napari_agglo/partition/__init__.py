"""Other ways than one threshold to choose a partition, on the same graph and policy.

Each way returns a merge tree whose partition at 0.5 is its result, so that what takes a tree
(labels, errors, comparison, movies) takes it too. Every module of this folder is imported, and a
function that it adds to `METHODS` is one of them: a new way is one new file.
"""

from napari_agglo.partition._adaptive_cut import adaptive_cut
from napari_agglo.partition._methods import METHODS, build_tree
from napari_agglo.partition._multicut import multicut
from napari_agglo.partition._mutex_watershed import mutex_watershed

__all__ = ["METHODS", "adaptive_cut", "build_tree", "multicut", "mutex_watershed"]

METHODS.register_modules(__name__, __path__, first="_methods")
