"""Text for the terminal: progress, tables, and numbers that can be typed back."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from napari_agglo._progress import Progress, ProgressCallback

if TYPE_CHECKING:
    import pandas as pd


# The best threshold of a curve, or of many, such that it can be typed.


def best_typed(curve: pd.DataFrame) -> str:
    """Return the threshold of the least VI, as short as gives the same state when typed."""
    row = int(curve["vi"].to_numpy().argmin())
    heights = [*curve["threshold"].tolist(), math.inf]
    return typed_threshold(heights[row], heights[row + 1])


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


def count(n: int, what: str) -> str:
    """Return "1 segment" or "2 segments".

    Examples
    --------
    >>> count(1, "segment"), count(0, "segment")
    ('1 segment', '0 segments')
    """
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def typed_threshold(threshold: float, following: float) -> str:
    """Return the shortest number that, typed as a threshold, gives the same state.

    Parameters
    ----------
    threshold : float
        Where the state begins; -inf for the superpixels.
    following : float
        Where the next state begins; inf for the last.

    Examples
    --------
    >>> typed_threshold(0.62614, 0.6267), typed_threshold(0.62614, 0.8)
    ('0.6262', '0.7')
    >>> typed_threshold(-math.inf, 0.0)  # no threshold from 0 up stays below 0
    'none'
    """
    from napari_agglo.evaluate import shortest_threshold

    if threshold == -math.inf:
        return "0.0" if following > 0 else "none"
    return repr(shortest_threshold(threshold, following))


def json_text(report: Any, indent: int | None = None) -> str:
    """Return JSON in which what is not finite is null: JSON has neither infinity nor NaN.

    Examples
    --------
    >>> json_text({"threshold": -math.inf, "vi": [0.5, math.nan]})
    '{"threshold": null, "vi": [0.5, null]}'
    """
    return json.dumps(_finite(report), indent=indent, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
