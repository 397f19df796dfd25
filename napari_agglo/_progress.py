"""Progress and cancel: one callback for both.

A stage that can take longer than a second accepts ``progress``, a function that it calls a few
times a second with a `Progress`. The function cancels by raising `napari_agglo.errors.Cancelled`;
the stage lets that pass through and leaves nothing half done.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, fields

from napari_agglo.errors import InvalidInput

_STEPS = 1000  # of a bar that several stages share


class WorkClock:
    """Time since the clock was made, without that in which kernels were compiled.

    The first run of a kernel compiles it: that time says nothing about the time that is left. The
    clock is of the whole process, where one thread at a time compiles.

    Examples
    --------
    >>> clock = WorkClock()
    >>> WorkClock.begin_compiling()
    >>> WorkClock.is_compiling()
    True
    >>> WorkClock.end_compiling()
    >>> WorkClock.is_compiling(), clock.seconds() >= 0
    (False, True)
    """

    _depth = 0  # of kernels that compile others
    _since = 0.0  # the beginning of the compilation that runs
    _compiled = 0.0  # seconds of all others

    def __init__(self) -> None:
        self._began = time.perf_counter() - self._spent_compiling()

    def seconds(self) -> float:
        """Return the seconds without compilation."""
        return time.perf_counter() - self._spent_compiling() - self._began

    @classmethod
    def is_compiling(cls) -> bool:
        """Return whether a kernel is being compiled."""
        return cls._depth > 0

    @classmethod
    def begin_compiling(cls) -> None:
        """Count the time from now on as compilation."""
        if cls._depth == 0:
            cls._since = time.perf_counter()
        cls._depth += 1

    @classmethod
    def end_compiling(cls) -> None:
        """End the compilation that was begun last."""
        cls._depth -= 1
        if cls._depth == 0:
            cls._compiled += time.perf_counter() - cls._since

    @classmethod
    def _spent_compiling(cls) -> float:
        return cls._compiled + (time.perf_counter() - cls._since if cls._depth else 0.0)


@dataclass(frozen=True, repr=False)
class Progress:
    """State of a stage: `done` of `total` steps.

    Parameters
    ----------
    stage : str
        The name of the stage, such as "graph".
    done, total : int
        The steps of the stage that are done, and all of them.
    share : float, optional
        The share of the whole work that is done, 0 to 1, where the stage is a part of a longer one.
    seconds_left : float, optional
        An estimate of the remaining time, once there is one.
    detail : str
        Further figures in words, such as "epoch 2, 5,000 examples".

    Examples
    --------
    >>> Progress("graph", 1, 2).whole, Progress("fit", 1, 2, share=0.9).whole
    (0.5, 0.9)
    """

    stage: str
    done: int
    total: int
    share: float | None = None
    seconds_left: float | None = None
    detail: str = ""

    @property
    def fraction(self) -> float:
        """Share of the stage that is done, 0 to 1; an empty job is a finished one."""
        return self.done / self.total if self.total else 1.0

    @property
    def whole(self) -> float:
        """Share of the whole work that is done, or of the stage where that is all, 0 to 1."""
        return self.fraction if self.share is None else self.share

    def __repr__(self) -> str:
        given = ((one.name, getattr(self, one.name), one.default) for one in fields(self))
        words = (f"{name}={value!r}" for name, value, default in given if value != default)
        return f"Progress({', '.join(words)})"

    def part(self, begin: float, end: float, stage: str = "") -> Progress:
        """Return this state as a part, from `begin` to `end`, of a longer work.

        Parameters
        ----------
        begin, end : float
            The share of the longer work, 0 to 1, at which the part begins and ends.
        stage : str
            A name of the part; by default that of this state.

        Returns
        -------
        Progress
            A state with the share of the longer work in thousandths.

        Examples
        --------
        >>> Progress("graph", 1, 2).part(0.2, 0.6)
        Progress(stage='graph', done=400, total=1000)
        """
        share = begin + (end - begin) * min(max(self.whole, 0.0), 1.0)
        return Progress(stage or self.stage, round(_STEPS * share), _STEPS)


ProgressCallback = Callable[[Progress], object]


def report(progress: ProgressCallback | None, stage: str, done: int, total: int) -> None:
    """Call `progress`, if there is one; it may raise `Cancelled`."""
    if progress is not None:
        check_progress(progress)
        progress(Progress(stage, done, total))


def check_progress(progress: object) -> None:
    """Refuse a value that cannot be called, such as ``progress=True``."""
    if progress is not None and not callable(progress):
        raise InvalidInput(
            f"`progress` must be a function that takes a Progress, got {progress!r}",
            argument="progress",
            remedy="pass a function such as print, or leave it out",
        )


def part_of(
    progress: ProgressCallback | None, begin: float, end: float, stage: str = ""
) -> ProgressCallback | None:
    """Return a callback for a part, from `begin` to `end`, of a longer work.

    Its bar never moves back, although each stage of the part begins at 0.

    Examples
    --------
    >>> states = []
    >>> second_half = part_of(states.append, 0.5, 1.0)
    >>> second_half(Progress("graph", 1, 2))
    >>> second_half(Progress("merges", 0, 9))
    >>> [(state.stage, state.whole) for state in states]
    [('graph', 0.75), ('merges', 0.75)]
    """
    if progress is None:
        return None
    check_progress(progress)
    latest = 0

    def forward(inner: Progress) -> None:
        nonlocal latest
        state = inner.part(begin, end, stage)
        latest = max(latest, state.done)
        progress(Progress(state.stage, latest, state.total))

    return forward
