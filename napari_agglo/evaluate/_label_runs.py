"""Centroids, boxes and code images of the overlaps of two label images, by runs.

A run is a part of a line along the last axis in which both images have one label. One kernel finds
the runs, `_find_runs`; each measure is a kernel over runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import kernel
from napari_agglo._progress import ProgressCallback, report
from napari_agglo.volumes import Contingency, DenseLabels

# Voxels between two reports. Each may be a run, which takes 32 bytes for the time of the chunk.
_CHUNK = 1 << 20

# Columns of an array of runs: 0, the row of the table of overlaps; 1, the line of the image,
# counted over all axes but the last; 2 and 3, the first position along it and one past the last.


def coordinate_sums(
    table: Contingency,
    a: DenseLabels,
    b: DenseLabels,
    progress: ProgressCallback | None = None,
) -> NDArray[np.int64]:
    """Return the sum of the coordinates of the voxels of each overlap, shape (k, ndim)."""
    sums = np.zeros((table.counts.size, a.image.ndim), np.int64)
    for runs in _runs(table, a, b, "centroids", progress):
        _add_coordinates(runs, _outer(a), sums)
    return sums


def nearest_voxels(
    table: Contingency,
    a: DenseLabels,
    b: DenseLabels,
    groups: NDArray[np.int64],
    targets: NDArray[np.float64],
    progress: ProgressCallback | None = None,
) -> NDArray[np.int64]:
    """Return the voxel of each group of overlaps that is nearest to its target; of ties, the first.

    Parameters
    ----------
    table, a, b
        The overlaps, and the images in which they were counted.
    groups : ndarray of int64, shape (k,)
        The group of each overlap.
    targets : ndarray of float64, shape (groups, ndim)
        A point for each group, such as its centroid, which may lie outside of it.
    progress : callable, optional
        Called with a `Progress` now and then; it may raise `Cancelled`.

    Returns
    -------
    ndarray of int64, shape (groups, ndim)
    """
    voxels = np.zeros(targets.shape, np.int64)
    least = np.full(len(targets), np.inf)
    for runs in _runs(table, a, b, "places", progress):
        _keep_nearest(runs, _outer(a), groups, targets, least, voxels)
    return voxels


def code_image(
    table: Contingency,
    a: DenseLabels,
    b: DenseLabels,
    codes: NDArray[np.uint8],
    progress: ProgressCallback | None = None,
) -> NDArray[np.uint8]:
    """Return the image whose voxels have the code of their overlap, 0 outside of all."""
    out = np.zeros(a.image.shape, np.uint8)
    for runs in _runs(table, a, b, "differences", progress):
        _write_codes(runs, codes, out.reshape(-1, out.shape[-1]))
    return out


def boxes_of(table: Contingency, a: DenseLabels, b: DenseLabels) -> NDArray[np.int64]:
    """Return the bounding box of each overlap, shape (k, 2, ndim): first, one past the last."""
    boxes = np.empty((table.counts.size, 2, a.image.ndim), np.int64)
    boxes[:, 0] = a.image.shape
    boxes[:, 1] = 0
    for runs in _runs(table, a, b, "boxes", None):
        _widen_boxes(runs, _outer(a), boxes)
    return boxes


def _runs(
    table: Contingency,
    a: DenseLabels,
    b: DenseLabels,
    stage: str,
    progress: ProgressCallback | None,
) -> Iterator[NDArray[np.int64]]:
    """Yield the runs of some lines at a time; the next runs overwrite the array."""
    n = a.image.size
    if n == 0:
        return
    width = a.image.shape[-1]
    lines, step = n // width, max(1, _CHUNK // width)
    one, two = a.image.reshape(lines, width), b.image.reshape(lines, width)
    first = np.searchsorted(table.rows, np.arange(table.row_ids.size + 1))
    runs = np.empty((min(step, lines) * width, 4), np.int64)
    for start in range(0, lines, step):
        report(progress, stage, start * width, n)
        stop = min(start + step, lines)
        yield runs[: _find_runs(one, two, start, stop, first, table.columns, runs)]
    report(progress, stage, n, n)


def _outer(labels: DenseLabels) -> NDArray[np.int64]:
    """Return the lengths of all axes but the last."""
    return np.array(labels.image.shape[:-1], np.int64)


@kernel
def _find_runs(a: Any, b: Any, start: int, stop: int, first: Any, columns: Any, runs: Any) -> int:
    """Write the runs of lines `start` to `stop` that the table lists; return their number.

    Invariant: the columns ``columns[first[row]:first[row + 1]]`` of a row ascend, so that a binary
    search finds the overlap. Nothing is checked.
    """
    n = 0
    width = a.shape[1]
    for line in range(start, stop):
        end = 0
        while end < width:
            begin = end
            row, column = a[line, begin], b[line, begin]
            while end < width and a[line, end] == row and b[line, end] == column:
                end += 1
            low, high = first[row], first[row + 1]
            while low < high:
                middle = (low + high) // 2
                if columns[middle] < column:
                    low = middle + 1
                else:
                    high = middle
            if low < first[row + 1] and columns[low] == column:
                runs[n, 0], runs[n, 1], runs[n, 2], runs[n, 3] = low, line, begin, end
                n += 1
    return n


# Kernels over runs. Nothing is checked. A line is turned into the coordinates along the axes before
# the last one by division, from the last of these axes to the first.


@kernel
def _add_coordinates(runs: Any, outer: Any, sums: Any) -> None:
    """Add the coordinates of the voxels of each run to the sums of its overlap."""
    last = outer.size
    for i in range(runs.shape[0]):
        entry, rest, begin, end = runs[i, 0], runs[i, 1], runs[i, 2], runs[i, 3]
        sums[entry, last] += (end - begin) * (begin + end - 1) // 2
        for axis in range(last - 1, -1, -1):
            sums[entry, axis] += (end - begin) * (rest % outer[axis])
            rest //= outer[axis]


@kernel
def _keep_nearest(
    runs: Any, outer: Any, groups: Any, targets: Any, least: Any, voxels: Any
) -> None:
    """Replace the voxel of a group where a run has one that is nearer to the target."""
    last = outer.size
    for i in range(runs.shape[0]):
        entry, line, begin, end = runs[i, 0], runs[i, 1], runs[i, 2], runs[i, 3]
        group = groups[entry]
        # In a run the nearest voxel is at the target, or the end on its side.
        near = int(min(max(round(targets[group, last]), begin), end - 1))
        distance = (near - targets[group, last]) ** 2
        rest = line
        for axis in range(last - 1, -1, -1):
            distance += (rest % outer[axis] - targets[group, axis]) ** 2
            rest //= outer[axis]
        if distance < least[group]:
            least[group] = distance
            voxels[group, last] = near
            rest = line
            for axis in range(last - 1, -1, -1):
                voxels[group, axis] = rest % outer[axis]
                rest //= outer[axis]


@kernel
def _write_codes(runs: Any, codes: Any, out: Any) -> None:
    """Write the code of each run's overlap to its voxels."""
    for i in range(runs.shape[0]):
        out[runs[i, 1], runs[i, 2] : runs[i, 3]] = codes[runs[i, 0]]


@kernel
def _widen_boxes(runs: Any, outer: Any, boxes: Any) -> None:
    """Widen the box of each run's overlap so that it contains the run."""
    last = outer.size
    for i in range(runs.shape[0]):
        entry, rest, begin, end = runs[i, 0], runs[i, 1], runs[i, 2], runs[i, 3]
        boxes[entry, 0, last] = min(boxes[entry, 0, last], begin)
        boxes[entry, 1, last] = max(boxes[entry, 1, last], end)
        for axis in range(last - 1, -1, -1):
            at = rest % outer[axis]
            boxes[entry, 0, axis] = min(boxes[entry, 0, axis], at)
            boxes[entry, 1, axis] = max(boxes[entry, 1, axis], at + 1)
            rest //= outer[axis]
