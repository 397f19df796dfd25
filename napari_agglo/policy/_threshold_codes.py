"""Rows of features as codes: of each feature, how many thresholds of a forest are below its value.

Rows of equal codes reach the same leaves in all trees: what trees have been evaluated for a
boundary stays valid as long as its codes do. A large region changes little by a merge, and few of
its boundaries pass a threshold.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel
from napari_agglo._numba.hash_tables import key_place, pair_hash
from napari_agglo.policy._tree_walk import Trees

# Thresholds of a feature with which codes pay: of bins there are 255 at the most. Of many more, as
# exact trees have, a boundary passes some at nearly every merge.
_MOST = 1 << 9
_FEW = 1 << 16  # places in the first hash table of thresholds


class CodedForest(NamedTuple):
    """A forest that is walked by codes, and the tables that give the codes of features.

    Invariant: feature f of a value x has the code c if ``cuts[f, c] < x <= cuts[f, c + 1]``, as
    sort keys (`_sort_key`); where x is not a number the code is 0. In a tree, a code goes right of
    a threshold if it is above the number of that threshold, as the value goes right of it.
    """

    trees: Trees  # thresholds are numbers among those of their feature
    # (features, a power of two + 1): the least number, thresholds that ascend, the largest number.
    cuts: NDArray[np.int32]
    moved: NDArray[np.int64]  # buffer: features
    pays: bool  # False if a feature has very many thresholds


def coded_forest(trees: Trees, width: int) -> CodedForest:
    """Return a forest for the codes of `width` features."""
    keys = np.zeros(_FEW, np.int64)
    while (n := _enter_thresholds(trees.nodes, trees.bits, keys)) > len(keys) // 2:
        keys = np.zeros(4 * len(keys), np.int64)
    places = np.flatnonzero(keys)
    places = places[np.argsort(keys[places])]  # by feature, then threshold
    counts = np.bincount(keys[places] >> 32, minlength=width)
    starts = np.cumsum(counts) - counts
    rank = np.arange(n) - np.repeat(starts, counts)  # among the thresholds of a feature
    numbers = np.zeros(len(keys), np.uint32)
    numbers[places] = rank
    most = int(counts.max(initial=0))
    cuts = np.full((width, (1 << most.bit_length()) + 1), np.iinfo(np.int32).max, np.int32)
    cuts[:, 0] = np.iinfo(np.int32).min
    cuts[np.repeat(np.arange(width), counts), 1 + rank] = (keys[places] & 0xFFFFFFFF) - (1 << 31)
    nodes = trees.nodes.copy()
    _number_thresholds(trees.bits, keys, numbers, nodes)
    coded = trees._replace(nodes=nodes, thresholds=nodes)
    return CodedForest(coded, cuts, np.zeros(width + 1, np.int64), most <= _MOST)


@inlined
def _threshold_key(word: Any, bits: Any, feature: Any) -> Any:
    """Return a threshold, given by its bits, with its feature as one number, which is not 0.

    Both zeros have one key: a value is above both or neither.
    """
    plain = np.int64(word) if word != np.uint32(0x80000000) else np.int64(0)
    sign = plain >> 31
    return np.int64(feature) << 32 | ((plain ^ (sign * 0x7FFFFFFF)) ^ 0x80000000)


@kernel
def _enter_thresholds(nodes: Any, bits: Any, keys: Any) -> Any:
    """Enter all thresholds in a hash table; return how many different ones there are.

    If they take more than half of the table, it is too small, and the rest is not entered. No
    bounds checking.
    """
    n: Any = np.int64(0)
    for node in range(nodes.shape[0]):
        if nodes[node, 0] & np.uint32(0x7FFFFFFF) < np.uint32(0x7F800000):
            feature = nodes[node, 1] >> bits
            key = _threshold_key(nodes[node, 0], bits, feature)
            place = key_place(key, pair_hash(key >> 32, key & 0xFFFFFFFF), keys)
            n += keys[place] == 0
            keys[place] = key
            if 2 * n > keys.size:
                break
    return n


@kernel
def _number_thresholds(bits: Any, keys: Any, numbers: Any, nodes: Any) -> None:
    """Replace the thresholds of nodes by their numbers. No bounds checking."""
    for node in range(nodes.shape[0]):
        if nodes[node, 0] & np.uint32(0x7FFFFFFF) < np.uint32(0x7F800000):
            feature = nodes[node, 1] >> bits
            key = _threshold_key(nodes[node, 0], bits, feature)
            nodes[node, 0] = numbers[key_place(key, pair_hash(key >> 32, key & 0xFFFFFFFF), keys)]
        else:
            nodes[node, 0] = 0xFFFFFFFF  # nothing goes right of a leaf


@inlined
def _sort_key(bits: Any) -> Any:
    """Return the number of a float32, given by its bits, in the order of floats.

    What is not a number has the least one, which is above no threshold.
    """
    is_number = (bits & np.int32(0x7FFFFFFF)) <= np.int32(0x7F800000)
    key = bits ^ ((bits >> np.int32(31)) & np.int32(0x7FFFFFFF))
    return key if is_number else np.int32(-0x80000000)


@inlined
def update_codes(row: Any, bits: Any, edge: Any, codes: Any, cuts: Any, moved: Any) -> Any:
    """Write the codes of a row to ``codes[edge]``; return whether they were there before.

    `bits` has the bits of the features, `moved` is a buffer.
    """
    # First the features that have passed a threshold, without a branch; only these are searched.
    n: Any = np.int64(0)
    for column in range(codes.shape[1]):
        key = _sort_key(bits[row, column])
        code = np.int64(codes[edge, column])
        moved[n] = column
        n += np.int64(key <= cuts[column, code]) | np.int64(key > cuts[column, code + 1])
    stays = True
    for k in range(n):
        column = moved[k]
        key = np.int64(_sort_key(bits[row, column]))
        code = np.int64(0)
        step = (cuts.shape[1] - 1) >> 1
        while step > 0:
            # A mask: a condition would be compiled into a branch, wrong in half of all cases.
            code += step & ((np.int64(cuts[column, code + step]) - key) >> 63)
            step >>= 1
        stays &= code == codes[edge, column]
        codes[edge, column] = code
    return stays
