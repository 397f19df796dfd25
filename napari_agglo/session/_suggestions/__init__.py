"""Suggestions: the decisions most valuable to review, and the expected number of wrong ones."""

from napari_agglo.session._suggestions.decisions import (
    Decisions,
    answered_boundaries,
    answered_merges,
)
from napari_agglo.session._suggestions.rank import Kind, Suggestion, suggest
from napari_agglo.session._suggestions.review_value import (
    Effort,
    as_probabilities,
    effort,
    expected_gain,
)

__all__ = [
    "Decisions",
    "Effort",
    "Kind",
    "Suggestion",
    "answered_boundaries",
    "as_probabilities",
    "effort",
    "expected_gain",
    "answered_merges",
    "suggest",
]
