"""The guided dock: five steps in order, each with its status, one open at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from qtpy.QtCore import QEvent, QSize, Qt, Signal
from qtpy.QtGui import QShowEvent
from qtpy.QtWidgets import QHBoxLayout, QLabel, QToolButton, QWidget
from superqt.utils import qdebounced

from napari_agglo._progress import Progress
from napari_agglo.widgets._background_compile import WARM, start_warm_up
from napari_agglo.widgets._colours import STATUS
from napari_agglo.widgets._jobs import text_of
from napari_agglo.widgets._keys import GESTURES
from napari_agglo.widgets._project import Project
from napari_agglo.widgets._qt import (
    column,
    label,
    link,
    named,
    per_viewer,
    row,
    scroll_area,
    tool_button,
)
from napari_agglo.widgets._steps import Status, StepWidget, close_with_window
from napari_agglo.widgets.data._widget import DataWidget
from napari_agglo.widgets.evaluate._widget import EvaluateWidget
from napari_agglo.widgets.hierarchy._widget import HierarchyWidget
from napari_agglo.widgets.proofread._widget import ProofreadWidget
from napari_agglo.widgets.train._widget import TrainWidget


class HelpPanel(QWidget):
    """The help: a line on each step, gestures and keys."""

    def __init__(self, steps: Iterable[StepWidget]) -> None:
        super().__init__()
        self.setObjectName("agglo help")
        rows = "".join(
            f"<tr><td style='padding-right: 12px'><b>{line.gesture}</b></td>"
            f"<td>{line.effect}</td></tr>"
            for line in GESTURES
        )
        lines = "".join(
            f"<p style='margin: 2px 0'><b>{step.title}</b>: {step.purpose}</p>" for step in steps
        )
        text = label("help text")
        text.setText(f"{lines}<table style='margin-top: 6px'>{rows}</table>")
        text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        column(self, text).setContentsMargins(8, 4, 8, 8)


_STATUS_TIPS = {
    Status.EMPTY: "Some input is missing; open the step to see its hint",
    Status.READY: "Ready to run",
    Status.RUNNING: "Running",
    Status.DONE: "Done",
    Status.STALE: "Done, but its input has changed since; run it again",
}


class Header(QWidget):
    """The heading of a step: its number, name and status; a click opens and closes the step."""

    toggled = Signal(bool)

    def __init__(self, number: int, step: StepWidget) -> None:
        super().__init__()
        self.button = named(QToolButton(), f"header {step.key}")
        self.button.setText(f"{number}  {step.title}")
        self.button.setCheckable(True)
        self.button.setAutoRaise(True)
        self.button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.button.setArrowType(Qt.ArrowType.RightArrow)
        self.button.setStyleSheet(
            "QToolButton { font-weight: bold; border: none; padding: 2px 4px; }"
        )
        self.button.toggled.connect(self._on_toggled)
        self.badge = QLabel()
        self.badge.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.badge.setFixedHeight(19)
        line = row(self.button, self.badge)
        line.insertStretch(1, 1)
        column(self, line).setContentsMargins(2, 1, 8, 1)

    def show_status(self, status: Status) -> None:
        """Show the status of the step."""
        back, front = STATUS[status.value]
        self.badge.setText(status.value)
        self.badge.setToolTip(_STATUS_TIPS[status])
        self.badge.setStyleSheet(
            f"background: {back}; color: {front}; border-radius: 7px; "
            "padding: 0 8px; font-size: 11px;"
        )

    def _on_toggled(self, is_open: bool) -> None:
        arrow = Qt.ArrowType.DownArrow if is_open else Qt.ArrowType.RightArrow
        self.button.setArrowType(arrow)
        self.toggled.emit(is_open)


STEPS: tuple[type[StepWidget], ...]
STEPS = DataWidget, TrainWidget, HierarchyWidget, EvaluateWidget, ProofreadWidget
_LAID_OUT = 30  # milliseconds until the layout of an opened step is done


class Dock(QWidget):
    """A column of all steps, one of them open."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__()
        self.setObjectName("agglo dock")
        self.project = per_viewer(napari_viewer, Project)
        self.steps = {step.key: step(napari_viewer) for step in STEPS}
        self.headers = {step.key: Header(k, step) for k, step in enumerate(self.steps.values(), 1)}
        self.help = HelpPanel(self.steps.values())
        self.help.setVisible(False)
        self.warming = label("warming up")
        self.warming.setContentsMargins(8, 2, 8, 2)
        content = QWidget()
        inner = column(content, self._top(), self.warming, self.help, spacing=0)
        for key, widget in self.steps.items():
            inner.addWidget(self.headers[key])
            inner.addWidget(widget)
            widget.setVisible(False)
            self.headers[key].toggled.connect(lambda is_open, k=key: self._toggle(k, is_open))
        inner.addStretch(1)
        self.area = scroll_area(self, content)
        link(self._on_status, self.project.status_changed)
        link(self._on_job, self.project.jobs.changed)
        link(self._on_hierarchy, self.project.hierarchy_changed)
        self._session: Any = None
        self._soon = qdebounced(self._reveal, timeout=_LAID_OUT)
        self.open((DataWidget if self.project.built is None else HierarchyWidget).key)
        self._on_hierarchy()
        self._on_status()
        self.warming.setVisible(False)

    def open(self, key: str) -> None:
        """Open a step, and close the others."""
        self.headers[key].button.setChecked(True)

    def sizeHint(self) -> QSize:
        """Return a width that has room for the controls and leaves room for the canvas."""
        return QSize(360, 640)

    def showEvent(self, event: QShowEvent | None) -> None:
        """Load the kernels in the background."""
        if event is not None:
            super().showEvent(event)
        close_with_window(self, self.project)
        start_warm_up(self.project)

    def changeEvent(self, event: QEvent | None) -> None:
        """Stop compiling when the dock is taken out of the window."""
        if event is not None:
            super().changeEvent(event)
            if event.type() == QEvent.Type.ParentChange and self.parent() is None:
                self.project.jobs.cancel(WARM)

    def _top(self) -> QHBoxLayout:
        tooltip = "Show the steps, keys and gestures"
        button = tool_button("?", tooltip, "help", checkable=True)
        button.toggled.connect(self.help.setVisible)
        title = label("title")
        title.setText("From image to proofread segments")
        line = row(title, button)
        line.setContentsMargins(8, 4, 8, 0)
        line.setStretch(0, 1)
        return line

    def _toggle(self, key: str, is_open: bool) -> None:
        self.steps[key].setVisible(is_open)
        if is_open:
            for other, header in self.headers.items():
                if other != key:
                    header.button.setChecked(False)
            self._soon()

    def _reveal(self) -> None:
        """Scroll to the end of the open step, but keep its heading in view."""
        for key, header in self.headers.items():
            bar, port = self.area.verticalScrollBar(), self.area.viewport()
            if header.button.isChecked() and bar is not None and port is not None:
                beyond = self.steps[key].geometry().bottom() + 1 - port.height()
                bar.setValue(min(max(bar.value(), beyond), header.y()))

    def _on_hierarchy(self) -> None:
        """Open the Proofread step when a session was opened, by any part of the program."""
        session = self.project.session
        if session is not None and session is not self._session:
            self.open(ProofreadWidget.key)
            self._soon()
        self._session = session

    def _on_status(self) -> None:
        for key, header in self.headers.items():
            header.show_status(self.steps[key].status(self.project))

    def _on_job(self, name: str) -> None:
        job = self.project.jobs[WARM] if name == WARM else None
        if job is not None:
            self.warming.setText(f"{job.title}…")
            link(self._on_warming, job.progressed)
        if name == WARM:
            self.warming.setVisible(job is not None)

    def _on_warming(self, progress: Progress) -> None:
        self.warming.setText(f"Loading kernels: {text_of(progress)}. You can start already.")
