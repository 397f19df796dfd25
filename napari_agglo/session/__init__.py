"""Proofreading: edits at any scale, saved in a folder as they are made."""

from napari_agglo._numba import NOT_KEPT
from napari_agglo.session._actions import Change, Refused
from napari_agglo.session._cut_methods import CutProblem, cut_method
from napari_agglo.session._edit_table import AppliedTable, NotApplied
from napari_agglo.session._exports import ExportView, export_kinds, exporter
from napari_agglo.session._history import HistoryItem, SessionHistory
from napari_agglo.session._incremental_vi import SessionErrors
from napari_agglo.session._marks import Annotations, Mark
from napari_agglo.session._plan_cuts import CutPreview
from napari_agglo.session._plan_edits import Segments
from napari_agglo.session._session import Session
from napari_agglo.session._store import (
    NotSaved,
    Report,
    SessionDamaged,
    SessionLocked,
    SessionSources,
    Source,
)
from napari_agglo.session._suggestions.suggestion_queue import Suggestions
from napari_agglo.session._warm_up import (
    cache_folder,
    is_warm,
    seconds_to_compile,
    stages_to_compile,
    warm_up,
)

__all__ = [
    "NOT_KEPT",
    "Annotations",
    "AppliedTable",
    "Change",
    "CutPreview",
    "CutProblem",
    "ExportView",
    "HistoryItem",
    "Mark",
    "NotApplied",
    "NotSaved",
    "Refused",
    "Report",
    "Segments",
    "Session",
    "SessionDamaged",
    "SessionErrors",
    "SessionHistory",
    "SessionLocked",
    "SessionSources",
    "Source",
    "Suggestions",
    "cache_folder",
    "cut_method",
    "export_kinds",
    "exporter",
    "is_warm",
    "seconds_to_compile",
    "stages_to_compile",
    "warm_up",
]
