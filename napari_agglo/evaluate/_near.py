"""Which pixels of one set lie near which of another."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, report

# Pixels times neighbours that are looked up at once.
_CHUNK = 1 << 22


def near_pairs(
    places: NDArray[np.int64],
    others: NDArray[np.int64],
    shape: tuple[int, ...],
    tolerance: float,
    spacing: tuple[float, ...],
    progress: ProgressCallback | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each pixel the others within `tolerance`, the nearest first.

    Parameters
    ----------
    places, others : ndarray of int64
        Flat indices of both sets of pixels in an image of `shape`.
    tolerance : float
        The largest distance, in the unit of `spacing`.
    spacing : tuple of float
    progress : callable, optional
        Called with a `Progress` now and then; it may raise `Cancelled`.

    Returns
    -------
    first, found : ndarray of int64
        Pixel i is near ``others[found[first[i]:first[i + 1]]]``.

    Examples
    --------
    >>> import numpy as np
    >>> near_pairs(np.array([1, 4]), np.array([0, 1, 6]), (8,), 1.0, (1.0,))
    (array([0, 2, 2]), array([1, 0]))
    """
    steps = _steps(shape, tolerance, spacing)
    margin = np.abs(steps).max(axis=0)
    wide = tuple(int(n + 2 * m) for n, m in zip(shape, margin, strict=True))
    # Who is where, with a margin around, so that every step stays within.
    number = np.full(math.prod(wide), -1, np.int64)
    number[_widened(others, shape, margin, wide)] = np.arange(others.size)
    strides = np.array([math.prod(wide[axis + 1 :]) for axis in range(len(wide))], np.int64)
    shifts = steps @ strides
    starts = _widened(places, shape, margin, wide)
    counts, found = [np.zeros(1, np.int64)], [np.zeros(0, np.int64)]
    rows = max(1, _CHUNK // shifts.size)
    for start in range(0, places.size, rows):
        report(progress, "pairing", start, places.size)
        near = number[starts[start : start + rows, None] + shifts]
        counts.append((near >= 0).sum(axis=1))
        found.append(near[near >= 0])
    return np.concatenate(counts).cumsum(), np.concatenate(found)


def _steps(
    shape: tuple[int, ...], tolerance: float, spacing: tuple[float, ...]
) -> NDArray[np.int64]:
    """All steps from a pixel to those within `tolerance`, by ascending distance."""
    reach = [
        range(-most, most + 1)
        for n, s in zip(shape, spacing, strict=True)
        for most in [int(min(tolerance * (1 + 1e-9) // s, max(n - 1, 0)))]
    ]
    steps = np.array(list(itertools.product(*reach)), np.int64)
    distances = np.sqrt(((steps * np.array(spacing)) ** 2).sum(axis=1))
    order = np.argsort(distances, kind="stable")
    # A distance such as 3 x 0.1 is meant to be within 0.3.
    within: NDArray[np.bool_] = distances[order] <= tolerance * (1 + 1e-9)
    return steps[order[within]]


def _widened(
    flat: NDArray[np.int64],
    shape: tuple[int, ...],
    margin: NDArray[np.int64],
    wide: tuple[int, ...],
) -> NDArray[np.int64]:
    """Flat indices in the image with a margin."""
    index = np.unravel_index(flat, shape)
    moved = tuple(one + m for one, m in zip(index, margin, strict=True))
    return np.asarray(np.ravel_multi_index(moved, wide), np.int64)
