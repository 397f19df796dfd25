"""Play, pause, step and loop: the agglomerations happen before one's eyes."""

from __future__ import annotations

from qtpy.QtCore import QTimer, Signal
from qtpy.QtGui import QHideEvent
from qtpy.QtWidgets import QCheckBox, QComboBox, QHBoxLayout, QToolButton, QVBoxLayout, QWidget

# Milliseconds between two frames.
SPEEDS = {"slow": 400, "normal": 120, "fast": 40}
BY = ("by merges", "by threshold")


class Player(QWidget):
    """Buttons that ask for the next frame, in either direction.

    `stepped` asks for one; the owner answers by `end` when there is none.
    """

    stepped = Signal(int)  # +1 or -1
    restarted = Signal()  # a loop goes back to the beginning
    playing_changed = Signal(bool)

    def __init__(self) -> None:
        super().__init__()
        self.play = _button("play", "Play", "Watch the regions merge", checkable=True)
        self.back = _button("step back", "◀", "One step back")
        self.forth = _button("step forth", "▶", "One step on")
        self.loop = QCheckBox("loop")
        self.loop.setToolTip("Begin again at the end")
        self.speed = QComboBox()
        self.speed.setObjectName("speed")
        self.speed.addItems(list(SPEEDS))
        self.speed.setCurrentText("normal")
        self.speed.setToolTip("How fast")
        self.by = QComboBox()
        self.by.setObjectName("by")
        self.by.addItems(BY)
        self.by.setToolTip("Whether a step is a number of merges, or a difference of thresholds")
        top, bottom = QHBoxLayout(), QHBoxLayout()
        for widget in (self.back, self.play, self.forth, self.loop):
            top.addWidget(widget)
        top.addStretch(1)
        top.addWidget(self.speed)
        bottom.addWidget(self.by, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addLayout(top)
        column.addLayout(bottom)
        self._timer = QTimer(self)
        self._timer.setInterval(SPEEDS["normal"])
        self._timer.timeout.connect(lambda: self.stepped.emit(1))
        self.play.toggled.connect(self._on_play)
        self.back.clicked.connect(lambda: self.stepped.emit(-1))
        self.forth.clicked.connect(lambda: self.stepped.emit(1))
        self.speed.currentTextChanged.connect(lambda text: self._timer.setInterval(SPEEDS[text]))

    @property
    def playing(self) -> bool:
        """Whether it plays."""
        return self.play.isChecked()

    @property
    def by_threshold(self) -> bool:
        """Whether steps are differences of thresholds."""
        return self.by.currentText() == BY[1]

    def end(self) -> None:
        """There is no next frame: begin again, or stop."""
        if self.loop.isChecked() and self.playing:
            self.restarted.emit()
        else:
            self.play.setChecked(False)

    def hideEvent(self, event: QHideEvent | None) -> None:
        """Stop when it cannot be seen."""
        self.play.setChecked(False)
        if event is not None:
            super().hideEvent(event)

    def _on_play(self, on: bool) -> None:
        self.play.setText("Pause" if on else "Play")
        if on:
            self._timer.start()
        else:
            self._timer.stop()
        self.playing_changed.emit(on)


def _button(name: str, text: str, tooltip: str, checkable: bool = False) -> QToolButton:
    button = QToolButton()
    button.setObjectName(name)
    button.setText(text)
    button.setToolTip(tooltip)
    button.setCheckable(checkable)
    return button
