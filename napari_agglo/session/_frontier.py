"""The decisions that were made of what is seen: boundaries left, merges done, answers given."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import kernel
from napari_agglo.session._edits import Cut, Ids
from napari_agglo.session._hierarchy.nodes import (
    BIRTH,
    EDIT,
    FIRST,
    LOW,
    PEAK,
    PRIORITY,
    SECOND,
    Nodes,
)
from napari_agglo.session._hierarchy.working_graph import Ground
from napari_agglo.session._suggest import (
    Apart,
    Made,
    apart_answered,
    as_probabilities,
    made_answered,
)
from napari_agglo.session._view import Seen


def decisions(seen: Seen) -> tuple[Apart, Made]:
    """Return the boundaries between segments, and the merges within them, with what was answered.

    A person has decided where there is an edit, an answer, or a lock.
    """
    state, names = seen.state, seen.names()
    pairs, priorities = seen.between.now(seen)
    first, second, said = _merges(seen)
    p_apart, p_made = as_probabilities(state.policy, seen.threshold, priorities, said)
    apart, made = Apart.of(pairs[:, 0], pairs[:, 1], p_apart), Made.of(first, second, p_made)
    two = [a.superpixels for a in state.answers if a.same is not True]
    one = [a.superpixels for a in state.answers if a.same is not False]
    locks = state.tree.record.constraints.lock_of
    locked = np.unique(names[np.flatnonzero(locks)])
    kept_apart = np.concatenate([np.array(two, np.int64).reshape(-1, 2), _cut_pairs(seen)])
    answered = apart_answered(apart, names, kept_apart)
    answered |= np.isin(pairs, locked).any(axis=1)
    confirmed = made_answered(made, one) | (locks[first] > 0)
    return (
        dataclasses.replace(apart, answered=apart.answered | answered),
        dataclasses.replace(made, answered=made.answered | confirmed),
    )


def shown_nodes(seen: Seen) -> NDArray[np.int64]:
    """Return the nodes of the tree that are seen."""
    tree = seen.state.tree
    regions = tree.regions(seen.threshold)
    for node in seen.view.moved():
        regions[tree.members(node)] = node
    found: NDArray[np.int64] = np.unique(regions[1:])
    return found


def inner_nodes(seen: Seen) -> NDArray[np.int64]:
    """Return the merges within what is seen, as nodes, each before those that it is made of."""
    links = seen.state.tree.record.nodes.links
    found = []
    at = shown_nodes(seen)
    while len(at):
        inner = at[links[at, FIRST] >= 0]
        found.append(inner)
        at = links[inner][:, [FIRST, SECOND]].reshape(-1).astype(np.int64)
    return np.concatenate(found) if found else at


def in_order(nodes: Nodes, inner: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return merges, each before those that it is made of, in the order in which they happened.

    Numbers of nodes do not tell: one may have taken the place of an older one. Edits come after all
    automatic merges of their scale; for the rest see the peaks of `Nodes`.
    """
    links, scales, _ = nodes.arrays
    edits = links[inner, EDIT]
    peaks = links[inner, PEAK]
    by_policy = (links[peaks, FIRST] >= 0) & (links[peaks, EDIT] < 0)
    priority = np.where(by_policy, scales[peaks, PRIORITY], -np.inf)
    ends = np.sort(links[links[peaks][:, [FIRST, SECOND]], LOW], axis=1)
    ties = np.where(by_policy[:, None], ends, -1)
    order = np.lexsort(
        (-np.arange(len(inner)), ties[:, 1], ties[:, 0], priority, edits, scales[inner, BIRTH])
    )
    return inner[order]


def _merges(seen: Seen) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return both regions of each merge by their smallest superpixel, and its priority.

    A merge comes after those that its regions were made by.
    """
    nodes = seen.state.tree.record.nodes
    inner = inner_nodes(seen)[::-1]
    ends = nodes.links[nodes.links[inner][:, [FIRST, SECOND]], LOW].astype(np.int64)
    ends.sort(axis=1)
    said = np.where(nodes.links[inner, EDIT] >= 0, np.nan, nodes.scales[inner, PRIORITY])
    return ends[:, 0], ends[:, 1], said


def _cut_pairs(seen: Seen) -> NDArray[np.int64]:
    """Return superpixels that touch across a live cut, shape (k, 2)."""
    record = seen.state.tree.record
    part_of = np.zeros(len(record.nodes.leaves), np.int32)
    found = [np.zeros((0, 2), np.int64)]
    known, seen.cut_pairs = seen.cut_pairs, {}
    for edit, parts in zip(record.constraints.edits, record.constraints.parts, strict=True):
        if not isinstance(edit, Cut) or len(parts) < 2:
            continue
        pairs = known.get(id(parts))
        if pairs is None or pairs[0] is not parts:  # parts are replaced when one is divided
            pairs = parts, _across(record.ground, parts, part_of)
        seen.cut_pairs[id(parts)] = pairs
        found.append(pairs[1])
    return np.concatenate(found)


def _across(
    ground: Ground, parts: tuple[Ids, ...], part_of: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Return the superpixels of different parts that touch; `part_of` is a zeroed buffer."""
    members = np.concatenate(parts)
    part_of[members] = np.repeat(np.arange(1, len(parts) + 1), [len(part) for part in parts])
    out = np.zeros((64, 2), np.int64)
    while True:
        n = list_across(members, part_of, ground.start, ground.stop, ground.adjacent, out)
        if n <= len(out):
            break
        out = np.zeros((n, 2), np.int64)
    part_of[members] = 0
    return out[:n]


@kernel
def list_across(members: Any, part_of: Any, start: Any, stop: Any, adjacent: Any, out: Any) -> Any:
    """List neighbours of different parts, the smaller first; return how many there are.

    No bounds checking, but if there is no room for all, those that there is room for are listed.
    """
    n = 0
    for k in range(members.size):
        superpixel = members[k]
        for at in range(start[superpixel], stop[superpixel]):
            other = adjacent[at, 0]
            part = part_of[other]
            if other > superpixel and part != 0 and part != part_of[superpixel]:
                if n < out.shape[0]:
                    out[n, 0] = superpixel
                    out[n, 1] = other
                n += 1
    return n
