"""Dividing segments so that nothing is together that is to be apart, and as little as that takes.

Strategy: the merges of the tree are done again in their order, on classes of superpixels that are
to be together, and those that would unite what is to be apart are left out. Where a merge finds
one of its sides divided, the two classes of the strongest tie go together first. In the end any two
classes of a segment that touch are kept apart by a wish, and a segment without such a wish comes
out whole.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator

import numpy as np

from napari_agglo.graph import RegionGraph
from napari_agglo.policy import Policy
from napari_agglo.session._cuts import boundary_costs, connected_pieces, segment_of
from napari_agglo.session._edits import Ids, as_ids
from napari_agglo.session._learning._classes import Classes
from napari_agglo.session._learning._wishes import Wishes
from napari_agglo.session._repair._hierarchy import Hierarchy

Tie = tuple[int, int, float]  # two superpixels and how much ties them together


def divided_segments(
    hierarchy: Hierarchy, wishes: Wishes, nodes: Collection[int], policy: Policy | None
) -> list[tuple[Ids, ...]]:
    """Return the parts of each segment that must be cut, each part connected.

    Parameters
    ----------
    hierarchy : Hierarchy
        A tree without edits.
    wishes : Wishes
        What is to be together, and what apart.
    nodes : collection of int
        Segments; no superpixel in them is to be together with one elsewhere.
    policy : Policy, optional
        What says how much a boundary ties; without one its area does.
    """
    graph = hierarchy.record.ground.graph
    segments = [hierarchy.members(node) for node in nodes]
    members = np.sort(np.concatenate(segments))
    classes = _classes(wishes, members)
    touching: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for u, v, strength in _ties(graph, members, policy):
        touching[u].append((v, strength))
        touching[v].append((u, strength))
    for one, other in _meetings(hierarchy, nodes):
        _unite(wishes, classes, [(s, t, how) for s in one for t, how in touching[s] if t in other])
    found = []
    for segment in segments:
        by_class = defaultdict(list)
        for superpixel in segment.tolist():
            by_class[classes.find(superpixel)].append(superpixel)
        parts = [piece for own in by_class.values() for piece in connected_pieces(graph, own)]
        if len(parts) > 1:
            found.append(tuple(as_ids(part) for part in parts))
    return found


def _classes(wishes: Wishes, members: Ids) -> Classes:
    """Return what is to be together among `members`, and how far each superpixel reaches."""
    classes = Classes()
    for index, parts in wishes.cuts.items():
        for k, part in enumerate(parts):
            for superpixel in np.intersect1d(part, members, assume_unique=True).tolist():
                classes.add_reach(superpixel, index, k)
    for superpixel in members.tolist():
        name = wishes.together.find(superpixel)
        classes.unite(name, superpixel)
        if name in wishes.together.locked:
            classes.locked.add(classes.find(name))
    return classes


def _ties(graph: RegionGraph, members: Ids, policy: Policy | None) -> Iterator[Tie]:
    segment = segment_of(graph, members)
    if policy is None:
        strength = graph.boundaries[segment.rows, graph.layout.faces] @ graph.face_areas()
    else:
        strength = boundary_costs(graph, segment, policy).cost
    for (u, v), how in zip(graph.edges[segment.rows].tolist(), strength.tolist(), strict=True):
        yield u, v, how


def _meetings(hierarchy: Hierarchy, nodes: Collection[int]) -> Iterator[tuple[list[int], set[int]]]:
    """Go through the merges of some segments, and return the superpixels of both sides of each.

    The node of a superpixel is its dense id in a tree without edits.
    """
    merges = []
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        children = hierarchy.children(node)
        if children:
            merges.append((node, children))
            waiting += children
    merges.reverse()  # what a node is made of comes before it, and stays there: sorting is stable
    merges.sort(key=lambda merge: hierarchy.birth(merge[0]))
    inside: dict[int, set[int]] = {}
    for node, children in merges:
        sides = [inside.pop(child) if child in inside else {child} for child in children]
        sides.sort(key=len)
        whole = sides.pop()
        for side in sides:
            yield list(side), whole
            whole |= side  # the smaller into the larger: each superpixel moves seldom
        inside[node] = whole


def _unite(wishes: Wishes, classes: Classes, ties: list[Tie]) -> None:
    """Unite the classes of two sides as far as wishes allow, the strongest tie first."""
    while True:
        strength: dict[tuple[int, int], float] = defaultdict(float)
        for s, t, how in ties:
            a, b = classes.find(s), classes.find(t)
            if a != b:
                strength[min(a, b), max(a, b)] += how
        allowed = [pair for pair in strength if wishes.may_unite(classes, *pair)]
        if not allowed:
            return
        classes.unite(*min(allowed, key=lambda pair: (-strength[pair], pair)))
        if len(strength) == 1:
            return
