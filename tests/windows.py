"""What a person does with a window, for tests: show, wait."""

from __future__ import annotations

import time
from typing import Any

import napari_agglo as agglo


def show(project: Any, dataset: Any, threshold: float = 0.3) -> None:
    """Bring a project to a mean hierarchy of `dataset`."""
    from napari_agglo.widgets._project import Built, Regions

    regions = Regions(dataset, dataset.graph())
    project.set_dataset(dataset)
    project.regions = regions
    project.threshold = threshold
    tree = agglo.agglomerate(regions.graph, "mean")
    project.built = Built(tree, regions, project.policy, dataset.gold)


def settle(project: Any, seconds: float = 60) -> None:
    """Process events until no job runs, and nothing is asked of the session."""
    from qtpy.QtWidgets import QApplication

    until = time.monotonic() + seconds
    while True:
        QApplication.processEvents()
        if not project.jobs.running() and not project.worker.pending:
            break
        if time.monotonic() > until:
            raise TimeoutError(f"still running: {project.jobs.running()}")
        time.sleep(0.005)
    QApplication.processEvents()


def draw() -> None:
    """Let the window draw all that is due."""
    from qtpy.QtWidgets import QApplication

    for _ in range(6):
        QApplication.processEvents()
        time.sleep(0.005)


class Watch:
    """Notes for how long the event loop stood still, the longest times first, in milliseconds."""

    def __init__(self) -> None:
        from qtpy.QtCore import QTimer

        self.gaps: list[float] = []
        self._last: float | None = None
        self._timer = QTimer()
        self._timer.setInterval(2)
        self._timer.timeout.connect(self._tick)

    def __enter__(self) -> Watch:
        self._last = time.perf_counter()
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._tick()
        self._timer.stop()

    def _tick(self) -> None:
        now = time.perf_counter()
        if self._last is not None:
            self.gaps.append(1000 * (now - self._last))
        self._last = now

    def worst(self, n: int = 3) -> list[int]:
        """Return the longest times and forget them."""
        found = sorted(self.gaps, reverse=True)[:n]
        self.gaps = []
        return [round(one) for one in found]
