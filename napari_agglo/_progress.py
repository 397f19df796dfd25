"""Progress and cancel: one callback for both.

A stage that can take longer than a second accepts ``progress``, a function that it calls a few
times a second with a `Progress`. The function cancels by raising `napari_agglo.errors.Cancelled`;
the stage lets that pass through and leaves nothing half done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from napari_agglo.errors import InvalidInput


@dataclass(frozen=True)
class Progress:
    """State of a stage: `done` of `total` steps."""

    stage: str
    done: int
    total: int

    @property
    def fraction(self) -> float:
        """Share of the work done, 0 to 1; an empty job is a finished one."""
        return self.done / self.total if self.total else 1.0


ProgressCallback = Callable[[Progress], object]


def report(progress: ProgressCallback | None, stage: str, done: int, total: int) -> None:
    """Tell `progress`, if there is one; it may raise `Cancelled`."""
    if progress is not None:
        check_progress(progress)
        progress(Progress(stage, done, total))


def check_progress(progress: object) -> None:
    """Refuse what cannot be called; ``progress=True`` is an easy mistake."""
    if progress is not None and not callable(progress):
        raise InvalidInput(
            f"`progress` must be a function that takes a Progress, got {progress!r}",
            argument="progress",
            remedy="pass a function such as print, or leave it out",
        )


@dataclass(frozen=True)
class TrainingProgress(Progress):
    """State of a training: `done` of `total` steps of a `stage` of an `epoch`."""

    epoch: int
    examples: int
    share: float  # of the whole training, 0 to 1
    seconds_left: float | None  # an estimate, once there is one


# Progress over many steps, from the progress within each.


_GRAIN = 1000  # parts of a step


class Watch:
    """Progress over all steps, from the progress within each."""

    def __init__(self, progress: ProgressCallback | None, steps: int) -> None:
        self.progress = progress
        self.total = steps * _GRAIN
        self.steps_done = 0
        self.latest = 0

    def part(self, stage: str, start: float, width: float) -> ProgressCallback | None:
        """Return a callback for a part of the present step; it never goes back."""
        progress = self.progress
        if progress is None:
            return None

        def tell(inner: Progress) -> None:
            share = getattr(inner, "share", inner.fraction)
            done = int(_GRAIN * (self.steps_done + start + width * min(share, 1.0)))
            self.latest = max(self.latest, done)
            progress(Progress(stage, self.latest, self.total))

        return tell

    def step(self) -> None:
        self.steps_done += 1

    def finish(self) -> None:
        if self.progress is not None:
            self.progress(Progress("done", self.total, self.total))
