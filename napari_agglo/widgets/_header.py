"""The heading of a step in the guided dock: its number, its name, and how far it is."""

from __future__ import annotations

from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QHBoxLayout, QLabel, QToolButton, QWidget

from napari_agglo.widgets._steps import Status, Step

# Said in words too: colour alone is lost on many.
_COLOURS = {
    Status.EMPTY: ("#6b7280", "#ffffff"),
    Status.READY: ("#2563eb", "#ffffff"),
    Status.RUNNING: ("#b45309", "#ffffff"),
    Status.DONE: ("#15803d", "#ffffff"),
    Status.STALE: ("#facc15", "#1f2937"),
}
_MEANS = {
    Status.EMPTY: "something is missing: the hint in the step says what",
    Status.READY: "ready: one click will do",
    Status.RUNNING: "running",
    Status.DONE: "done",
    Status.STALE: "done, but what it was made from has changed since: run it again",
}


class Header(QWidget):
    """A bar to click on, which opens and closes its step."""

    toggled = Signal(bool)

    def __init__(self, number: int, step: Step) -> None:
        super().__init__()
        self.button = QToolButton()
        self.button.setObjectName(f"header {step.value}")
        self.button.setText(f"{number}  {step.value}")
        self.button.setCheckable(True)
        self.button.setAutoRaise(True)
        self.button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.button.setArrowType(Qt.ArrowType.RightArrow)
        self.button.setStyleSheet("QToolButton { font-weight: bold; border: none; padding: 4px; }")
        self.button.toggled.connect(self._on_toggled)
        self.badge = QLabel()
        self.badge.setAlignment(Qt.AlignmentFlag.AlignCenter)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(2, 2, 8, 2)
        layout.addWidget(self.button)
        layout.addStretch(1)
        layout.addWidget(self.badge)

    def show_status(self, status: Status) -> None:
        """Say how far the step is."""
        back, front = _COLOURS[status]
        self.badge.setText(status.value)
        self.badge.setToolTip(_MEANS[status])
        self.badge.setStyleSheet(
            f"background: {back}; color: {front}; border-radius: 7px; "
            "padding: 1px 8px; font-size: 11px;"
        )

    def set_open(self, is_open: bool) -> None:
        """Open or close the step."""
        self.button.setChecked(is_open)

    def _on_toggled(self, is_open: bool) -> None:
        arrow = Qt.ArrowType.DownArrow if is_open else Qt.ArrowType.RightArrow
        self.button.setArrowType(arrow)
        self.toggled.emit(is_open)
