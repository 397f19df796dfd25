"""One label in several pieces is allowed; who wants a label a piece asks for it here."""

from __future__ import annotations

from typing import Any

import numpy as np

from napari_agglo._jit import inlined, kernel
from napari_agglo.volumes._check import check_labels


def split_components(labels: object, name: str = "labels") -> np.ndarray[Any, Any]:
    """Give every piece of a label (connected through faces) a label of its own.

    The largest piece keeps the id, the first in C order among equals; the others get new ids above
    the highest one. The type is widened if the new ids need it.

    Parameters
    ----------
    labels
        Label image, anything that `check_labels` takes.
    name
        What a message calls it.

    Returns
    -------
    ndarray
        A new array; the input is not modified.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.volumes import split_components
    >>> split_components(np.array([5, 5, 0, 5, 7], np.uint8))
    array([5, 5, 0, 8, 7], dtype=uint8)
    """
    array = check_labels(labels, name, mask_ok=True)
    if array.size == 0:
        return array.copy()
    pieces = _pieces(array)
    # pieces are numbered 1..n in C order of their first voxel; each has one id
    count = int(pieces.max())
    sizes = np.bincount(pieces.reshape(-1), minlength=count + 1)
    ids = np.zeros(count + 1, array.dtype)
    ids[pieces.reshape(-1)] = array.reshape(-1)
    ids[0] = 0
    order = np.lexsort((np.arange(1, count + 1), -sizes[1:], ids[1:])) + 1
    extra = np.zeros(count + 1, bool)
    extra[order[1:]] = ids[order[1:]] == ids[order[:-1]]
    highest = int(ids.max())
    needed = np.min_scalar_type(highest + int(extra.sum()))
    dtype = array.dtype if _holds(array.dtype, highest + int(extra.sum())) else needed
    table = ids.astype(dtype)
    new = np.arange(1, int(extra.sum()) + 1, dtype=dtype)
    table[extra] = new + np.asarray(highest, dtype)
    split: np.ndarray[Any, Any] = table[pieces]
    return split


def _holds(dtype: np.dtype[Any], value: int) -> bool:
    return value <= int(np.iinfo(dtype).max)


def _pieces(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return connected components of equal non-zero value, numbered from 1 in C order."""
    parents = np.empty(array.size, np.int64)
    _connect(array.reshape(-1), np.array(array.shape, np.int64), parents)
    _number_roots(array.reshape(-1), parents)
    return parents.reshape(array.shape)


@inlined
def _root(parents: Any, voxel: int) -> int:
    while parents[voxel] != voxel:
        parents[voxel] = parents[parents[voxel]]
        voxel = parents[voxel]
    return voxel


@kernel
def _connect(flat: Any, shape: Any, parents: Any) -> None:
    """Join each voxel to equal ones before it; a root is the first voxel. Checks nothing."""
    ndim = shape.size
    place = np.zeros(ndim, np.int64)
    for i in range(flat.size):
        parents[i] = i
        stride = 1
        for axis in range(ndim - 1, -1, -1):
            if place[axis] > 0 and flat[i] != 0 and flat[i - stride] == flat[i]:
                one, two = _root(parents, i), _root(parents, i - stride)
                parents[max(one, two)] = min(one, two)
            stride *= shape[axis]
        for axis in range(ndim - 1, -1, -1):
            place[axis] += 1
            if place[axis] < shape[axis]:
                break
            place[axis] = 0


@kernel
def _number_roots(flat: Any, parents: Any) -> None:
    """Replace each parent by the number of its piece, 0 where the label is 0. Checks nothing."""
    count = 0
    for i in range(flat.size):
        # a parent comes before its child, so it holds its number already
        if flat[i] == 0:
            parents[i] = 0
        elif parents[i] == i:
            count += 1
            parents[i] = count
        else:
            parents[i] = parents[parents[i]]
