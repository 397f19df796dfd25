"""Cuts of a segment: functions from groups of seeds to parts.

Every module of this folder is imported, and each `CutMethod` in it is registered: a new method is
one new file.
"""

from napari_agglo.session._cut_methods.cut_registry import CutProblem, cut_method, cut_methods
from napari_agglo.session._cut_methods.min_cut import boundary_costs, min_cut
from napari_agglo.session._cut_methods.seed_cut import seeded
from napari_agglo.session._cut_methods.segment_graph import (
    connected_pieces,
    detached,
    piecewise,
    segment_of,
)
from napari_agglo.session._cut_methods.tree_cut import by_tree, separating_nodes

__all__ = [
    "CutProblem",
    "boundary_costs",
    "by_tree",
    "connected_pieces",
    "cut_method",
    "cut_methods",
    "detached",
    "min_cut",
    "piecewise",
    "seeded",
    "segment_of",
    "separating_nodes",
]

cut_methods.register_modules(__name__, __path__, first="min_cut")
