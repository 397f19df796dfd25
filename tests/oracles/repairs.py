"""Graphs and policies to repair trees of, and what a repaired tree looks like."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st

from napari_agglo import region_graph
from napari_agglo._numba.hash_tables import uniform
from napari_agglo.features import feature_map
from napari_agglo.policy import Forest, LearnedPolicy, MeanPolicy, RandomPolicy


def random_forest(seed, width, trees=3, depth=3):
    """Return a forest that says anything: as if learned from noise, and by no means monotone."""
    rng = np.random.default_rng(seed)
    inner = 2**depth - 1
    n = 2 ** (depth + 1) - 1
    nodes, values = [], []
    for tree in range(trees):
        first = tree * n
        own = np.zeros((n, 4), np.uint32)
        at = np.arange(n)
        own[:, 0] = rng.integers(0, width, n)
        own[:, 1] = rng.uniform(0, 3, n).astype(np.float32).view(np.uint32)
        own[:, 2] = first + np.where(at < inner, 2 * at + 1, at)
        own[:, 3] = first + np.where(at < inner, 2 * at + 2, at)
        nodes.append(own)
        values.append(rng.integers(0, 9, n) / 8)
    roots = (np.arange(trees) * n).astype(np.uint32)
    return Forest(roots, np.concatenate(nodes), np.concatenate(values))


@st.composite
def graphs(draw, most=9):
    """Draw a small image of few superpixels, so that they touch in all manner of ways."""
    shape = draw(st.sampled_from([(3, 4), (4, 4), (2, 3, 3)]))
    n = draw(st.integers(2, most))
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    labels = rng.integers(1, n + 1, shape)
    cue = rng.integers(0, 5, shape) / 4
    return region_graph(labels, {"boundary": cue})


def as_scores(graph, kind, seed):
    """Return a policy and what it says of a graph."""
    if kind == "mean":
        return MeanPolicy(), lambda g: g.boundary_mean()
    if kind == "random":
        ids = {int(k): dense for dense, k in enumerate(graph.ids)}

        def scores(g):
            pairs = g.ids[g.edges]
            return [uniform(seed, *sorted(ids[int(k)] for k in pair)) for pair in pairs]

        return RandomPolicy(seed), scores
    features = feature_map(graph, "natural" if seed % 2 else "em")
    # One tree says eighths, as the scales of edits are; three say what lies between them.
    policy = LearnedPolicy(features, random_forest(seed, features.width, 1 + seed % 3))
    return policy, policy.score


POLICIES = st.tuples(st.sampled_from(["mean", "random", "forest", "forest"]), st.integers(0, 999))


def nodes_of(tree):
    """Return the merges of a repaired tree as the oracle does."""
    tree.look(math.inf)
    rows = tree.log.rows
    locks = set(tree.constraints.lock_of.tolist())
    found = set()

    def visit(node):
        if rows["first"][node] < 0 or node in locks:
            return frozenset(tree.members(node).tolist())
        pair = frozenset((visit(rows["first"][node]), visit(rows["second"][node])))
        priority = None if rows["edit"][node] >= 0 else float(rows["priority"][node])
        found.add((pair, float(rows["birth"][node]), priority))
        return frozenset().union(*pair)

    for node in np.unique(tree.regions(math.inf)[1:]).tolist():
        visit(node)
    return found


def partition(tree, scale):
    regions = tree.regions(scale)
    return {frozenset(np.flatnonzero(regions == node).tolist()) for node in set(regions[1:])}


def state_of(tree):
    """Return all that can be observed of a tree up to its horizon, without looking further."""
    horizon = tree.horizon
    rows = tree.log.rows
    locks = tree.constraints.lock_of.tolist()
    merges, births = set(), set()

    def visit(node):
        members = frozenset(tree.members(node).tolist())
        if rows["first"][node] >= 0:
            pair = frozenset((visit(rows["first"][node]), visit(rows["second"][node])))
            priority = None if rows["edit"][node] >= 0 else float(rows["priority"][node])
            birth = float(rows["birth"][node])
            merges.add((pair, birth, priority, tree.name(node)))
            births.add(birth)
        return members

    whole = np.unique(tree.regions(horizon)[1:]).tolist()
    regions = {visit(node): tree.name(node) for node in whole}
    tables = {scale: tree.table(scale).tolist() for scale in births if scale <= horizon}
    touching = {
        tree.name(node): {tree.name(other) for other in tree.neighbours(node, horizon)}
        for node in whole
    }
    locked = [s for s, lock in enumerate(locks) if lock]
    return horizon, merges, regions, tables, touching, locked, list(map(id, tree.edits))
