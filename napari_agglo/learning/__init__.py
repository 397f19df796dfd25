"""Training of a policy on a gold standard, by agglomeration under comparison with it."""

from napari_agglo.learning._fit import ForestSettings
from napari_agglo.learning._questions import Question, Questions, answer_by_gold
from napari_agglo.learning._train import STRATEGIES, train, training_pairs
from napari_agglo.learning._training_volume import assign, boundary_labels

__all__ = [
    "STRATEGIES",
    "ForestSettings",
    "Question",
    "Questions",
    "answer_by_gold",
    "assign",
    "boundary_labels",
    "train",
    "training_pairs",
]
