"""Play, pause, step and loop: the agglomerations happen before one's eyes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from qtpy.QtCore import QTimer, Signal
from qtpy.QtGui import QHideEvent
from qtpy.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFileDialog,
    QHBoxLayout,
    QSpinBox,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from napari_agglo._progress import ProgressCallback
from napari_agglo.movie import write_movie
from napari_agglo.widgets._jobs import RunRow
from napari_agglo.widgets._qt import tell
from napari_agglo.widgets.compare._director import Director

# Save what is compared as a movie, in a worker.


FILM = "film"  # the name of the job
_FILTER = "Movies (*.mp4 *.gif);;Folder of frames (*)"


class Film(QWidget):
    """A button and a number of frames."""

    def __init__(self, director: Director) -> None:
        super().__init__()
        self._director = director
        self.by_threshold: Callable[[], bool] = lambda: False
        self.frames = QSpinBox()
        self.frames.setObjectName("frames")
        self.frames.setRange(2, 2000)
        self.frames.setValue(120)
        self.frames.setSuffix(" frames")
        self.frames.setToolTip("How many frames the movie has; it plays 12 a second")
        self.run = RunRow(
            director.project,
            FILM,
            "Save movie…",
            "Write the agglomerations of all panels, plane in view, as MP4, GIF or frames",
            self._choose,
        )
        self.run.row.addWidget(self.frames)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.run)

    def _choose(self) -> None:
        path, _ = QFileDialog.getSaveFileName(self, "Save movie", "agglomeration.mp4", _FILTER)
        if path:
            self.save(Path(path))

    def save(self, path: Path) -> None:
        """Write the movie."""
        comparison = self._director.comparison
        if comparison is None:
            return
        panels: dict[str, Any] = {}
        for panel in comparison.panels:
            panels[panel.name] = (
                panel.names[panel.base.image] if panel.cut is None else panel.cut.tree
            )
        options = {
            "image": self._image(),
            "plane": self._plane(),
            "frames": self.frames.value(),
            "spacing": comparison.graph.spacing,
            "by": "threshold" if self.by_threshold() else "merges",
        }

        def work(progress: ProgressCallback) -> Path:
            return write_movie(path, panels, progress=progress, **options)

        self._director.project.jobs.start(
            FILM, "Writing the movie", work, lambda made: tell(f"The movie is in {made}.")
        )

    def _image(self) -> Any:
        cells = self._director.stage.cells
        return cells[0].image.data if cells and cells[0].image is not None else None

    def _plane(self) -> tuple[int, ...] | None:
        """Return the plane that is looked at."""
        comparison, viewer = self._director.comparison, self._director.stage.viewer
        if comparison is None or viewer is None:
            return None
        shape = comparison.graph.superpixels.image.shape
        steps = viewer.dims.current_step[-len(shape) :]
        return tuple(
            min(max(int(k), 0), n - 1) for k, n in zip(steps[:-2], shape[:-2], strict=True)
        ) or None  # fmt: skip


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
