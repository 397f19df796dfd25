"""Label image on disk with dense ids, read part by part, for volumes larger than memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.volumes._labels import DenseLabels


@dataclass
class Flags:
    """Whether the image may be painted, as in the flags of an array."""

    writeable: bool


class DiskLabels:
    """Dense ids of a label image on disk: a part is read, and looked up, when it is asked for.

    It stands for the array of `DenseLabels`: it has a shape, a type and parts. Parts that are
    painted, such as the pieces of a divided superpixel, are kept in memory by their box, and the
    file is never written. Nothing reads it whole unless it is asked to (``image[...]``).

    Parameters
    ----------
    data
        Anything with ``shape``, ``dtype`` and ``__getitem__``: a Zarr array, `Volume.data`.
    ids : ndarray of uint64
        The id of each dense id, ascending, with 0 first.

    Examples
    --------
    >>> import numpy as np
    >>> image = DiskLabels(np.array([[7, 7, 9]]), np.array([0, 7, 9], np.uint64))
    >>> image[0, 1:]
    array([1, 2], dtype=uint32)
    """

    dtype = np.dtype(np.uint32)

    def __init__(
        self,
        data: Any,
        ids: NDArray[np.uint64],
        painted: tuple[tuple[tuple[slice, ...], NDArray[np.uint32]], ...] = (),
        writeable: bool = False,
    ) -> None:
        self._data, self._ids = data, ids
        self._painted = painted
        self.flags = Flags(writeable)
        self.shape = tuple(int(n) for n in data.shape)
        self.ndim = len(self.shape)
        self.size = math.prod(self.shape)
        self.nbytes = 4 * self.size
        self.chunks = getattr(data, "shards", None) or getattr(data, "chunks", None)
        # ids 1 to n are dense as they are
        self._is_dense = int(ids[-1]) == len(ids) - 1

    def copy(self) -> DiskLabels:
        """Return an image that can be painted; this one stays as it is."""
        return DiskLabels(self._data, self._ids, self._painted, True)

    def view(self) -> DiskLabels:
        """Return the image as it is now, which later paint on this one does not change."""
        return DiskLabels(self._data, self._ids, self._painted)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> NDArray[np.uint32]:
        part = np.asarray(self._data[index])
        if not self._is_dense:
            part = np.searchsorted(self._ids, part.astype(np.uint64))
        out: NDArray[np.uint32] = part.astype(np.uint32)
        for box, values in self._painted:
            out = _painted(out, index, self.shape, box, values)
        return out

    def __setitem__(self, box: tuple[slice, ...], values: NDArray[np.uint32]) -> None:
        if not self.flags.writeable:
            raise ValueError("this label image on disk is read-only")
        self._painted = (*self._painted, (tuple(box), np.array(values, np.uint32)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        whole = self[...]
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def __repr__(self) -> str:
        return f"DiskLabels(shape={self.shape}, {len(self._ids) - 1} labels)"


def _painted(
    part: NDArray[np.uint32],
    index: Any,
    shape: tuple[int, ...],
    box: tuple[slice, ...],
    values: NDArray[np.uint32],
) -> NDArray[np.uint32]:
    """Return a part of an image with the voxels of a painted box in it."""
    keys = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in [k if k is Ellipsis else None for k in keys]:
        at = next(n for n, k in enumerate(keys) if k is Ellipsis)
        keys[at : at + 1] = [slice(None)] * (len(shape) - len(keys) + 1)
    keys += [slice(None)] * (len(shape) - len(keys))
    here, there = [], []  # in the part, and in the box
    for key, side, n in zip(keys, box, shape, strict=True):
        if not isinstance(key, slice):
            at = int(key) % n
            if not side.start <= at < side.stop:
                return part
            there.append(np.array([at - side.start]))
            continue
        chosen = np.arange(n)[key]
        inside = np.flatnonzero((chosen >= side.start) & (chosen < side.stop))
        if not inside.size:
            return part
        here.append(inside)
        there.append(chosen[inside] - side.start)
    piece: NDArray[np.uint32] = values[np.ix_(*there)]
    if not here:
        return piece.reshape(())
    part[np.ix_(*here)] = piece.reshape([len(one) for one in here])
    return part


def is_on_disk(image: object) -> bool:
    """Return whether the image of labels stays on disk."""
    return isinstance(image, DiskLabels)


def disk_labels(data: Any, ids: NDArray[np.uint64], dtype: Any) -> DenseLabels:
    """Return the labels of an image on disk, whose ids are known, without reading it.

    Parameters
    ----------
    data
        The label image, as in `DiskLabels`.
    ids : ndarray of uint64
        All its ids, ascending, with 0 first.
    dtype
        The type of the user's label image.

    Examples
    --------
    >>> import numpy as np
    >>> labels = disk_labels(np.array([0, 5, 5]), np.array([0, 5], np.uint64), np.uint8)
    >>> labels.image[1:], labels.n_labels
    (array([1, 1], dtype=uint32), 1)
    """
    image: Any = DiskLabels(data, ids)
    return DenseLabels(image, ids, np.dtype(dtype))
