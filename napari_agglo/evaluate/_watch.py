"""Progress over many steps, from the progress within each."""

from __future__ import annotations

from napari_agglo._progress import Progress, ProgressCallback

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
