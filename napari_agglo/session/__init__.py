"""Proofreading: edits at any scale, saved in a folder as they are made."""

from napari_agglo.session._actions import Change, Refused
from napari_agglo.session._cut_methods import CutProblem, cut_method
from napari_agglo.session._edit_table import AppliedTable, NotApplied
from napari_agglo.session._exports import ExportView, export_kinds, exporter
from napari_agglo.session._history import HistoryItem
from napari_agglo.session._session import Session
from napari_agglo.session._store import NotSaved, Report, SessionDamaged, SessionLocked, Source
from napari_agglo.session._warm_up import (
    NOT_KEPT,
    cache_folder,
    is_warm,
    seconds_to_compile,
    stages_to_compile,
    warm_up,
)

__all__ = [
    "NOT_KEPT",
    "AppliedTable",
    "Change",
    "CutProblem",
    "ExportView",
    "HistoryItem",
    "NotApplied",
    "NotSaved",
    "Refused",
    "Report",
    "Session",
    "SessionDamaged",
    "SessionLocked",
    "Source",
    "cache_folder",
    "cut_method",
    "export_kinds",
    "exporter",
    "is_warm",
    "seconds_to_compile",
    "stages_to_compile",
    "warm_up",
]
