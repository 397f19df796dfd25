"""Coarser levels of a label image, and the Zarr arrays of a pyramid.

A pyramid is made in two steps, so that level 0 can be written by anyone: `create_levels` makes the
empty arrays that an `OmeImage` plans, and `fill_level` makes a part of a level from the level
before. Parts that are whole shards (`shard_boxes`) may be written at the same time, also by several
processes; two writers in one shard would lose data.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel
from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import InvalidInput, SetOption, check_choice, check_whole
from napari_agglo.volumes._checks import check_labels
from napari_agglo.volumes._ome_zarr_metadata import DEFAULT_VERSION, METHODS, OmeImage

Box = tuple[slice, ...]


def downsample_labels(
    labels: Any,
    factors: int | Sequence[int],
    *,
    method: str = "mode",
    shape: Sequence[int] | None = None,
) -> NDArray[Any]:
    """Return a smaller label image in which each pixel stands for a window of pixels.

    Parameters
    ----------
    labels : array of int
        Label image; only its last three axes can shrink.
    factors : int or sequence of int
        Length of the window along each axis.
    method : {"mode", "nearest"}
        The id that most pixels of the window have, of equals the one that comes first in it; or
        the id of the first pixel, which is quicker and lets thin parts appear and vanish.
    shape : sequence of int, optional
        Shape of the result; by default windows that the image ends in count too.

    Returns
    -------
    ndarray
        The smaller label image, of the type of `labels`.

    Examples
    --------
    >>> import numpy as np
    >>> downsample_labels(np.array([[1, 2, 3], [2, 2, 3]]), 2)
    array([[2, 3]])
    >>> downsample_labels(np.array([[1, 2, 3], [2, 2, 3]]), 2, method="nearest")
    array([[1, 3]])
    """
    array = check_labels(labels, "labels")
    check_choice("method", method, METHODS)
    steps = (factors,) * array.ndim if isinstance(factors, int) else tuple(factors)
    if len(steps) != array.ndim:
        raise InvalidInput(
            f"`factors` must be {array.ndim} numbers, one for each axis, got {steps}",
            argument="factors",
            remedy=SetOption("factors", 2),
        )
    steps = tuple(check_whole("factors", step, 1) for step in steps)
    if isinstance(factors, int):
        steps = (1,) * (array.ndim - 3) + steps[-3:]
    elif max(steps[:-3], default=1) > 1:
        raise InvalidInput(
            f"`factors` must be 1 but for the last three axes, got {steps}",
            argument="factors",
            remedy="pick one index along the other axes, or downsample each by itself",
        )
    whole = tuple(-(-n // step) for n, step in zip(array.shape, steps, strict=True))
    size = whole if shape is None else tuple(int(n) for n in shape)
    if any(n > most for n, most in zip(size, whole, strict=True)):
        raise InvalidInput(
            f"`shape` must be at most {whole}, got {size}",
            argument="shape",
            remedy=SetOption("shape", whole),
        )
    return _downsample(array, steps, method, size)


def _downsample(
    array: NDArray[Any], steps: tuple[int, ...], method: str, size: tuple[int, ...]
) -> NDArray[Any]:
    if method == "nearest" or max(steps, default=1) == 1:
        nearest = array[tuple(slice(None, None, step) for step in steps)]
        return np.ascontiguousarray(nearest[tuple(slice(n) for n in size)])
    # two compiled versions serve all integer types
    wide = np.uint64 if array.dtype.itemsize == 8 else np.uint32
    one = array.view(f"u{array.dtype.itemsize}").astype(wide, copy=False)
    fill = max(0, 4 - array.ndim)
    flat = one.reshape((1,) * (4 - array.ndim) + array.shape if fill else (-1, *array.shape[-3:]))
    ends = (1,) * fill + size
    out = np.empty((math.prod(ends[:-3]), *ends[-3:]), wide)
    window = ((1,) * fill + steps)[-3:]
    buffer = np.empty((2, math.prod(window)), np.uint64)
    _mode(flat, np.array(window, np.int64), buffer, out)
    return out.reshape(size).astype(f"u{array.dtype.itemsize}", copy=False).view(array.dtype)


@kernel
def _mode(
    labels: NDArray[Any], window: NDArray[np.int64], buffer: NDArray[np.uint64], out: NDArray[Any]
) -> None:
    """Write the commonest id of each window, of equals the first in C order; no bounds checking.

    `buffer` has place for the distinct ids of a window, and for the count of each.
    """
    depth, height, width = labels.shape[1], labels.shape[2], labels.shape[3]
    of_two = window[0] == 2 and window[1] == 2 and window[2] == 2
    for t in range(out.shape[0]):
        for k in range(out.shape[1]):
            z, last_z = k * window[0], min((k + 1) * window[0], depth)
            for i in range(out.shape[2]):
                y, last_y = i * window[1], min((i + 1) * window[1], height)
                whole = 0
                if of_two and last_z - z == 2 and last_y - y == 2:
                    whole = min(width // 2, out.shape[3])
                    _mode_of_eights(
                        labels[t, z, y], labels[t, z, y + 1], labels[t, z + 1, y],
                        labels[t, z + 1, y + 1], buffer[0], out[t, k, i, :whole],
                    )  # fmt: skip
                for j in range(whole, out.shape[3]):
                    x, last_x = j * window[2], min((j + 1) * window[2], width)
                    n = 0
                    for a in range(z, last_z):
                        for b in range(y, last_y):
                            for c in range(x, last_x):
                                value = np.uint64(labels[t, a, b, c])
                                at = 0
                                while at < n and buffer[0, at] != value:
                                    at += 1
                                if at == n:  # ids are listed in the order of their first pixel
                                    buffer[0, n] = value
                                    buffer[1, n] = np.uint64(0)
                                    n += 1
                                buffer[1, at] += np.uint64(1)
                    best = 0
                    for at in range(1, n):
                        if buffer[1, at] > buffer[1, best]:
                            best = at
                    out[t, k, i, j] = buffer[0, best]


@inlined
def _mode_of_eights(one: Any, two: Any, three: Any, four: Any, eight: Any, out: Any) -> None:
    """Write the commonest id of each window of 2 x 2 x 2 of four rows; `eight` is a buffer.

    Most windows have one id. An id that half of the pixels have is the commonest if it is also the
    first, and need not be counted.
    """
    for j in range(out.size):
        x = 2 * j
        first = one[x]
        others = (
            0  # so that numbers are added, not truth values
            + (one[x + 1] != first)
            + (two[x] != first)
            + (two[x + 1] != first)
            + (three[x] != first)
            + (three[x + 1] != first)
            + (four[x] != first)
            + (four[x + 1] != first)
        )
        if others > 4:
            eight[0], eight[1], eight[2], eight[3] = first, one[x + 1], two[x], two[x + 1]
            eight[4], eight[5], eight[6], eight[7] = three[x], three[x + 1], four[x], four[x + 1]
            most = 8 - others
            for a in range(1, 8):
                if 8 - a <= most:
                    break
                # of an id that came before, fewer than were counted there
                count = 0
                for b in range(a, 8):
                    count += eight[b] == eight[a]
                if count > most:
                    most = count
                    first = eight[a]
        out[j] = first


# Arrays -------------------------------------------------------------------------------------


def default_chunks(shape: Sequence[int]) -> tuple[int, ...]:
    """Return chunks of about a million voxels: 64 x 128 x 128 in a volume."""
    ndim = len(shape)
    usual = (1,) * ndim + {1: (2**20,), 2: (1024, 1024)}.get(ndim, (64, 128, 128))
    return tuple(max(1, min(c, n)) for c, n in zip(usual[-ndim:], shape, strict=True))


def create_levels(
    folder: Path,
    image: OmeImage,
    dtype: Any,
    *,
    chunks: Sequence[int] | None = None,
    shards: Sequence[int] | None = None,
    source: str | None = None,
    labels: bool = True,
) -> list[Any]:
    """Make the group of a pyramid and its arrays, filled with 0, and return the arrays.

    Parameters
    ----------
    folder : Path
        The group to make, which must not exist.
    image : OmeImage
        The plan, with shapes.
    dtype : dtype
        Type of the ids.
    chunks, shards : sequence of int, optional
        Shape of a chunk, and of a shard, which is a file of several chunks (0.5 only). Both are
        cut to the size of a level; a shard becomes the next multiple of its chunks.
    source : str, optional
        Path from a label image to its image.
    labels : bool
        Whether this is a label image.

    Returns
    -------
    list of zarr.Array
        An array for each level, the finest first.
    """
    import zarr

    chosen = None if chunks is None else check_blocks("chunks", chunks, len(image.shapes[0]))
    grouped = None if shards is None else check_blocks("shards", shards, len(image.shapes[0]))
    if grouped is not None and image.zarr_format == 2:
        raise InvalidInput(
            "`shards` need OME-Zarr 0.5: Zarr 2, which 0.4 is stored in, has none",
            argument="shards",
            remedy=(SetOption("version", DEFAULT_VERSION), "leave the shards out"),
        )
    attributes = image.attributes(labels=labels, source=source)
    v3 = image.zarr_format == 3
    group = zarr.create_group(str(folder), zarr_format=3 if v3 else 2, attributes=attributes)
    arrays = []
    for level, shape in zip(image.levels, image.shapes, strict=True):
        chunk = default_chunks(shape) if chosen is None else tuple(
            max(1, min(c, n)) for c, n in zip(chosen, shape, strict=True)
        )  # fmt: skip
        options: dict[str, Any] = {"dimension_names": image.letters} if v3 else {
            "chunk_key_encoding": {"name": "v2", "separator": "/"}
        }  # fmt: skip
        if grouped is not None:
            options["shards"] = tuple(
                -(-min(s, n) // c) * c for s, n, c in zip(grouped, shape, chunk, strict=True)
            )
        arrays.append(
            group.create_array(
                level.path, shape=shape, dtype=dtype, chunks=chunk, fill_value=0, **options
            )
        )
    return arrays


def check_blocks(name: str, block: Sequence[int], ndim: int) -> tuple[int, ...]:
    """Return the shape of a chunk or shard; refuse one that has not `ndim` positive numbers."""
    sizes = tuple(block) if isinstance(block, Sequence) else ()
    if len(sizes) != ndim:
        raise InvalidInput(
            f"`{name}` must be {ndim} whole numbers, one for each axis, got {block!r}",
            argument=name,
            remedy=SetOption(name, (64,) * ndim),
        )
    return tuple(check_whole(name, size, 1) for size in sizes)


def write_block(array: Any) -> tuple[int, ...]:
    """Return the shape of the smallest part that may be written by itself: a shard, or a chunk."""
    return tuple(int(n) for n in getattr(array, "shards", None) or array.chunks)


def shard_boxes(array: Any) -> Iterator[Box]:
    """Yield the boxes of all shards, or chunks where there are none, in C order.

    Parameters
    ----------
    array : zarr.Array
        A level.

    Yields
    ------
    tuple of slice
        A box that can be written without reading its neighbours.
    """
    block = write_block(array)
    starts = [range(0, n, size) for n, size in zip(array.shape, block, strict=True)]
    for corner in itertools.product(*starts):
        yield tuple(
            slice(a, min(a + size, n))
            for a, size, n in zip(corner, block, array.shape, strict=True)
        )


def coarse_part(finer: Any, factors: Sequence[int], box: Box, method: str = "mode") -> NDArray[Any]:
    """Return one box of a level, made from the level before."""
    reach = tuple(
        slice(part.start * step, min(part.stop * step, n))
        for part, step, n in zip(box, factors, finer.shape, strict=True)
    )
    size = tuple(part.stop - part.start for part in box)
    part = np.ascontiguousarray(finer[reach])
    return _downsample(part, tuple(factors), method, size)


def fill_level(
    finer: Any, coarser: Any, factors: Sequence[int], box: Box, method: str = "mode"
) -> None:
    """Write one box of a level from the level before.

    Parameters
    ----------
    finer, coarser : array
        The level before, and the one to write.
    factors : sequence of int
        Voxels of the finer level that make one of the coarser, by axis.
    box : tuple of slice
        The part to write: one of `shard_boxes` of the coarser level.
    method : {"mode", "nearest"}
        As for `downsample_labels`.
    """
    coarser[box] = coarse_part(finer, factors, box, method)


def write_levels(
    arrays: Sequence[Any],
    image: OmeImage,
    labels: Any,
    progress: ProgressCallback | None = None,
) -> None:
    """Write level 0, and every other level from the one before, a shard at a time.

    `labels` may be on disk: only one shard of them is read at a time.
    """
    total = sum(math.prod(shape) for shape in image.shapes)
    done = 0
    for k, array in enumerate(arrays):
        for box in shard_boxes(array):
            report(progress, "writing", done, total)
            if k == 0:
                array[box] = labels[box]
            else:
                fill_level(arrays[k - 1], array, image.factors[k], box, image.method)
            done += math.prod(part.stop - part.start for part in box)
    report(progress, "writing", total, total)
