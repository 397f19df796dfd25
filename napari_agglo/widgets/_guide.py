"""The content of the dock: five steps in order, each with its status, one open at a time."""

# In its own file: the dock is shown before this module and those of the steps are imported.

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QHBoxLayout, QLabel, QToolButton, QWidget
from superqt.utils import qdebounced

from napari_agglo._progress import Progress
from napari_agglo.widgets import step_classes
from napari_agglo.widgets._background_compile import WARM, start_warm_up
from napari_agglo.widgets._colours import STATUS
from napari_agglo.widgets._fixed_label import fixed_label
from napari_agglo.widgets._key_bindings import GESTURES
from napari_agglo.widgets._project import Project
from napari_agglo.widgets._qt import (
    column,
    label,
    link,
    named,
    per_viewer,
    real_viewer,
    row,
    scroll_area,
    tool_button,
)
from napari_agglo.widgets._steps import Status, StepWidget, close_with_window
from napari_agglo.widgets.data._widget import DataWidget
from napari_agglo.widgets.hierarchy._widget import HierarchyWidget
from napari_agglo.widgets.proofread._widget import ProofreadWidget
from napari_agglo.widgets.train._trainer import Trainer
from napari_agglo.widgets.train._widget import TrainWidget


class HelpPanel(QWidget):
    """The help: a line on each step, gestures and keys."""

    def __init__(self, steps: Iterable[type[StepWidget]]) -> None:
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
    Status.READY: "Ready; open the step to see what to press",
    Status.RUNNING: "Running",
    Status.DONE: "Done",
    Status.STALE: "Done, but its input has changed since; open the step to see what to do",
    Status.OPEN: "A session is open",
}


class Header(QWidget):
    """The heading of a step: its number, name and status; a click opens and closes the step."""

    toggled = Signal(bool)

    def __init__(self, number: int, step: type[StepWidget]) -> None:
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
        self._status: Status | None = None
        self.badge = QLabel()
        self.badge.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.badge.setFixedHeight(19)
        line = row(self.button, self.badge)
        line.insertStretch(1, 1)
        column(self, line).setContentsMargins(2, 1, 8, 1)

    def show_status(self, status: Status) -> None:
        """Show the status of the step; a style that is set again makes Qt lay out the dock."""
        if status is self._status:
            return
        self._status = status
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


STEPS = step_classes()
_LAID_OUT = 30  # milliseconds until the layout of an opened step is done
_GROWING = 2.0  # seconds in which it may still grow


class Guide(QWidget):
    """A column of all steps, one of them open; `build` adds them one by one."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__()
        self.viewer = real_viewer(napari_viewer)
        self.project = per_viewer(napari_viewer, Project)
        self.steps: dict[str, StepWidget] = {}
        self.headers = {step.key: Header(k, step) for k, step in enumerate(STEPS, 1)}
        self.help = HelpPanel(STEPS)
        self.help.setVisible(False)
        self.warming = fixed_label("warming up")  # at the bottom, where it moves no button
        self.warming.setContentsMargins(8, 0, 8, 0)
        self.warming.setVisible(False)
        content = QWidget()
        self._column = column(content, self._top(), self.help, spacing=0)
        for key, header in self.headers.items():
            self._column.addWidget(header)
            header.toggled.connect(lambda is_open, k=key: self._toggle(k, is_open))
        self._column.addStretch(1)
        self.area = scroll_area(self, content)
        layout = self.layout()
        assert layout is not None
        layout.addWidget(self.warming)
        self._session: Any = None
        self._soon = qdebounced(self._reveal, timeout=_LAID_OUT)
        self._reveal_until = 0.0  # on the clock; steps grow while they follow what was opened
        bar = self.area.verticalScrollBar()
        assert bar is not None
        bar.rangeChanged.connect(self._on_grown)
        bar.actionTriggered.connect(self._on_scrolled)
        link(self._on_status, self.project.status_changed)
        link(self._on_job, self.project.jobs.changed)
        link(self.open, self.project.step_requested)
        self.open((DataWidget if self.project.built is None else HierarchyWidget).key)
        self._on_hierarchy()
        self._on_status()
        if self._is_open(DataWidget.key):
            self._stay_at_top()

    def build(self) -> Iterator[None]:
        """Build the steps in order; yield where the window may handle events."""
        for step in STEPS:
            if step is TrainWidget:
                per_viewer(self.viewer, Trainer)  # napari reads all manifests for a setting
                yield
            widget = step(self.viewer)
            widget.setVisible(False)
            yield
            header = self.headers[step.key]
            self._column.insertWidget(self._column.indexOf(header) + 1, widget)
            if self.steps:  # Tab goes to a heading before its step; a new widget comes last
                QWidget.setTabOrder(_focusable_before(widget), header.button)
            widget.setVisible(self._is_open(step.key))
            self.steps[step.key] = widget
            yield
        link(self._on_hierarchy, self.project.hierarchy_changed)  # after the steps, which may grow
        self._on_hierarchy()
        if not self._is_open(DataWidget.key):
            self._reveal_soon()

    def open(self, key: str) -> None:
        """Open a step, and close the others."""
        self.headers[key].button.setChecked(True)

    def follow_window(self) -> None:
        """Load the kernels in the background, and close the project with its window."""
        close_with_window(self, self.project)
        start_warm_up(self.project)

    def stop_warm_up(self) -> None:
        """Stop compiling kernels."""
        self.project.jobs.cancel(WARM)

    def _is_open(self, key: str) -> bool:
        return self.headers[key].button.isChecked()

    def _top(self) -> QHBoxLayout:
        tooltip = "Show the steps, keys and gestures"
        button = tool_button("?", tooltip, "help", checkable=True)
        button.toggled.connect(self.help.setVisible)
        title = label("title")
        title.setText("From image to segments")
        line = row(title, button)
        line.setContentsMargins(8, 4, 8, 0)
        line.setStretch(0, 1)
        return line

    def _toggle(self, key: str, is_open: bool) -> None:
        if key in self.steps:
            self.steps[key].setVisible(is_open)
        if is_open:
            for other, header in self.headers.items():
                if other != key:
                    header.button.setChecked(False)
            self._reveal_soon()

    def _stay_at_top(self) -> None:
        """Show the title and the first headings at the beginning, not the end of the first step."""
        self._soon.cancel()
        self._reveal_until = 0.0

    def _reveal_soon(self) -> None:
        self._reveal_until = time.monotonic() + _GROWING
        self._soon()

    def _on_grown(self) -> None:
        if time.monotonic() < self._reveal_until:
            self._soon()

    def _on_scrolled(self) -> None:
        self._reveal_until = 0.0  # the user has taken over

    def _reveal(self) -> None:
        """Scroll to the end of the open step, but keep its heading in view."""
        bar, port = self.area.verticalScrollBar(), self.area.viewport()
        for key, step in self.steps.items():
            if self._is_open(key) and bar is not None and port is not None:
                beyond = step.geometry().bottom() + 1 - port.height()
                bar.setValue(min(max(bar.value(), beyond), self.headers[key].y()))

    def _on_hierarchy(self) -> None:
        """Open the Proofread step when a session was opened, by any part of the program."""
        session = self.project.session
        if session is not None and session is not self._session:
            self.open(ProofreadWidget.key)
            self._reveal_soon()
        self._session = session

    def _on_status(self) -> None:
        for step in STEPS:
            self.headers[step.key].show_status(step.status(self.project))

    def _on_job(self, name: str) -> None:
        job = self.project.jobs[WARM] if name == WARM else None
        if job is not None:
            self.warming.setText(f"{job.title}…")
            link(self._on_warming, job.progressed)
        if name == WARM:
            self.warming.setVisible(job is not None)

    def _on_warming(self, progress: Progress) -> None:
        done = f"Loading kernels, {progress.whole:.0%}."
        start = f"{done} You can start already"
        self.warming.show_first(f"{start} ({progress.stage}).", f"{start}.", done)


def _focusable_before(widget: QWidget) -> QWidget | None:
    before = widget.previousInFocusChain()
    while before is not None and before.focusPolicy() == Qt.FocusPolicy.NoFocus:
        before = before.previousInFocusChain()
    return before
