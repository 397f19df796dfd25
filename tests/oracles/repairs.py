"""Graphs and policies to repair trees of, and what a repaired tree looks like."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st

from napari_agglo import region_graph
from napari_agglo._numba.hash_tables import uniform
from napari_agglo.features import FeatureMap
from napari_agglo.policy import CallablePolicy, Forest, LearnedPolicy, MeanPolicy, RandomPolicy


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
    """Draw a small image of few superpixels, so that they touch in all manner of ways.

    It is a row, a plane or a volume; in a third of them half of the pixels are one superpixel.
    """
    shape = draw(st.sampled_from([(14,), (3, 4), (4, 4), (2, 3, 3)]))
    n = draw(st.integers(2, most))
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    labels = rng.integers(1, n + 1, shape)
    cue = rng.integers(0, 5, shape) / 4
    if seed % 3 == 0:
        labels[rng.random(shape) < 0.5] = rng.integers(1, n + 1)
    return region_graph(labels, {"boundary": cue})


def hub_graph(n, seed):
    """Return a graph of about `n` superpixels, one of which touches all the others.

    It is the middle row of an image, or the middle plane of a volume.
    """
    rng = np.random.default_rng(seed)
    shape = (3, n // 2) if seed % 2 else (3, 6, n // 12)
    labels = 1 + np.arange(1, np.prod(shape) + 1).reshape(shape)
    labels[rng.random(shape) < 0.1] = 2  # touches much, too
    labels[1] = 1
    return region_graph(labels, {"boundary": rng.integers(0, 5, shape) / 4})


def by_sizes(seed, low, high, faces):
    """Say anything from the pixels of two regions and the faces between them.

    By no means monotone: one of three falls with each merge, the others jump.
    """
    if seed % 3 == 0:
        return 1 / (low + high)
    return (37 * low + 101 * high + 13 * faces + seed) % 9 / 8


def score_by_sizes(graph, seed):
    """Return the same as a function of two sets."""
    pixels, faces = graph.sizes.tolist(), {}
    for (u, v), n in zip(graph.edges.tolist(), _faces(graph).tolist(), strict=True):
        faces.setdefault(u, {})[v] = faces.setdefault(v, {})[u] = n
    known = {}

    def total(region):
        if region not in known:
            known[region] = sum(pixels[s] for s in region)
        return known[region]

    def score(u, v):
        if (u, v) not in known:
            less, more = sorted((u, v), key=len)
            n = sum(f for s in less for t, f in faces[s].items() if t in more)
            known[u, v] = known[v, u] = by_sizes(seed, *sorted((total(u), total(v))), n)
        return known[u, v]

    return score


def score_by_mean(graph):
    """Return the mean along a boundary as a function of two sets, from sums over superpixels."""
    faces, means = _faces(graph), graph.boundary_mean()
    sums, known = {}, {}
    for (u, v), n, mean in zip(graph.edges.tolist(), faces.tolist(), means, strict=True):
        # Twice the faces are pixels, of whole values up to 255.
        sums.setdefault(u, {})[v] = sums.setdefault(v, {})[u] = (2 * n, round(mean * 255 * 2 * n))

    def score(u, v):
        if (u, v) not in known:
            less, more = sorted((u, v), key=len)
            touching = [one for s in less for t, one in sums[s].items() if t in more]
            pixels, total = (sum(column) for column in zip(*touching, strict=True))
            known[u, v] = known[v, u] = total / (255.0 * pixels)
        return known[u, v]

    return score


def _faces(graph):
    return graph.boundaries[:, graph.layout.faces].sum(axis=1)


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
    if kind == "callable":

        def scores(g):
            sizes = np.sort(g.sizes[g.edges], axis=1)
            return by_sizes(seed, sizes[:, 0], sizes[:, 1], _faces(g))

        scores.__qualname__ = "scores"  # as of a module: a local one is warned of
        return CallablePolicy(scores), scores
    natural = "natural" if graph.layout.ndim == 2 else "angles"  # hulls are of planes
    preset = ("em", natural, "shape", "stack")[seed % 4]
    features = FeatureMap(preset, graph.cue_names, graph.layout.bins)
    # One tree says eighths, as the scales of edits are; three say what lies between them.
    policy = LearnedPolicy(features, random_forest(seed, features.width, 1 + seed % 3))
    return policy, policy.score


KINDS = ("mean", "random", "callable", "forest", "forest")
POLICIES = st.tuples(st.sampled_from(KINDS), st.integers(0, 999))


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
    own, of = tree.superpixels, tree.regions(horizon)
    touching = {tree.name(node): set() for node in whole}
    for superpixel in range(1, own.n + 1):
        for other in own.adjacent[own.start[superpixel] : own.stop[superpixel], 0]:
            if of[other] != of[superpixel]:
                touching[tree.name(of[superpixel])].add(tree.name(of[other]))
    locked = [s for s, lock in enumerate(locks) if lock]
    return horizon, merges, regions, tables, touching, locked, list(map(id, tree.edits))
