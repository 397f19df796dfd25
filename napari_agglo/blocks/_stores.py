"""Stores that blocks write, no chunk in two blocks: OME-Zarr with a pyramid, and precomputed."""

from __future__ import annotations

import itertools
import json
import math
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from napari_agglo.blocks._block_grid import Grid, Slices, local
from napari_agglo.blocks._plan import Plan
from napari_agglo.errors import InvalidInput
from napari_agglo.volumes import OmeImage, create_levels
from napari_agglo.volumes import _atomic as files
from napari_agglo.volumes._label_pyramid import coarse_part
from napari_agglo.volumes._precomputed import CHUNK, MARK, plan_segmentation, write_chunk


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
) -> None:
    """Make an empty OME-Zarr with all levels of `image`, unless the same one is there.

    Several processes may do so at once: the store appears by a rename, and the first one wins.
    """
    if _digest_of(path) == digest:
        return
    check_alignment(block, chunks)
    temporary = path.with_name(f".{path.name}.{files.token()}.partial")
    try:
        create_levels(
            temporary, image, dtype, chunks=chunks, shards=block if shards else None,
            labels=is_labels,
        )  # fmt: skip
        zarr.open_group(str(temporary), mode="r+").attrs["agglo"] = digest
        if path.exists():
            shutil.rmtree(path)
        try:
            os.rename(temporary, path)
        except OSError:
            if _digest_of(path) != digest:
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_alignment(block: Sequence[int], chunks: Sequence[int]) -> None:
    """Refuse chunks, or shards, that two blocks would write to: one of them would be lost."""
    if any(b % c for b, c in zip(block, chunks, strict=True)):
        raise InvalidInput(
            f"`chunks` {tuple(chunks)} must divide `block` {tuple(block)} along each axis: two "
            "blocks that write to one chunk at the same time lose data",
            argument="chunks",
            remedy="leave it out, and chunks are chosen",
        )


def _digest_of(path: Path) -> str | None:
    try:
        group = zarr.open_group(str(path), mode="r")
        return str(group.attrs.asdict().get("agglo"))
    except Exception:  # no store, or half of one
        return None


def open_level(path: Path, level: int = 0, *, write: bool = False) -> Any:
    """Open one level of a store; a chunk is written even where all voxels are 0."""
    array = zarr.open_array(str(path / str(level)), mode="r+" if write else "r")
    return array.with_config({"write_empty_chunks": True}) if write else array


def write_block(path: Path, level: int, slices: Slices, values: NDArray[Any]) -> None:
    """Write the voxels of one block."""
    open_level(path, level, write=True)[slices] = values


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
    coarse = tuple(
        slice(s.start // f, -(-s.stop // f)) for s, f in zip(slices, image.factors[1], strict=True)
    )
    here = local(coarse, coarse)
    write_block(path, 1, coarse, coarse_part(values, image.factors[1], here, image.method))


def level_grid(shape: Sequence[int], block: Sequence[int]) -> Grid:
    """Return the blocks of a level of a store: as large as those of level 0."""
    sides = tuple(min(b, max(n, 1)) for b, n in zip(block, shape, strict=True))
    return Grid(tuple(shape), sides)


def coarsen_block(path: Path, level: int, image: OmeImage, slices: Slices) -> None:
    """Write one block of a level from the level before it, of which a chunk is read at a time."""
    fine, coarse = open_level(path, level - 1), open_level(path, level, write=True)
    out = np.empty([s.stop - s.start for s in slices], coarse.dtype)
    starts = (range(s.start, s.stop, c) for s, c in zip(slices, coarse.chunks, strict=True))
    for corner in itertools.product(*starts):
        box = tuple(
            slice(a, min(a + c, s.stop))
            for a, c, s in zip(corner, coarse.chunks, slices, strict=True)
        )
        out[local(box, slices)] = coarse_part(fine, image.factors[level], box, image.method)
    coarse[slices] = out


def create_precomputed(path: Path, plan: Plan, digest: str) -> None:
    """Make the folder of a segmentation for Neuroglancer, without chunks, unless it is there."""
    info, _ = plan_segmentation(path, plan.shape, plan.spacing, plan.unit, levels=plan.levels)
    info["agglo"] = digest
    text = json.dumps(info, indent=2) + "\n"
    with suppress(OSError):
        if (path / MARK).read_text(encoding="utf-8") == text:
            return
    shutil.rmtree(path, ignore_errors=True)
    for scale in info["scales"]:
        (path / str(scale["key"])).mkdir(parents=True, exist_ok=True)
    files.write_whole(path / MARK, text.encode(), durable=False)


def precomputed_grid(shape: Sequence[int], block: Sequence[int]) -> Grid:
    """Return the tasks of a scale of a segmentation: as large as a block, and of whole chunks."""
    sides = tuple(-(-min(b, n) // CHUNK) * CHUNK for b, n in zip(block, shape, strict=True))
    return Grid(tuple(shape), sides)


def write_precomputed_block(path: Path, store: Path, level: int, slices: Slices) -> None:
    """Write the chunks of a part of a scale from the same level of the labels."""
    scale = json.loads((path / MARK).read_text(encoding="utf-8"))["scales"][level]
    array = open_level(store, level)
    flat = 3 - len(slices)
    starts = (range(s.start, s.stop, CHUNK) for s in slices)
    for corner in itertools.product(*starts):
        box = tuple(slice(a, min(a + CHUNK, s.stop)) for a, s in zip(corner, slices, strict=True))
        part = array[box]
        write_chunk(path, scale, part.reshape((1,) * flat + part.shape), (0,) * flat + corner)


def absent_chunks(array: Any, slices: Slices) -> tuple[int, int]:
    """Return how many chunks of a part of a Zarr array are not in its store, and how many are.

    An absent chunk reads as the fill value: it was never written, or it is lost.
    """
    sides = getattr(array, "shards", None) or array.chunks
    ranges = [range(s.start // c, -(-s.stop // c)) for s, c in zip(slices, sides, strict=True)]
    total = math.prod(len(r) for r in ranges)
    store = getattr(array.store, "root", None)
    if store is None:
        return 0, total
    root = Path(store) / array.path
    absent = 0
    for place in np.ndindex(*(len(r) for r in ranges)):
        key = array.metadata.encode_chunk_key(
            tuple(r[k] for r, k in zip(ranges, place, strict=True))
        )
        absent += not (root / key).is_file()
    return absent, total
