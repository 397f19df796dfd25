"""Progress of the stages of a block-wise run, to which many threads report."""

# In its own file, apart from `_engine`, which decides what is done: here is what is shown of it.

from __future__ import annotations

import threading
import time
from contextlib import suppress

from napari_agglo._progress import Progress, ProgressCallback
from napari_agglo.blocks._run_files import Job
from napari_agglo.blocks._stages import Stage
from napari_agglo.errors import Cancelled

_PAUSE = 0.3  # seconds between two reports from inside of tasks


class BesideProgress:
    """Progress of stages beside others: shown once these have ended, and stopped if they fail."""

    def __init__(self, progress: ProgressCallback | None) -> None:
        self.has_failed = False
        self._progress = progress
        self._hidden: dict[str, Progress] | None = {}
        self._lock = threading.Lock()

    def tell(self, state: Progress) -> None:
        """Take a state of a stage: show the first one, and keep later ones until `show`."""
        if self.has_failed:
            raise Cancelled("Cancelled.")
        with self._lock:
            if self._hidden is not None and self._hidden.setdefault(state.stage, state) != state:
                self._hidden[state.stage] = state
            elif self._progress is not None:
                self._progress(state)

    def show(self) -> None:
        """Show the last states of the stages, and their progress from now on."""
        with self._lock:
            hidden, self._hidden = self._hidden or {}, None
            for state in hidden.values():
                if self._progress is not None:
                    self._progress(state)


class StageProgress:
    """Progress of a stage, and the event that stops its tasks; many threads report to it."""

    def __init__(
        self,
        job: Job,
        stage: Stage,
        left: list[int],
        progress: ProgressCallback | None,
    ) -> None:
        self.stop = threading.Event()
        self.error: BaseException | None = None
        self._job, self._stage, self._progress = job, stage, progress
        self._total, self._done = stage.tasks, stage.tasks - len(left)
        self._todo, self._finished, self._voxels = len(left), 0, 0
        self._inside = 0.0  # share of the task of a stage of one
        self._began = self._last = time.monotonic()
        self._lock = threading.Lock()

    def add(self, index: int) -> None:
        """Count a finished task."""
        with self._lock:
            self._done += 1
            self._finished += 1
            if self._stage.voxels:
                self._voxels += self._job.grid.voxels(index)
        self.tell()

    def inner(self, inside: Progress) -> None:
        """Pass on the progress of a task; stop the task if the run is stopped."""
        if self.stop.is_set():
            raise Cancelled("Cancelled.")
        if time.monotonic() - self._last >= _PAUSE:
            self.tell(inside.whole if self._total == 1 else 0.0)

    def wait(self, n: int) -> None:
        """Report that a run which was stopped waits for so many tasks."""
        if self._progress is None:
            return
        with suppress(Exception), self._lock:  # a cancel is on its way already
            detail = f"waiting for {n} task{'s' if n != 1 else ''} that workers have begun"
            self._progress(Progress(self._stage.name, self._done, self._total, detail=detail))

    def tell(self, inside: float = 0.0) -> None:
        """Report the progress of the stage."""
        if self._progress is None:
            return
        with self._lock:
            self._last = time.monotonic()
            spent = self._last - self._began
            rate = self._voxels / spent if self._voxels and spent else 0.0
            left = (
                (self._todo - self._finished) * spent / self._finished if self._finished else None
            )
            detail = f"{self._done}/{self._total}"
            if rate:
                detail += f", {rate / 1e6:.1f} Mvoxel/s"
            done, total = self._done, self._total
            if total == 1:  # its task may have several parts, each from 0 to 1: never go back
                self._inside = 1.0 if done else max(self._inside, inside)
                done, total = round(1000 * self._inside), 1000
            state = Progress(self._stage.name, done, total, seconds_left=left, detail=detail)
            try:
                self._progress(state)
            except BaseException as error:
                self.error = error
                self.stop.set()
                raise
