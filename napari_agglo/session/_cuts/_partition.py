"""Terminals in, parts out: minimum cuts between two or more sets of nodes."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_agglo.session._cuts._attach import attached
from napari_agglo.session._cuts._flow import minimum_cut, whole_capacities
from napari_agglo.session._cuts._segment import Group, pieces_of

# Rounds over all pairs of parts. Each lowers the cost or is the last; few ever need a third.
_ROUNDS = 5


@dataclass(frozen=True, eq=False)
class Partition:
    """A connected graph with costs, and two or more disjoint connected sets to be kept apart."""

    n_nodes: int
    ends: NDArray[np.int64]
    cost: NDArray[np.float64]
    groups: list[Group]


def partition(problem: Partition) -> NDArray[np.int64]:
    """Return the part of each node; every part is connected and holds its group.

    For two groups the cut is minimal. For more that is hard (NP), and the cheapest isolating cuts,
    all but the dearest, cost less than twice the minimum (Dahlhaus et al. 1994); then the border of
    each two parts is cut anew as long as that is cheaper.
    """
    capacity = whole_capacities(problem.cost)
    owner = np.full(problem.n_nodes, -1, np.int64)
    for k, group in enumerate(problem.groups):
        owner[group] = k
    if len(problem.groups) == 2:
        return _recut(problem, capacity, np.where(owner < 0, 0, owner), 0, 1)
    owner = _isolate(problem, capacity, owner)
    for _ in range(_ROUNDS):
        before = owner
        for a, b in itertools.combinations(range(len(problem.groups)), 2):
            owner = _recut(problem, capacity, owner, a, b)
        if np.array_equal(before, owner):
            break
    return owner


def _isolate(
    problem: Partition, capacity: NDArray[np.int64], owner: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Cut each group but the dearest off all the others; what is left over joins a neighbour."""
    cuts = []
    for k, group in enumerate(problem.groups):
        others = np.concatenate([g for j, g in enumerate(problem.groups) if j != k])
        inside, _, value = minimum_cut(problem.n_nodes, problem.ends, capacity, group, others)
        cuts.append((value, k, inside))
    cuts.sort(key=lambda cut: cut[:2])
    for _, k, inside in cuts[:-1]:
        owner[inside & (owner < 0)] = k
    owner[owner < 0] = cuts[-1][1]
    return _mended(problem, owner)


def _mended(problem: Partition, owner: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return parts in which every piece that has lost its group joins the nearest neighbour."""
    within = owner[problem.ends[:, 0]] == owner[problem.ends[:, 1]]
    count, piece = pieces_of(problem.n_nodes, problem.ends[within])
    part = np.full(count, -1, np.int64)
    for k, group in enumerate(problem.groups):
        part[piece[group]] = k
    return attached(problem.ends, problem.cost, piece, part)[piece]


def _recut(
    problem: Partition, capacity: NDArray[np.int64], owner: NDArray[np.int64], a: int, b: int
) -> NDArray[np.int64]:
    """Return the parts with a minimum cut between parts `a` and `b`, if it is cheaper.

    Of two cuts of one value, the one that leaves more than its seeds to both is preferred.
    """
    inside = (owner == a) | (owner == b)
    node = np.cumsum(inside) - 1
    rows = inside[problem.ends].all(axis=1)
    ends = node[problem.ends[rows]]
    crosses = owner[problem.ends[rows, 0]] != owner[problem.ends[rows, 1]]
    if not crosses.any():
        return owner  # they do not touch
    source, sink = node[problem.groups[a]], node[problem.groups[b]]
    n_nodes = int(inside.sum())
    least, largest, value = minimum_cut(n_nodes, ends, capacity[rows], source, sink)
    if len(problem.groups) > 2 and value >= int(capacity[rows][crosses].sum()):
        return owner
    side = least
    if least.sum() == len(source) and n_nodes - largest.sum() > len(sink):
        side = largest
    out = owner.copy()
    out[inside] = np.where(side, a, b)
    return out
