"""Thresholds in words and in files, their range, and the state before any merge."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

BEFORE = "before any merge"
_BELOW_ZERO = -5e-324  # the largest number below 0: journals have it for merges at 0
_LEAST = -1e-300  # numbers from here to 0 are no priorities of any policy


def below_first(first: float) -> float:
    """Return a threshold below the first merge, which is at `first`.

    Examples
    --------
    >>> below_first(0.2), below_first(0.0), below_first(-0.25)
    (0.0, -5e-324, -1.0)
    """
    if first > 0:
        return 0.0
    if first == 0:
        return _BELOW_ZERO
    whole = float(math.floor(first))
    return min(whole if whole < first else whole - 1, math.nextafter(first, -math.inf))


def is_before(threshold: float, first: float = -math.inf) -> bool:
    """Return whether a threshold stands for the state before any merge.

    Where the threshold of the first merge is known, so does `below_first` of it. A number between
    the two is one that somebody chose, and stays a number.

    Examples
    --------
    >>> is_before(-5e-324), is_before(0.0), is_before(0.0, first=0.2), is_before(0.1, first=0.2)
    (True, False, True, False)
    """
    if threshold == -math.inf or _LEAST < threshold < 0:
        return True
    return first > -math.inf and threshold <= below_first(first)


def is_beyond(threshold: float) -> bool:
    """Return whether a threshold is out of reach of priorities that are from 0 to 1.

    A value that stands for the state before any merge, and infinity, are no such thresholds.

    Examples
    --------
    >>> [is_beyond(threshold) for threshold in (30, -1, 1.0, -5e-324, math.inf)]
    [True, True, False, False, False]
    """
    return not is_before(threshold) and math.isfinite(threshold) and not 0 <= threshold <= 1


def threshold_text(threshold: float, first: float = -math.inf) -> str:
    """Return a threshold with its own digits, rounded if it has more than fifteen.

    A threshold of the slider has as few digits as tell its state from the next.

    Examples
    --------
    >>> [threshold_text(t) for t in (0.5, 0.62614, 1 / 3, -5e-324, -0.25)]
    ['0.5', '0.62614', '0.333333', 'before any merge', '-0.25']
    >>> threshold_text(0.0, first=0.2)
    'before any merge'
    """
    if is_before(threshold, first):
        return BEFORE
    short = f"{threshold:.15g}"
    return short if float(short) == threshold else f"{threshold:.6g}"


def threshold_phrase(threshold: float, first: float = -math.inf) -> str:
    """Return ``at 0.5``, or ``before any merge``.

    Examples
    --------
    >>> threshold_phrase(0.5), threshold_phrase(-5e-324)
    ('at 0.5', 'before any merge')
    """
    return BEFORE if is_before(threshold, first) else f"at {threshold_text(threshold)}"


def plain_threshold(threshold: float) -> float:
    """Return a threshold for a table: -inf before any merge, as in the tables of errors."""
    return -math.inf if is_before(threshold) else threshold


def plain_thresholds(thresholds: ArrayLike) -> NDArray[np.float64]:
    """Return thresholds for a column of a table, as `plain_threshold` does.

    Examples
    --------
    >>> plain_thresholds([-np.inf, -5e-324, 0.0, 0.5]).tolist()
    [-inf, -inf, 0.0, 0.5]
    """
    values = np.asarray(thresholds, float)
    return np.where((values > _LEAST) & (values < 0), -np.inf, values)
