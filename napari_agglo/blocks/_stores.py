"""Stores that blocks write: OME-Zarr with a pyramid, and no chunk in two blocks."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from napari_agglo.blocks._block_grid import Grid, Slices, chunk_sides
from napari_agglo.errors import InvalidInput
from napari_agglo.volumes import _atomic as files

_COARSE = 256  # voxels along the longest axis of the last level, or fewer


def level_factors(
    shape: Sequence[int], spacing: Sequence[float], per_plane: bool = False
) -> list[tuple[int, ...]]:
    """Return the step along each axis from level 0 to each level of a pyramid.

    Every level halves the axes whose spacing is finest, until no axis is longer than 256.

    Examples
    --------
    >>> level_factors((64, 1024, 1024), (40.0, 10.0, 10.0))
    [(1, 1, 1), (1, 2, 2), (1, 4, 4)]
    """
    factors = [(1,) * len(shape)]
    while True:
        last = factors[-1]
        sides = [-(-n // f) for n, f in zip(shape, last, strict=True)]
        if max(sides, default=0) <= _COARSE:
            return factors
        gaps = [s * f for s, f in zip(spacing, last, strict=True)]
        finest = min(gap for gap, side in zip(gaps, sides, strict=True) if side > 1)
        factors.append(
            tuple(
                f * (2 if side > 1 and gap < 1.5 * finest else 1)
                for f, side, gap in zip(last, sides, gaps, strict=True)
            )
        )


def level_shape(shape: Sequence[int], factors: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of a level: every so many voxels are kept, the first one too."""
    return tuple(-(-n // f) for n, f in zip(shape, factors, strict=True))


def create_store(
    path: Path,
    shape: Sequence[int],
    dtype: np.dtype[Any],
    block: Sequence[int],
    chunks: Sequence[int],
    *,
    shards: bool,
    spacing: Sequence[float],
    levels: int,
    digest: str,
    is_labels: bool = True,
) -> None:
    """Make an empty OME-Zarr 0.5 with all its levels, unless the same one is there.

    Several processes may do so at once: the store appears by a rename, and the first one wins.
    """
    if _digest_of(path) == digest:
        return
    check_alignment(block, chunks)
    temporary = path.with_name(f".{path.name}.{files.token()}.partial")
    factors = level_factors(shape, spacing)[:levels]
    letters = ["x"] if len(shape) == 1 else list("uvwzyx"[-len(shape) :])
    axes = [{"name": n, "type": "space"} if n in "zyx" else {"name": n} for n in letters]
    described: dict[str, Any] = {
        "version": "0.5",
        "multiscales": [
            {
                "name": path.name.split(".")[0],
                "axes": axes,
                "datasets": [
                    {
                        "path": str(level),
                        "coordinateTransformations": [
                            {
                                "type": "scale",
                                "scale": [s * f for s, f in zip(spacing, factor, strict=True)],
                            }
                        ],
                    }
                    for level, factor in enumerate(factors)
                ],
            }
        ],
    }
    if is_labels:
        described["image-label"] = {"version": "0.5"}
    try:
        group = zarr.create_group(
            str(temporary), zarr_format=3, attributes={"ome": described, "agglo": digest}
        )
        for level, factor in enumerate(factors):
            sides = level_shape(shape, factor)
            whole = tuple(min(b, max(n, 1)) for b, n in zip(block, sides, strict=True))
            parts = tuple(chunks) if level == 0 else chunk_sides(whole)
            group.create_array(
                str(level), shape=sides, dtype=dtype, chunks=parts,
                shards=whole if shards else None, dimension_names=letters, fill_value=0,
            )  # fmt: skip
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


def level_grid(path: Path, level: int, block: Sequence[int]) -> Grid:
    """Return the blocks of a level of a store: as large as those of level 0."""
    shape = open_level(path, level).shape
    return Grid(shape, tuple(min(b, max(n, 1)) for b, n in zip(block, shape, strict=True)))


def coarsen_block(path: Path, level: int, grid: Grid, index: int) -> None:
    """Write one block of a level from the level before it: every other voxel."""
    fine = open_level(path, level - 1)
    coarse = open_level(path, level)
    steps = [1 if a == b else 2 for a, b in zip(fine.shape, coarse.shape, strict=True)]
    here = grid.slices(index)
    there = tuple(
        slice(s.start * step, min(s.stop * step, n))
        for s, step, n in zip(here, steps, fine.shape, strict=True)
    )
    values = fine[there][tuple(slice(None, None, step) for step in steps)]
    write_block(path, level, here, np.ascontiguousarray(values))


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
