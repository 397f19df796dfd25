"""The sparse table of overlaps between two label images."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import kernel
from napari_agglo._numba.hash_tables import key_place, pair_hash
from napari_agglo._progress import ProgressCallback, report
from napari_agglo.volumes._checks import check_same_shape, warn_of_places
from napari_agglo.volumes._labels import DenseLabels, dense_labels
from napari_agglo.volumes._labels_on_disk import is_on_disk
from napari_agglo.volumes._volume import chunk_sides, unwrap

# Voxels between two reports: about a tenth of a second of work.
_CHUNK = 1 << 24


@dataclass(frozen=True, eq=False)
class Contingency:
    """Numbers of voxels that each segment shares with each gold segment.

    Only pairs that overlap are listed, in ascending order of (row, column). Rows and columns are
    dense ids; `row_ids` and `column_ids` translate them to the user's.

    Attributes
    ----------
    rows, columns, counts : ndarray of int64, shape (k,)
        Dense id of the segment, dense id of the gold segment, number of voxels they share (> 0).
    row_ids, column_ids : ndarray of uint64
        The user's id of each dense id; entry 0 is 0.

    Examples
    --------
    >>> import numpy as np
    >>> labels = np.array([5, 5, 9, 9])
    >>> gold = np.array([0, 2, 2, 7])
    >>> table = contingency(labels, gold)
    >>> table.row_ids[table.rows], table.column_ids[table.columns], table.counts
    (array([5, 9, 9], dtype=uint64), array([2, 2, 7], dtype=uint64), array([1, 1, 1]))
    """

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    counts: NDArray[np.int64]
    row_ids: NDArray[np.uint64]
    column_ids: NDArray[np.uint64]

    @property
    def total(self) -> int:
        """Number of voxels counted."""
        return int(self.counts.sum())

    def row_sums(self) -> NDArray[np.int64]:
        """Return the number of counted voxels of each segment, by dense id.

        Returns
        -------
        ndarray of int
            One number for each dense id, 0 included.
        """
        # exact: the float64 sums of `bincount` hold any number of voxels below 2**53
        return np.bincount(self.rows, self.counts, self.row_ids.size).astype(np.int64)

    def column_sums(self) -> NDArray[np.int64]:
        """Return the number of counted voxels of each gold segment, by dense id.

        Returns
        -------
        ndarray of int
            One number for each dense id, 0 included.
        """
        return np.bincount(self.columns, self.counts, self.column_ids.size).astype(np.int64)


def contingency(
    labels: Any,
    gold: Any,
    *,
    ignore_labels: bool = False,
    progress: ProgressCallback | None = None,
) -> Contingency:
    """Count the voxels that each segment shares with each gold segment.

    Parameters
    ----------
    labels : array of int, or DenseLabels
        The segmentation. Any ids: sparse and 64-bit ones cost no more than small ones.
    gold : array of int, same shape
        The gold standard; voxels of 0 are not annotated and are not counted.
    ignore_labels : bool
        Leave out the voxels whose label is 0 too. Otherwise 0 is a segment like any other, so that
        a segmentation cannot hide its errors by labelling less.
    progress : callable, optional
        Called with a `Progress` now and then; it may raise `Cancelled`.

    Returns
    -------
    Contingency

    Examples
    --------
    >>> import numpy as np
    >>> contingency(np.array([1, 1, 2]), np.array([1, 1, 0])).counts
    array([2])
    """
    warn_of_places({"labels": labels, "gold": gold})
    if isinstance(labels, DenseLabels) and is_on_disk(labels.image):
        return _count_on_disk(labels, gold, ignore_labels, progress)
    a, b = dense_labels(labels, "labels"), dense_labels(gold, "gold")
    check_same_shape(a.image, b.image, "labels", "gold")
    keys, counts = _count(a, b, ignore_labels, progress)
    order = np.argsort(keys)
    rows, columns = np.divmod(keys[order], b.ids.size)
    return Contingency(rows, columns, counts[order], a.ids, b.ids)


def add_tables(parts: Sequence[Sequence[NDArray[Any]]], ids: NDArray[np.uint64]) -> Contingency:
    """Return the sum of the overlaps of parts of a volume.

    Parameters
    ----------
    parts : sequence of (rows, columns, counts)
        Of each part, the ids in both label images, and the number of voxels.
    ids : ndarray of uint64
        The ids of the first label image by dense id, with 0 first.

    Examples
    --------
    >>> one, two = ([np.array([n], np.uint64), np.array([7], np.uint64), [3]] for n in (5, 5))
    >>> add_tables([one, two], np.array([0, 5], np.uint64)).counts
    array([6])
    """
    whole = [np.concatenate([np.asarray(p[k]) for p in parts] or [np.zeros(0)]) for k in range(3)]
    rows, columns, counts = whole[0].astype("u8"), whole[1].astype("u8"), whole[2].astype("i8")
    column_ids = np.unique(np.concatenate([np.zeros(1, np.uint64), columns]))
    width = np.int64(len(column_ids))
    keys = np.searchsorted(ids, rows) * width + np.searchsorted(column_ids, columns)
    unique, which = np.unique(keys, return_inverse=True)
    sums = np.zeros(len(unique), np.int64)
    np.add.at(sums, which.reshape(-1), counts)
    return Contingency(*np.divmod(unique, width), sums, np.asarray(ids), column_ids)


def _count_on_disk(
    labels: DenseLabels, gold: Any, ignore_labels: bool, progress: ProgressCallback | None
) -> Contingency:
    """Count box by box, so that neither image is in memory as a whole."""
    truth = gold.image if isinstance(gold, DenseLabels) else unwrap(gold, "gold")
    ids = gold.ids if isinstance(gold, DenseLabels) else None
    check_same_shape(labels.image, truth, "labels", "gold")
    parts: list[list[NDArray[Any]]] = []
    image: Any = labels.image
    boxes = _boxes(tuple(image.shape), [chunk_sides(image), chunk_sides(truth)])
    for done, box in enumerate(boxes):
        report(progress, "overlap", done, len(boxes))
        known = dense_labels(np.asarray(truth[box]), "gold")
        if known.n_labels == 0:
            continue
        part = contingency(image[box], known, ignore_labels=ignore_labels)
        columns = known.ids if ids is None else ids[known.ids]
        parts.append([labels.ids[part.row_ids[part.rows]], columns[part.columns], part.counts])
    report(progress, "overlap", len(boxes), len(boxes))
    return add_tables(parts, labels.ids)


def _boxes(shape: tuple[int, ...], chunks: list[tuple[int, ...]]) -> list[tuple[slice, ...]]:
    """Return boxes of whole chunks of both images, of about `_CHUNK` voxels or one chunk each.

    A slab of chunks would be too large: the planes of a large volume have many.
    """
    least = [max(sides) for sides in zip(*chunks, strict=True)]
    sides = list(map(min, least, shape))
    for axis in range(len(shape) - 1, -1, -1):
        room = _CHUNK // max(1, math.prod(sides))
        sides[axis] = min(shape[axis], sides[axis] * max(1, room))
    starts = [range(0, n, max(1, side)) for n, side in zip(shape, sides, strict=True)]
    return [
        tuple(slice(at, at + side) for at, side in zip(corner, sides, strict=True))
        for corner in itertools.product(*starts)
    ]


def _count(
    a: DenseLabels, b: DenseLabels, ignore_labels: bool, progress: ProgressCallback | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Fill the hash table chunk by chunk, doubling it between calls of the kernel when needed."""
    labels, gold = a.image.reshape(-1), b.image.reshape(-1)
    n = labels.size
    size = 1 << max(10, int(4 * (a.ids.size + b.ids.size)).bit_length())
    keys = np.zeros(size, np.int64)
    counts = np.zeros(size, np.int64)
    position = used = 0
    while position < n:
        report(progress, "overlap", position, n)
        position, used = _count_kernel(
            labels, gold, position, min(position + _CHUNK, n), b.ids.size, ignore_labels, keys,
            counts, used,
        )  # fmt: skip
        if 2 * used >= keys.size:
            more = np.zeros(2 * keys.size, np.int64), np.zeros(2 * keys.size, np.int64)
            _rehash_kernel(keys, counts, b.ids.size, *more)
            keys, counts = more
    report(progress, "overlap", n, n)
    full = keys > 0
    return keys[full], counts[full]


@kernel
def _count_kernel(
    labels: NDArray[np.uint32],
    gold: NDArray[np.uint32],
    start: int,
    stop: int,
    n_columns: int,
    ignore_labels: bool,
    keys: NDArray[np.int64],
    counts: NDArray[np.int64],
    used: int,
) -> tuple[int, int]:
    """Add the runs of voxels `start` to `stop`; return the next voxel and the places used.

    Invariants: a key is row * n_columns + column, and as column 0 is never counted, 0 marks an
    empty place; the kernel stops early when the table is half full, so that a search ends. Nothing
    is checked: ids must be dense, the table a power of two in size and less than half full.
    """
    i = start
    while i < stop:
        label, segment = labels[i], gold[i]
        first = i
        i += 1
        while i < stop and labels[i] == label and gold[i] == segment:
            i += 1
        if segment == 0 or (ignore_labels and label == 0):
            continue
        row, column = np.int64(label), np.int64(segment)
        key = row * n_columns + column
        slot = key_place(key, pair_hash(row, column), keys)
        counts[slot] += i - first
        if keys[slot] == 0:
            keys[slot] = key
            used += 1
            if 2 * used >= keys.size:
                break
    return i, used


@kernel
def _rehash_kernel(
    keys: NDArray[np.int64],
    counts: NDArray[np.int64],
    n_columns: int,
    new_keys: NDArray[np.int64],
    new_counts: NDArray[np.int64],
) -> None:
    """Copy a table into a larger, empty one. Nothing is checked."""
    for i in range(keys.size):
        if keys[i] != 0:
            mixed = pair_hash(keys[i] // n_columns, keys[i] % n_columns)
            slot = key_place(keys[i], mixed, new_keys)
            new_keys[slot] = keys[i]
            new_counts[slot] = counts[i]
