"""Arrays that stay on disk: the file is opened for each read and closed again.

No handle is left open, so a file can be replaced, moved or opened by others at any time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from napari_agglo.errors import Install, InvalidInput, is_whole
from napari_agglo.volumes._volume import require_memory

Index = tuple[int | slice, ...]


class OnDisk:
    """An array whose voxels are fetched by `read`, a function of one index (or slice) an axis."""

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: Any,
        read: Callable[[Index], Any],
        chunks: tuple[int, ...] | None = None,
    ) -> None:
        self.shape = tuple(int(n) for n in shape)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.chunks = chunks
        self._read = read

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __getitem__(self, index: Any) -> np.ndarray[Any, Any]:
        ascending, flips = _normalise_index(index, self.shape)
        return np.asarray(self._read(ascending))[flips]

    def absent(self, index: Any, values: np.ndarray[Any, Any] | None = None) -> int:
        """Return the number of chunks of a part that the store lacks, which read as its fill value.

        A store at a URL is asked only for chunks that have the fill value throughout in `values`,
        the part as it was read; without them, for all. 0 where a format has no chunks.
        """
        count = getattr(self._read, "absent", None)
        return 0 if count is None else int(count(_normalise_index(index, self.shape)[0], values))

    def files(self, index: Any) -> list[Any]:
        """Return the files of the chunks that a part lies in: folder and name of each.

        None where a format has no chunks.
        """
        listed = getattr(self._read, "files", None)
        return [] if listed is None else list(listed(_normalise_index(index, self.shape)[0]))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        require_memory(self, "array")
        array = self[...]
        return array if dtype is None else array.astype(dtype, copy=False)

    def __repr__(self) -> str:
        return f"OnDisk(shape={self.shape}, dtype={self.dtype})"


def pick(data: Any, fixed: dict[int, int]) -> Any:
    """Return `data` with some axes fixed at an index, and so dropped; nothing is read."""
    if not fixed:
        return data
    kept = [axis for axis in range(len(data.shape)) if axis not in fixed]

    inner = _PickedIndex(len(data.shape), tuple(kept), tuple(fixed.items()))
    if isinstance(data, np.ndarray):
        return data[inner((slice(None),) * len(kept))]
    chunks = data.chunks and tuple(data.chunks[axis] for axis in kept)
    shape = tuple(data.shape[axis] for axis in kept)
    return OnDisk(shape, data.dtype, _ReadInner(data, inner), chunks)


def crop(data: Any, spans: Mapping[int, range]) -> Any:
    """Return the voxels of a range along some axes, each of step 1; nothing is read."""
    if not spans:
        return data
    sides = [spans.get(axis, range(int(n))) for axis, n in enumerate(data.shape)]
    if isinstance(data, np.ndarray):
        return data[tuple(slice(side.start, side.stop) for side in sides)]
    read = _ReadInner(data, _CroppedIndex(tuple(side.start for side in sides)))
    shape = tuple(map(len, sides))
    chunks = data.chunks and tuple(map(min, data.chunks, shape))
    return OnDisk(shape, data.dtype, read, chunks)


# Readers are values, not closures, so that an array on disk can be sent to another process.


@dataclass(frozen=True, eq=False)
class _ReadInner:
    """Read a part of an array by the index of that part in the whole."""

    data: Any
    inner: Callable[[Index], Index]

    def __call__(self, index: Index) -> Any:
        return self.data[self.inner(index)]

    def absent(self, index: Index, values: Any) -> int:
        """Return the chunks that are not there."""
        return int(self.data.absent(self.inner(index), values))

    def files(self, index: Index) -> Any:
        """Return the files of chunks."""
        return self.data.files(self.inner(index))


@dataclass(frozen=True)
class _PickedIndex:
    """Index of an array of which some axes are fixed."""

    ndim: int
    kept: tuple[int, ...]
    fixed: tuple[tuple[int, int], ...]

    def __call__(self, index: Index) -> Index:
        inner: dict[int, int | slice] = dict(zip(self.kept, index, strict=True))
        inner.update(self.fixed)
        return tuple(inner[axis] for axis in range(self.ndim))


@dataclass(frozen=True)
class _CroppedIndex:
    """Index of an array of which a crop begins at `start`."""

    start: tuple[int, ...]

    def __call__(self, index: Index) -> Index:
        return tuple(
            slice(one.start + first, one.stop + first, one.step)
            if isinstance(one, slice)
            else one + first
            for one, first in zip(index, self.start, strict=True)
        )


def as_type(data: Any, dtype: Any) -> Any:
    """Return `data` with voxels of another type; nothing is read."""
    if isinstance(data, np.ndarray):
        return data.astype(dtype, copy=False)
    return OnDisk(data.shape, dtype, _ReadAsType(data, np.dtype(dtype)), data.chunks)


@dataclass(frozen=True, eq=False)
class _ReadAsType:
    """Read voxels as another type."""

    data: Any
    dtype: np.dtype[Any]

    def __call__(self, index: Index) -> Any:
        return self.data[index].astype(self.dtype, copy=False)

    def absent(self, index: Index, values: Any) -> int:
        """Return the chunks that are not there."""
        return int(self.data.absent(index, values))

    def files(self, index: Index) -> Any:
        """Return the files of chunks."""
        return self.data.files(index)


def put_first(data: Any, axis: int) -> Any:
    """Return `data` with one axis before the others; nothing is read."""
    if isinstance(data, np.ndarray):
        return np.moveaxis(data, axis, 0)

    def order(parts: Any) -> tuple[Any, ...]:
        return (parts[axis], *parts[:axis], *parts[axis + 1 :])

    read = _ReadMoved(data, axis)
    return OnDisk(order(data.shape), data.dtype, read, data.chunks and order(data.chunks))


@dataclass(frozen=True, eq=False)
class _ReadMoved:
    """Read with one axis before the others."""

    data: Any
    axis: int

    def __call__(self, index: Index) -> Any:
        axis = self.axis
        part = self.data[self._inner(index)]
        if not isinstance(index[0], slice):
            return part
        before = sum(isinstance(one, slice) for one in index[1 : axis + 1])
        return np.moveaxis(part, before, 0)

    def absent(self, index: Index, values: Any) -> int:
        """Return the chunks that are not there; all are asked for, as values are in other order."""
        return int(self.data.absent(self._inner(index)))

    def files(self, index: Index) -> Any:
        """Return the files of chunks."""
        return self.data.files(self._inner(index))

    def _inner(self, index: Index) -> Index:
        return (*index[1 : self.axis + 1], index[0], *index[self.axis + 1 :])


def absent_chunks(
    index: Index,
    sides: tuple[int, ...],
    has: Callable[[tuple[int, ...]], bool],
    suspects: np.ndarray[Any, Any] | None,
    fill: Any,
) -> int:
    """Return the number of absent chunks that an index touches, by `has` of their place.

    With `suspects`, the values of that part, a chunk with any other value than `fill` is there.
    """
    spans = _spans(index)
    known = None if suspects is None else suspects.reshape([len(span) for span in spans])
    absent = 0
    for place in chunks_of(index, sides):
        if known is not None:
            here = known[
                tuple(
                    slice(max(0, at * c - span[0]), (at + 1) * c - span[0])
                    for at, c, span in zip(place, sides, spans, strict=True)
                )
            ]
            if (here != fill).any():
                continue
        absent += not has(place)
    return absent


def chunks_of(index: Index, sides: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the places of the chunks that an index touches."""
    spans = _spans(index)
    if all(len(span) for span in spans):
        yield from itertools.product(
            *(range(s[0] // c, s[-1] // c + 1) for s, c in zip(spans, sides, strict=True))
        )


def _spans(index: Index) -> list[range]:
    return [
        range(one.start, one.stop) if isinstance(one, slice) else range(one, one + 1)
        for one in index
    ]


def _normalise_index(index: Any, shape: tuple[int, ...]) -> tuple[Index, tuple[slice, ...]]:
    """Return one non-negative index or ascending slice per axis, and the flips of the result.

    No format takes a slice with a negative step, and few name an index that is out of bounds.
    """
    parts = list(index) if isinstance(index, tuple) else [index]
    if not all(part is Ellipsis or isinstance(part, slice) or is_whole(part) for part in parts):
        raise InvalidInput(
            f"an array on disk is indexed by whole numbers and slices, not by {index!r}",
            argument="source",
            remedy="read it first, e.g. volume.load()[...]",
        )
    dots = [place for place, part in enumerate(parts) if part is Ellipsis]
    if not dots:
        parts.append(Ellipsis)
        dots = [len(parts) - 1]
    missing = len(shape) - (len(parts) - 1)
    if len(dots) > 1 or missing < 0:
        raise IndexError(f"cannot index an array of {len(shape)} axes by {index!r}")
    parts[dots[0] : dots[0] + 1] = [slice(None)] * missing
    ascending: list[int | slice] = []
    flips: list[slice] = []
    for axis, (part, length) in enumerate(zip(parts, shape, strict=True)):
        if isinstance(part, slice):
            chosen = range(length)[part]
            backwards = chosen.step < 0
            chosen = chosen[::-1] if backwards else chosen
            ascending.append(
                slice(chosen[0], chosen[-1] + 1, chosen.step) if chosen else slice(0, 0, 1)
            )
            flips.append(slice(None, None, -1 if backwards else None))
        elif -length <= int(part) < length:
            ascending.append(int(part) % length)
        else:
            raise IndexError(f"index {part} is out of bounds: axis {axis} has length {length}")
    return tuple(ascending), tuple(flips)


class DamagedFile(InvalidInput):
    """A file that is there and cannot be decoded."""


@contextmanager
def reading(path: object, kind: str) -> Iterator[None]:
    """Raise any error of a reader as `InvalidInput` with the path of the file."""
    try:
        yield
    except InvalidInput:
        raise
    except FileNotFoundError as error:
        raise InvalidInput(
            f"{path} no longer exists", argument="source", remedy="open it again"
        ) from error
    except PermissionError as error:
        raise InvalidInput(
            f"{path} cannot be read (permission denied)",
            argument="source",
            remedy="check its permissions",
        ) from error
    except MemoryError as error:
        raise InvalidInput(
            f"{path} does not fit in memory", argument="source", remedy="use a crop"
        ) from error
    except Exception as error:  # readers raise nearly anything on a damaged file
        reason = str(error).strip("'\"") or type(error).__name__
        if "imagecodecs" in reason:
            raise InvalidInput(
                f"{path} has a compression that needs another package ({reason})",
                argument="source",
                remedy=(Install("imagecodecs"), "save it with deflate or without compression"),
            ) from error
        raise DamagedFile(
            f"{path} cannot be read as {kind} ({reason}); it may be damaged or of another format",
            argument="source",
            remedy="save it again from the program that made it",
        ) from error
