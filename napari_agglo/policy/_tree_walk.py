"""Forests as kernels walk them: eight bytes a node, two siblings side by side.

One tree stays in the nearest memory while it serves all rows of a chunk, and eight walks hide each
other's waiting. A leaf leads to itself, so that walks end when none of them moves any more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel, subroutine
from napari_agglo.errors import InvalidInput

CHUNK = 64  # rows that stay near while the trees go by
_LINE = 8  # nodes in a cache line


class Trees(NamedTuple):
    """A forest of packed nodes.

    A node is its threshold (the bits of a float32), and its feature and left child in one number;
    the right child is the one after the left. Children are counted from the root of their tree. A
    leaf is its own left child under a threshold of infinity.
    """

    roots: NDArray[np.uint32]
    nodes: NDArray[np.uint32]  # (nodes, 2)
    thresholds: NDArray[Any]  # the same memory as float32; as it is in a forest of codes
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
    order = np.full(len(nodes) + _LINE * len(roots), -1, np.int64)
    if len(nodes) == len(roots):  # leaves alone, as without a forest: no kernel need be compiled
        order = order[len(nodes) :]
        order[::_LINE] = roots
    else:
        sizes, stack = np.ones(len(nodes), np.int64), np.empty(len(nodes) + _LINE, np.int64)
        order = order[: _lay_out(roots, nodes, sizes, stack, order)]
    at = np.arange(len(order))
    used = order >= 0
    place = np.zeros(len(nodes), np.int64)
    place[order[used]] = at[used]
    order[~used] = 0
    first = place[roots]
    feature, threshold = nodes[order, 0], nodes[order, 1]
    left = place[nodes[order, 2]]
    is_leaf = (left == at) | ~used
    left = np.where(used, left - first[np.searchsorted(first, at, "right") - 1], 0)
    bits = int(left.max(initial=0)).bit_length()
    if bits + int(feature.max(initial=0)).bit_length() > 32:
        raise InvalidInput(
            f"A tree of {left.max():,} nodes on {feature.max():,} features is too large",
            argument="policy",
            remedy="train it with fewer cues, or with more examples in a leaf",
        )
    room = np.empty(2 * len(order) + 16, np.uint32)
    room = room[-room.ctypes.data % 64 // 4 :]  # from the start of a cache line
    packed = room[: 2 * len(order)].reshape(-1, 2)
    # Nothing goes right of a leaf, whatever threshold the file has there.
    packed[:, 0] = np.where(is_leaf, np.float32(np.inf).view(np.uint32), threshold)
    packed[:, 1] = feature.astype(np.int64) << bits | left
    return Trees(
        roots=first.astype(np.uint32),
        nodes=packed,
        thresholds=packed.view(np.float32),
        values=values[order],
        bits=np.uint32(bits),
    )


@kernel
def _lay_out(roots: Any, nodes: Any, sizes: Any, stack: Any, order: Any) -> Any:
    """Order the nodes so that walks touch few cache lines; return the length of the order.

    A line has room for four pairs of siblings. The first of them is followed by those below it with
    the most nodes below themselves, where most walks go on. A root has no sibling: its place is -1,
    as are those after the last pair of a tree. `sizes` are ones, `stack` is a buffer for the nodes
    whose children have no place yet. No bounds checking.
    """
    for node in range(nodes.shape[0] - 1, -1, -1):  # children come after their parent
        left = np.int64(nodes[node, 2])
        if left != node:
            sizes[node] += sizes[left] + sizes[np.int64(nodes[node, 3])]
    n: Any = np.int64(0)
    for tree in range(roots.size):
        root = np.int64(roots[tree])
        order[n] = root
        order[n + 1] = -1
        n += 2
        stack[0] = root
        waiting: Any = np.int64(nodes[root, 2] != root)
        while waiting > 0:
            bottom = waiting - 1
            for _ in range((_LINE - n % _LINE) // 2):
                if waiting == bottom:
                    break
                best = bottom
                for k in range(bottom + 1, waiting):
                    if sizes[stack[k]] > sizes[stack[best]]:
                        best = k
                parent = stack[best]
                waiting -= 1
                stack[best] = stack[waiting]
                for side in range(2):
                    child = np.int64(nodes[parent, 2 + side])
                    order[n] = child
                    n += 1
                    stack[waiting] = child
                    waiting += np.int64(nodes[child, 2] != child)
        while n % _LINE > 0:
            order[n] = -1
            n += 1
    return n


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
    """Return `total` with the values of trees `first` to `stop` - 1 for a row, in their order."""
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
