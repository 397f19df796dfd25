"""The base of the widgets of all steps: project, status, hint, and a column of parts.

A new step is a subclass of `StepWidget`, a line in `_STEPS` of `napari_agglo.widgets`, and a
command with its menu entry in the manifest. The texts of its hints are in `hints` of the subclass.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar

from qtpy.QtCore import Qt
from qtpy.QtGui import QShowEvent
from qtpy.QtWidgets import QMainWindow, QSizePolicy, QWidget

from napari_agglo.widgets._colours import theme_colours
from napari_agglo.widgets._fit_text import fit_words
from napari_agglo.widgets._project import Project
from napari_agglo.widgets._qt import (
    FocusRings,
    column,
    label,
    link,
    parent_of,
    per_viewer,
    real_viewer,
    when_gone,
)
from napari_agglo.widgets._scene import Scene


class Status(Enum):
    """The status of a step."""

    EMPTY = "empty"  # some input is missing, which the hint names
    READY = "ready"  # it can run, or its results are of a volume chosen before
    RUNNING = "running"
    DONE = "done"
    STALE = "stale"  # done, but its input has changed since, or is not complete
    OPEN = "open"  # a session is open; its edits are never known to be done


_TOGETHER = "\N{NO-BREAK SPACE}+\N{NO-BREAK SPACE}"  # keys such as Ctrl + Z stay on one line


class StepWidget(QWidget):
    """One step, in the guided dock or in a dock of its own.

    A subclass sets the attributes, adds its parts to `body`, and follows the project in
    `update_state`.
    """

    key: str  # the name of its job, and of its command in the manifest after ``napari-agglo.``
    title: str
    purpose: str  # one line for the help panel
    hints: ClassVar[dict[Status, str]] = {}  # the next thing to do

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__()
        self.viewer = real_viewer(napari_viewer)
        self.project = per_viewer(self.viewer, Project)
        self.scene = per_viewer(self.viewer, Scene)
        self.setObjectName(f"agglo {self.key}")
        self.hint = label("hint", lines=2)
        self.body = column(self, self.hint, spacing=6)
        self.body.setContentsMargins(8, 6, 8, 8)
        self.body.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        FocusRings(self)
        link(self._on_status, self.project.status_changed)

    @staticmethod
    def idle_status(project: Project) -> Status:
        """Return the status of this step while its job does not run."""
        raise NotImplementedError

    @classmethod
    def status(cls, project: Project) -> Status:
        """Return the status of this step in a project."""
        return Status.RUNNING if project.jobs[cls.key] is not None else cls.idle_status(project)

    def add(self, *parts: QWidget) -> None:
        """Add parts, one below the other."""
        for part in parts:
            self.body.addWidget(part)

    def follow_theme(self, *parts: Any) -> None:
        """Paint parts in the colours of napari's theme, now and whenever it changes."""
        self._themed = parts
        link(self._paint, self.viewer.events.theme)
        self._paint()

    def _paint(self) -> None:
        for part in self._themed:
            part.set_theme(*theme_colours(self.viewer))

    def start(self) -> None:
        """Update the widget; called last in the constructor."""
        self._on_status()

    def update_state(self, status: Status) -> None:
        """Update the controls; called whenever the state of the project may have changed."""

    def hint_for(self, status: Status) -> str:
        """Return the hint at the top: the next thing to do."""
        return self.hints.get(status, "")

    def _on_status(self) -> None:
        status = self.status(self.project)
        text = self.hint_for(status)
        if status is Status.RUNNING and not text:
            text = self.hint.text()  # so that the button to cancel stays under the mouse
        self.hint.setText(fit_words(text).replace(" + ", _TOGETHER))
        self.hint.setVisible(bool(text))
        self.update_state(status)

    def showEvent(self, event: QShowEvent | None) -> None:
        """Close the project with its window."""
        if event is not None:
            super().showEvent(event)
        close_with_window(self, self.project)


def close_with_window(widget: QWidget, project: Project) -> None:
    """Close the project when napari's window is destroyed."""
    window = parent_of(widget, QMainWindow)
    if window is not None and window.property("napari_agglo") is None:
        window.setProperty("napari_agglo", True)
        when_gone(window, project.close)
