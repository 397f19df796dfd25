"""Classifiers as plain arrays, evaluated by kernels: a forest of decision trees, or a logistic.

A forest is walked tree by tree, eight rows at a time: one tree stays in the nearest memory while it
serves all rows, and eight walks hide each other's waiting. Sixteen bytes a node: feature,
threshold, left, right; a leaf leads to itself, so that a walk ends when nothing moves any more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel, subroutine

RANDOM, MEAN, FOREST, LOGISTIC, PYTHON = 0, 1, 2, 3, 4
CHUNK = 64  # rows that stay near while the trees go by


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees as arrays; the value of a leaf is the probability that a merge is wrong.

    Parameters
    ----------
    roots : ndarray of uint32, shape (trees,)
        First node of each tree.
    nodes : ndarray of uint32, shape (nodes, 4)
        Feature, threshold (the bits of a float32), left child, right child. A row goes left where
        its feature is at most the threshold. A leaf is its own child.
    values : ndarray of float64, shape (nodes,)
        Probability at each leaf.
    """

    roots: NDArray[np.uint32]
    nodes: NDArray[np.uint32]
    values: NDArray[np.float64]

    def predict(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the probability that each row is a wrong merge."""
        out = np.zeros(len(features))
        self._predict(features, np.zeros(0, np.int64), np.zeros((0, 0), np.uint8), out)
        return out

    def predict_out_of_bag(
        self, features: NDArray[np.float32], owners: NDArray[np.int64], in_bag: NDArray[np.uint8]
    ) -> NDArray[np.float64]:
        """Return the same by only those trees that did not learn from a row's owner."""
        out = np.zeros(len(features))
        self._predict(features, owners, in_bag, out)
        return out

    def _predict(
        self,
        features: NDArray[np.float32],
        owners: NDArray[np.int64],
        in_bag: NDArray[np.uint8],
        out: NDArray[np.float64],
    ) -> None:
        _predict_forest(
            np.ascontiguousarray(features, np.float32), owners, self.roots, self.nodes,
            self.thresholds, self.values, in_bag, *chunk_buffers(), out,
        )  # fmt: skip

    @property
    def thresholds(self) -> NDArray[np.float32]:
        """The nodes' memory read as floats, of which column 1 is the thresholds."""
        return self.nodes.view(np.float32)


@dataclass(frozen=True, eq=False)
class Logistic:
    """A weight for each feature and one for all; the probability is the logistic of their sum."""

    weights: NDArray[np.float64]  # of each feature, then the intercept

    def predict(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the probability that each row is a wrong merge."""
        out = np.zeros(len(features))
        _predict_logistic(np.ascontiguousarray(features, np.float32), self.weights, out)
        return out


Model = Forest | Logistic


def chunk_buffers() -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the buffers that walking the trees for a chunk of rows needs."""
    return np.zeros(CHUNK, np.uint64), np.zeros(CHUNK, np.int64)


def flatten_trees(trees: list[Any], positive: int = 1) -> Forest:
    """Return scikit-learn's fitted decision trees as one `Forest`.

    Thresholds are rounded down to 32 bits, which changes no decision: features are 32-bit floats,
    and ``x <= t`` holds for one of these exactly if it holds for the next 32-bit float below t.
    """
    roots, parts, values = [], [], []
    first = 0
    for tree in trees:
        n = tree.node_count
        leaf = tree.children_left < 0
        own = np.arange(n)
        threshold = np.where(leaf, np.inf, tree.threshold)
        rounded = threshold.astype(np.float32)
        too_high = rounded.astype(np.float64) > threshold
        rounded[too_high] = np.nextafter(rounded[too_high], np.float32(-np.inf))
        nodes = np.empty((n, 4), np.uint32)
        nodes[:, 0] = np.where(leaf, 0, tree.feature)
        nodes[:, 1] = rounded.view(np.uint32)
        nodes[:, 2] = first + np.where(leaf, own, tree.children_left)
        nodes[:, 3] = first + np.where(leaf, own, tree.children_right)
        counts = tree.value[:, 0, :]
        total = counts.sum(axis=1)
        share = counts[:, positive] if counts.shape[1] > positive else np.zeros(n)
        values.append(np.divide(share, total, out=np.full(n, 0.5), where=total > 0))
        roots.append(first)
        parts.append(nodes)
        first += n
    return Forest(np.array(roots, np.uint32), np.concatenate(parts), np.concatenate(values))


@inlined
def _step(rows: Any, row: Any, node: Any, nodes: Any, thresholds: Any) -> Any:
    """Return the node after `node`. Unsigned indices spare a test for negative ones."""
    feature = nodes[node, np.uint64(0)]
    if rows[row, feature] <= thresholds[node, np.uint64(1)]:
        return nodes[node, np.uint64(2)]
    return nodes[node, np.uint64(3)]


@inlined
def _walk_eight(
    rows: Any, which: Any, at: Any, root: Any, nodes: Any, thresholds: Any, values: Any, out: Any
) -> None:
    """Add a tree's value for rows ``which[at]`` to ``which[at + 7]`` to `out`."""
    r0 = which[at]
    r1 = which[at + 1]
    r2 = which[at + 2]
    r3 = which[at + 3]
    r4 = which[at + 4]
    r5 = which[at + 5]
    r6 = which[at + 6]
    r7 = which[at + 7]
    n0 = n1 = n2 = n3 = n4 = n5 = n6 = n7 = root
    while True:
        m0 = _step(rows, r0, n0, nodes, thresholds)
        m1 = _step(rows, r1, n1, nodes, thresholds)
        m2 = _step(rows, r2, n2, nodes, thresholds)
        m3 = _step(rows, r3, n3, nodes, thresholds)
        m4 = _step(rows, r4, n4, nodes, thresholds)
        m5 = _step(rows, r5, n5, nodes, thresholds)
        m6 = _step(rows, r6, n6, nodes, thresholds)
        m7 = _step(rows, r7, n7, nodes, thresholds)
        low = m0 == n0 and m1 == n1 and m2 == n2 and m3 == n3
        if low and m4 == n4 and m5 == n5 and m6 == n6 and m7 == n7:
            break
        n0, n1, n2, n3, n4, n5, n6, n7 = m0, m1, m2, m3, m4, m5, m6, m7
    out[r0] += values[n0]
    out[r1] += values[n1]
    out[r2] += values[n2]
    out[r3] += values[n3]
    out[r4] += values[n4]
    out[r5] += values[n5]
    out[r6] += values[n6]
    out[r7] += values[n7]


@inlined
def _walk_one(
    rows: Any, row: Any, root: Any, nodes: Any, thresholds: Any, values: Any, out: Any
) -> None:
    """Add a tree's value for one row to `out`."""
    node = root
    while True:
        following = _step(rows, row, node, nodes, thresholds)
        if following == node:
            break
        node = following
    out[row] += values[node]


@subroutine
def forest_scores(
    rows: Any, n: Any, owners: Any, roots: Any, nodes: Any, thresholds: Any, values: Any,
    in_bag: Any, which: Any, counts: Any, out: Any,
) -> None:  # fmt: skip
    """Write the mean of the trees' values for the first `n` rows (at most 64) to `out`.

    With `in_bag`, (trees, owners), a row is asked only of trees that did not learn from its owner.
    `which` and `counts` are buffers.
    """
    everyone = in_bag.size == 0
    for row in range(n):
        out[row] = 0.0
        counts[row] = 0
        which[row] = row
    for tree in range(roots.size):
        chosen = n
        if not everyone:
            chosen = 0
            for row in range(n):
                which[chosen] = row
                chosen += in_bag[tree, owners[row]] == 0
        root = roots[tree]
        at: Any = np.int64(0)
        while at + 8 <= chosen:
            _walk_eight(rows, which, at, root, nodes, thresholds, values, out)
            at += 8
        while at < chosen:
            _walk_one(rows, which[at], root, nodes, thresholds, values, out)
            at += 1
        for at in range(chosen):
            counts[which[at]] += 1
    for row in range(n):
        out[row] = out[row] / counts[row] if counts[row] > 0 else 0.5


@inlined
def logistic_scores(rows: Any, n: Any, weights: Any, out: Any) -> None:
    """Write the logistic of the weighted sum of the first `n` rows to `out`."""
    width = weights.size - 1
    for row in range(n):
        total = weights[width]
        for k in range(width):
            total += weights[k] * rows[row, k]
        out[row] = 1.0 / (1.0 + math.exp(-min(max(total, -700.0), 700.0)))


@kernel
def _predict_forest(
    rows: Any, owners: Any, roots: Any, nodes: Any, thresholds: Any, values: Any, in_bag: Any,
    which: Any, counts: Any, out: Any,
) -> None:  # fmt: skip
    """Score all rows, 64 at a time. No bounds checking."""
    for start in range(0, rows.shape[0], CHUNK):
        n = min(CHUNK, rows.shape[0] - start)
        forest_scores(
            rows[start:], n, owners[start:], roots, nodes, thresholds, values, in_bag,
            which, counts, out[start:],
        )  # fmt: skip


@kernel
def _predict_logistic(rows: Any, weights: Any, out: Any) -> None:
    """Score all rows. No bounds checking."""
    logistic_scores(rows, rows.shape[0], weights, out)
