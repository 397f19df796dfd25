"""Superpixels of a volume that is never in memory: cut block by block, rejoined across faces.

A block is flooded with a margin around it, the halo, and the result is cropped. A superpixel that
crosses a face of the block is thereby cut in pieces, one in each block. A piece is known by its
block and its number there, so that no block waits for another.

Two pieces on both sides of a face are joined where the two floods agree: for most faces between
voxels of the two pieces, both blocks found the voxels on the two sides in one basin. Superpixels
are then numbered 1 to n, in the order of their first pieces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import kernel
from napari_agglo._numba.union_find import join_sets
from napari_agglo._progress import ProgressCallback, report
from napari_agglo.blocks._block_grid import Grid, Slices, local
from napari_agglo.superpixels._oversegment import (
    Recipe,
    check_values,
    least_size,
    segment_block,
    sigmas_in_voxels,
)
from napari_agglo.volumes import ValueGate
from napari_agglo.volumes._labels import _components

Arrays = dict[str, NDArray[Any]]


def halo_sides(halo: int, shape: Sequence[int], per_plane: bool) -> tuple[int, ...]:
    """Return the halo along each axis: none where nothing is flooded across."""
    return tuple(
        halo if n > 1 and not (per_plane and axis == 0) else 0 for axis, n in enumerate(shape)
    )


def cut_block(
    values: NDArray[Any],
    mask: NDArray[Any] | None,
    core: Slices,
    outer: Slices,
    whole: tuple[int, ...],
    *,
    spacing: Sequence[float],
    sigma: float | None,
    min_size: int | None,
    per_plane: bool,
    value_range: tuple[float, float] | None,
    nan: str,
    progress: ProgressCallback | None = None,
) -> Arrays:
    """Return the pieces of a block, 1 to n, and its view of each of its faces.

    `values` and `mask` are the voxels `outer`: the block, `core`, with its halo. The settings are
    those of `oversegment`; for a single block the pieces are its superpixels.
    """

    def tick(stage: str, done: int, total: int) -> None:
        report(progress, stage, done, total)

    gate = ValueGate.of(values.dtype, value_range, "boundary", "ranges")
    connected = [length > 1 for length in whole]
    if per_plane:
        connected[0] = False
    sigmas = sigmas_in_voxels(sigma, tuple(spacing), connected, whole)
    least = least_size(min_size, sum(connected), False)
    inside = None if mask is None else mask != 0
    not_finite = check_values(values, gate, nan, inside, tick)
    labels = np.zeros(values.shape, np.uint32)
    # Axes of one voxel are dropped, as in `oversegment`.
    drop = tuple(a for a in range(1 if per_plane else 0, len(whole)) if whole[a] == 1)
    drop = drop[1:] if len(drop) == len(whole) else drop
    kept = [axis for axis in range(len(whole)) if axis not in drop]
    recipe = Recipe(
        gate.limits,
        not not_finite,
        [sigmas[axis] for axis in kept],
        [connected[axis] for axis in kept],
        least,
    )
    segment_block(
        values.squeeze(drop), None if inside is None else inside.squeeze(drop), None, recipe, 1,
        labels.squeeze(drop), tick,
    )  # fmt: skip
    here = local(core, outer)
    pieces = _components(np.ascontiguousarray(labels[here])).astype(np.uint32)
    out: Arrays = {"pieces": pieces, "count": np.array([pieces.max(initial=0)], np.int64)}
    for axis, side in enumerate(here):
        for name, at, beyond in (("low", side.start, -1), ("high", side.stop - 1, 1)):
            if not 0 <= at + beyond < labels.shape[axis]:
                continue
            plane = [*here[:axis], at, *here[axis + 1 :]]
            further = [*here[:axis], at + beyond, *here[axis + 1 :]]
            same = labels[tuple(plane)] == labels[tuple(further)]
            out[f"same_{name}_{axis}"] = np.packbits(same.reshape(-1))
            edge = 0 if beyond < 0 else pieces.shape[axis] - 1
            out[f"face_{name}_{axis}"] = np.ascontiguousarray(pieces.take(edge, axis)).reshape(-1)
    return out


def joined_pairs(lower: Mapping[str, Any], upper: Mapping[str, Any], axis: int) -> NDArray[Any]:
    """Return the pairs of pieces to join across the face between two blocks, shape (k, 2)."""
    a, b = lower[f"face_high_{axis}"], upper[f"face_low_{axis}"]
    agree = np.unpackbits(lower[f"same_high_{axis}"] & upper[f"same_low_{axis}"], count=a.size)
    both = (a > 0) & (b > 0)
    keys = a[both].astype(np.uint64) << np.uint64(32) | b[both].astype(np.uint64)
    unique, which, faces = np.unique(keys, return_inverse=True, return_counts=True)
    agreed = np.bincount(which, agree[both], minlength=len(unique))
    joined = unique[2 * agreed > faces]
    pairs = np.stack([joined >> np.uint64(32), joined & np.uint64(0xFFFFFFFF)], axis=1)
    return pairs.astype(np.int64)


def number_superpixels(
    counts: Sequence[int], pairs: Sequence[tuple[int, int, NDArray[np.int64]]]
) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Return the first row of each block, and the superpixel of each piece of all blocks.

    `counts` has the pieces of each block; `pairs` has two blocks, and pieces of theirs to join.
    """
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    parents = np.arange(first[-1], dtype=np.int64)
    for a, b, rows in pairs:
        _join(rows + np.array([first[a] - 1, first[b] - 1]), parents)
    superpixel = np.zeros(len(parents), np.uint32)
    _number_sets(parents, superpixel)
    return first, superpixel


@kernel
def _join(pairs: Any, parents: Any) -> None:
    """Join the two sets of each pair; a root is the first piece. No bounds checking."""
    for k in range(pairs.shape[0]):
        join_sets(pairs[k, 0], pairs[k, 1], parents)


@kernel
def _number_sets(parents: Any, out: Any) -> None:
    """Write 1, 2, ... for the sets in the order of their roots. No bounds checking.

    Invariant: a parent comes before its child, so that it has its number already.
    """
    given = 0
    for i in range(parents.size):
        if parents[i] == i:
            given += 1
            out[i] = given
        else:
            out[i] = out[parents[i]]


def neighbours(grid: Grid, index: int, per_plane: bool) -> list[tuple[int, int]]:
    """Return the axes along which a block has a next one to join pieces with, and that block."""
    out = []
    for axis in range(1 if per_plane else 0, len(grid.shape)):
        other = grid.neighbour(index, axis)
        if other is not None:
            out.append((axis, other))
    return out
