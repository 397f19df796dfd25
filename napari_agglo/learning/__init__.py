"""Learning a policy from a gold standard, by agglomerating while comparing with it."""

from napari_agglo.learning._assignment import assign, boundary_labels
from napari_agglo.learning._fit import ForestSettings
from napari_agglo.learning._train import STRATEGIES, train

__all__ = ["STRATEGIES", "ForestSettings", "assign", "boundary_labels", "train"]
