"""Save what is compared as a movie, in a worker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from qtpy.QtWidgets import QFileDialog, QHBoxLayout, QSpinBox, QWidget

from napari_agglo._progress import ProgressCallback
from napari_agglo.movie import write_movie
from napari_agglo.widgets._notices import tell
from napari_agglo.widgets._run_row import RunRow
from napari_agglo.widgets.compare._director import Director

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
