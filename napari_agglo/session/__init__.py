"""Proofreading: edits at any scale, kept in a directory from which nothing is lost."""

from napari_agglo.session._actions import Change
from napari_agglo.session._cuts import CutProblem, cut_method
from napari_agglo.session._exports import ExportView, export_kinds, exporter
from napari_agglo.session._history import HistoryItem
from napari_agglo.session._rules import Refused
from napari_agglo.session._session import Session
from napari_agglo.session._store import NotSaved, Report, SessionDamaged, SessionLocked

__all__ = [
    "Change",
    "CutProblem",
    "ExportView",
    "HistoryItem",
    "NotSaved",
    "Refused",
    "Report",
    "Session",
    "SessionDamaged",
    "SessionLocked",
    "cut_method",
    "export_kinds",
    "exporter",
]
