"""Where to look next: the decisions that are most worth a person's time, and how many are left."""

from napari_agglo.session._suggest._answers import apart_answered, made_answered
from napari_agglo.session._suggest._decisions import Apart, Made
from napari_agglo.session._suggest._doubt import as_probabilities, expected_gain
from napari_agglo.session._suggest._effort import Effort, effort
from napari_agglo.session._suggest._rank import suggest
from napari_agglo.session._suggest._suggestion import Kind, Suggestion

__all__ = [
    "Apart",
    "Effort",
    "Kind",
    "Made",
    "Suggestion",
    "apart_answered",
    "as_probabilities",
    "effort",
    "expected_gain",
    "made_answered",
    "suggest",
]
