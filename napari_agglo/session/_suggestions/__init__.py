"""Suggestions: the decisions most valuable to review, and the expected number of wrong ones."""

from napari_agglo.session._suggestions.decisions import Decisions, apart_answered, made_answered
from napari_agglo.session._suggestions.rank import Kind, Suggestion, suggest
from napari_agglo.session._suggestions.value import Effort, as_probabilities, effort, expected_gain

__all__ = [
    "Decisions",
    "Effort",
    "Kind",
    "Suggestion",
    "apart_answered",
    "as_probabilities",
    "effort",
    "expected_gain",
    "made_answered",
    "suggest",
]
