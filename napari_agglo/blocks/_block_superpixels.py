"""Superpixels of a volume that is never in memory: cut block by block, rejoined across faces.

A block is flooded with a margin around it, the halo, and the result is cropped. A superpixel that
crosses a face of the block is thereby cut in pieces, one in each block. A piece is known by its
block and its number there, so that no block waits for another.

Two pieces on both sides of a face are joined where the two floods agree: for most faces between
voxels of the two pieces, both blocks found the voxels on the two sides in one basin. Superpixels
are then numbered 1 to n, in the order of their first pieces.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import kernel
from napari_agglo._numba.union_find import join_sets
from napari_agglo._progress import ProgressCallback, report
from napari_agglo.blocks._block_grid import Grid, Slices, local
from napari_agglo.blocks._piece_runs import Runs, fill, runs_of
from napari_agglo.errors import InvalidInput
from napari_agglo.superpixels._oversegment import (
    Recipe,
    check_values,
    flat_axes,
    flood_block,
    least_size,
    sigmas_in_voxels,
)
from napari_agglo.volumes import DenseLabels, ValueGate
from napari_agglo.volumes._labels import _look_up, _number_roots

Arrays = dict[str, NDArray[Any]]
MOST_SUPERPIXELS = 2**32 - 1  # ids are of 32 bits, and 0 is no superpixel


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
    """Return the runs of the pieces of a block, 1 to n, and its view of each of its faces.

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
    drop = flat_axes(tuple(whole), per_plane)
    recipe = Recipe(gate.limits, not not_finite, sigmas, connected, least).without(drop)
    grid, state, count = flood_block(
        values.squeeze(drop), None if inside is None else inside.squeeze(drop), None, recipe, tick
    )
    labels = np.expand_dims(grid.view(state), drop)
    here = local(core, outer)
    pieces, count = cropped_pieces(labels, state[grid.front :], count, here)
    out: Arrays = {**runs_of(pieces)._asdict(), "count": np.array([count], np.int64)}
    for axis, side in enumerate(here):
        for name, at, beyond in (("low", side.start, -1), ("high", side.stop - 1, 1)):
            if core[axis].start == 0 if beyond < 0 else core[axis].stop == whole[axis]:
                continue
            edge = 0 if beyond < 0 else pieces.shape[axis] - 1
            out[f"face_{name}_{axis}"] = np.ascontiguousarray(pieces.take(edge, axis)).reshape(-1)
            if not 0 <= at + beyond < labels.shape[axis]:
                continue  # nothing is flooded across this axis
            plane = [*here[:axis], at, *here[axis + 1 :]]
            further = [*here[:axis], at + beyond, *here[axis + 1 :]]
            same = labels[tuple(plane)] == labels[tuple(further)]
            out[f"same_{name}_{axis}"] = np.packbits(same.reshape(-1))
    return out


def cropped_pieces(
    labels: NDArray[Any], flat: NDArray[Any], most: int, here: Slices
) -> tuple[NDArray[np.uint32], int]:
    """Return the connected pieces of labels within a box, 1 to n in C order, and their number.

    Each label is connected in the whole array, and at most `most`. One that does not cross a side
    of the box is therefore one piece, and only the others are looked at voxel by voxel. `labels`
    are a view of `flat`, whose first voxel is theirs.
    """
    is_cut = np.zeros(most + 1, np.bool_)
    for axis, side in enumerate(here):
        for at, beyond in ((side.start, side.start - 1), (side.stop - 1, side.stop)):
            if 0 <= beyond < labels.shape[axis]:
                inner, outer = ((*here[:axis], k, *here[axis + 1 :]) for k in (at, beyond))
                is_cut[labels[inner][labels[inner] == labels[outer]]] = True
    is_cut[0] = False
    shape = [side.stop - side.start for side in here]
    size = math.prod(shape)
    pieces = np.empty(size, np.uint32)
    # as long as there can be pieces; pages that no piece reaches take no memory
    parents = np.empty(size + 1, np.uint32)
    rows = np.zeros((4, len(shape)), np.int64)
    rows[0] = shape
    rows[1] = np.array(labels.strides) // labels.itemsize
    first = int(sum(rows[1] * [side.start for side in here]))
    known = np.zeros(len(is_cut), np.uint32)
    count = _crop(flat, first, rows, is_cut, known, pieces, parents)
    _number_roots(parents[: count + 1])
    _look_up(pieces, parents, pieces)
    return pieces.reshape(shape), int(parents[: count + 1].max())


@kernel
def _crop(
    flat: Any, first: int, rows: Any, is_cut: Any, known: Any, pieces: Any, parents: Any
) -> int:
    """Give each voxel of a box the piece of an equal voxel before it; return how many there are.

    `flat` has the labels of the whole array, and `first` is the voxel of it where the box begins;
    voxels of the last axis follow one another. `rows` has the shape of the box, the strides of the
    array, and two rows of zeros for the place in the box and the steps to the rows before it. A
    label that is not cut has one piece, in `known`, whose zeros the caller passes. Pieces that turn
    out to be one are joined in `parents`, a root being the first of them. Checks nothing.
    """
    shape, strides, place, steps = rows[0], rows[1], rows[2], rows[3]
    last = shape.size - 1
    width = shape[last]
    count = 0
    parents[0] = 0
    for start in range(0, pieces.size, width):
        begin = first
        stride = width
        for axis in range(last - 1, -1, -1):
            begin += place[axis] * strides[axis]
            steps[axis] = stride if place[axis] > 0 else 0
            stride *= shape[axis]
        before = np.int64(-1)
        piece = np.int64(0)
        crosses = False
        for j in range(width):
            value = np.int64(flat[begin + j])
            if value != before:
                before = value
                crosses = is_cut[value]
                piece = np.int64(known[value])
                if piece == 0 and value != 0 and not crosses:
                    count += 1
                    piece = np.int64(count)
                    parents[count] = count
                    known[value] = count
            if crosses:
                for axis in range(last - 1, -1, -1):
                    if steps[axis] > 0 and flat[begin + j - strides[axis]] == value:
                        other = np.int64(pieces[start + j - steps[axis]])
                        if piece == 0:
                            piece = other
                        elif piece != other:
                            join_sets(piece, other, parents)
                if piece == 0:
                    count += 1
                    piece = np.int64(count)
                    parents[count] = count
            pieces[start + j] = piece
        for axis in range(last - 1, -1, -1):
            place[axis] += 1
            if place[axis] < shape[axis]:
                break
            place[axis] = 0
    return count


def dense_block(
    pieces: Runs,
    ids: NDArray[np.uint32],
    shape: tuple[int, ...],
    above: Mapping[int, NDArray[np.uint32]],
) -> DenseLabels:
    """Return the superpixels of a block, and of the planes above it, with dense ids.

    `ids` has the superpixel of each piece, 0 first; `above` those of the voxels next to the block
    along some axes. Voxels next to these planes only, at edges and corners, stay 0.
    """
    parts = (np.zeros(1, np.uint32), ids, *above.values())
    known = np.unique(np.concatenate([part.reshape(-1) for part in parts]))
    core = tuple(slice(n) for n in shape)
    image = np.zeros([n + (axis in above) for axis, n in enumerate(shape)], np.uint32)
    fill(pieces, _rank(known, ids), image[core])
    for axis, face in above.items():
        plane: Any = (*core[:axis], shape[axis], *core[axis + 1 :])
        image[plane] = _rank(known, face).reshape(image[plane].shape)
    return DenseLabels(image, known.astype(np.uint64), ids.dtype)


def _rank(known: NDArray[np.uint32], ids: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the place of each id among known ones, of which the block alone has any."""
    return np.searchsorted(known, ids).astype(np.uint32)


def relabelled(
    pieces: Runs, table: NDArray[np.uint32], shape: tuple[int, ...]
) -> NDArray[np.uint32]:
    """Return a block with the entry of a table for each of its pieces."""
    out = np.empty(shape, np.uint32)
    fill(pieces, table, out)
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


def faces_that_differ(lower: Mapping[str, Any], upper: Mapping[str, Any], axis: int) -> int:
    """Return at how many faces between two blocks only one of their floods has a border."""
    differ = lower[f"same_high_{axis}"] ^ upper[f"same_low_{axis}"]
    return int(np.unpackbits(differ, count=len(lower[f"face_high_{axis}"])).sum())


def number_superpixels(
    counts: Sequence[int], pairs: Iterable[tuple[int, int, NDArray[np.int64]]]
) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Return the first row of each block, and the superpixel of each piece of all blocks.

    `counts` has the pieces of each block; `pairs` has two blocks, and pieces of theirs to join. So
    many superpixels that a store of 32 bits cannot have their ids are refused.
    """
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    parents = np.arange(first[-1], dtype=np.int64)
    for a, b, rows in pairs:
        _join(rows + np.array([first[a] - 1, first[b] - 1]), parents)
    number = int(_count_sets(parents))
    if number > MOST_SUPERPIXELS:
        raise InvalidInput(
            f"there are {number:,} superpixels, and their ids have 32 bits: at most "
            f"{MOST_SUPERPIXELS:,}",
            argument="min_size",
            remedy=("take larger superpixels, by `min_size` or `sigma`", "use a crop"),
        )
    superpixel = np.zeros(len(parents), np.uint32)
    _number_sets(parents, superpixel)
    return first, superpixel


@kernel
def _count_sets(parents: Any) -> int:
    """Return the number of sets. No bounds checking."""
    count = 0
    for i in range(parents.size):
        count += parents[i] == i
    return count


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
