"""Volume: an array with the spacing of its voxels and a name, from a file or a layer."""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import InvalidInput
from napari_agglo.volumes._named_axes import axis_names, check_axis_order


def available_memory() -> int | None:
    """Return the bytes that can be allocated without swapping; None if that is not known."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def require_memory(
    data: Any, name: str, extra_per_voxel: int = 0, remedy: str | tuple[str, ...] = "use a crop"
) -> None:
    """Refuse a lazy array that does not fit in memory, before it is read."""
    free = available_memory()
    voxels = math.prod(data.shape)
    needed = voxels * (np.dtype(data.dtype).itemsize + extra_per_voxel)
    if free is not None and needed > free:
        raise InvalidInput(
            f"`{name}` (shape {tuple(data.shape)}, {np.dtype(data.dtype)}) needs about "
            f"{needed / 1e9:.1f} GB of memory and {free / 1e9:.1f} GB are free",
            argument=name,
            remedy=remedy,
        )


@dataclass(frozen=True, eq=False)
class Volume:
    """An n-D array that may still be on disk.

    A Volume can be pickled and sent to another process: data on disk stay there, and are opened
    again by their path.

    Attributes
    ----------
    data
        Anything with ``shape``, ``dtype`` and ``__getitem__``: an array, a memory map, a Zarr
        array, a dask array.
    spacing
        Distance between voxel centres along each axis, in the order of the axes (plane, row,
        column), or None if it is not known.
    name
        Name of the volume in messages. An image pyramid is opened at its full resolution; its name
        then ends in ``" (level 0)"``.
    attributes
        Attributes of a Zarr array or an HDF5 dataset.
    unit
        Unit of the spacing, or None if it is not known. Files that state a unit are read in
        ``"micrometer"``.
    origin
        Place of the first voxel in the volume that this is a crop of, in voxels along each axis;
        None if the file does not state it.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.volumes import Volume
    >>> Volume(np.zeros((4, 5), np.uint8), spacing=(2.0, 1.0), name="cells").shape
    (4, 5)
    """

    data: Any
    spacing: tuple[float, ...] | None = None
    name: str = "volume"
    attributes: Mapping[str, Any] = field(default_factory=dict)
    unit: str | None = None
    origin: tuple[float, ...] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        attributes = dict(self.attributes)
        data = _without_voxels(self.data)
        return Volume, (data, self.spacing, self.name, attributes, self.unit, self.origin)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of voxels along each axis."""
        return tuple(int(n) for n in self.data.shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.data.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a voxel."""
        dtype: np.dtype[Any] = np.dtype(self.data.dtype)
        return dtype

    def load(self) -> np.ndarray[Any, Any]:
        """Return the whole array in memory; read it unless it is there already.

        Returns
        -------
        ndarray
            The voxels.

        Raises
        ------
        InvalidInput
            If the memory is too small for them.
        """
        if type(self.data) is np.ndarray:
            return self.data
        require_memory(self.data, self.name)
        return np.array(self.data[...])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Let ``np.asarray(volume)`` work."""
        loaded = self.load()
        converted = loaded if dtype is None else loaded.astype(dtype, copy=False)
        return converted.copy() if copy and converted is self.data else converted


class _Mapped:
    """A memory map as its file and place, for pickle, which would store the voxels."""

    def __init__(self, *where: Any) -> None:
        self.where = where

    def __reduce__(self) -> tuple[Any, ...]:
        return np.memmap, self.where


def _without_voxels(data: Any) -> Any:
    """Return the value to pickle for an array: a memory map of a file is opened again."""
    if type(data) is not np.memmap or not data.flags.c_contiguous or data.size == 0:
        return data
    file, memory = getattr(data, "filename", None), getattr(data, "_mmap", None)
    if file is None or memory is None:
        return data
    # The attribute `offset` is that of the map, and views of it have the same.
    base = np.frombuffer(memory, np.uint8)
    start = data.ctypes.data - base.ctypes.data
    page = data.offset - data.offset % mmap.ALLOCATIONGRANULARITY
    return _Mapped(os.path.abspath(file), data.dtype, "r", page + start, data.shape)


SLAB_BYTES = 64 * 2**20
PIECE = 1 << 22  # voxels of an array in memory between two reports of progress


def unwrap(source: Any, name: str) -> Any:
    """Return the array of a Volume, a pyramid or a lazy array, without reading its voxels.

    The result has ``shape``, ``dtype`` and ``__getitem__``. A sequence of arrays, each smaller than
    the one before, is an image pyramid, as in napari's multiscale layers: it gives its first level.
    An array with names of axes (xarray) is refused if these are not in the order z, y, x.
    """
    if isinstance(source, Volume):
        source = source.data
    if isinstance(source, Sequence) and not isinstance(source, str | bytes):
        source = _first_level(source, name)
    if isinstance(source, str | bytes | os.PathLike):
        raise InvalidInput(
            f"`{name}` must be an array, not the path {os.fspath(source)!r}",
            argument=name,
            remedy=f"open it first: open_volume({os.fspath(source)!r})",
        )
    if not all(hasattr(source, part) for part in ("shape", "dtype", "__getitem__")):
        raise InvalidInput(
            f"`{name}` must be an array, not a {type(source).__name__}",
            argument=name,
            remedy="pass its .data" if hasattr(source, "data") else "pass an array",
        )
    if isinstance(source, np.ma.MaskedArray):
        raise InvalidInput(
            f"`{name}` is a masked array, whose mask would be lost",
            argument=name,
            remedy="fill it first: .filled(0)",
        )
    if any(n != n for n in source.shape):  # dask writes NaN for a length it does not know
        raise InvalidInput(
            f"`{name}` has a shape that is not known yet, {tuple(source.shape)}",
            argument=name,
            remedy="call its compute_chunk_sizes() first",
        )
    if axis_names(source) is not None:
        check_axis_order(source, name)
        if getattr(source, "chunks", None) is None:  # no dask array: its data are read as a whole
            require_memory(source, name)
        source = source.data
    try:
        np.dtype(source.dtype)
    except TypeError:  # an array of a library with its own types
        return np.asarray(source)
    return source


def _first_level(levels: Sequence[Any], name: str) -> Any:
    if len(levels) == 0:
        raise InvalidInput(
            f"`{name}` must be an array, not an empty list", argument=name, remedy="pass an array"
        )
    if not all(hasattr(level, "shape") and hasattr(level, "dtype") for level in levels):
        try:
            return np.asarray(levels)
        except ValueError as error:
            problem = f"`{name}` is a list that cannot be made an array ({error})"
            raise InvalidInput(problem, argument=name, remedy="pass an array") from error
    shapes = [tuple(level.shape) for level in levels]
    if len(shapes) > 1 and math.prod(shapes[1]) >= math.prod(shapes[0]):
        raise InvalidInput(
            f"`{name}` must be one array or a pyramid of shrinking levels, not a list of arrays of "
            f"shapes {shapes[0]}, {shapes[1]}{', ...' if len(shapes) > 2 else ''}",
            argument=name,
            remedy="for a stack of planes pass np.stack(planes)",
        )
    return levels[0]


def is_lazy(data: Any) -> bool:
    """Return whether voxels are not in memory yet (a memory map counts as lazy)."""
    return not isinstance(data, np.ndarray) or isinstance(data, np.memmap)


def slabs(data: Any, slab_bytes: int = SLAB_BYTES) -> Iterator[tuple[int, int, Any]]:
    """Yield ``(first voxel, last voxel + 1, plain C-order array)``, the voxels in C order.

    A lazy array comes in slabs along axis 0, which begin where its chunks do, so that no chunk is
    read twice. One in memory comes in flat pieces, without a copy.
    """
    shape = tuple(int(n) for n in data.shape)
    if math.prod(shape) == 0:
        return
    plane = math.prod(shape[1:])
    if not is_lazy(data) and data.flags.c_contiguous and data.dtype.isnative:
        flat = data.reshape(-1)
        for start, stop in pieces(flat.size):
            yield start, stop, flat[start:stop]
        return
    itemsize = np.dtype(data.dtype).itemsize
    step = max(1, slab_bytes // (plane * itemsize))
    chunk = chunk_thickness(data)
    step = max(chunk, step // chunk * chunk)
    for start in range(0, shape[0], step):
        stop = min(start + step, shape[0])
        slab = native(np.asarray(data[start:stop]))
        yield start * plane, stop * plane, slab


def pieces(size: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of `PIECE` voxels that together cover `size` voxels."""
    for start in range(0, size, PIECE):
        yield start, min(start + PIECE, size)


def in_memory(
    data: Any, name: str, progress: ProgressCallback | None = None
) -> np.ndarray[Any, Any]:
    """Read a lazy array in its own type, slab by slab; an array in memory is left as it is."""
    if not is_lazy(data):
        return np.asarray(data)
    values = np.empty(data.shape, np.dtype(data.dtype).newbyteorder("="))
    flat = values.reshape(-1)
    for start, stop, slab in slabs(data):
        flat[start:stop] = slab.reshape(-1)
        report(progress, f"reading {name}", stop, flat.size)
    return values


def chunk_sides(data: Any) -> tuple[int, ...]:
    """Return the sides of a chunk of a lazy array; ones if it has none."""
    chunks = getattr(data, "shards", None) or getattr(data, "chunks", None)
    if not chunks:
        return (1,) * len(data.shape)
    return tuple(int(max(side)) if isinstance(side, tuple) else int(side) for side in chunks)


def chunk_thickness(data: Any) -> int:
    """Return the length of a chunk of a lazy array along its first axis; 1 if it has none."""
    return chunk_sides(data)[0]


def native(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return `array` in C order and in this machine's byte order, copied only if it must be."""
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
