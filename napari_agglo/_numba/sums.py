"""Compensated summation, so that sums of many numbers stay exact."""

from __future__ import annotations

from typing import Any

from napari_agglo._numba import inlined


@inlined
def rounding_error(a: Any, b: Any) -> Any:
    """Return the rounding error of a + b (Knuth's two-sum): a + b + error is exact.

    Sum the errors separately, and add that sum at the end.
    """
    total = a + b
    of_b = total - a
    return (a - (total - of_b)) + (b - of_b)
