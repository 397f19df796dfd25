"""Turn a rough label image into a gold standard: everything labelled, every label connected."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.int32]


def fill_unlabelled(labels: Labels) -> None:
    """Let the labels grow over the zeros, in place, one face at a time.

    Growth through faces keeps each label connected, which taking the nearest label would not.
    """
    flat = labels.reshape(-1)
    strides = [s // labels.itemsize for s in labels.strides]
    empty = np.flatnonzero(flat == 0)
    if empty.size == flat.size:
        flat[:] = 1
        return
    while empty.size:
        where = np.unravel_index(empty, labels.shape)
        found = np.zeros(empty.size, dtype=labels.dtype)
        for axis, stride in enumerate(strides):
            for step, inside in (
                (-stride, where[axis] > 0),
                (stride, where[axis] < labels.shape[axis] - 1),
            ):
                take = inside & (found == 0)
                found[take] = flat[empty[take] + step]
        flat[empty] = found
        empty = empty[found == 0]


def separate(labels: Labels, min_size: int) -> Labels:
    """Give each connected piece a label of its own, 1..n; pieces under `min_size` are absorbed."""
    from skimage.measure import label

    pieces: Any = label(labels, connectivity=1, background=-1)
    sizes = np.bincount(pieces.reshape(-1))
    keep = sizes >= min_size
    if not keep.any():
        keep[int(np.argmax(sizes))] = True
    table = np.where(keep, np.cumsum(keep), 0).astype(np.int32)
    result = table[pieces]
    fill_unlabelled(result)
    return result


def edges(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Pixels with a face neighbour of another label."""
    result = np.zeros(labels.shape, dtype=bool)
    for axis in range(labels.ndim):
        low = tuple(slice(None, -1) if a == axis else slice(None) for a in range(labels.ndim))
        high = tuple(slice(1, None) if a == axis else slice(None) for a in range(labels.ndim))
        differ = labels[low] != labels[high]
        result[low] |= differ
        result[high] |= differ
    return result


def without_edges(labels: Labels) -> Labels:
    """Copy of `labels` with 0 (not annotated) at the edges, every label still connected.

    A label that would vanish or fall apart at a narrow neck keeps its edge.
    """
    from skimage.measure import label

    thin = np.where(edges(labels), np.int32(0), labels)
    pieces, count = label(thin, connectivity=1, background=0, return_num=True)
    owner = np.zeros(count + 1, dtype=np.int64)
    owner[pieces.reshape(-1)] = thin.reshape(-1)
    whole = np.bincount(owner[1:], minlength=int(labels.max()) + 1) == 1
    return np.where(whole[labels], thin, labels)
