"""Playback of agglomerations side by side, and their export as a movie."""

# In its own file: the player, apart from the choice of panels.

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

from napari.utils.notifications import show_info
from qtpy.QtCore import QTimer, Signal
from qtpy.QtGui import QHideEvent
from qtpy.QtWidgets import QWidget

from napari_agglo._progress import ProgressCallback
from napari_agglo.movie import movie, write_movie
from napari_agglo.widgets._forms import Form, ask_form
from napari_agglo.widgets._progress_row import RunRow
from napari_agglo.widgets._qt import column, row, tool_button
from napari_agglo.widgets.compare._controller import CompareController

SPEEDS = {"slow": 400, "normal": 120, "fast": 40}  # milliseconds between two frames


class Unit(Enum):
    """The unit of a step."""

    MERGES = "by merges"
    THRESHOLD = "by threshold"


class Playback(QWidget):
    """Buttons that request the next frame, in either direction, by `stepped`.

    The owner calls `end` after the last frame.
    """

    stepped = Signal(int)  # +1 or -1
    restarted = Signal()  # a loop goes back to the beginning

    def __init__(self) -> None:
        super().__init__()
        self.play = tool_button("Play", "Play the merges of all panels", "play", checkable=True)
        self.play.setMinimumWidth(56)
        self.back = tool_button("◀", "One step back", "step back")
        self.forward = tool_button("▶", "One step forward", "step forward")
        again = {"label": "loop", "tooltip": "Start again after the last step"}
        self.loop = Form(table={"loop": Annotated[bool, again]}, labels=False, layout="horizontal")
        self.options = Form(
            table={
                "speed": Annotated[
                    str, {"choices": tuple(SPEEDS), "tooltip": "Speed of the playback"}
                ],
                "by": Annotated[
                    Unit, {"tooltip": "A step is a number of merges, or an interval of thresholds"}
                ],
            },
            labels=False,
            layout="horizontal",
        )
        self.options.show_values({"speed": "normal", "by": Unit.MERGES})
        top = row(self.back, self.play, self.forward, self.loop)  # all in a narrow dock
        top.addStretch(1)
        column(self, top, self.options)
        self._timer = QTimer(self)
        self._timer.setInterval(SPEEDS["normal"])
        self._timer.timeout.connect(lambda: self.stepped.emit(1))
        self.play.toggled.connect(self._on_play)
        self.back.clicked.connect(lambda: self.stepped.emit(-1))
        self.forward.clicked.connect(lambda: self.stepped.emit(1))
        self.options["speed"].changed.connect(lambda speed: self._timer.setInterval(SPEEDS[speed]))

    @property
    def by_threshold(self) -> bool:
        """Whether steps are intervals of thresholds."""
        return bool(self.options["by"].value is Unit.THRESHOLD)

    def end(self) -> None:
        """Start again, or stop, after the last frame."""
        if self.loop["loop"].value and self.play.isChecked():
            self.restarted.emit()
        else:
            self.play.setChecked(False)

    def hideEvent(self, event: QHideEvent | None) -> None:
        """Stop when the controls are hidden."""
        self.play.setChecked(False)
        if event is not None:
            super().hideEvent(event)

    def _on_play(self, on: bool) -> None:
        self.play.setText("Pause" if on else "Play")
        if on:
            self._timer.start()
        else:
            self._timer.stop()


MOVIE = "movie"  # the name of the job


class MovieExport(RunRow):
    """A button that asks for the options of a movie, and writes it in a worker."""

    def __init__(self, controller: CompareController, playback: Playback) -> None:
        super().__init__(
            controller.project,
            MOVIE,
            "Save movie…",
            "Write the agglomerations of all panels in the current plane as MP4, GIF or frames",
            self.ask,
        )
        self._controller, self._playback = controller, playback

    def ask(self) -> Any:
        """Ask for the file and the options; return the dialog."""
        form = Form(
            write_movie,
            movie,
            table={
                "path": Annotated[Path, {"label": "File", "mode": "w", "name": "movie path"}],
                "fps": {"label": "Frames/s"},
                "by": {"label": "Steps by"},
                "size": {"suffix": " pixels"},
                "start": {"label": "From"},
                "stop": {"label": "To"},
            },
            first=("path", "fps", "frames", "by", "size"),
        )
        by = "threshold" if self._playback.by_threshold else "merges"
        form.show_values({"path": Path.home() / "agglomeration.mp4", "by": by})
        return ask_form(self, "Save movie", form, "Save", self.save)

    def save(self, path: Path, **options: Any) -> None:
        """Write the movie in a worker, with options of `movie` and `write_movie`."""
        comparison = self._controller.comparison
        if comparison is None:
            return
        panels: dict[str, Any] = {
            panel.name: panel.names[panel.base.image] if panel.cut is None else panel.cut.tree
            for panel in comparison.panels
        }
        cells = self._controller.grid.cells
        image = cells[0].image.data if cells and cells[0].image is not None else None
        options |= {
            "image": image, "plane": self._plane(), "spacing": comparison.graph.spacing
        }  # fmt: skip

        def work(progress: ProgressCallback) -> Path:
            return write_movie(path, panels, progress=progress, **options)

        self._controller.project.jobs.start(
            MOVIE, "Writing the movie", work, lambda file: show_info(f"Saved {file}.")
        )

    def _plane(self) -> tuple[int, ...] | None:
        """Return the index of the visible plane."""
        comparison, viewer = self._controller.comparison, self._controller.grid.viewer
        if comparison is None or viewer is None:
            return None
        shape = comparison.graph.superpixels.image.shape
        steps = viewer.dims.current_step[-len(shape) :]
        return tuple(
            min(max(int(k), 0), n - 1) for k, n in zip(steps[:-2], shape[:-2], strict=True)
        ) or None  # fmt: skip
