"""Greedy agglomeration as one would explain it: look at all boundaries, merge the best, repeat."""

from __future__ import annotations

import numpy as np

from napari_agglo._numba.hash_tables import uniform
from napari_agglo.graph import Layout, RegionGraph
from napari_agglo.volumes import DenseLabels


def graph_of_edges(n, edges, sums, faces):
    """Return a region graph of `n` regions with the given boundaries; other statistics are made up.

    `sums` are of whole numbers 0..255 over both pixels of each face.
    """
    layout = Layout(ndim=1, n_cues=1, bins=1)
    order = sorted(range(len(edges)), key=lambda k: edges[k])
    regions = np.arange((n + 1) * layout.region_width).reshape(n + 1, -1)
    regions[0] = 0
    boundaries = np.zeros((len(edges), layout.boundary_width), np.int64)
    for row, k in enumerate(order):
        boundaries[row, 0] = faces[k]
        boundaries[row, 1] = sums[k]
    return RegionGraph(
        superpixels=DenseLabels(
            np.arange(1, n + 1, dtype=np.uint32), np.arange(n + 1, dtype=np.uint64), np.dtype(int)
        ),
        spacing=(1.0,),
        cue_names=("boundary",),
        cue_ranges=((0.0, 1.0),),
        layout=layout,
        edges=np.array([edges[k] for k in order], np.int64).reshape(-1, 2),
        regions=regions,
        boundaries=boundaries,
        boxes=np.zeros((n + 1, 2, 1), np.int32),
    )


def mean_score(ids, total, faces):
    """Mean of the cue, 0..1."""
    return total / (255.0 * (2 * faces))


def random_score(seed):
    """Return the score of a random policy."""
    return lambda ids, total, faces: uniform(seed, *ids)


def merge_naively(graph, score=mean_score, cannot_link=(), locked=()):
    """Return the merges [(winner, loser, priority)] and whether a tie had to be broken by ids."""
    column = graph.layout.boundary_sums(0).start
    members = {k: {k} for k in range(1, graph.n_regions + 1)}
    boundaries = {
        frozenset(edge): [int(row[column]), int(row[graph.layout.faces].sum())]
        for edge, row in zip(graph.edges.tolist(), graph.boundaries, strict=True)
    }
    forbidden = {frozenset(pair) for pair in cannot_link}

    def allowed(a, b):
        crosses = any(
            (x in members[a] and y in members[b]) or (y in members[a] and x in members[b])
            for x, y in map(tuple, forbidden)
        )
        return not crosses and not (members[a] | members[b]) & set(locked)

    merges = []
    tied = False
    while True:
        keys = sorted(
            (score((min(pair), max(pair)), *numbers), min(pair), max(pair))
            for pair, numbers in boundaries.items()
            if allowed(*pair)
        )
        if not keys:
            return merges, tied
        tied |= len(keys) > 1 and keys[0][0] == keys[1][0]
        priority, winner, loser = keys[0]
        merges.append((winner, loser, priority))
        members[winner] |= members.pop(loser)
        del boundaries[frozenset((winner, loser))]
        for pair in [pair for pair in boundaries if loser in pair]:
            numbers = boundaries.pop(pair)
            (neighbour,) = pair - {loser}
            kept = boundaries.setdefault(frozenset((winner, neighbour)), [0, 0])
            kept[0] += numbers[0]
            kept[1] += numbers[1]
