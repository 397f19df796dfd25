"""Priorities of boundaries, computed inside the merge loop.

The loop is compiled once for all policies: a policy is a `kind` and its arrays; the arrays of the
other kinds are empty. Low merges first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined
from napari_agglo._numba.callbacks import call_python, callback_address
from napari_agglo._numba.hash_tables import uniform
from napari_agglo.features import AXES, NDIM, FeatureState, assemble
from napari_agglo.graph import NO_HULLS, RegionGraph, copy_pair, graph_of_pairs, pair_width
from napari_agglo.policy._model import (
    FOREST,
    MEAN,
    PYTHON,
    RANDOM,
    Forest,
    Logistic,
    Model,
    chunk_buffers,
    logistic_scores,
)
from napari_agglo.policy._tree_walk import CHUNK, Trees, forest_scores


class Scoring(NamedTuple):
    """Record of a policy for kernels: its kind, the arrays of its model, buffers for a chunk.

    A policy of another package that has no kernel returns None from `Policy.kernel`, and needs no
    record.

    Attributes
    ----------
    kind, parameter : int
        The kind of the policy, and its number: a seed, the column of a cue's sum, or the address of
        a function.
    trees : Trees
        Nodes of the trees of a forest.
    weights : ndarray of float64
        Weights of a logistic regression.
    in_bag : ndarray of uint8
        Owners of boundaries by which each tree was trained; empty where every tree scores every
        boundary.
    group : ndarray of int64
        Group of each node; two of them give the owner of a boundary.
    rows, owners, which, counts, scores, pairs : ndarray
        Buffers for a chunk of boundaries: features, owners, trees, numbers, priorities, and the
        rows of pairs for a policy that is scored in Python.
    """

    kind: int
    parameter: int  # seed (random), column of the cue's sum (mean), address of a function (Python)
    trees: Trees
    weights: NDArray[np.float64]
    in_bag: NDArray[np.uint8]  # (trees, owners), or empty: every tree scores every boundary
    group: NDArray[np.int64]  # of each node; two of them give the owner of a boundary
    rows: NDArray[np.float32]  # buffer: features of a chunk of boundaries
    owners: NDArray[np.int64]  # buffer
    which: NDArray[np.uint32]  # buffer
    counts: NDArray[np.int64]  # buffer
    scores: NDArray[np.float64]  # buffer: the priorities of the chunk
    pairs: NDArray[np.int64]  # buffer: rows of pairs, for a policy that is scored in Python


def scoring(
    kind: int,
    parameter: int = 0,
    model: Model | None = None,
    width: int = 1,
    in_bag: NDArray[np.uint8] | None = None,
    group: NDArray[np.int64] | None = None,
) -> Scoring:
    """Return the record of a policy for kernels."""
    forest = model if isinstance(model, Forest) else _NO_FOREST
    which, counts = chunk_buffers()
    return Scoring(
        kind=kind,
        parameter=parameter,
        trees=forest.trees,
        weights=model.weights if isinstance(model, Logistic) else np.zeros(1),
        in_bag=np.zeros((0, 0), np.uint8) if in_bag is None else in_bag,
        group=np.zeros(0, np.int64) if group is None else group,
        rows=np.zeros((CHUNK, width), np.float32),
        owners=np.zeros(CHUNK, np.int64),
        which=which,
        counts=counts,
        scores=np.zeros(CHUNK),
        pairs=np.zeros((0, 0), np.int64),
    )


def python_scoring(graph: RegionGraph, score: Callable[[RegionGraph], Any]) -> Scoring:
    """Return the record for kernels of a function from a graph to priorities."""
    record = scoring(PYTHON)
    pairs = np.zeros((CHUNK, pair_width(graph.layout)), np.int64)
    scores = record.scores

    def score_pairs(n: int) -> None:
        scores[:n] = score(graph_of_pairs(graph, pairs[:n]))

    address = callback_address(score_pairs, record.counts)
    return record._replace(parameter=address, pairs=pairs)


_NO_FOREST = Forest(np.zeros(0, np.uint32), np.zeros((0, 4), np.uint32), np.zeros(0))


def no_features(regions: Any, boxes: Any, boundaries: Any, ndim: int) -> FeatureState:
    """Return rows of statistics for a policy that reads no features."""
    block = np.zeros((0, 0), np.float32)
    layout = np.zeros(AXES, np.int64)
    layout[NDIM] = ndim
    numbers = np.zeros((0, 0))
    return FeatureState(
        regions, boxes, boundaries, layout, np.zeros(0), numbers, block, block, numbers, numbers,
        numbers, np.zeros((0, 0), np.int64), block, block, np.zeros((0, 4), np.int64),
        np.zeros(0, np.int64), NO_HULLS,
    )  # fmt: skip


@inlined
def owner_of(group_u: Any, group_v: Any) -> Any:
    """Return the group that a boundary between two groups counts for, in either order.

    Parity decides, so that about half of all boundaries between groups count for each side.
    """
    if group_u == group_v:
        return group_u
    return min(group_u, group_v) if (group_u + group_v) & 1 else max(group_u, group_v)


@inlined
def score_chunk(
    edges: Any, start: Any, n: Any, ends: Any, ids: Any, scoring: Scoring, features: FeatureState
) -> None:
    """Write the priorities of ``edges[start : start + n]``, at most a chunk, to `scoring.scores`.

    `ends` has the nodes of each edge, `ids` the id of the region of each node.
    """
    # One loop for each kind, its arrays unpacked before it: testing the kind and reading records
    # for each boundary took a fifth of the time of the mean.
    kind = scoring.kind
    parameter = scoring.parameter
    scores = scoring.scores
    boundaries = features.boundaries
    if kind == RANDOM:
        for k in range(n):
            edge = edges[start + k]
            a = np.int64(ids[ends[edge, 0]])
            b = np.int64(ids[ends[edge, 1]])
            scores[k] = uniform(parameter, min(a, b), max(a, b))
    elif kind == MEAN:
        ndim = features.layout[NDIM]
        for k in range(n):
            edge = edges[start + k]
            faces = np.int64(0)
            for at in range(ndim):
                faces += boundaries[edge, at]
            # Invariant: the same expression as in `merge_by_mean`, to the last bit.
            scores[k] = boundaries[edge, parameter] / (255.0 * (2 * faces))
    elif kind == PYTHON:
        regions, pairs = features.regions, scoring.pairs
        for k in range(n):
            edge = edges[start + k]
            u = np.int64(ends[edge, 0])
            v = np.int64(ends[edge, 1])
            copy_pair(edge, u, v, np.int64(ids[u]), np.int64(ids[v]), regions, boundaries, pairs, k)
        call_python(parameter, n)
    else:
        rows, owners, in_bag, group = scoring.rows, scoring.owners, scoring.in_bag, scoring.group
        assemble(edges, start, n, ends, ids, 0, rows, features)
        for k in range(n if in_bag.size > 0 else 0):
            edge = edges[start + k]
            u = np.int64(ends[edge, 0])
            v = np.int64(ends[edge, 1])
            owners[k] = owner_of(group[u], group[v])
        if kind == FOREST:
            which, counts = scoring.which, scoring.counts
            forest_scores(rows, n, owners, scoring.trees, in_bag, which, counts, scores)
        else:
            logistic_scores(rows, n, scoring.weights, scores)
