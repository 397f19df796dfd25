"""Rows of features as codes: of each feature, how many thresholds of a forest are below its value.

Rows of equal codes reach the same leaves in all trees: what trees have been evaluated for a
boundary stays valid as long as its codes do. A large region changes little by a merge, and few of
its boundaries pass a threshold.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined
from napari_agglo.policy._tree_walk import Trees

_MOST = np.iinfo(np.uint16).max  # thresholds of a feature that a code can count


class CodedForest(NamedTuple):
    """A forest that is walked by codes, and the tables that give the codes of features.

    Invariant: feature f of a value x has the code c if ``cuts[f, c] < x <= cuts[f, c + 1]``, as
    sort keys (`_sort_keys`); where x is not a number the code is 0. In a tree, a code goes right of
    a threshold if it is above the number of that threshold, as the value goes right of it.
    """

    trees: Trees  # thresholds are numbers among those of their feature
    # (features, a power of two + 1): the least number, thresholds that ascend, the largest number.
    cuts: NDArray[np.int32]
    moved: NDArray[np.int64]  # buffer: features
    # False if a feature has more thresholds than a code can count: it must not be used then.
    is_complete: bool


def coded_forest(trees: Trees, width: int) -> CodedForest:
    """Return a forest for the codes of `width` features."""
    features, thresholds, _ = trees.splits()
    of_each = [np.unique(thresholds[features == k]) for k in range(width)]
    most = max(map(len, of_each))
    cuts = np.full((width, (1 << most.bit_length()) + 1), np.iinfo(np.int32).max, np.int32)
    cuts[:, 0] = np.iinfo(np.int32).min
    nodes = trees.nodes.copy()
    nodes[:, 0] = np.iinfo(np.uint32).max  # nothing goes right of a leaf
    inner = np.flatnonzero(np.isfinite(trees.thresholds[:, 0]))
    for k, ascending in enumerate(of_each):
        cuts[k, 1 : 1 + len(ascending)] = _sort_keys(ascending)
        own = features == k
        nodes[inner[own], 0] = np.searchsorted(ascending, thresholds[own])
    coded = trees._replace(nodes=nodes, thresholds=nodes)
    return CodedForest(coded, cuts, np.zeros(width + 1, np.int64), most <= _MOST)


def _sort_keys(values: NDArray[np.float32]) -> NDArray[np.int32]:
    """Return whole numbers in the order of the values; see `_sort_key`."""
    bits = (values + np.float32(0)).view(np.int32)  # adding zero turns -0.0 into 0.0
    return bits ^ (bits >> 31 & 0x7FFFFFFF)


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
