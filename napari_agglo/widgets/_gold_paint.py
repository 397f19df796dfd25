"""Gold that is painted in place: what was made of it before is stale.

The array stays the same one, so nothing else tells. Strokes are counted, which costs nothing; what
was made remembers how many there had been when the making began.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psygnal import Signal

from napari_agglo.widgets._jobs import Jobs


class GoldPaint:
    """The strokes in the gold labels of a project."""

    stale = Signal()  # the first stroke since something was made of the gold

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self.strokes = 0
        self._began: dict[str, int] = {}  # strokes when a job began
        self._made: dict[str, int] = {}  # and when what is there now was begun
        jobs.changed.connect(self._on_job)

    def paint(self, data: Any, golds: Sequence[Any]) -> None:
        """Say that an array was painted in; it counts if it is one of `golds`."""
        if data is not None and any(data is gold for gold in golds):
            fresh = self.strokes in self._made.values()
            self.strokes += 1
            if fresh:
                self.stale.emit()

    def made(self, what: str, *jobs: str) -> None:
        """Say that something was made of the gold, by whichever of the jobs is running."""
        began = [self._began[name] for name in jobs if self._jobs[name] is not None]
        if began:
            self._made[what] = min(began)

    def since(self, what: str) -> bool:
        """Return whether gold was painted since something was made of it."""
        return self._made.get(what, self.strokes) != self.strokes

    def _on_job(self, name: str) -> None:
        if self._jobs[name] is not None:
            self._began[name] = self.strokes
