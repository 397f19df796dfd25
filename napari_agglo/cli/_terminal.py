"""What the user sees while waiting, and tables."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from napari_agglo._progress import Progress, ProgressCallback


@contextmanager
def progress_line() -> Iterator[ProgressCallback | None]:
    """Give a callback that keeps one line on stderr up to date; None where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    shown = ""

    def show(progress: Progress) -> None:
        nonlocal shown
        line = f"{progress.stage} {100 * progress.fraction:3.0f} %"
        if line != shown:
            shown = line
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


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
