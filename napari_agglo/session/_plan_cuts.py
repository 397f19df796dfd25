"""Plans of cuts: between seeds or points, into parts or children, or by detaching; and previews.

A planner reads a view and returns a `Plan`, or raises `Refused`; it changes nothing. A superpixel
with points of different groups is divided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import check_choice
from napari_agglo.graph import Division, divide, pieces_to_runs, superpixel_pieces
from napari_agglo.session._actions import Action, Cut, Ids, Plan, Refused, Step, as_ids
from napari_agglo.session._cut_methods import CutProblem, cut_methods, detached, piecewise
from napari_agglo.session._pair_features import edit_examples
from napari_agglo.session._plan_edits import (
    Segment,
    as_list,
    check_index,
    dense_groups,
    dense_list,
    find_unlocked,
)
from napari_agglo.session._state import State
from napari_agglo.session._threshold_view import View

Groups = list[list[int]]  # of superpixels, dense ids


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of a cut, and the superpixels that it divides, in order."""

    parts: tuple[Ids, ...]
    divisions: tuple[Division, ...] = ()
    runs: tuple[tuple[int, ...], ...] = ()


def plan_cut(view: View, segment: Any, *arguments: Any, **options: Any) -> Plan:
    """Plan to cut a segment between seeds or points, or into parts; see `Session.cut`."""
    target, cut = _cut_between(view, segment, *arguments, **options)
    return plan_parts(view, target, cut)


def plan_cut_children(view: View, segment: Any) -> Plan:
    """Plan to cut a segment into the regions that it was made of."""
    target = find_unlocked(view, segment, "cut")
    tree = view.state.tree
    children = tree.children(target.node)
    if not children:
        raise Refused(
            f"Segment {target.id} is a single superpixel, so it has no parts",
            argument="segment",
            remedy="to cut through it, place points in it",
        )
    return plan_parts(view, target, _parts([tree.members(child) for child in children]))


def plan_detach(view: View, segment: Any, superpixels: Any) -> Plan:
    """Plan to take superpixels out of a segment."""
    target = find_unlocked(view, segment, "cut")
    graph = view.state.graph
    leaving = dense_list(graph, superpixels, "superpixels")
    parts = detached(graph, target.members, np.array(leaving, np.int64))
    return plan_parts(view, target, _parts(parts))


def plan_parts(view: View, segment: Segment, cut: Parts) -> Plan:
    """Plan to cut a segment into parts that are known."""
    state = view.state
    with _drawn(state, cut.divisions):
        pairs = combinations(cut.parts, 2)
        examples = edit_examples(state, pairs, 1)
    through = [division.superpixel for division in cut.divisions]
    divisions = tuple(zip(through, cut.runs, strict=True))
    steps = (Step(Cut(view.threshold, cut.parts), divisions),)
    action = Action("cut", (segment.id,), view.threshold, steps, examples=examples)
    return Plan(action, (cut.divisions,), where=np.concatenate(cut.parts))


@contextmanager
def _drawn(state: State, divisions: Sequence[Division]) -> Iterator[None]:
    """Draw divisions into the graph within the context, to measure the pieces."""
    for division in divisions:
        state.draw(division)
    try:
        yield
    finally:
        for division in reversed(divisions):
            state.erase(division)


def _cut_between(
    view: View,
    segment: Any,
    seeds: Any = None,
    method: Any = "min_cut",
    *,
    parts: Any = None,
    points: Any = None,
) -> tuple[Segment, Parts]:
    target = find_unlocked(view, segment, "cut")
    check_choice("method", method, cut_methods.names())
    if sum(groups is not None for groups in (seeds, parts, points)) != 1:
        raise Refused(
            "A cut takes exactly one of `seeds`, `parts` and `points`",
            argument="seeds",
            remedy="pass `seeds` or `parts`, groups of superpixels, [[a], [b, c]], or `points`, "
            "groups of pixels, [[(3, 4)], [(9, 9), (9, 12)]]",
        )
    state = view.state
    if points is not None:
        return target, _by_points(state, target, points, method)
    if parts is not None:
        return target, _into_parts(target, dense_groups(state.graph, parts, "parts"))
    groups = dense_groups(state.graph, seeds, "seeds")
    return target, _parts(_by_method(state, target, target.members, groups, method))


def _into_parts(target: Segment, groups: Groups) -> Parts:
    """Return given parts, which must be a partition of the segment."""
    every = np.concatenate([np.zeros(0, np.int64), *(np.array(g, np.int64) for g in groups)])
    if len(groups) < 2 or not all(groups):
        raise Refused(
            f"`parts` must be two or more, none of them empty, got {len(groups)}",
            argument="parts",
            remedy="pass the superpixels of each part, [[a], [b, c]]",
        )
    if len(np.unique(every)) != len(every) or not np.array_equal(np.sort(every), target.members):
        raise Refused(
            f"`parts` must have each superpixel of segment {target.id} once, and no others; the "
            f"segment has {len(target.members)}, the parts {len(every)}",
            argument="parts",
            remedy="use detach() to take some superpixels out",
        )
    return _parts([as_ids(group) for group in groups])


def _by_points(state: State, target: Segment, points: Any, method: str) -> Parts:
    """Cut between groups of pixels; a superpixel with points of several groups is divided."""
    kind = "a list of groups of pixels, [[(3, 4)], [(9, 9), (9, 12)]]"
    points = [as_list(pixels, "points", kind) for pixels in as_list(points, "points", kind)]
    located = _located(state, target, points)
    mixed = [s for s, groups in located.items() if len(groups) > 1]
    groups: Groups = [[] for _ in points]
    for superpixel, by_group in located.items():
        if superpixel not in mixed:
            (group,) = by_group
            groups[group].append(superpixel)
    if not mixed:
        return _parts(_by_method(state, target, target.members, groups, method))
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
        members = as_ids(np.concatenate([target.members, *more]))
        parts = _by_method(state, target, members, groups, method, divisions)
    finally:
        for division in reversed(divisions):
            state.erase(division)
    return Parts(_parts(parts).parts, tuple(divisions), tuple(runs))


def _cue(state: State) -> str:
    """Return the cue whose ridges divide superpixels."""
    names = state.graph.cue_names
    cue: str = getattr(state.policy, "cue", "boundary")
    return cue if cue in names or not names else names[0]


def _located(
    state: State, target: Segment, points: list[list[Any]]
) -> dict[int, dict[int, list[tuple[int, ...]]]]:
    """Return the points of each superpixel by group; refuse points outside of the segment."""
    graph = state.graph
    if len(points) < 2:
        raise Refused(
            f"`points` must be two groups of pixels or more, got {len(points)}",
            argument="points",
            remedy="put a point into each part, in groups of their own",
        )
    located: dict[int, dict[int, list[tuple[int, ...]]]] = {}
    inside = set(target.members.tolist())
    for group, pixels in enumerate(points):
        if not pixels:
            raise Refused(
                f"Group {group + 1} of `points` is empty",
                argument="points",
                remedy="add a pixel, or leave the group out",
            )
        for pixel in pixels:
            index = check_index(graph, pixel)
            superpixel = int(graph.superpixels.image[index])
            if superpixel not in inside:
                raise Refused(
                    f"The point {index} in group {group + 1} of `points` is not in segment "
                    f"{target.id}",
                    argument="points",
                    remedy="remove that point, or cut the segment that contains it",
                )
            located.setdefault(superpixel, {}).setdefault(group, []).append(index)
    return dict(sorted(located.items()))


def _by_method(
    state: State,
    target: Segment,
    members: Ids,
    groups: Groups,
    method: str,
    divisions: Sequence[Division] = (),
) -> list[Any]:
    graph, policy = state.graph, state.policy

    def cut(inside: Any, seeds: Groups) -> list[Any]:
        problem = CutProblem(
            graph, inside, seeds, policy, lambda: _branches(state, target.node, divisions),
            bool(divisions),
        )  # fmt: skip
        return list(cut_methods[method].parts(problem))

    # Pieces of a divided superpixel may not touch, if it was in pieces before.
    return piecewise(graph, members, groups, cut) if divisions else cut(members, groups)


def _branches(state: State, node: int, divisions: Sequence[Division]) -> tuple[int, Any]:
    """Return the tree under a node: leaves are superpixels, other nodes are negative numbers.

    A divided superpixel is a node over its pieces.
    """
    tree = state.tree
    rows = tree.log.rows
    pieces = {division.superpixel: division.members.tolist() for division in divisions}

    def key(at: int) -> int:
        superpixel = int(rows["low"][at])
        return superpixel if rows["first"][at] < 0 and superpixel not in pieces else -at

    def children(at: int) -> list[int]:
        if at > 0:
            return []
        if rows["first"][-at] < 0:
            leaves: list[int] = pieces[int(rows["low"][-at])]
            return leaves
        return [key(child) for child in tree.children(-at)]

    return key(node), children


def _parts(parts: Sequence[Any]) -> Parts:
    return Parts(tuple(as_ids(np.asarray(part)) for part in parts))


@dataclass(frozen=True, eq=False)
class DividedSuperpixel:
    """A superpixel that a cut would divide.

    Attributes
    ----------
    superpixel : int
        Its id.
    box : tuple of slice
        Its bounding box.
    parts : ndarray of int, shape of the box
        The part that each of its pixels goes to, counted from 1; 0 elsewhere.
    """

    superpixel: int
    box: tuple[slice, ...]
    parts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CutPreview:
    """The parts that a cut would make, in the order of its seeds, parts or points.

    Attributes
    ----------
    parts : tuple of ndarray of uint64
        The superpixels of each part; pieces have the ids that they would get.
    whole : tuple of ndarray of uint64
        The superpixels of each part that would not be divided.
    divided : tuple of DividedSuperpixel
        The superpixels that would be divided.
    sizes : tuple of int
        The number of pixels of each part.

    Examples
    --------
    >>> import tempfile, numpy as np, napari_agglo as agglo
    >>> superpixels = np.array([[7, 7, 7, 7, 9]])
    >>> graph = agglo.region_graph(superpixels, np.array([[0.0, 0.1, 0.6, 0.1, 0.9]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with agglo.Session.create(f"{folder}/cells.agglo", graph) as session:
    ...         session.threshold = 0.3
    ...         preview = session.preview(7, points=[[(0, 0)], [(0, 3)]])
    ...         preview.sizes, preview.paint(superpixels)
    ((2, 2), array([[1, 1, 2, 2, 0]]))
    """

    parts: tuple[NDArray[np.uint64], ...]
    whole: tuple[NDArray[np.uint64], ...]
    divided: tuple[DividedSuperpixel, ...]
    sizes: tuple[int, ...]

    def paint(self, superpixels: NDArray[Any]) -> NDArray[np.int64]:
        """Return the part of each pixel of a label image of superpixels, 0 outside the segment.

        Parameters
        ----------
        superpixels : array of int
            The label image of the superpixels, whole.

        Returns
        -------
        ndarray of int
            The number of the part of each pixel, counted from 1; 0 elsewhere.
        """
        out = np.zeros(superpixels.shape, np.int64)
        for k, part in enumerate(self.whole, start=1):
            out[np.isin(superpixels, part)] = k
        for one in self.divided:
            inside = one.parts > 0
            out[one.box][inside] = one.parts[inside]
        return out


def preview_cut(view: View, segment: Any, *arguments: Any, **options: Any) -> CutPreview:
    """Return the parts that `plan_cut` would make."""
    _, cut = _cut_between(view, segment, *arguments, **options)
    graph = view.state.graph
    members = [division.members for division in cut.divisions]
    every = np.concatenate([np.zeros(0, np.int64), *members])
    whole = [np.setdiff1d(part, every) for part in cut.parts]
    sizes = np.array([graph.sizes[part].sum() for part in whole], np.int64)
    divided = []
    for division in cut.divisions:
        part_of = np.zeros(len(division.members) + 1, np.int64)  # of each piece, from 1
        for k, part in enumerate(cut.parts, start=1):
            part_of[1:][np.isin(division.members, part)] = k
        parts = part_of[division.pieces]
        sizes += np.bincount(parts.reshape(-1), minlength=len(sizes) + 1)[1:]
        divided.append(DividedSuperpixel(int(graph.ids[division.superpixel]), division.box, parts))
    ids = np.concatenate([graph.ids, *(division.ids for division in cut.divisions)])
    return CutPreview(
        tuple(ids[part] for part in cut.parts),
        tuple(graph.ids[part] for part in whole),
        tuple(divided),
        tuple(sizes.tolist()),
    )
