"""Label image on disk with dense ids, read part by part, for volumes larger than memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.volumes._labels import DenseLabels
from napari_agglo.volumes._volume import available_memory

Painted = tuple[tuple[slice, ...], NDArray[np.uint32]]  # a box and the ids in it
_SMALL = 1 << 26  # bytes that are read without asking for the free memory


@dataclass
class Flags:
    """Flags of an array: whether the image may be painted."""

    writeable: bool


class DiskLabels:
    """Dense ids of a label image on disk: a part is read, and looked up, when it is asked for.

    It stands for the array of `DenseLabels`: it has a shape, a type and parts. Parts that are
    painted, such as the pieces of a divided superpixel, are kept in memory by their box, and the
    file is never written. Nothing reads it whole unless it is asked to (``image[...]``), and a
    part that does not fit in memory is refused.

    Parameters
    ----------
    data
        Anything with ``shape``, ``dtype`` and ``__getitem__``: a Zarr array, `Volume.data`.
    ids : ndarray of uint64
        The id of each dense id, ascending, with 0 first.
    painted : tuple of (box, values)
        Boxes with other ids, the latest last.
    writeable : bool
        Whether the image may be painted.
    coarser : tuple of arrays
        Coarser levels of the image, on the ids of `data`, the finest first; see `levels`.

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
        painted: tuple[Painted, ...] = (),
        writeable: bool = False,
        coarser: tuple[Any, ...] = (),
    ) -> None:
        self._data, self._ids, self._coarser = data, ids, coarser
        self._painted = painted
        self.flags = Flags(writeable)
        self.shape = tuple(int(n) for n in data.shape)
        self.ndim = len(self.shape)
        self.size = math.prod(self.shape)
        self.nbytes = 4 * self.size
        self.chunks = getattr(data, "shards", None) or getattr(data, "chunks", None)
        # ids 1 to n are dense as they are
        self._is_dense = int(ids[-1]) == len(ids) - 1
        self._places = [np.arange(n) for n in self.shape]

    def copy(self) -> DiskLabels:
        """Return an image that can be painted; this one stays as it is."""
        return DiskLabels(self._data, self._ids, self._painted, True, self._coarser)

    def view(self) -> DiskLabels:
        """Return the image as it is now, which later paint on this one does not change."""
        return DiskLabels(self._data, self._ids, self._painted, False, self._coarser)

    @property
    def levels(self) -> list[DiskLabels]:
        """The image and its coarser levels, with what is painted on it now."""
        return [self.view(), *map(self._level, self._coarser)]

    def _level(self, data: Any) -> DiskLabels:
        """Return a coarser level: a voxel on a painted box has the id in the middle of it."""
        level = DiskLabels(data, self._ids, self._painted)
        for axis, (n, whole) in enumerate(zip(level.shape, self.shape, strict=True)):
            factor = max(1, round(whole / max(1, n)))
            level._places[axis] = np.minimum(np.arange(n) * factor + factor // 2, whole - 1)
        return level

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> NDArray[np.uint32]:
        keys = _keys(index, self.shape)
        sides = [
            len(range(n)[key]) if isinstance(key, slice) else 1
            for key, n in zip(keys, self.shape, strict=True)
        ]
        _require_room(sides, np.dtype(self._data.dtype).itemsize + 4)
        part = np.asarray(self._data[index])
        if not self._is_dense:
            part = np.searchsorted(self._ids, part.astype(np.uint64))
        out: NDArray[np.uint32] = np.array(part, np.uint32, order="C")
        if self._painted:
            chosen = [places[key] for places, key in zip(self._places, keys, strict=True)]
            for box, values in self._painted:
                _paint(out, chosen, box, values)
        return out

    def __setitem__(self, box: tuple[slice, ...], values: NDArray[np.uint32]) -> None:
        if not self.flags.writeable:
            raise ValueError("this label image on disk is read-only")
        sides = tuple(
            slice(*key.indices(n)[:2]) for key, n in zip(_keys(box, self.shape), self.shape,
                                                         strict=True)
        )  # fmt: skip
        # Boxes that this one covers are no longer seen, as those of a division that was undone.
        kept = [one for one in self._painted if not _is_within(one[0], sides)]
        self._painted = (*kept, (sides, np.array(values, np.uint32)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        whole = self[...]
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def __repr__(self) -> str:
        return f"DiskLabels(shape={self.shape}, {len(self._ids) - 1} labels)"


def _keys(index: Any, shape: tuple[int, ...]) -> list[Any]:
    """Return an entry of an index for each axis."""
    keys = list(index) if isinstance(index, tuple) else [index]
    dots = [at for at, key in enumerate(keys) if key is Ellipsis]
    if dots:
        keys[dots[0] : dots[0] + 1] = [slice(None)] * (len(shape) - len(keys) + 1)
    return keys + [slice(None)] * (len(shape) - len(keys))


def _require_room(sides: list[int], itemsize: int) -> None:
    """Refuse a part of an image on disk that does not fit in memory, before it is read."""
    needed = math.prod(sides) * itemsize
    if needed < _SMALL:
        return
    free = available_memory()
    if free is not None and needed > free:
        raise InvalidInput(
            f"A part of shape {tuple(sides)} of labels on disk needs about {needed / 1e9:.1f} GB "
            f"of memory and {free / 1e9:.1f} GB are free",
            argument="index",
            remedy="read a smaller part of it, or export it to NAME.ome.zarr, which is written "
            "block by block",
        )


def _is_within(box: tuple[slice, ...], other: tuple[slice, ...]) -> bool:
    return all(b.start <= a.start and a.stop <= b.stop for a, b in zip(box, other, strict=True))


def _paint(
    part: NDArray[np.uint32],
    chosen: list[Any],
    box: tuple[slice, ...],
    values: NDArray[np.uint32],
) -> None:
    """Draw a painted box into a part, whose voxels along each axis are `chosen`."""
    here, there = [], []  # in the part, and in the box
    for places, side in zip(chosen, box, strict=True):
        one = np.atleast_1d(places)
        inside = np.flatnonzero((one >= side.start) & (one < side.stop))
        if not inside.size:
            return
        here.append(inside)
        there.append(one[inside] - side.start)
    whole = part.reshape([np.size(places) for places in chosen])  # a view: `part` is contiguous
    whole[np.ix_(*here)] = values[np.ix_(*there)]


class MappedLabels:
    """Segments of an image on disk: ``table[image]``, computed part by part.

    `write_labels` writes it block by block.

    Examples
    --------
    >>> import numpy as np
    >>> image = DiskLabels(np.array([[1, 2, 3]]), np.arange(4, dtype=np.uint64))
    >>> MappedLabels(image, np.array([0, 70, 70, 90]))[0, 1:]
    array([70, 90])
    """

    def __init__(self, image: DiskLabels, table: NDArray[Any]) -> None:
        self._image, self._table = image, table
        self.dtype: np.dtype[Any] = table.dtype
        self.shape, self.ndim, self.size = image.shape, image.ndim, image.size
        self.chunks = image.chunks

    def __getitem__(self, index: Any) -> NDArray[Any]:
        return np.asarray(self._table[self._image[index]])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        whole = self[...]
        return whole if dtype is None else whole.astype(dtype, copy=False)


def is_on_disk(image: object) -> bool:
    """Return whether the image of labels stays on disk."""
    return isinstance(image, DiskLabels | MappedLabels)


def whole_image(image: Any) -> NDArray[Any]:
    """Return an image in memory; one on disk is read, and refused if it does not fit."""
    return np.asarray(image)


def mapped_labels(image: Any, table: NDArray[Any]) -> Any:
    """Return ``table[image]``: an array, or `MappedLabels` of an image on disk."""
    return MappedLabels(image, table) if is_on_disk(image) else table[image]


def disk_labels(
    data: Any, ids: NDArray[np.uint64], dtype: Any, coarser: Sequence[Any] = ()
) -> DenseLabels:
    """Return the labels of an image on disk, whose ids are known, without reading it.

    Parameters
    ----------
    data
        The label image, as in `DiskLabels`.
    ids : ndarray of uint64
        All its ids, ascending, with 0 first.
    dtype
        The type of the user's label image.
    coarser : sequence of arrays
        Coarser levels of the image, the finest first.

    Examples
    --------
    >>> import numpy as np
    >>> labels = disk_labels(np.array([0, 5, 5]), np.array([0, 5], np.uint64), np.uint8)
    >>> labels.image[1:], labels.n_labels
    (array([1, 1], dtype=uint32), 1)
    """
    image: Any = DiskLabels(data, ids, coarser=tuple(coarser))
    return DenseLabels(image, ids, np.dtype(dtype))
