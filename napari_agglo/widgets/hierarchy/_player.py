"""Play the merges like a film."""

from __future__ import annotations

from collections.abc import Callable

from qtpy.QtCore import QSize, QTimer
from qtpy.QtGui import QHideEvent
from qtpy.QtWidgets import QComboBox, QHBoxLayout, QToolButton, QWidget

from napari_agglo.widgets._project import Project
from napari_agglo.widgets.hierarchy._ticks import Ticks

_SPEEDS = {"slow": 200, "normal": 80, "fast": 30}  # milliseconds between two steps


class Player(QWidget):
    """A button that goes step by step to the end, and a choice of how fast."""

    def __init__(self, project: Project, step: Callable[[int], object]) -> None:
        super().__init__()
        self._project, self._step = project, step
        self.button = QToolButton()
        self.button.setObjectName("play")
        self.button.setCheckable(True)
        self.button.setText("▶")
        self.button.setToolTip("Play: merge step by step, from here to the end")
        self.button.setMinimumSize(QSize(28, 24))
        self.button.toggled.connect(self._on_toggled)
        self.speed = QComboBox()
        self.speed.setObjectName("speed")
        self.speed.addItems(list(_SPEEDS))
        self.speed.setCurrentText("normal")
        self.speed.setToolTip("How fast to play")
        self.speed.currentTextChanged.connect(self._on_speed)
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._on_tick)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.button)
        row.addWidget(self.speed, 1)

    @property
    def playing(self) -> bool:
        """Whether it runs."""
        return self._timer.isActive()

    def stop(self) -> None:
        """Stop it, if it runs."""
        self.button.setChecked(False)

    def hideEvent(self, event: QHideEvent | None) -> None:
        """Stop when the step is closed: nobody could stop it there."""
        self.stop()
        super().hideEvent(event)

    def _ticks(self) -> Ticks | None:
        tree = self._project.tree
        return None if tree is None else Ticks(tree.heights)

    def _on_toggled(self, on: bool) -> None:
        self.button.setText("⏸" if on else "▶")
        self.button.setToolTip("Pause" if on else "Play: merge step by step, from here to the end")
        if not on:
            self._timer.stop()
            return
        ticks = self._ticks()
        if ticks is not None and ticks.merges(self._project.threshold) >= ticks.last:
            self._project.threshold = ticks.threshold(0)  # from the beginning again
        self._timer.start(_SPEEDS[self.speed.currentText()])

    def _on_speed(self, text: str) -> None:
        self._timer.setInterval(_SPEEDS[text])

    def _on_tick(self) -> None:
        ticks = self._ticks()
        if ticks is None or ticks.merges(self._project.threshold) >= ticks.last:
            self.stop()
        elif self._project.settled:  # not while the way above edits is being repaired
            self._step(+1)
