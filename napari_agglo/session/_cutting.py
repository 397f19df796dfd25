"""From seeds to the parts of a cut, by the method chosen, through superpixels where need be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from napari_agglo.graph import Division, divide, pieces_to_runs, superpixel_pieces
from napari_agglo.session._actions import Step
from napari_agglo.session._cuts import CutProblem, cut_methods, detached, piecewise
from napari_agglo.session._edits import Cut, Ids, as_ids
from napari_agglo.session._hierarchy.nodes import FIRST, LOW
from napari_agglo.session._rules import Found, Refused, check_index
from napari_agglo.session._state import State

Groups = list[list[int]]  # of superpixels, dense ids


@dataclass(frozen=True, eq=False)
class Plan:
    """A cut that can be made: its parts, and the superpixels that it divides, in order."""

    parts: tuple[Ids, ...]
    divisions: tuple[Division, ...] = ()
    runs: tuple[tuple[int, ...], ...] = ()

    def step(self, scale: float) -> Step:
        """Return the edit that makes the cut at a scale."""
        through = [division.superpixel for division in self.divisions]
        return Step(Cut(scale, self.parts), tuple(zip(through, self.runs, strict=True)))


def by_seeds(state: State, found: Found, groups: Groups, method: str) -> Plan:
    """Cut between groups of superpixels."""
    return _planned(_parts(state, found, found.members, groups, method))


def into_children(state: State, found: Found) -> Plan:
    """Cut into what the segment was made of."""
    children = state.tree.children(found.node)
    if not children:
        raise Refused(
            f"Segment {found.id} is a single superpixel, which was made of nothing; to cut through "
            "it, place points in it."
        )
    return _planned([state.tree.members(child) for child in children])


def into_parts(state: State, found: Found, groups: Groups) -> Plan:
    """Cut into given parts, which must be all of the segment."""
    every = np.concatenate([np.zeros(0, np.int64), *(np.array(g, np.int64) for g in groups)])
    if len(groups) < 2 or not all(groups):
        raise Refused(f"`parts` must be two or more, none of them empty, got {len(groups)}.")
    if len(np.unique(every)) != len(every) or not np.array_equal(np.sort(every), found.members):
        raise Refused(
            f"`parts` must hold each superpixel of segment {found.id} once, and no others; it has "
            f"{len(found.members)}, given are {len(every)}. To take out some, use detach()."
        )
    return _planned([as_ids(group) for group in groups])


def without(state: State, found: Found, superpixels: list[int]) -> Plan:
    """Take superpixels out."""
    return _planned(detached(state.graph, found.members, np.array(superpixels, np.int64)))


def by_points(state: State, found: Found, points: Any, method: str) -> Plan:
    """Cut between groups of pixels; where two groups are in one superpixel, through that."""
    located = _located(state, found, points)
    mixed = [s for s, groups in located.items() if len(groups) > 1]
    groups: Groups = [[] for _ in points]
    for superpixel, by_group in located.items():
        if superpixel not in mixed:
            (group,) = by_group
            groups[group].append(superpixel)
    if not mixed:
        return by_seeds(state, found, groups, method)
    divisions: list[Division] = []
    runs = []
    try:
        for superpixel in mixed:
            by_group = located[superpixel]
            present = sorted(by_group)
            seeds = [by_group[k] for k in present]
            pieces = superpixel_pieces(state.graph, superpixel, seeds, cue=_cue(state))
            division = divide(state.graph, superpixel, pieces.labels)
            dense = division.dense_ids(pieces.labels)
            for label, group in enumerate(pieces.groups.tolist(), start=1):
                if group >= 0:
                    groups[present[group]].append(dense[label])
            state.draw(division)
            divisions.append(division)
            runs.append(tuple(pieces_to_runs(pieces.labels)))
        more = [division.members[1:] for division in divisions]
        members = as_ids(np.concatenate([found.members, *more]))
        parts = _parts(state, found, members, groups, method, divisions)
    finally:
        for division in reversed(divisions):
            state.erase(division)
    return Plan(_planned(parts).parts, tuple(divisions), tuple(runs))


def _cue(state: State) -> str:
    """Return the cue whose ridges divide superpixels."""
    names = state.graph.cue_names
    cue: str = getattr(state.policy, "cue", "boundary")
    return cue if cue in names or not names else names[0]


def _located(
    state: State, found: Found, points: Any
) -> dict[int, dict[int, list[tuple[int, ...]]]]:
    """Return the points of each superpixel by group; refuse what is not in the segment."""
    graph = state.graph
    if isinstance(points, str) or not isinstance(points, Sequence) or len(points) < 2:
        raise Refused(
            "`points` must be two groups of pixels or more, [[(3, 4)], [(9, 9), (9, 12)]]; mark "
            "what is to stay apart with different groups."
        )
    located: dict[int, dict[int, list[tuple[int, ...]]]] = {}
    inside = set(found.members.tolist())
    for group, pixels in enumerate(points):
        if len(pixels) == 0:
            raise Refused(
                f"Group {group + 1} of `points` is empty; mark a pixel, or leave the group out."
            )
        for pixel in pixels:
            index = check_index(graph, pixel)
            superpixel = int(graph.superpixels.image[index])
            if superpixel not in inside:
                raise Refused(
                    f"The point {index} in group {group + 1} of `points` is not in segment "
                    f"{found.id}; take that point away, or cut the segment that holds it."
                )
            located.setdefault(superpixel, {}).setdefault(group, []).append(index)
    return dict(sorted(located.items()))


def _parts(
    state: State,
    found: Found,
    members: Ids,
    groups: Groups,
    method: str,
    divisions: Sequence[Division] = (),
) -> list[Any]:
    graph, policy = state.graph, state.policy

    def cut(inside: Any, seeds: Groups) -> list[Any]:
        problem = CutProblem(
            graph, inside, seeds, policy, lambda: _branches(state, found.node, divisions),
            bool(divisions),
        )  # fmt: skip
        return list(cut_methods[method].parts(problem))

    # A superpixel that was in pieces before it was divided may leave pieces that do not touch.
    return piecewise(graph, members, groups, cut) if divisions else cut(members, groups)


def _branches(state: State, node: int, divisions: Sequence[Division]) -> tuple[int, Any]:
    """Return the tree under a node with superpixels for leaves: nodes are negative numbers.

    A superpixel that is divided is a node over its pieces.
    """
    tree = state.tree
    links = tree.record.nodes.links
    pieces = {division.superpixel: division.members.tolist() for division in divisions}

    def key(at: int) -> int:
        superpixel = int(links[at, LOW])
        return superpixel if links[at, FIRST] < 0 and superpixel not in pieces else -at

    def children(at: int) -> list[int]:
        if at > 0:
            return []
        if links[-at, FIRST] < 0:
            found: list[int] = pieces[int(links[-at, LOW])]
            return found
        return [key(child) for child in tree.children(-at)]

    return key(node), children


def _planned(parts: Sequence[Any]) -> Plan:
    return Plan(tuple(as_ids(np.asarray(part)) for part in parts))
