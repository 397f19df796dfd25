"""T(E), the tree under edits, as the rules say it: one greedy run on sets, no cleverness.

A policy is a function ``score(u, v)`` of two sets of superpixels: it may look at nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from napari_agglo.graph import contracted
from napari_agglo.session._actions import Cut, Lock, Merge, Unlock


def above(scale):
    """Return the level just above a scale."""
    return math.nextafter(scale, math.inf)


@dataclass(frozen=True)
class Joined:
    """One merge: two regions, the scale from which their union is seen, and what did it."""

    first: frozenset
    second: frozenset
    birth: float
    priority: float | None  # what the policy said; None of what a user did
    edit: int | None  # index of the edit that did it

    @property
    def union(self):
        return self.first | self.second


@dataclass
class Tree:
    start: set
    merges: list = field(default_factory=list)

    def partition(self, scale):
        """Return the regions that exist at a scale."""
        regions = set(self.start)
        for merge in self.merges:
            if merge.birth <= scale:
                regions -= {merge.first, merge.second}
                regions.add(merge.union)
        return regions

    def scales(self):
        return sorted({merge.birth for merge in self.merges})

    def nodes(self):
        """Return the merges as a set: {first, second}, birth, priority."""
        return {(frozenset((m.first, m.second)), m.birth, m.priority) for m in self.merges}


def constraints(edits):
    """Return the cuts [(index, scale, parts)] and the locks [members] of live edits.

    What is unlocked at t is from then on a cut of one part: apart up to t, whole at t, free above.
    """
    cuts, locks = [], {}
    for index, edit in enumerate(edits):
        if isinstance(edit, Cut):
            cuts.append((index, edit.scale, [frozenset(p.tolist()) for p in edit.parts]))
        elif isinstance(edit, Lock):
            locks[index] = frozenset(edit.members.tolist())
        elif isinstance(edit, Unlock):
            (lock,) = [k for k, members in locks.items() if edit.superpixel in members]
            cuts.append((index, edit.scale, [locks.pop(lock)]))
    return cuts, list(locks.values())


def apart_until(cuts, u, v):
    """Up to which level cuts keep two regions apart: -inf if they do not, inf for ever."""
    end = -math.inf
    for _, scale, parts in cuts:
        in_u = {k for k, part in enumerate(parts) if u & part}
        in_v = {k for k, part in enumerate(parts) if v & part}
        if in_u and in_v:
            if not in_u & in_v:
                return math.inf
        elif in_u or in_v:
            inner = u if in_u else v
            if inner <= frozenset().union(*parts):
                end = max(end, above(scale))
    return end


def tree_of_edits(neighbours, score, edits=(), start=None, start_scale=-math.inf):
    """Run from superpixels, or from the frontier `start` of `start_scale`, to the end.

    `neighbours` maps each superpixel to the set of those that it touches.
    """
    cuts, locks = constraints(edits)
    if start is None:
        start = [*locks, *({s} for s in neighbours if not any(s in lock for lock in locks))]
    regions = {frozenset(region) for region in start}
    tree = Tree(set(regions))
    level = dict.fromkeys(regions, -math.inf)
    low = {region: min(region) for region in regions}
    touching = {
        u: {v for v in regions if v != u and any(neighbours[s] & v for s in u)} for u in regions
    }

    def join(u, v, birth, new_level, priority=None, edit=None):
        u, v = sorted((u, v), key=min)
        whole = u | v
        tree.merges.append(Joined(u, v, birth, priority, edit))
        regions.difference_update((u, v))
        regions.add(whole)
        level[whole] = new_level
        low[whole] = low[u]
        touching[whole] = (touching[u] | touching[v]) - {u, v}
        for region in touching[whole]:
            touching[region] = touching[region] - {u, v} | {whole}
        return whole

    def region_of(superpixel):
        return next(region for region in regions if superpixel in region)

    def may_join(index, scale, u, v):
        newer = [cut for cut in cuts if cut[0] > index]
        return not {u, v} & set(locks) and apart_until(newer, u, v) <= scale

    def best_merge():
        keys = []
        for u in regions:
            for v in touching[u]:
                if low[u] < low[v] and u not in locks and v not in locks:
                    apart = apart_until(cuts, u, v)
                    if apart < math.inf:
                        p = score(u, v)
                        keys.append((max(p, level[u], level[v], apart), p, low[u], low[v], u, v))
        return min(keys, key=lambda key: key[:4], default=None)

    def assemble(index, scale, part):
        """Join the regions that reach into `part`, as far as newer edits allow."""
        inside = sorted((region for region in regions if region & part), key=min)
        pairs = [(u, v) for u in inside for v in inside if min(u) < min(v)]
        if all(may_join(index, scale, u, v) for u, v in pairs):
            whole = inside[0]
            for region in inside[1:]:
                whole = join(whole, region, scale, above(scale), edit=index)
            return
        while True:
            inside = [region for region in regions if region & part]
            keys = [
                (score(u, v), low[u], low[v], u, v)
                for u in inside
                for v in touching[u]
                if v & part and low[u] < low[v] and may_join(index, scale, u, v)
            ]
            if not keys:
                return
            *_, u, v = min(keys, key=lambda key: key[:3])
            join(u, v, scale, above(scale), edit=index)

    events = sorted(
        (edit.scale, index)
        for index, edit in enumerate(edits)
        if not isinstance(edit, Lock) and edit.scale > start_scale
    )
    while True:
        best = best_merge()
        if events and (best is None or best[0] > events[0][0]):
            scale, index = events.pop(0)
            if isinstance(edits[index], Merge):
                for a, b in edits[index].pairs:
                    u, v = region_of(a), region_of(b)
                    if u == v:
                        continue
                    if may_join(index, scale, u, v):
                        join(u, v, scale, above(scale), edit=index)
            else:
                (parts,) = [parts for at, _, parts in cuts if at == index]
                for part in parts:
                    assemble(index, scale, part)
        elif best is not None:
            now, priority, _, _, u, v = best
            join(u, v, now, now, priority)
        else:
            return tree


def asleep(tree, edits):
    """Return which pairs are not together, and which parts not whole, where they were to be."""
    groups = [
        (index, k, frozenset(pair))
        for index, edit in enumerate(edits)
        if isinstance(edit, Merge)
        for k, pair in enumerate(edit.pairs)
    ]
    groups += [
        (index, k, part)
        for index, _, parts in constraints(edits)[0]
        for k, part in enumerate(parts)
    ]
    return {
        (index, k)
        for index, k, group in groups
        if not any(group <= region for region in tree.partition(edits[index].scale))
    }


def adjacency(graph):
    """Which superpixels touch which, as sets."""
    neighbours = {k: set() for k in range(1, graph.n_regions + 1)}
    for u, v in graph.edges.tolist():
        neighbours[u].add(v)
        neighbours[v].add(u)
    return neighbours


def policy_score(graph, policy_scores):
    """Return a policy of this project as a function of two sets, by contracting the whole graph.

    `policy_scores` maps a graph to the priorities of its boundaries.
    """
    known = {}

    def score(u, v):
        if (u, v) not in known:
            lut = np.arange(graph.n_regions + 1)
            lut[list(u)] = min(u)
            lut[list(v)] = min(v)
            coarse = contracted(graph, lut)
            kept = np.unique(lut)
            wanted = np.searchsorted(kept, sorted((min(u), min(v))))
            (row,) = np.flatnonzero((coarse.edges == wanted).all(axis=1))
            known[u, v] = known[v, u] = float(policy_scores(coarse)[row])
        return known[u, v]

    return score
