"""Sums of many numbers that are as exact as sums of few."""

from __future__ import annotations

from typing import Any

from napari_agglo._numba import inlined


@inlined
def rounding_error(a: Any, b: Any) -> Any:
    """Return what a + b loses by rounding (Knuth's two-sum): a + b + error is exact.

    Add the errors up beside the sum, and the two together at the end.
    """
    total = a + b
    of_b = total - a
    return (a - (total - of_b)) + (b - of_b)
