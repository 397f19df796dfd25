"""Where each overlap of two label images lies: its centroid, and a voxel of it to go to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel
from napari_agglo._progress import ProgressCallback, report
from napari_agglo.volumes import Contingency, DenseLabels

# Voxels between two reports: about a tenth of a second of work.
_CHUNK = 1 << 24


def coordinate_sums(
    table: Contingency,
    labels: DenseLabels,
    gold: DenseLabels,
    progress: ProgressCallback | None = None,
) -> NDArray[np.int64]:
    """Return the sum of the coordinates of the voxels of each overlap, shape (k, ndim)."""
    sums = np.zeros((table.counts.size, labels.image.ndim), np.int64)
    over_lines(_sum_kernel, table, labels, gold, "centroids", progress, sums)
    return sums


def nearest_voxels(
    table: Contingency,
    labels: DenseLabels,
    gold: DenseLabels,
    groups: NDArray[np.int64],
    targets: NDArray[np.float64],
    progress: ProgressCallback | None = None,
) -> NDArray[np.int64]:
    """Return, for each group of overlaps, its voxel nearest to its target; ties: the first.

    Parameters
    ----------
    table, labels, gold
        The overlaps, and the images that they were counted in.
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
    over_lines(
        _nearest_kernel, table, labels, gold, "places", progress, groups, targets, least, voxels
    )
    return voxels


def over_lines(
    work: Any,
    table: Contingency,
    labels: DenseLabels,
    gold: DenseLabels,
    stage: str,
    progress: ProgressCallback | None,
    *arrays: Any,
) -> None:
    """Call a kernel on chunks of lines along the last axis; it finds an overlap by its row."""
    shape = labels.image.shape
    n = labels.image.size
    if n == 0:
        return
    width = shape[-1]
    lines = n // width
    first = np.searchsorted(table.rows, np.arange(table.row_ids.size + 1))
    one = labels.image.reshape(lines, width)
    two = gold.image.reshape(lines, width)
    outer = np.array(shape[:-1], np.int64)
    step = max(1, _CHUNK // width)
    for start in range(0, lines, step):
        report(progress, stage, start * width, n)
        stop = min(start + step, lines)
        work(one, two, start, stop, outer, first, table.columns, *arrays)
    report(progress, stage, n, n)


@inlined
def entry_of(row: int, column: int, first: NDArray[np.int64], columns: NDArray[np.int64]) -> Any:
    """Index of the overlap (row, column), or -1: columns ascend within a row."""
    low, high = first[row], first[row + 1]
    while low < high:
        middle = (low + high) // 2
        if columns[middle] < column:
            low = middle + 1
        else:
            high = middle
    if low < first[row + 1] and columns[low] == column:
        return low
    return -1


@inlined
def run_end(
    labels: NDArray[np.uint32], gold: NDArray[np.uint32], line: int, begin: int, width: int
) -> int:
    """One past the end of the run of equal voxels that begins here."""
    label, segment = labels[line, begin], gold[line, begin]
    end = begin + 1
    while end < width and labels[line, end] == label and gold[line, end] == segment:
        end += 1
    return end


@kernel
def _sum_kernel(
    labels: NDArray[np.uint32],
    gold: NDArray[np.uint32],
    start: int,
    stop: int,
    outer: NDArray[np.int64],
    first: NDArray[np.int64],
    columns: NDArray[np.int64],
    sums: NDArray[np.int64],
) -> None:
    """Add the coordinates of all runs of lines `start` to `stop`. Nothing is checked."""
    width = labels.shape[1]
    last = outer.size
    for line in range(start, stop):
        end = 0
        while end < width:
            begin = end
            end = run_end(labels, gold, line, begin, width)
            entry = entry_of(labels[line, begin], gold[line, begin], first, columns)
            if entry < 0:
                continue
            count = end - begin
            sums[entry, last] += count * (begin + end - 1) // 2
            rest = line
            for axis in range(last - 1, -1, -1):
                sums[entry, axis] += count * (rest % outer[axis])
                rest //= outer[axis]


@kernel
def _nearest_kernel(
    labels: NDArray[np.uint32],
    gold: NDArray[np.uint32],
    start: int,
    stop: int,
    outer: NDArray[np.int64],
    first: NDArray[np.int64],
    columns: NDArray[np.int64],
    groups: NDArray[np.int64],
    targets: NDArray[np.float64],
    least: NDArray[np.float64],
    voxels: NDArray[np.int64],
) -> None:
    """Keep the nearest voxel of all runs of lines `start` to `stop`. Nothing is checked."""
    width = labels.shape[1]
    last = outer.size
    for line in range(start, stop):
        end = 0
        while end < width:
            begin = end
            end = run_end(labels, gold, line, begin, width)
            entry = entry_of(labels[line, begin], gold[line, begin], first, columns)
            if entry < 0:
                continue
            group = groups[entry]
            # In a run the nearest voxel is where the target lies, or the end on its side.
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


# What is known of overlaps, brought back to the voxels of two label images, and their boxes.


def code_image(
    table: Contingency,
    a: DenseLabels,
    b: DenseLabels,
    codes: NDArray[np.uint8],
    progress: ProgressCallback | None = None,
) -> NDArray[np.uint8]:
    """Return the code of the overlap that each voxel is in; 0 for those in none."""
    out = np.zeros(a.image.shape, np.uint8)
    if out.size:
        lines = out.reshape(-1, out.shape[-1])
        over_lines(_code_kernel, table, a, b, "differences", progress, codes, lines)
    return out


def boxes_of(table: Contingency, a: DenseLabels, b: DenseLabels) -> NDArray[np.int64]:
    """Return the bounding box of each overlap, shape (k, 2, ndim): first, one past the last."""
    boxes = np.empty((table.counts.size, 2, a.image.ndim), np.int64)
    boxes[:, 0] = a.image.shape
    boxes[:, 1] = 0
    over_lines(_box_kernel, table, a, b, "boxes", None, boxes)
    return boxes


@kernel
def _code_kernel(
    a: Any, b: Any, start: Any, stop: Any, outer: Any, first: Any, columns: Any, codes: Any,
    out: Any,
) -> None:  # fmt: skip
    """Write the codes of the runs of lines `start` to `stop`. Nothing is checked."""
    width = a.shape[1]
    for line in range(start, stop):
        end = 0
        while end < width:
            begin = end
            end = run_end(a, b, line, begin, width)
            entry = entry_of(a[line, begin], b[line, begin], first, columns)
            if entry >= 0:
                out[line, begin:end] = codes[entry]


@kernel
def _box_kernel(
    a: Any, b: Any, start: Any, stop: Any, outer: Any, first: Any, columns: Any, boxes: Any
) -> None:
    """Widen the boxes by the runs of lines `start` to `stop`. Nothing is checked."""
    width = a.shape[1]
    last = outer.size
    for line in range(start, stop):
        end = 0
        while end < width:
            begin = end
            end = run_end(a, b, line, begin, width)
            entry = entry_of(a[line, begin], b[line, begin], first, columns)
            if entry < 0:
                continue
            boxes[entry, 0, last] = min(boxes[entry, 0, last], begin)
            boxes[entry, 1, last] = max(boxes[entry, 1, last], end)
            rest = line
            for axis in range(last - 1, -1, -1):
                at = rest % outer[axis]
                boxes[entry, 0, axis] = min(boxes[entry, 0, axis], at)
                boxes[entry, 1, axis] = max(boxes[entry, 1, axis], at + 1)
                rest //= outer[axis]
