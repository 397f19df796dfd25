"""What all steps have in common: the viewer's project, a hint, a column of parts."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import QObject, Qt
from qtpy.QtGui import QShowEvent
from qtpy.QtWidgets import QLabel, QMainWindow, QSizePolicy, QVBoxLayout, QWidget

from napari_agglo.widgets._project import Project, project_of
from napari_agglo.widgets._qt import link, when_gone
from napari_agglo.widgets._scene import Scene, scene_of
from napari_agglo.widgets._steps import Status, Step


class StepWidget(QWidget):
    """One step, for the guided dock or for itself.

    A subclass sets `step` and `hints`, adds its parts to `body`, and says in `update_state` what
    follows from the state of the project.
    """

    step: Step
    hints: dict[Status, str] = {}  # noqa: RUF012 - what to do next, by how far the step is

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__()
        self.viewer = getattr(napari_viewer, "__wrapped__", napari_viewer)
        self.project: Project = project_of(self.viewer)
        self.scene: Scene = scene_of(self.viewer)
        self.setObjectName(f"agglo {self.step.value}")
        self.hint = QLabel()
        self.hint.setWordWrap(True)
        self.hint.setObjectName("hint")
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(8, 6, 8, 8)
        self.body.setSpacing(6)
        self.body.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.body.addWidget(self.hint)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        link(self, self.project.status_changed, self._on_status)

    def start(self) -> None:
        """Bring the widget up to date; call it last in the constructor."""
        self._on_status()

    def update_state(self, status: Status) -> None:
        """Follow the project; called whenever its state may have changed."""

    def hint_for(self, status: Status) -> str:
        """Return what to say at the top."""
        return self.hints.get(status, "")

    def _on_status(self) -> None:
        status = self.project.status(self.step)
        text = self.hint_for(status)
        self.hint.setText(text)
        self.hint.setVisible(bool(text))
        self.update_state(status)

    def showEvent(self, event: QShowEvent | None) -> None:
        """Close the project when the window that it is in goes."""
        if event is not None:
            super().showEvent(event)
        close_with_window(self, self.project)


def close_with_window(widget: QWidget, project: Project) -> None:
    """See to it that the project is closed when napari's window is destroyed."""
    window: QObject | None = widget
    while window is not None and not isinstance(window, QMainWindow):
        window = window.parent()
    if window is not None and window.property("napari_agglo") is None:
        window.setProperty("napari_agglo", True)
        when_gone(window, project.close)
