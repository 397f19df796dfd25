"""Maximum matching of two sets of pixels (Hopcroft and Karp).

Strategy: each pixel first takes its nearest free partner; then, in phases, partners are shifted
along shortest chains, so that those gain one who went away empty. Chains start on the side that has
fewer of these: where the lines of one drawing are twice as many as those of the other, half of its
pixels must stay alone, and would be searched for in vain in every phase.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import kernel
from napari_agglo._progress import ProgressCallback, report

# Which pixels of one set lie near which of another.


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


_FREE, _BARRED = -1, -2


def match_most(
    near: tuple[NDArray[np.int64], NDArray[np.int64]],
    back: tuple[NDArray[np.int64], NDArray[np.int64]],
    active: NDArray[np.int64],
    progress: ProgressCallback | None = None,
) -> NDArray[np.int64]:
    """Match as many pixels as possible, each with a partner of its own.

    Parameters
    ----------
    near, back : pair of ndarray of int64
        ``(first, partners)`` as of `near_pairs`: whom each pixel may have, the most wanted first,
        and the same the other way.
    active : ndarray of int64
        The pixels to be matched; the others are left alone.
    progress : callable, optional
        Called with a `Progress` after each phase; it may raise `Cancelled`.

    Returns
    -------
    ndarray of int64, shape (number of pixels,)
        The partner of each pixel; less than 0 for none.

    Examples
    --------
    Pixel 0 must give way, for pixel 1 has no other choice:

    >>> import numpy as np
    >>> near = np.array([0, 2, 3]), np.array([0, 1, 0])
    >>> back = np.array([0, 2, 3]), np.array([0, 1, 0])
    >>> match_most(near, back, np.array([0, 1]))
    array([1, 0])
    """
    chosen = np.full(near[0].size - 1, _BARRED, np.int64)
    chosen[active] = _FREE
    taken = np.full(back[0].size - 1, _FREE, np.int64)
    _take_kernel(*near, active, chosen, taken)
    if (chosen == _FREE).sum() <= (taken == _FREE).sum():
        _mend(*near, active, chosen, taken, progress)
    else:
        _mend(*back, np.arange(taken.size), taken, chosen, progress)
    return chosen


def _mend(
    first: NDArray[np.int64],
    partners: NDArray[np.int64],
    active: NDArray[np.int64],
    chosen: NDArray[np.int64],
    taken: NDArray[np.int64],
    progress: ProgressCallback | None,
) -> None:
    """Improve a matching until there is none better."""
    level, edge = np.empty_like(chosen), np.empty_like(chosen)
    queue, stack = np.empty(active.size, np.int64), np.empty(active.size, np.int64)
    mended = -1
    while mended:
        # How many phases there will be nobody knows: those that have a partner are what is done.
        report(progress, "matching", int((chosen[active] >= 0).sum()), active.size)
        mended = _mend_kernel(first, partners, active, chosen, taken, level, edge, queue, stack)


@kernel
def _take_kernel(
    first: NDArray[np.int64],
    partners: NDArray[np.int64],
    active: NDArray[np.int64],
    chosen: NDArray[np.int64],
    taken: NDArray[np.int64],
) -> None:
    """Let each pixel take the first partner that is free. Nothing is checked."""
    for pixel in active:
        for way in range(first[pixel], first[pixel + 1]):
            if taken[partners[way]] == _FREE:
                taken[partners[way]] = pixel
                chosen[pixel] = partners[way]
                break


@kernel
def _mend_kernel(
    first: NDArray[np.int64],
    partners: NDArray[np.int64],
    active: NDArray[np.int64],
    chosen: NDArray[np.int64],
    taken: NDArray[np.int64],
    level: NDArray[np.int64],
    edge: NDArray[np.int64],
    queue: NDArray[np.int64],
    stack: NDArray[np.int64],
) -> int:
    """Do one phase: shift partners along disjoint shortest chains. Return how many were found.

    `level` is the number of shifts that a pixel is away from one without a partner, -1 if it is out
    of the way; `edge` is the next partner to try. Nothing is checked.
    """
    n = 0
    for pixel in active:
        level[pixel] = -1
        edge[pixel] = first[pixel]
        if chosen[pixel] == _FREE:
            level[pixel] = 0
            queue[n] = pixel
            n += 1
    lonely, at, deepest = n, 0, active.size + 1
    while at < n:
        pixel = queue[at]
        at += 1
        if level[pixel] >= deepest:  # chains that are longer wait for a later phase
            break
        for way in range(first[pixel], first[pixel + 1]):
            holder = taken[partners[way]]
            if holder == _FREE:
                deepest = level[pixel] + 1
            elif holder >= 0 and level[holder] < 0:
                level[holder] = level[pixel] + 1
                queue[n] = holder
                n += 1
    if deepest > active.size:
        return 0
    mended = 0
    for start in range(lonely):
        stack[0] = queue[start]
        depth = 0
        while depth >= 0:
            pixel = stack[depth]
            if edge[pixel] == first[pixel + 1]:
                level[pixel] = -1  # a dead end, for all in this phase
                depth -= 1
                if depth >= 0:
                    edge[stack[depth]] += 1
                continue
            holder = taken[partners[edge[pixel]]]
            if holder == _FREE:
                for shifted in range(depth + 1):
                    mover = stack[shifted]
                    chosen[mover] = partners[edge[mover]]
                    taken[chosen[mover]] = mover
                    level[mover] = -1
                mended += 1
                break
            if holder >= 0 and depth + 1 < deepest and level[holder] == level[pixel] + 1:
                depth += 1
                stack[depth] = holder
            else:
                edge[pixel] += 1
    return mended
