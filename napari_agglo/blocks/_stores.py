"""Stores that blocks write, no chunk in two blocks: OME-Zarr with a pyramid, and precomputed."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numcodecs import Zstd
from numpy.typing import NDArray

from napari_agglo.blocks._block_grid import Grid, Slices, local
from napari_agglo.blocks._plan import Plan
from napari_agglo.errors import InvalidInput
from napari_agglo.volumes import OmeImage, create_levels
from napari_agglo.volumes import _replace_file as files
from napari_agglo.volumes._label_pyramid import coarse_part
from napari_agglo.volumes._precomputed import (
    CHUNK,
    MARK,
    chunk_name,
    plan_segmentation,
    write_chunk,
)


def create_store(
    path: Path,
    image: OmeImage,
    dtype: np.dtype[Any],
    block: Sequence[int],
    chunks: Sequence[int],
    *,
    shards: bool,
    digest: str,
    is_labels: bool = True,
) -> bool:
    """Make an empty OME-Zarr with all levels of `image`, unless the same one is there.

    Several processes may do so at once: the store appears by a rename, and the first one wins.
    Return whether this one did: the store is then empty.
    """
    if is_made(path, image, digest):
        return False
    check_alignment(block, chunks)
    with _new_folder(path, lambda place: is_made(place, image, digest)) as (temporary, is_first):
        create_levels(
            temporary, image, dtype, chunks=chunks, shards=block if shards else None,
            labels=is_labels,
        )  # fmt: skip
        zarr.open_group(str(temporary), mode="r+").attrs["agglo"] = digest
    return is_first()


@contextmanager
def _new_folder(
    path: Path, is_made: Callable[[Path], bool]
) -> Iterator[tuple[Path, Callable[[], bool]]]:
    """Yield a folder to fill, and put it in place of one that is not as it should be.

    A folder that another process has put there meanwhile stays, as blocks may be in it already.
    The second value tells afterwards whether the folder is the one that was yielded.
    """
    temporary = path.with_name(f".{path.name}.{files.token()}.partial")
    aside = path.with_name(f".{path.name}.{files.token()}.old")
    in_place = [False]
    try:
        yield temporary, lambda: in_place[0]
        while not in_place[0]:
            try:
                os.rename(temporary, path)
                in_place[0] = True
            except OSError:
                if not path.exists():
                    raise
                if is_made(path):
                    break
                with suppress(FileNotFoundError):
                    os.rename(path, aside)
                if is_made(aside):  # it came between the two lines above
                    os.rename(aside, path)
                    break
                shutil.rmtree(aside, ignore_errors=True)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(aside, ignore_errors=True)


def is_made(path: Path, image: OmeImage, digest: str) -> bool:
    """Return whether a store has this digest, and arrays of all its levels."""
    try:
        group = zarr.open_group(str(path), mode="r")
        for level in image.levels:
            zarr.open_array(str(path / level.path), mode="r")
    except Exception:  # no store, or half of one
        return False
    return group.attrs.asdict().get("agglo") == digest


def check_alignment(block: Sequence[int], chunks: Sequence[int]) -> None:
    """Refuse chunks, or shards, that two blocks would write to: one of them would be lost."""
    if any(b % c for b, c in zip(block, chunks, strict=True)):
        raise InvalidInput(
            f"`chunks` {tuple(chunks)} must divide `block` {tuple(block)} along each axis: two "
            "blocks that write to one chunk at the same time lose data",
            argument="chunks",
            remedy="leave it out, and chunks are chosen",
        )


def open_level(path: Path, level: int = 0, *, write: bool = False) -> Any:
    """Open one level of a store; a chunk is written even where all voxels are 0."""
    array = zarr.open_array(str(path / str(level)), mode="r+" if write else "r")
    return array.with_config({"write_empty_chunks": True}) if write else array


def write_block(path: Path, level: int, slices: Slices, values: NDArray[Any]) -> None:
    """Write the voxels of one block.

    Strategy: a chunk that zarr would compress by zstd alone is compressed and written here. The
    bytes are the same. Zarr passes each chunk of all threads through one thread of its own, so that
    two that write labels take as long as one.
    """
    array = open_level(path, level, write=True)
    compressor = _compressor(array)
    aligned = all(
        s.start % c == 0 and (s.stop % c == 0 or s.stop == n)
        for s, c, n in zip(slices, array.chunks, array.shape, strict=True)
    )
    if compressor is None or not aligned:
        array[slices] = values
        return
    steps = (range(s.start, s.stop, c) for s, c in zip(slices, array.chunks, strict=True))
    for file, corner in zip(chunk_files(array, slices), itertools.product(*steps), strict=True):
        box = tuple(
            slice(a, min(a + c, s.stop))
            for a, c, s in zip(corner, array.chunks, slices, strict=True)
        )
        part = values[local(box, slices)]
        chunk = np.zeros(array.chunks, array.dtype)  # at the end of the volume it has more voxels
        chunk[tuple(map(slice, part.shape))] = part
        file.parent.mkdir(parents=True, exist_ok=True)
        files.write_whole(file, compressor.encode(chunk), durable=False)


def _compressor(array: Any) -> Zstd | None:
    """Return the compressor of the chunks of a store, if they are plain bytes but for that."""
    metadata = array.metadata
    if metadata.zarr_format != 3 or len(metadata.codecs) != 2 or metadata.fill_value != 0:
        return None
    plain, packed = (codec.to_dict() for codec in metadata.codecs)
    if plain["name"] != "bytes" or packed["name"] != "zstd" or not _is_native(plain, array.dtype):
        return None
    return Zstd(**packed["configuration"])


def _is_native(codec: dict[str, Any], dtype: np.dtype[Any]) -> bool:
    """Return whether the bytes of a store are in the order of this machine."""
    order = codec.get("configuration", {}).get("endian", sys.byteorder)
    return dtype.itemsize == 1 or (order == sys.byteorder and dtype.isnative)


def holds_coarser(
    image: OmeImage, block: Sequence[int], chunks: Sequence[int], shards: bool
) -> bool:
    """Return whether level 1 can be written with level 0: no chunk of it is in two blocks.

    Examples
    --------
    >>> from napari_agglo.volumes import plan_image
    >>> image = plan_image("labels", (256, 256), (1, 1), levels=2)
    >>> holds_coarser(image, (128, 256), (64, 128), False)
    True
    >>> holds_coarser(image, (128, 256), (128, 128), False)
    False
    """
    if len(image.shapes) < 2:
        return False
    unit = block if shards else chunks
    sides = zip(image.shapes[0], image.factors[1], block, unit, strict=True)
    return all(b >= n or (b % f == 0 and b // f % u == 0) for n, f, b, u in sides)


def write_two_levels(path: Path, image: OmeImage, slices: Slices, values: NDArray[Any]) -> None:
    """Write the voxels of one block to level 0, and what they are in level 1."""
    write_block(path, 0, slices, values)
    coarse = coarser_box(image, slices)
    here = local(coarse, coarse)
    write_block(path, 1, coarse, coarse_part(values, image.factors[1], here, image.method))


def coarser_box(image: OmeImage, slices: Slices) -> Slices:
    """Return the part of level 1 that a part of level 0 lies in."""
    return tuple(
        slice(s.start // f, -(-s.stop // f)) for s, f in zip(slices, image.factors[1], strict=True)
    )


def level_grid(shape: Sequence[int], block: Sequence[int]) -> Grid:
    """Return the blocks of a level of a store: as large as those of level 0."""
    sides = tuple(min(b, max(n, 1)) for b, n in zip(block, shape, strict=True))
    return Grid(tuple(shape), sides)


def coarsen_block(fine: Any, path: Path, level: int, image: OmeImage, slices: Slices) -> None:
    """Write one block of a level from `fine`, the level before it, read a chunk at a time."""
    coarse = open_level(path, level, write=True)
    out = np.empty([s.stop - s.start for s in slices], coarse.dtype)
    # what a chunk of the finer level becomes; chunks of odd sides are read several times
    sides = [max(1, c // f) for c, f in zip(fine.chunks, image.factors[level], strict=True)]
    starts = (range(s.start, s.stop, c) for s, c in zip(slices, sides, strict=True))
    for corner in itertools.product(*starts):
        box = tuple(
            slice(a, min(a + c, s.stop)) for a, c, s in zip(corner, sides, slices, strict=True)
        )
        out[local(box, slices)] = coarse_part(fine, image.factors[level], box, image.method)
    coarse[slices] = out


def create_precomputed(path: Path, plan: Plan, digest: str) -> bool:
    """Make the folder of a segmentation for Neuroglancer, without chunks, unless it is there.

    Return whether it was made now.
    """
    info, _ = plan_segmentation(path, plan.shape, plan.spacing, plan.unit, levels=plan.levels)
    info["agglo"] = digest
    text = json.dumps(info, indent=2) + "\n"

    def is_made(place: Path) -> bool:
        try:
            return (place / MARK).read_text(encoding="utf-8") == text
        except (OSError, ValueError):
            return False

    if is_made(path):
        return False
    with _new_folder(path, is_made) as (temporary, is_first):
        for scale in info["scales"]:
            (temporary / str(scale["key"])).mkdir(parents=True)
        files.write_whole(temporary / MARK, text.encode(), durable=False)
    return is_first()


def precomputed_grid(shape: Sequence[int], block: Sequence[int]) -> Grid:
    """Return the tasks of a scale of a segmentation: as large as a block, and of whole chunks."""
    sides = tuple(-(-min(b, n) // CHUNK) * CHUNK for b, n in zip(block, shape, strict=True))
    return Grid(tuple(shape), sides)


def write_precomputed_block(path: Path, labels: Any, level: int, slices: Slices) -> None:
    """Write the chunks of a part of a scale from the same level of the labels."""
    scale = json.loads((path / MARK).read_text(encoding="utf-8"))["scales"][level]
    flat = 3 - len(slices)
    starts = (range(s.start, s.stop, CHUNK) for s in slices)
    for corner in itertools.product(*starts):
        box = tuple(slice(a, min(a + CHUNK, s.stop)) for a, s in zip(corner, slices, strict=True))
        part = labels[box]
        write_chunk(path, scale, part.reshape((1,) * flat + part.shape), (0,) * flat + corner)


def precomputed_files(path: Path, level: int, slices: Slices) -> Iterator[Path]:
    """Yield the files of the chunks of a part of a scale, as `write_precomputed_block` has them."""
    scale = json.loads((path / MARK).read_text(encoding="utf-8"))["scales"][level]
    flat = [(0, 1)] * (3 - len(slices))
    ends = ([(a, min(a + CHUNK, s.stop)) for a in range(s.start, s.stop, CHUNK)] for s in slices)
    for box in itertools.product(*ends):
        begin, end = zip(*flat, *box, strict=True)
        yield path / str(scale["key"]) / chunk_name(list(begin), list(end))


def absent_chunks(array: Any, slices: Slices) -> int:
    """Return the number of chunks of a part that are not in a store of blocks.

    An absent chunk reads as the fill value, but blocks write all of theirs: it is lost. An empty
    file is what a machine that went down may leave of a chunk.
    """
    return sum(not has_bytes(path) for path in chunk_files(array, slices))


def has_bytes(path: Path) -> bool:
    """Return whether a file is there and not empty."""
    try:
        return path.stat().st_size > 0
    except (FileNotFoundError, NotADirectoryError):
        return False


def chunk_files(array: Any, slices: Slices) -> Iterator[Path]:
    """Yield the files of the chunks, or shards, that a part of an array lies in."""
    sides = getattr(array, "shards", None) or array.chunks
    root = Path(array.store.root) / array.path
    ranges = (range(s.start // c, -(-s.stop // c)) for s, c in zip(slices, sides, strict=True))
    for place in itertools.product(*ranges):
        yield root / array.metadata.encode_chunk_key(place)


def chunk_boxes(array: Any, slices: Slices) -> Iterator[tuple[Path, Slices]]:
    """Yield the files of the chunks, or shards, of a part of an array, each with its voxels."""
    sides = getattr(array, "shards", None) or array.chunks
    steps = (range(s.start // c * c, s.stop, c) for s, c in zip(slices, sides, strict=True))
    corners = itertools.product(*steps)
    for file, corner in zip(chunk_files(array, slices), corners, strict=True):
        ends = zip(corner, sides, array.shape, strict=True)
        yield file, tuple(slice(a, min(a + c, n)) for a, c, n in ends)


def is_readable(array: Any, slices: Slices) -> bool:
    """Return whether the chunks of a part of a store can be decoded."""
    try:
        array[slices]
    except (MemoryError, OSError):  # of the machine, not of the chunk
        raise
    except Exception:  # codecs raise nearly anything
        return False
    return True
