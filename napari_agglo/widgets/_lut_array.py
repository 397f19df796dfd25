"""A lazy label image: a table over superpixels, looked up in the slice on the screen.

napari slices it like an array. Only that slice is read from the superpixels and mapped, so a tick
of the threshold takes the same time for a volume of any size.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.agglomeration._merge_tree import map_labels

Patch = tuple[tuple[slice, ...], NDArray[Any]]  # a box and its labels; 0 leaves the source


class Patched:
    """A view of an array with other labels in a few boxes; neither is copied.

    The label 0 in a box stands for the source. The source may be a coarser copy, with every
    `step`-th pixel along the last three axes, or with a step for each axis.

    Examples
    --------
    >>> source = np.array([[1, 1, 2], [1, 1, 2]])
    >>> patched = Patched(source, [((slice(0, 2), slice(0, 1)), np.array([[0], [9]]))])
    >>> patched[:, 0]
    array([1, 9])
    >>> patched[1, ::2]
    array([9, 2])
    """

    def __init__(
        self, source: Any, patches: Sequence[Patch], step: int | Sequence[int] = 1
    ) -> None:
        self.source = source
        self.patches = tuple(patches)
        self.shape = tuple(int(n) for n in source.shape)
        self.dtype = source.dtype
        coarse = max(0, len(self.shape) - 3)
        if isinstance(step, int):
            step = [1 if axis < coarse else step for axis in range(len(self.shape))]
        self._steps = list(step)

    def __getitem__(self, index: tuple[slice | int, ...]) -> NDArray[Any]:
        out = np.array(self.source[index], order="C")
        whole = out.reshape([len(self._places(axis, one)) for axis, one in enumerate(index)])
        for box, labels in self.patches:
            here, there = [], []
            for axis, (one, within) in enumerate(zip(index, box, strict=True)):
                places = self._places(axis, one) - within.start
                inside = np.flatnonzero((places >= 0) & (places < labels.shape[axis]))
                here.append(inside)
                there.append(places[inside])
            if all(map(len, here)):
                drawn = labels[np.ix_(*there)]
                at = np.ix_(*here)
                whole[at] = np.where(drawn > 0, drawn, whole[at])
        return out

    def _places(self, axis: int, one: slice | int) -> NDArray[np.int64]:
        """Return the pixels of the finest level that an index selects along an axis."""
        every = np.arange(self.shape[axis], dtype=np.int64) * self._steps[axis]
        return np.atleast_1d(every[one])


@dataclass(frozen=True)
class Extent:
    """The part of an array that slices of slices select: a range or a number along each axis.

    Examples
    --------
    >>> part = Extent.whole((4, 6)).narrowed((slice(1, 3), slice(None, None, 2)))
    >>> part.shape, part.index
    ((2, 3), (slice(1, 3, 1), slice(0, 6, 2)))
    """

    axes: tuple[range | int, ...]

    @classmethod
    def whole(cls, shape: Sequence[int]) -> Extent:
        """Return the extent of all pixels."""
        return cls(tuple(range(int(n)) for n in shape))

    @property
    def shape(self) -> tuple[int, ...]:
        """The length along each axis that is left."""
        return tuple(len(axis) for axis in self.axes if isinstance(axis, range))

    @property
    def size(self) -> int:
        """The number of pixels."""
        return math.prod(self.shape)

    @property
    def index(self) -> tuple[slice | int, ...]:
        """The index of the part in the whole array."""
        return tuple(_as_index(axis) for axis in self.axes)

    def narrowed(self, index: Any) -> Extent | None:
        """Return the extent of a slice; None for an index of more than slices and numbers."""
        indices = index if isinstance(index, tuple) else (index,)
        axes = [k for k, axis in enumerate(self.axes) if isinstance(axis, range)]
        if any(one is Ellipsis for one in indices):
            at = next(k for k, one in enumerate(indices) if one is Ellipsis)
            missing = len(axes) - len(indices) + 1
            indices = (*indices[:at], *[slice(None)] * missing, *indices[at + 1 :])
        if len(indices) > len(axes):
            raise IndexError(f"too many indices: {len(indices)} for {len(axes)} axes")
        out = list(self.axes)
        for k, one in zip(axes, indices, strict=False):
            axis = out[k]
            assert isinstance(axis, range)
            if isinstance(one, slice):
                # napari slices with numbers of numpy.
                ends = (one.start, one.stop, one.step)
                out[k] = axis[slice(*(None if n is None else int(n) for n in ends))]
            elif isinstance(one, (int, np.integer)) and not isinstance(one, (bool, np.bool_)):
                out[k] = axis[int(one)]
            else:
                return None
        return Extent(tuple(out))


def _as_index(axis: range | int) -> slice | int:
    """Return the index of an axis of an extent."""
    if isinstance(axis, int):
        return axis
    if not axis:
        return slice(0, 0)
    return slice(axis.start, axis.stop if axis.stop >= 0 else None, axis.step)


_CACHED = 8  # slices of superpixels: a few planes back and forth, a few panels
_CACHED_BYTES = 256 << 20  # of the largest slice in the cache


class Table:
    """A table shared by several arrays; to set its values changes them all."""

    def __init__(self, values: NDArray[Any]) -> None:
        self.values = values


class LutArray:
    """The array ``table[superpixels]``, computed where it is sliced.

    The superpixels are dense ids, of numpy or of a lazy array (zarr, h5py, dask). With a
    `thickness` only outlines are shown, of so many pixels counting both sides. There are none in
    3-D, where they would hide everything. The `source` is what the array was made from, if given.

    Examples
    --------
    >>> superpixels = np.array([[1, 2], [3, 3]], np.uint32)
    >>> shown = LutArray(superpixels, np.array([0, 7, 7, 9], np.uint32))
    >>> np.asarray(shown[0])
    array([7, 7], dtype=uint32)
    >>> shown.table.values = np.array([0, 1, 2, 3], np.uint32)
    >>> np.asarray(shown)
    array([[1, 2],
           [3, 3]], dtype=uint32)
    """

    def __init__(
        self,
        superpixels: Any,
        table: Table | NDArray[Any],
        *,
        thickness: int = 0,
        source: Any = None,
    ) -> None:
        self.thickness, self.source = thickness, source
        self.table = table if isinstance(table, Table) else Table(np.asarray(table))
        self._cache = _Slices(superpixels)
        self._show(Extent.whole(superpixels.shape))

    def _show(self, extent: Extent) -> None:
        self._extent, self.shape, self.size = extent, extent.shape, extent.size
        self.ndim = len(extent.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the table; bytes are drawn much faster."""
        return self.table.values.dtype

    @property
    def superpixels(self) -> Any:
        """The dense superpixels, whole."""
        return self._cache.source

    @superpixels.setter
    def superpixels(self, superpixels: Any) -> None:
        """Show other superpixels of the same shape, as after a division."""
        self._cache.replace(superpixels)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        extent = self._extent.narrowed(index)
        if extent is None:  # by arrays of indices: rare, and small
            return self._at(index)
        part = object.__new__(LutArray)
        part.table, part._cache, part.thickness = self.table, self._cache, self.thickness
        part._show(extent)
        # Lazy while it has more than two axes: napari slices it further.
        return part if part.ndim > 2 else np.asarray(part)

    def _at(self, index: Any) -> Any:
        """Return the values at arrays of indices; of a lazy source, their box alone is read."""
        indices = index if isinstance(index, tuple) else (index,)
        numbers = [np.asarray(one) for one in indices if not isinstance(one, slice)]
        whole = len(numbers) == self.ndim and all(one.dtype.kind in "iu" for one in numbers)
        if not whole or not all(one.size for one in numbers):
            return np.asarray(self)[index]
        places = [
            np.where(one < 0, one + n, one) for one, n in zip(numbers, self.shape, strict=True)
        ]
        for one, n in zip(places, self.shape, strict=True):
            if one.min() < 0 or one.max() >= n:
                raise IndexError(f"index out of bounds for the shape {self.shape}")
        low = [int(one.min()) for one in places]
        box = tuple(slice(a, int(one.max()) + 1) for a, one in zip(low, places, strict=True))
        part = np.asarray(self[box])
        return part[tuple(one - a for one, a in zip(places, low, strict=True))]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if self.thickness and self.ndim > 2:
            return np.zeros(self.shape, self.dtype if dtype is None else dtype)
        labels, table = self._cache.read(self._extent), self.table.values
        out = np.empty(labels.shape, table.dtype)
        map_labels(labels.reshape(-1), table, out.reshape(-1))
        if self.thickness and out.ndim == 2:
            out[~_edges(out, self.thickness)] = 0
        return out if dtype is None else out.astype(dtype, copy=False)

    def __repr__(self) -> str:
        return f"LutArray(shape={self.shape}, {len(self.table.values) - 1} superpixels)"


def _edges(labels: NDArray[Any], thickness: int) -> NDArray[np.bool_]:
    """Return the mask of pixels next to another label, `thickness` pixels thick."""
    edge = np.zeros(labels.shape, bool)
    down, right = labels[1:] != labels[:-1], labels[:, 1:] != labels[:, :-1]
    edge[:-1] |= down
    edge[:, :-1] |= right
    if thickness == 1:  # a line between two labels is drawn on one of them
        return edge
    edge[1:] |= down
    edge[:, 1:] |= right
    for _ in range(thickness - 2):
        wider = edge.copy()
        wider[1:] |= edge[:-1]
        wider[:-1] |= edge[1:]
        wider[:, 1:] |= edge[:, :-1]
        wider[:, :-1] |= edge[:, 1:]
        edge = wider
    return edge


class _Slices:
    """A cache of the latest slices of an array that is slow to read; for any thread."""

    def __init__(self, source: Any) -> None:
        self._lock = threading.Lock()
        self.replace(source)

    def replace(self, source: Any) -> None:
        with self._lock:
            self.source = source
            self._cached: OrderedDict[Extent, NDArray[Any]] = OrderedDict()

    def read(self, extent: Extent) -> NDArray[Any]:
        source, index = self.source, extent.index
        if isinstance(source, np.ndarray):  # a view, unless the slice is not contiguous
            return np.asarray(source[index], order="C")
        with self._lock:
            part = self._cached.get(extent)
            if part is not None:
                self._cached.move_to_end(extent)
                return part
        part = np.asarray(source[index], order="C")
        with self._lock:
            if self.source is source and part.nbytes <= _CACHED_BYTES:
                self._cached[extent] = part
                if len(self._cached) > _CACHED:
                    self._cached.popitem(last=False)
        return part
