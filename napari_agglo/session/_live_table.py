"""The table behind a live VI: how many voxels each segment shares with each gold segment."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._hashing import pair_slot
from napari_agglo._jit import inlined, kernel


def empty_table(entries: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a hash table with room for twice so many: pairs, -1 where free, and their counts."""
    size = 1 << int(4 * entries + 16).bit_length()
    return np.full((size, 2), -1, np.int64), np.zeros(size, np.int64)


@inlined
def _find(segment: Any, gold: Any, keys: Any) -> Any:
    """Return the place of a pair, or the free one where it belongs."""
    mask = keys.shape[0] - 1
    slot = pair_slot(segment, gold, mask)
    while keys[slot, 0] >= 0 and (keys[slot, 0] != segment or keys[slot, 1] != gold):
        slot = (slot + 1) & mask
    return slot


@inlined
def _add(value: Any, at: Any, sums: Any) -> None:
    """Add to a sum, and what is lost by rounding to the place after it (Knuth's two-sum)."""
    before = sums[at]
    after = before + value
    part = after - before
    sums[at + 1] += (before - (after - part)) + (value - part)
    sums[at] = after


@inlined
def _change(segment: Any, gold: Any, by: Any, at: Any, keys: Any, held: Any, used: Any,
            sums: Any) -> None:  # fmt: skip
    """Change the count of a pair, and the sum at `at` with it."""
    slot = _find(segment, gold, keys)
    if keys[slot, 0] < 0:
        keys[slot, 0] = segment
        keys[slot, 1] = gold
        used[0] += 1
    n = held[slot]
    if n > 1:
        _add(-n * math.log2(n), at, sums)
    n += by
    if n > 1:
        _add(n * math.log2(n), at, sums)
    held[slot] = n


@kernel
def move_overlaps(
    moved: NDArray[np.int64],
    targets: NDArray[np.int64],
    lut: NDArray[np.int64],
    start: NDArray[np.int64],
    columns: NDArray[np.int64],
    counts: NDArray[np.int64],
    keys: NDArray[np.int64],
    held: NDArray[np.int64],
    used: NDArray[np.int64],
    sums: NDArray[np.float64],
) -> None:
    """Move superpixels to their targets, from ``lut`` (-1: from nowhere). Checks nothing.

    The size of a segment stands in the table under gold segment 0, which is never counted. The
    table must have room for every pair that is new.
    """
    for i in range(moved.size):
        superpixel = moved[i]
        source, target = lut[superpixel], targets[i]
        size = 0
        for k in range(start[superpixel], start[superpixel + 1]):
            size += counts[k]
            if source >= 0:
                _change(source, columns[k], -counts[k], 0, keys, held, used, sums)
            _change(target, columns[k], counts[k], 0, keys, held, used, sums)
        if size > 0:
            if source >= 0:
                _change(source, 0, -size, 2, keys, held, used, sums)
            _change(target, 0, size, 2, keys, held, used, sums)
        lut[superpixel] = target


@kernel
def enter_pairs(pairs: NDArray[np.int64], n: NDArray[np.int64], keys: NDArray[np.int64],
           held: NDArray[np.int64]) -> None:  # fmt: skip
    """Enter pairs, all distinct, into an empty table. Checks nothing."""
    for i in range(n.size):
        slot = _find(pairs[i, 0], pairs[i, 1], keys)
        keys[slot, 0] = pairs[i, 0]
        keys[slot, 1] = pairs[i, 1]
        held[slot] = n[i]
