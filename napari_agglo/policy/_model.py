"""Classifiers as plain arrays, evaluated by kernels: a forest of decision trees, or a logistic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel
from napari_agglo.policy._tree_walk import CHUNK, Trees, forest_scores, pack_trees

RANDOM, MEAN, FOREST, LOGISTIC, PYTHON = 0, 1, 2, 3, 4


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees as arrays; the value of a leaf is the probability that a merge is wrong.

    Parameters
    ----------
    roots : ndarray of uint32, shape (trees,)
        First node of each tree.
    nodes : ndarray of uint32, shape (nodes, 4)
        Feature, threshold (the bits of a float32), left child, right child. A row goes left where
        its feature is at most the threshold. A leaf is its own child, and every other node the
        root of one tree or the child of one node.
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
        """Return the same, by only the trees that did not learn from a row's owner."""
        out = np.zeros(len(features))
        self._predict(features, owners, in_bag, out)
        return out

    def first(self, n: int) -> Forest:
        """Return a forest of the first `n` trees."""
        stop = self.roots[n] if n < len(self.roots) else len(self.nodes)
        return Forest(self.roots[:n], self.nodes[:stop], self.values[:stop])

    def _predict(
        self,
        features: NDArray[np.float32],
        owners: NDArray[np.int64],
        in_bag: NDArray[np.uint8],
        out: NDArray[np.float64],
    ) -> None:
        rows = np.ascontiguousarray(features, np.float32)
        _predict_forest(rows, owners, self.trees, in_bag, *chunk_buffers(), out)

    @cached_property
    def trees(self) -> Trees:
        """The forest as kernels walk it."""
        return pack_trees(self.roots, self.nodes, self.values)


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


def chunk_buffers() -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the buffers of `forest_scores` for a chunk of rows."""
    return np.zeros(CHUNK, np.uint32), np.zeros(CHUNK, np.int64)


def flatten_trees(trees: list[Any], positive: int = 1) -> Forest:
    """Return scikit-learn's fitted decision trees as one `Forest`.

    Thresholds are rounded down to 32 bits, which changes no decision: features are 32-bit floats,
    and for these ``x <= t`` is equivalent to the same with the next 32-bit float below t.
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
    rows: Any, owners: Any, trees: Trees, in_bag: Any, which: Any, counts: Any, out: Any
) -> None:
    """Score all rows, a chunk at a time. No bounds checking."""
    for start in range(0, rows.shape[0], CHUNK):
        n = min(CHUNK, rows.shape[0] - start)
        forest_scores(rows[start:], n, owners[start:], trees, in_bag, which, counts, out[start:])


@kernel
def _predict_logistic(rows: Any, weights: Any, out: Any) -> None:
    """Score all rows. No bounds checking."""
    logistic_scores(rows, rows.shape[0], weights, out)
