"""Learning a policy from a gold standard, by agglomerating while comparing with it."""

from napari_agglo.learning._fit import ForestSettings
from napari_agglo.learning._train import STRATEGIES, train
from napari_agglo.learning._training_volume import assign, boundary_labels

__all__ = ["STRATEGIES", "ForestSettings", "assign", "boundary_labels", "train"]
