"""Curves of equal contribution to the VI, behind the dots of a breakdown."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Line = NDArray[np.float64]


def equal_contribution(most: float, low: float, high: float) -> tuple[Line, Line]:
    """Return three curves size * entropy = value, over logarithms of sizes from `low` to `high`.

    Parameters
    ----------
    most : float
        The largest contribution, in bits; the curves are at the power of ten below, and at a tenth
        and a hundredth of that. None are drawn if it is 0.

    Returns
    -------
    x, y : ndarray
        With a NaN between two curves.

    Examples
    --------
    >>> x, y = equal_contribution(0.05, -2.0, 0.0)
    >>> float(y[0]), float(y[79])
    (0.01, 0.0001)
    """
    if not most > 0:
        return np.zeros(0), np.zeros(0)
    top = 10.0 ** math.floor(math.log10(most))
    x = np.append(np.linspace(low, high, 80), math.nan)
    return np.tile(x, 3), np.concatenate([value / 10**x for value in (top / 100, top / 10, top)])
