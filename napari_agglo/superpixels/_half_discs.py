"""Kernel of oriented gradients: distance of the histograms of two halves of a disc, at each pixel.

Strategy: a disc is divided by a line through its centre. Each half has one run of pixels in each of
its rows, so that a step to the next column adds one pixel and removes one in each row: the time
grows with the radius, not with the area.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import kernel


def half_discs(radius: int, turn: float) -> NDArray[np.int64]:
    """Return the runs of the two halves of a disc, shape (2, rows, 3): row, first, one past last.

    `turn` is the direction of the dividing line, in half turns counter-clockwise from a row; pixels
    on the line are in neither half. The two halves are of one size.
    """
    at = np.arange(-radius, radius + 1)
    rows, columns = np.meshgrid(at, at, indexing="ij")
    angle = math.pi * turn
    side = columns * math.sin(angle) + rows * math.cos(angle)
    inside = rows**2 + columns**2 <= radius**2
    runs = np.zeros((2, 2 * radius + 1, 3), np.int64)
    for half, mask in enumerate((inside & (side > 1e-9), inside & (side < -1e-9))):
        for k in range(2 * radius + 1):
            where = np.flatnonzero(mask[k])
            runs[half, k] = (k, where[0], where[-1] + 1) if where.size else (k, 0, 0)
    return runs


@kernel
def disc_gradient(
    words: Any, runs: Any, n_words: Any, reach: Any, scale: Any,
    counts: Any, wide: Any, terms: Any, out: Any,
) -> None:  # fmt: skip
    """Write half the chi-squared distance of the histograms of both halves, 0 to 1, to `out`.

    `words` has values below `n_words` and, on each side, as many more pixels as the radius; `runs`
    is of `half_discs`; `scale` is half of 1 over the size of a half, and over the bins that a bin
    takes in: itself and its neighbours up to `reach`, for values whose order means something.
    Buffers are `counts` (2, n_words + reach) of int32, `wide` (2, n_words) and `terms` of float32.
    No bounds checking.
    """
    height, width = out.shape
    n_rows = runs.shape[1]
    tiny = np.float32(1e-6)  # so that an empty bin divides 0 by something
    for r in range(height):
        counts[:] = 0
        for half in range(2):
            for k in range(n_rows):
                row = r + runs[half, k, 0]
                for c in range(runs[half, k, 1], runs[half, k, 2]):
                    counts[half, words[row, c]] += 1
        for c in range(width):
            for half in range(2):
                near = np.int32(0)
                for k in range(reach):
                    near += counts[half, k]
                for k in range(n_words):
                    near += counts[half, k + reach]
                    wide[half, k] = near
                    near -= counts[half, k - reach] if k >= reach else 0
            for k in range(n_words):  # of no branch and no sum, for the vector unit
                difference = wide[0, k] - wide[1, k]
                terms[k] = difference * difference / (wide[0, k] + wide[1, k] + tiny)
            total = np.float32(0)
            for k in range(n_words):
                total += terms[k]
            out[r, c] = scale * total
            if c + 1 == width:
                break
            for half in range(2):
                for k in range(n_rows):
                    first = runs[half, k, 1]
                    last = runs[half, k, 2]
                    if last > first:
                        row = r + runs[half, k, 0]
                        counts[half, words[row, c + first]] -= 1
                        counts[half, words[row, c + last]] += 1
