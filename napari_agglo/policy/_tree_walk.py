"""Forests as kernels walk them: eight bytes a node, two siblings side by side.

One tree stays in the nearest memory while it serves all rows of a chunk, and eight walks hide each
other's waiting. A leaf leads to itself, so that walks end when none of them moves any more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, subroutine
from napari_agglo.errors import InvalidInput

CHUNK = 64  # rows that stay near while the trees go by


class Trees(NamedTuple):
    """A forest of packed nodes.

    A node is its threshold (the bits of a float32), and its feature and left child in one number;
    the right child is the one after the left. Children are counted from the root of their tree. A
    leaf is its own left child under a threshold of infinity.
    """

    roots: NDArray[np.uint32]
    nodes: NDArray[np.uint32]  # (nodes, 2)
    thresholds: NDArray[np.float32]  # the same memory
    values: NDArray[np.float64]
    bits: np.uint32  # of the left child, the lower ones; the rest are of the feature

    def splits(self) -> tuple[NDArray[np.uint32], NDArray[np.float32], NDArray[np.int64]]:
        """Return feature, threshold and tree of each node that is not a leaf."""
        inner = np.flatnonzero(np.isfinite(self.thresholds[:, 0]))
        tree = np.searchsorted(self.roots, inner, "right") - 1
        return self.nodes[inner, 1] >> self.bits, self.thresholds[inner, 0], tree


def pack_trees(
    roots: NDArray[np.uint32], nodes: NDArray[np.uint32], values: NDArray[np.float64]
) -> Trees:
    """Return the trees of a `Forest` as kernels walk them."""
    order, tree_of = _siblings_together(roots, nodes)
    place = np.zeros(len(nodes), np.int64)
    place[order] = np.arange(len(order))
    own, feature = nodes[order], nodes[order, 0]
    left = place[own[:, 2]]
    is_leaf = left == np.arange(len(order))
    left -= place[roots][tree_of]
    bits = int(left.max(initial=0)).bit_length()
    if bits + int(feature.max(initial=0)).bit_length() > 32:
        raise InvalidInput(
            f"A tree of {left.max():,} nodes on {feature.max():,} features is too large",
            argument="policy",
            remedy="train it with fewer cues, or with more examples in a leaf",
        )
    packed = np.empty((len(order), 2), np.uint32)
    # Nothing goes right of a leaf, whatever threshold the file has there.
    packed[:, 0] = np.where(is_leaf, np.float32(np.inf).view(np.uint32), own[:, 1])
    packed[:, 1] = feature.astype(np.int64) << bits | left
    return Trees(
        roots=place[roots].astype(np.uint32),
        nodes=packed,
        thresholds=packed.view(np.float32),
        values=values[order],
        bits=np.uint32(bits),
    )


def _siblings_together(
    roots: NDArray[np.uint32], nodes: NDArray[np.uint32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return an order of the nodes, tree by tree from the root down, and the tree of each.

    The two children of a node are neighbours in it.
    """
    trees, levels = [np.arange(len(roots))], [roots.astype(np.int64)]
    while len(levels[-1]):
        here = levels[-1]
        inner = nodes[here, 2] != here
        levels.append(nodes[here[inner], 2:].astype(np.int64).reshape(-1))
        trees.append(np.repeat(trees[-1][inner], 2))
    tree_of = np.concatenate(trees)
    order = np.argsort(tree_of, kind="stable")
    return np.concatenate(levels)[order], tree_of[order]


@inlined
def _step(rows: Any, row: Any, node: Any, root: Any, nodes: Any, thresholds: Any, bits: Any) -> Any:
    """Return the node after `node`. Unsigned indices spare a test for negative ones."""
    word = nodes[node, np.uint64(1)]
    left = word & ((np.uint32(1) << bits) - np.uint32(1))
    right = rows[row, word >> bits] > thresholds[node, np.uint64(0)]
    return np.uint32(root + left + np.uint32(right))


@inlined
def _walk_rows(
    rows: Any, which: Any, at: Any, root: Any, nodes: Any, thresholds: Any, values: Any,
    bits: Any, totals: Any,
) -> None:  # fmt: skip
    """Add a tree's value for rows ``which[at]`` to ``which[at + 7]`` to their totals."""
    r0, r1, r2, r3 = which[at], which[at + 1], which[at + 2], which[at + 3]
    r4, r5, r6, r7 = which[at + 4], which[at + 5], which[at + 6], which[at + 7]
    n0 = n1 = n2 = n3 = n4 = n5 = n6 = n7 = root
    while True:
        m0 = _step(rows, r0, n0, root, nodes, thresholds, bits)
        m1 = _step(rows, r1, n1, root, nodes, thresholds, bits)
        m2 = _step(rows, r2, n2, root, nodes, thresholds, bits)
        m3 = _step(rows, r3, n3, root, nodes, thresholds, bits)
        m4 = _step(rows, r4, n4, root, nodes, thresholds, bits)
        m5 = _step(rows, r5, n5, root, nodes, thresholds, bits)
        m6 = _step(rows, r6, n6, root, nodes, thresholds, bits)
        m7 = _step(rows, r7, n7, root, nodes, thresholds, bits)
        low = (m0 ^ n0) | (m1 ^ n1) | (m2 ^ n2) | (m3 ^ n3)
        if low | (m4 ^ n4) | (m5 ^ n5) | (m6 ^ n6) | (m7 ^ n7) == 0:
            break
        n0, n1, n2, n3, n4, n5, n6, n7 = m0, m1, m2, m3, m4, m5, m6, m7
    totals[r0] += values[n0]
    totals[r1] += values[n1]
    totals[r2] += values[n2]
    totals[r3] += values[n3]
    totals[r4] += values[n4]
    totals[r5] += values[n5]
    totals[r6] += values[n6]
    totals[r7] += values[n7]


@inlined
def _walk_four(
    row: Any, tree: Any, rows: Any, roots: Any, nodes: Any, thresholds: Any, bits: Any
) -> Any:
    """Return the leaves of a row in `tree` and the three after it, walked side by side."""
    a, b, c, d = roots[tree], roots[tree + 1], roots[tree + 2], roots[tree + 3]
    n0, n1, n2, n3 = a, b, c, d
    while True:
        m0 = _step(rows, row, n0, a, nodes, thresholds, bits)
        m1 = _step(rows, row, n1, b, nodes, thresholds, bits)
        m2 = _step(rows, row, n2, c, nodes, thresholds, bits)
        m3 = _step(rows, row, n3, d, nodes, thresholds, bits)
        if (m0 ^ n0) | (m1 ^ n1) | (m2 ^ n2) | (m3 ^ n3) == 0:
            return n0, n1, n2, n3
        n0, n1, n2, n3 = m0, m1, m2, m3


@inlined
def _walk_one(row: Any, root: Any, rows: Any, nodes: Any, thresholds: Any, bits: Any) -> Any:
    """Return the leaf of a row in the tree of a root."""
    node = root
    while True:
        following = _step(rows, row, node, root, nodes, thresholds, bits)
        if following == node:
            return node
        node = following


@subroutine
def walk_row(row: Any, first: Any, stop: Any, total: Any, rows: Any, trees: Trees) -> Any:
    """Return a row's `total` with the values of trees `first` to `stop` - 1, added in their order."""
    roots, nodes, thresholds, values, bits = trees
    tree = first
    while tree + 4 <= stop:
        n0, n1, n2, n3 = _walk_four(row, tree, rows, roots, nodes, thresholds, bits)
        total += values[n0]
        total += values[n1]
        total += values[n2]
        total += values[n3]
        tree += 4
    while tree < stop:
        total += values[_walk_one(row, roots[tree], rows, nodes, thresholds, bits)]
        tree += 1
    return total


@subroutine
def tree_values(
    row: Any, first: Any, stop: Any, rows: Any, trees: Trees, out: Any, at: Any
) -> None:
    """Write the values of trees `first` to `stop` - 1 for a row to their columns of ``out[at]``."""
    roots, nodes, thresholds, values, bits = trees
    tree = first
    while tree + 4 <= stop:
        n0, n1, n2, n3 = _walk_four(row, tree, rows, roots, nodes, thresholds, bits)
        out[at, tree] = values[n0]
        out[at, tree + 1] = values[n1]
        out[at, tree + 2] = values[n2]
        out[at, tree + 3] = values[n3]
        tree += 4
    while tree < stop:
        out[at, tree] = values[_walk_one(row, roots[tree], rows, nodes, thresholds, bits)]
        tree += 1


@subroutine
def walk_rows(
    rows: Any, which: Any, n: Any, first: Any, stop: Any, trees: Trees, totals: Any
) -> None:
    """Add the values of trees `first` to `stop` - 1 to the totals of the rows ``which[:n]``."""
    roots, nodes, thresholds, values, bits = trees
    eights = n - n % 8
    for tree in range(first, stop):
        for at in range(0, eights, 8):
            _walk_rows(rows, which, at, roots[tree], nodes, thresholds, values, bits, totals)
    for at in range(eights, n):
        row = which[at]
        totals[row] = walk_row(row, first, stop, totals[row], rows, trees)


@subroutine
def forest_scores(
    rows: Any, n: Any, owners: Any, trees: Trees, in_bag: Any, which: Any, counts: Any, out: Any
) -> None:
    """Write the mean of the trees' values for the first `n` rows (at most a chunk) to `out`.

    With `in_bag`, (trees, owners), a row is asked only of trees that did not learn from its owner.
    `which` and `counts` are buffers.
    """
    n_trees = np.int64(trees.roots.size)
    for row in range(n):
        out[row] = 0.0
        counts[row] = n_trees
        which[row] = row
    if in_bag.size == 0:
        walk_rows(rows, which, n, np.int64(0), n_trees, trees, out)
    else:
        for tree in range(n_trees):
            chosen: Any = np.int64(0)
            for row in range(n):
                inside = np.int64(in_bag[tree, owners[row]] != 0)
                counts[row] -= inside
                which[chosen] = row
                chosen += 1 - inside
            walk_rows(rows, which, chosen, tree, tree + 1, trees, out)
    for row in range(n):
        out[row] = out[row] / counts[row] if counts[row] > 0 else 0.5
