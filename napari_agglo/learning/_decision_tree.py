"""Decision trees grown on binned features, several times as fast as those of scikit-learn.

The value of a feature is one of at most 256 bins, so that the best split of a node by a feature
follows from a histogram of its examples, without sorting. Thresholds are half way between the
values on both sides, as in an exact tree; where a feature has no more values than bins, the split
is the exact one.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel
from napari_agglo._numba.hash_tables import uniform
from napari_agglo.policy import Forest

_MOST_BINS = 256  # a bin is a byte
# Nodes of fewer examples mark their bins: a histogram would be mostly empty.
_FEW = 200
# Of the 32 lower bits of this number times a power of two, the first five tell the power.
_DE_BRUIJN = 0x077CB531
_PLACES = np.argsort([(_DE_BRUIJN << k) % 2**32 >> 27 for k in range(32)])


@dataclass(frozen=True, eq=False)
class Binned:
    """Features of examples as bins.

    Parameters
    ----------
    codes : ndarray of uint8, shape (features, examples)
        Bin of each value; higher values are in higher bins.
    thresholds : ndarray of float32, shape (features, 256)
        A value is in bin b or below exactly if it is at most ``thresholds[feature, b]``.
    """

    codes: NDArray[np.uint8]
    thresholds: NDArray[np.float32]

    @classmethod
    def of(cls, rows: NDArray[np.float32]) -> Binned:
        """Divide the values of each feature into bins of about as many examples each.

        Examples
        --------
        >>> import numpy as np
        >>> binned = Binned.of(np.array([[0.0], [4.0], [1.0], [4.0]], np.float32))
        >>> binned.codes, binned.thresholds[:, :3]
        (array([[0, 2, 1, 2]], dtype=uint8), array([[0.5, 2.5, inf]], dtype=float32))
        """
        n, width = rows.shape
        codes = np.empty((width, n), np.uint8)
        thresholds = np.full((width, _MOST_BINS), np.inf, np.float32)
        columns = np.ascontiguousarray(rows.T)

        def divide(feature: int) -> None:
            column = columns[feature]
            values, counts = np.unique(column, return_counts=True)
            bins = np.arange(len(values))
            if len(values) > _MOST_BINS:
                # A value of very many examples, often 0, counts as one full bin, not as several.
                share = np.minimum(counts, n / _MOST_BINS)
                middle = np.cumsum(share) - share / 2
                bins = np.unique((middle * (_MOST_BINS / share.sum())).astype(np.int64),
                                 return_inverse=True)[1]  # fmt: skip
            last = np.flatnonzero(np.diff(bins))  # of its bin; the next value begins another
            below, above = values[last], values[last + 1]
            between = below + (above - below) / 2
            thresholds[feature, : len(last)] = np.where(between < above, between, below)
            _find_bins(column, thresholds[feature], codes[feature])

        def divide_every(first: int) -> None:
            for feature in range(first, width, threads):
                divide(feature)

        # One task for each thread: hundreds of short ones would wait for each other.
        threads = os.cpu_count() or 1
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(divide_every, range(threads)))
        return cls(codes, thresholds)


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree in the format of `Forest`, and the share of each feature in its gain."""

    nodes: NDArray[np.uint32]
    values: NDArray[np.float64]
    gains: NDArray[np.float64]

    def forest(self) -> Forest:
        """Return a forest of this tree."""
        return Forest(np.zeros(1, np.uint32), self.nodes, self.values)


def grow_tree(
    binned: Binned,
    wrong: NDArray[np.int64],
    weights: NDArray[np.int64],
    *,
    columns: int,
    leaf: int,
    depth: int | None,
    seed: int,
) -> Tree:
    """Grow a tree by entropy.

    Parameters
    ----------
    binned : Binned
        The features of all examples.
    wrong : ndarray of int64
        1 where an example is of the second class, else 0.
    weights : ndarray of int64
        Number of times that each example counts; examples of 0 are left out.
    columns : int
        Features that each split chooses from, drawn at random; more if none of them splits.
    leaf : int
        Examples in a leaf at the least.
    depth : int or None
        Splits from root to leaf at the most.
    seed : int
        Seed of the random features, below 2**32.
    """
    order = np.flatnonzero(weights).astype(np.int32)
    # The weights of both classes in one number, so that one addition counts both.
    mass = np.where(wrong == 1, weights << 32, weights)
    width, room = len(binned.codes), 2 * len(order)
    table = np.arange(int(weights.sum()) + 1, dtype=np.float64)
    table[1:] *= np.log2(table[1:])
    nodes = np.zeros((room, 4), np.uint32)
    values, gains = np.zeros(room), np.zeros(width)
    n = _grow(
        binned.codes, mass, np.empty(len(order), np.int64), order, np.arange(width), table,
        np.array([columns, leaf, depth or room, seed], np.int64),
        np.zeros((_MOST_BINS, 2), np.int64), np.zeros(_MOST_BINS // 32, np.int64),
        np.zeros((room, 4), np.int64), nodes, values, gains,
    )  # fmt: skip
    nodes, values = nodes[:n], values[:n]
    inner = np.flatnonzero(nodes[:, 2] != np.arange(n))
    cuts = np.full(n, np.inf, np.float32)
    cuts[inner] = binned.thresholds[nodes[inner, 0], nodes[inner, 1]]
    nodes[:, 1] = cuts.view(np.uint32)
    return Tree(nodes.copy(), values.copy(), gains / gains.sum() if gains.any() else gains)


def join_forests(forests: list[Forest]) -> Forest:
    """Return the trees of several forests as one."""
    first = np.cumsum([0, *(len(forest.nodes) for forest in forests)])[:-1].astype(np.uint32)
    parts = list(zip(forests, first, strict=True))
    return Forest(
        np.concatenate([forest.roots + root for forest, root in parts]),
        np.concatenate([forest.nodes + np.array([0, 0, root, root], np.uint32)
                        for forest, root in parts]),
        np.concatenate([forest.values for forest in forests]),
    )  # fmt: skip


@kernel
def _find_bins(values: Any, thresholds: Any, bins: Any) -> None:
    """Write the number of thresholds, out of 256 of which the last is infinite, below each value.

    No bounds checking.
    """
    for k in range(values.size):
        at = np.int64(0)
        for halving in range(8):
            step = 128 >> halving
            at += step * np.int64(thresholds[at + step - 1] < values[k])
        bins[k] = at


@inlined
def _gain(left: Any, total: Any, table: Any) -> Any:
    """Return the information gain, up to a constant, of a split into `left` and the rest."""
    low = left & 0xFFFFFFFF
    high = left >> 32
    rest = total - left
    low_rest = rest & 0xFFFFFFFF
    high_rest = rest >> 32
    return (
        table[low] + table[high] - table[low + high]
        + table[low_rest] + table[high_rest] - table[low_rest + high_rest]
    )  # fmt: skip


@kernel
def _split_by_histogram(
    codes: Any, mass: Any, order: Any, leaf: Any, total: Any, table: Any, bins: Any
) -> Any:
    """Return gain and last bin on the left of the best split of a feature, -1 if there is none.

    `mass` has the weights of the examples in `order`. `bins` is a buffer of zeros, which the kernel
    restores. No bounds checking.
    """
    low = np.int64(_MOST_BINS)
    high = np.int64(0)
    for k in range(order.size):
        code = np.int64(codes[order[k]])
        bins[code, 0] += mass[k]
        bins[code, 1] += 1
        low = min(low, code)
        high = max(high, code)
    best = -np.inf
    cut = np.int64(-1)
    left = np.int64(0)
    count = np.int64(0)
    for at in range(low, high + 1):
        if bins[at, 1] > 0:
            left += bins[at, 0]
            count += bins[at, 1]
            bins[at, 0] = 0
            bins[at, 1] = 0
            if count >= leaf and order.size - count >= leaf:
                gain = _gain(left, total, table)
                if gain > best:
                    best = gain
                    cut = np.int64(at)
    return best, cut


@kernel
def _split_by_marks(
    codes: Any, mass: Any, order: Any, leaf: Any, total: Any, table: Any, bins: Any, marks: Any
) -> Any:
    """Return the same for few examples: of the bins, only those with a mark are read.

    `marks` is a buffer of zeros, a bit for each bin, which the kernel restores. No bounds checking.
    """
    for k in range(order.size):
        code = np.int64(codes[order[k]])
        bins[code, 0] += mass[k]
        bins[code, 1] += 1
        marks[code >> 5] |= np.int64(1) << (code & 31)
    best = -np.inf
    cut = np.int64(-1)
    left = np.int64(0)
    count = np.int64(0)
    for word in range(marks.size):
        bits = marks[word]
        marks[word] = 0
        while bits != 0:
            lowest = bits & -bits
            at = 32 * word + _PLACES[(lowest * _DE_BRUIJN >> 27) & 31]
            bits ^= lowest
            left += bins[at, 0]
            count += bins[at, 1]
            bins[at, 0] = 0
            bins[at, 1] = 0
            if count >= leaf and order.size - count >= leaf:
                gain = _gain(left, total, table)
                if gain > best:
                    best = gain
                    cut = np.int64(at)
    return best, cut


@kernel
def _grow(
    codes: Any, mass: Any, near: Any, order: Any, columns: Any, table: Any, settings: Any,
    bins: Any, marks: Any, stack: Any, nodes: Any, values: Any, gains: Any,
) -> Any:  # fmt: skip
    """Write the nodes of a tree, with bins instead of thresholds; return their number.

    Invariant: the examples of a node are ``order[start:stop]``; a split reorders them so that those
    of the left child come first. `near`, `bins`, `marks` and `stack` are buffers. No bounds
    checking.
    """
    n_columns, leaf, depth, seed = settings[0], settings[1], settings[2], settings[3]
    stack[0, 2] = order.size
    waiting = 1
    n = 1
    while waiting > 0:
        waiting -= 1
        node = stack[waiting, 0]
        start = stack[waiting, 1]
        stop = stack[waiting, 2]
        level = stack[waiting, 3]
        total = np.int64(0)
        here = order[start:stop]
        heavy = near[: stop - start]
        for k in range(here.size):
            heavy[k] = mass[here[k]]
            total += heavy[k]
        low = total & 0xFFFFFFFF
        high = total >> 32
        values[node] = high / (low + high)
        nodes[node, 2] = node
        nodes[node, 3] = node
        if low == 0 or high == 0 or stop - start < 2 * leaf or level == depth:
            continue
        best = -np.inf
        feature = np.int64(-1)
        cut = np.int64(-1)
        visited = 0
        while visited < columns.size and (visited < n_columns or feature < 0):
            # The next feature of a random order.
            other = visited + np.int64(uniform(seed, node, visited) * (columns.size - visited))
            column = columns[other]
            columns[other] = columns[visited]
            columns[visited] = column
            visited += 1
            if here.size < _FEW:
                gain, at = _split_by_marks(
                    codes[column], heavy, here, leaf, total, table, bins, marks
                )
            else:
                gain, at = _split_by_histogram(codes[column], heavy, here, leaf, total, table, bins)
            if at >= 0 and gain > best:
                best = gain
                feature = column
                cut = at
        if feature < 0:
            continue
        gains[feature] += best - (table[low] + table[high] - table[low + high])
        chosen = codes[feature]
        at = start
        end = stop - 1
        while at <= end:
            example = order[at]
            if chosen[example] <= cut:
                at += 1
            else:
                order[at] = order[end]
                order[end] = example
                end -= 1
        nodes[node, 0] = feature
        nodes[node, 1] = cut
        nodes[node, 2] = n
        nodes[node, 3] = n + 1
        for side in range(2):
            stack[waiting, 0] = n + side
            stack[waiting, 1] = start if side == 0 else at
            stack[waiting, 2] = at if side == 0 else stop
            stack[waiting, 3] = level + 1
            waiting += 1
        n += 2
    return n
