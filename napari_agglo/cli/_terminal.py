"""The terminal of a command: results on stdout; progress, notes and errors on stderr."""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from napari_agglo._progress import (
    Progress,
    ProgressCallback,
    WorkClock,
    part_of,
)
from napari_agglo.cli._messages import describe, option_of, render
from napari_agglo.errors import DataWarning

if TYPE_CHECKING:
    import pandas as pd

LOG_SECONDS = 5.0  # between two lines of progress where there is no terminal

TICK = 1.0  # seconds between two looks at the clock, while a stage reports nothing
LONG_SECONDS = 10.0  # from which on the line on a terminal has the time
# The stages of a command, in their order, by the beginnings of their names, each with its share of
# the work; an empty name stands for any stage.
Stages = Sequence[tuple[str, float]]
GRAPH: Stages = (("reading superpixels", 1), ("numbering", 2), ("reading", 1), ("graph", 6))
TREE: Stages = (("agglomerate", 6),)
WRITE: Stages = (("writing", 2),)
SESSION: Stages = (("reading the session", 2), ("replaying edits", 2))


class Console:
    """All that one command prints, and the names that its messages use.

    Attributes
    ----------
    options : dict of str to str
        Argument of the library to the option that sets it.
    files : dict of str to str
        Argument of the library to the file that it is, filled as files are opened.
    """

    def __init__(
        self, options: Mapping[str, str] | None = None, verbosity: int = 0, as_json: bool = False
    ) -> None:
        self.options = dict(options or {})
        self.files: dict[str, str] = {}
        self.verbosity = verbosity  # -1 quiet, 0, 1 verbose
        self.as_json = as_json
        self.image = (0, 1)  # the number of the present image, of so many
        self._began = self._logged = time.monotonic()

    def result(self, text: str, data: Mapping[str, Any], *, asked_for: bool = False) -> None:
        """Print a result: `data` with ``--json``, else `text`, unless ``-q`` drops it.

        Numbers that a user has asked for are printed with ``-q`` too.
        """
        if self.as_json:
            print(json_text(data), flush=True)
        elif asked_for or self.verbosity >= 0:
            print(text, flush=True)

    def note(self, message: str) -> None:
        """Print one line to stderr."""
        print(f"napari-agglo: {' '.join(message.split())}", file=sys.stderr, flush=True)

    def warn(self, message: str) -> None:
        """Print a warning to stderr, with options in place of arguments of the library."""
        self.note(f"warning: {render(DataWarning(message), self.files, self.options)}")

    def fail(self, error: Exception, image: str = "") -> int:
        """Print the message of an error, of one `image` among many, and return the exit status."""
        message, status = describe(error, self.files, self.options)
        self.note(f"{image}: {message}" if image and image not in message else message)
        return status

    def option(self, argument: str) -> str:
        """Return the option that gives an argument of the library."""
        return option_of(argument, self.options)

    @contextmanager
    def progress(
        self, stages: Stages = (), span: tuple[float, float] = (0.0, 1.0)
    ) -> Iterator[ProgressCallback | None]:
        """Yield a callback that shows the progress of the whole command.

        On a terminal it keeps one line up to date; elsewhere, such as in the log of a cluster, it
        prints a line every five seconds, also while a stage reports nothing. With ``-v`` it prints
        a line for each stage.

        `stages` are those that will be reported, one after another, each from 0 to 1. `span` is the
        beginning and the end of their share of the whole command, where other work comes before or
        after them. Of many images (``--each``) each has its share of the span.
        """
        if self.verbosity < 0:
            yield None
            return
        on_terminal = sys.stderr.isatty() and self.verbosity == 0
        number, images = self.image
        with self._ticking(self._rewrite_line() if on_terminal else self._log_lines()) as shown:
            show: ProgressCallback | None = shown
            begin, width = span[0], (span[1] - span[0]) / images
            if width < 1:
                show = part_of(show, begin + width * number, begin + width * (number + 1))
            try:
                yield one_work(show, stages)
            finally:
                if on_terminal:
                    print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    @contextmanager
    def _ticking(self, show: ProgressCallback) -> Iterator[ProgressCallback]:
        """Yield `show`, which a thread calls again with the last state while none is reported.

        A reader of a large file or the compiler of a kernel may report nothing for a minute.
        """
        last: Progress | None = None
        stopped, one_at_a_time = threading.Event(), threading.Lock()

        def tell(state: Progress) -> None:
            nonlocal last
            with one_at_a_time:
                last = state
                show(state)

        def tick() -> None:
            while not stopped.wait(TICK):
                with one_at_a_time, suppress(OSError, ValueError):  # stderr may be closed
                    if stopped.is_set():
                        return
                    if last is not None:
                        show(last)
                    elif time.monotonic() - self._began >= LOG_SECONDS:
                        show(Progress("starting", 0, 1))

        thread = threading.Thread(target=tick, daemon=True)
        thread.start()
        try:
            yield tell
        finally:
            with one_at_a_time:  # no line after those of the command
                stopped.set()

    def _log_lines(self) -> ProgressCallback:
        stage = ""

        def log(progress: Progress) -> None:
            nonlocal stage
            now = time.monotonic()
            begins = self.verbosity > 0 and progress.stage != stage
            if begins or now - self._logged >= LOG_SECONDS:
                self.note(f"{self._text(progress)}, {now - self._began:.0f} s")
                self._logged = now
            stage = progress.stage

        return log

    def _rewrite_line(self) -> ProgressCallback:
        shown = ""

        def show(progress: Progress) -> None:
            nonlocal shown
            line, seconds = self._text(progress), time.monotonic() - self._began
            if seconds >= LONG_SECONDS:
                line += f", {seconds:.0f} s"
            if line != shown:
                shown = line
                print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

        return show

    def _text(self, progress: Progress) -> str:
        number, images = self.image
        image = f"image {number + 1} of {images}, " if images > 1 else ""
        compiling = ", compiling (first run only)" if WorkClock.is_compiling() else ""
        return f"{image}{_progress_text(progress)}{compiling}"


def one_work(progress: ProgressCallback | None, stages: Stages) -> ProgressCallback | None:
    """Return a callback to which stages, each from 0 to 1, are one work that never moves back.

    A stage that is left out, because its result is known already, counts as done. One that is not
    among `stages` leaves the progress where it is.

    Examples
    --------
    >>> states = []
    >>> show = one_work(states.append, [("reading", 1), ("graph", 3)])
    >>> for stage, done in (("reading a", 1), ("reading a", 2), ("graph", 1)):
    ...     show(Progress(stage, done, 2))
    >>> [(state.stage, state.whole) for state in states]
    [('reading a', 0.125), ('reading a', 0.25), ('graph', 0.625)]
    """
    if progress is None or not stages:
        return progress
    total = sum(share for _, share in stages)
    waiting = list(stages)
    before, share = 0.0, 0.0  # of the stages that are done, and of the present one
    beginning: str | None = None  # of the present stage, in `stages`
    last: Progress | None = None
    highest = 0.0

    def show(state: Progress) -> None:
        nonlocal before, share, beginning, last, highest
        if last is None or state.stage != last.stage or state.whole < last.whole:
            at = next((k for k, (n, _) in enumerate(waiting) if state.stage.startswith(n)), None)
            if at is not None:
                before += share + sum(one for _, one in waiting[:at])
                beginning, share = waiting[at]
                del waiting[: at + 1]
            elif beginning != "":
                before, share = before + share, 0.0
        last = state
        if beginning is None:  # nothing that was expected yet
            progress(state)
            return
        highest = max(highest, (before + share * state.whole) / total)
        progress(replace(state, share=highest))

    return show


def _progress_text(progress: Progress) -> str:
    text = f"{progress.stage} {100 * progress.whole:3.0f} %"
    if progress.detail:
        text += f", {progress.detail}"
    if progress.seconds_left is not None:
        text += f", about {progress.seconds_left:.0f} s left"
    return text


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Lay out a table: the first column to the left, numbers to the right.

    Examples
    --------
    >>> print(table(["what", "VI"], [["superpixels", 3.14159], ["best", 1.5]]))
    what            VI
    superpixels  3.142
    best         1.500
    """
    cells = [list(header)] + [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        first, *rest = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        lines.append("  ".join([first.strip().ljust(widths[0]), *rest]).rstrip())
    return "\n".join(lines)


def _cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def count(n: int, noun: str) -> str:
    """Return "1 segment" or "2 segments".

    Examples
    --------
    >>> count(1, "segment"), count(0, "segment")
    ('1 segment', '0 segments')
    """
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def best_threshold(curve: pd.DataFrame) -> str:
    """Return the threshold of the least VI, as short as gives the same state when typed."""
    row = int(curve["vi"].to_numpy().argmin())
    heights = [*curve["threshold"].tolist(), math.inf]
    return typed_threshold(heights[row], heights[row + 1])


def typed_threshold(threshold: float, following: float) -> str:
    """Return the shortest number that, typed as a threshold, gives the same state.

    The state begins at `threshold`, -inf for the superpixels, and the next at `following`, inf for
    the last.

    Examples
    --------
    >>> typed_threshold(0.62614, 0.6267), typed_threshold(0.62614, 0.8)
    ('0.6262', '0.7')
    >>> typed_threshold(-math.inf, 0.0)  # no threshold from 0 up stays below 0
    'none'
    """
    from napari_agglo.agglomeration import is_before
    from napari_agglo.evaluate import shortest_threshold

    if is_before(threshold):
        return "0.0" if following > 0 else "none"
    return repr(shortest_threshold(threshold, following))


def json_text(report: Any, indent: int | None = None) -> str:
    """Return JSON in which a number that is not finite is null: JSON has no infinity and no NaN.

    Examples
    --------
    >>> json_text({"threshold": -math.inf, "vi": [0.5, math.nan]})
    '{"threshold": null, "vi": [0.5, null]}'
    """
    return json.dumps(_finite(report), indent=indent, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
