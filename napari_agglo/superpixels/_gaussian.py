"""Kernels of Gaussian smoothing: the values of scipy's `gaussian_filter1d`, in a third of the time.

scipy copies each line to float64 and back. Here rows of voxels are added to a buffer of float64,
in scipy's order of summation, which LLVM turns into vectors.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from napari_agglo._numba import inlined, kernel
from napari_agglo.superpixels._flood_queue import Array

_BUFFER = 2048  # values of a row that are summed at a time: few enough to stay in the cache


def smooth_axis(values: Array, sigma: float, axis: int, truncate: float) -> Array:
    """Return `values` smoothed along one axis; the edge voxel is repeated beyond the border.

    Parameters
    ----------
    values : ndarray of float32
    sigma, truncate
        Standard deviation in voxels, and the number of these at which the Gaussian ends.

    Examples
    --------
    >>> import numpy as np
    >>> smooth_axis(np.array([0, 0, 1, 0, 0], np.float32), 0.5, 0, 4.0).round(2)
    array([0.  , 0.11, 0.79, 0.11, 0.  ], dtype=float32)
    """
    radius = int(truncate * sigma + 0.5)
    phi = np.exp(-0.5 / (sigma * sigma) * np.arange(-radius, radius + 1) ** 2)
    weights = (phi / phi.sum())[radius:]
    source = np.ascontiguousarray(values)
    out = np.empty_like(source)
    n, after = source.shape[axis], math.prod(source.shape[axis + 1 :])
    if after == 1:
        line = np.empty(n + 2 * radius, np.float32)
        _smooth_lines(source.reshape(-1, n), weights, line, np.empty(n), out.reshape(-1, n))
    else:
        blocks = (-1, n, after)
        _smooth_rows(source.reshape(blocks), weights, np.empty(_BUFFER), out.reshape(blocks))
    return out


@inlined
def _add_pair(low: Any, high: Any, weight: Any, sums: Any, size: Any) -> None:
    """Add the weighted sums of two rows to `sums`."""
    for i in range(size):
        sums[i] += (np.float64(low[i]) + np.float64(high[i])) * weight


@kernel
def _smooth_rows(source: Any, weights: Any, sums: Any, out: Any) -> None:
    """Smooth along the middle of three axes. No bounds checking is performed."""
    last = source.shape[1] - 1
    for block in range(source.shape[0]):
        for row in range(last + 1):
            for start in range(0, source.shape[2], sums.size):
                size = min(sums.size, source.shape[2] - start)
                here = source[block, row, start : start + size]
                for i in range(size):
                    sums[i] = here[i] * weights[0]
                for step in range(weights.size - 1, 0, -1):
                    low = source[block, max(row - step, 0), start : start + size]
                    high = source[block, min(row + step, last), start : start + size]
                    _add_pair(low, high, weights[step], sums, size)
                there = out[block, row, start : start + size]
                for i in range(size):
                    there[i] = sums[i]


@kernel
def _smooth_lines(source: Any, weights: Any, line: Any, sums: Any, out: Any) -> None:
    """Smooth along the last of two axes. No bounds checking is performed."""
    size = source.shape[1]
    radius = weights.size - 1
    for row in range(source.shape[0]):
        here = source[row]
        for i in range(radius):
            line[i] = here[0]
            line[radius + size + i] = here[size - 1]
        middle = line[radius : radius + size]
        for i in range(size):
            middle[i] = here[i]
            sums[i] = here[i] * weights[0]
        for step in range(radius, 0, -1):
            low = line[radius - step : radius - step + size]
            _add_pair(low, line[radius + step : radius + step + size], weights[step], sums, size)
        there = out[row]
        for i in range(size):
            there[i] = sums[i]
