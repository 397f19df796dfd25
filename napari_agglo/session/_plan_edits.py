"""Segments by id, `session.segments`, and plans of edits other than cuts.

A planner reads a view and returns a `Plan`, or raises `Refused`; it changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.agglomeration import is_beyond, threshold_phrase
from napari_agglo.errors import SetOption, is_number, is_whole
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import Policy, is_bounded
from napari_agglo.session._actions import (
    Action,
    Cut,
    Ids,
    Lock,
    Merge,
    Override,
    Plan,
    Refused,
    Step,
    Unlock,
    as_ids,
    fingerprint,
)
from napari_agglo.session._hierarchy.superpixels import Superpixels
from napari_agglo.session._marks import MarkChange
from napari_agglo.session._pair_features import edit_examples
from napari_agglo.session._threshold_view import BranchEnds, View
from napari_agglo.shapes import Mesh, mesh_of_regions
from napari_agglo.shapes._mesh import MOST_VOXELS, SMOOTHING

if TYPE_CHECKING:
    from napari_agglo.session._history import Transactions


@dataclass(frozen=True, eq=False)
class Segment:
    """A visible segment: the user's id, its node, and its superpixels."""

    id: int
    node: int
    members: Ids

    @property
    def anchor(self) -> int:
        """One of its superpixels."""
        return int(self.members[0])


def dense_of(
    graph: RegionGraph, number: Any, argument: str = "superpixel", what: str = "superpixel"
) -> int:
    """Return the dense id of a superpixel, or of the one that a segment is named after."""
    ids = graph.ids
    at, why = 0, ""
    if isinstance(number, (int, np.integer)) and not isinstance(number, bool):
        if 0 < number <= int(ids[-1]):
            at = int(ids.searchsorted(np.uint64(number)))
        if at and ids[at] == number:
            return at
        why = ": 0 is the background" if number == 0 else f": there is no {what} of that id"
    raise Refused(
        f"`{argument}` must be the id of a {what}, got {number!r}{why}",
        argument=argument,
        remedy=f"get one by segments.{'' if what == 'segment' else 'superpixel_'}at(index)",
    )


def find(view: View, segment: Any, argument: str = "segment") -> Segment:
    """Return the segment of an id at the threshold; refuse an id without a segment."""
    graph, tree = view.state.graph, view.state.tree
    name = dense_of(graph, segment, argument, "segment")
    node = view.node(name)
    if node is None:
        superpixel = int(tree.names.superpixel_of[name])
        holder = int(graph.ids[tree.name(view.frontier.shown(superpixel))])
        raise Refused(
            f"There is no segment {segment} {threshold_phrase(view.threshold)}: it is part of "
            f"segment {holder} there",
            argument=argument,
            remedy=f"use segment {holder}, or change the threshold",
        )
    return Segment(int(segment), node, tree.members(node))


def find_unlocked(view: View, segment: Any, verb: str, argument: str = "segment") -> Segment:
    """Return the segment of an id; refuse to edit one that is locked."""
    target = find(view, segment, argument)
    if is_locked(view, target):
        raise Refused(
            f"Segment {target.id} is locked and cannot be {verb}",
            argument=argument,
            remedy=f"call unlock({target.id}) first",
        )
    return target


def is_locked(view: View, segment: Segment) -> bool:
    """Return whether a segment is locked."""
    return bool(view.state.tree.constraints.lock_of[segment.anchor])


def contacts(superpixels: Superpixels, members: Ids) -> NDArray[np.int32]:
    """Return the neighbours of all of some superpixels."""
    start = superpixels.start[members]
    counts = superpixels.stop[members] - start
    ends = np.cumsum(counts)
    at = np.arange(ends[-1]) + np.repeat(start - ends + counts, counts)
    touching: NDArray[np.int32] = superpixels.adjacent[at, 0]
    return touching


def neighbour_names(view: View, segment: Segment) -> NDArray[np.uint32]:
    """Return the names of the segments that touch a segment, ascending."""
    names = view.names()
    there = contacts(view.state.tree.superpixels, segment.members)
    touching_names: NDArray[np.uint32] = np.setdiff1d(names[there], names[segment.members])
    return touching_names


def merge_pairs(
    view: View, segments: list[Segment], force: bool
) -> tuple[tuple[tuple[int, int], ...], bool]:
    """Return pairs of superpixels that join segments, and whether some do not touch.

    Each segment is joined to the first, directly or through others of them.
    """
    names = view.names()
    number = {int(names[target.anchor]): k for k, target in enumerate(segments)}
    touching: dict[tuple[int, int], tuple[int, int]] = {}
    for k, target in enumerate(segments[1:], start=1):
        for name, other in number.items():
            if other != k:
                here, there = view.state.tree.superpixels.contact(target.members, name, names)
                if there > 0:
                    touching.setdefault((k, other), (here, there))
                    touching.setdefault((other, k), (there, here))
    reached, pairs = {0}, []
    while True:
        new = [(a, b) for a, b in touching if a in reached and b not in reached]
        if not new:
            break
        a, b = min(new)
        pairs.append(touching[a, b])
        reached.add(b)
    far = [target for k, target in enumerate(segments) if k not in reached]
    if far and not force:
        ids = " and ".join(str(target.id) for target in far)
        does = "do" if len(far) > 1 else "does"
        others = ", nor one merged with it" if len(segments) > 2 else ""
        raise Refused(
            f"Segment {ids} {does} not touch segment {segments[0].id}{others}",
            argument="others",
            remedy=("merge those between them too", SetOption("force", True)),
            forceable=True,
        )
    pairs += [(segments[0].anchor, target.anchor) for target in far]
    return tuple(pairs), bool(far)


def check_threshold(
    threshold: Any, policy: Policy, graph: RegionGraph, *, finite: bool = True
) -> float:
    """Return a threshold; refuse a value that is not finite or out of the range of the policy."""
    if not is_number(threshold) or (finite and not np.isfinite(threshold)):
        raise Refused(
            f"`threshold` must be a {'finite ' * finite}number, got {threshold!r}",
            argument="threshold",
            remedy="pass 0.5, for example",
        )
    if is_beyond(threshold) and is_bounded(policy, graph):
        raise Refused(
            f"`threshold` must be from 0 to 1, as the priorities of the policy {policy.name!r} "
            f"are; got {threshold!r}",
            argument="threshold",
            remedy="pass 0.5, for example",
        )
    return float(threshold)


def dense_list(graph: RegionGraph, superpixels: Any, argument: str) -> list[int]:
    """Return a list of superpixels as dense ids."""
    items = as_list(superpixels, argument, "a list of superpixels, [a, b]")
    return [dense_of(graph, superpixel, argument) for superpixel in items]


def dense_groups(graph: RegionGraph, groups: Any, argument: str) -> list[list[int]]:
    """Return groups of superpixels as dense ids."""
    kind = "a list of groups of superpixels, [[a, b], [c]]"
    lists = [as_list(group, argument, kind) for group in as_list(groups, argument, kind)]
    return [dense_list(graph, group, argument) for group in lists]


def as_list(value: Any, argument: str, kind: str) -> list[Any]:
    """Return a value as a list; refuse text and values that are not iterable."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise Refused(
            f"`{argument}` must be {kind}, got {value!r:.80}",
            argument=argument,
            remedy=f"pass {kind}",
        )
    return list(value)


def check_index(graph: RegionGraph, index: Any) -> tuple[int, ...]:
    """Return the index of a pixel; refuse one that is not in the image."""
    shape = graph.superpixels.image.shape
    at = tuple(index) if isinstance(index, Iterable) else (index,)
    inside = len(at) == len(shape) and all(map(is_whole, at))
    if not inside or not all(0 <= i < n for i, n in zip(at, shape, strict=True)):
        raise Refused(
            f"A pixel must be {len(shape)} whole numbers within the shape {shape}, got {index!r}",
            argument="index",
            remedy="round the coordinates, in the order of the axes",
        )
    return tuple(int(i) for i in at)


class Segments:
    """The segments of a session at its threshold, `session.segments`, by their ids.

    Examples
    --------
    >>> import tempfile, numpy as np, napari_agglo as agglo
    >>> graph = agglo.region_graph(np.array([[5, 6, 7]]), np.array([[0.0, 0.2, 0.6]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with agglo.Session.create(f"{folder}/cells.agglo", graph) as session:
    ...         session.threshold = 0.3
    ...         list(session.segments), session.segments.members(5).tolist()
    ([5, 7], [5, 6])
    """

    def __init__(self, transactions: Transactions) -> None:
        self._view, self._lock = transactions.view, transactions.lock

    def __len__(self) -> int:
        with self._lock:
            return int(np.count_nonzero(self._view.naming()))

    def __iter__(self) -> Iterator[int]:
        return iter(self.ids().tolist())

    def ids(self) -> NDArray[np.uint64]:
        """Return the ids of all segments, ascending.

        Returns
        -------
        ndarray of uint64
            Ids.
        """
        with self._lock:
            names = self._view.names()
            return self._graph.ids[np.sort(names[self._view.naming()])]

    def at(self, index: Any) -> int:
        """Return the segment at a pixel; 0 where there is none.

        Parameters
        ----------
        index : sequence of int
            The index of a pixel, one number for each axis.

        Returns
        -------
        int
            The id of the segment.

        Raises
        ------
        Refused
            If the index is outside the image.
        """
        with self._lock:
            image = self._graph.superpixels.image
            return int(self._view.table()[image[check_index(self._graph, index)]])

    def superpixel_at(self, index: Any) -> int:
        """Return the superpixel at a pixel; 0 where there is none.

        Parameters
        ----------
        index : sequence of int
            The index of a pixel, one number for each axis.

        Returns
        -------
        int
            The id of the superpixel.

        Raises
        ------
        Refused
            If the index is outside the image.
        """
        graph = self._graph
        return int(graph.ids[graph.superpixels.image[check_index(graph, index)]])

    def members(self, segment: int) -> NDArray[np.uint64]:
        """Return the superpixels of a segment, ascending.

        Parameters
        ----------
        segment : int
            A segment at the threshold.

        Returns
        -------
        ndarray of uint64
            Ids of superpixels.

        Raises
        ------
        Refused
            If there is no such segment at the threshold.
        """
        with self._lock:
            return self._graph.ids[find(self._view, segment).members]

    def neighbours(self, segment: int) -> NDArray[np.uint64]:
        """Return the segments that touch a segment, ascending.

        Parameters
        ----------
        segment : int
            A segment at the threshold.

        Returns
        -------
        ndarray of uint64
            Ids of segments.

        Raises
        ------
        Refused
            If there is no such segment at the threshold.
        """
        with self._lock:
            return self._graph.ids[neighbour_names(self._view, find(self._view, segment))]

    def locked(self) -> NDArray[np.uint64]:
        """Return the segments that are locked, ascending.

        Returns
        -------
        ndarray of uint64
            Ids of segments.
        """
        with self._lock:
            superpixels = np.flatnonzero(self._view.state.tree.constraints.lock_of)
            names: NDArray[np.uint32] = np.unique(self._view.names()[superpixels])
            return self._graph.ids[names]

    def is_locked(self, segment: int) -> bool:
        """Return whether a segment is locked.

        Parameters
        ----------
        segment : int
            A segment at the threshold.

        Returns
        -------
        bool
            Whether it is locked.

        Raises
        ------
        Refused
            If there is no such segment at the threshold.
        """
        with self._lock:
            return is_locked(self._view, find(self._view, segment))

    def mesh(
        self,
        segment: int | Sequence[int],
        *,
        max_voxels: int = MOST_VOXELS,
        smooth: int = SMOOTHING,
        progress: ProgressCallback | None = None,
    ) -> Mesh:
        """Return the surface of a segment of a volume, or of several as one.

        Only the bounding box of the segment is read.

        Parameters
        ----------
        segment : int or sequence of int
            The segment, or segments.
        max_voxels : int
            Number of voxels above which the box is made coarser.
        smooth : int
            Number of smoothing steps; 0 leaves the stairs of the voxels.
        progress : callable, optional
            Called with the progress so far; raise `Cancelled` in it to stop.

        Returns
        -------
        Mesh
            Vertices in units of the spacing, and triangles; see `napari_agglo.shapes.Mesh`.

        Raises
        ------
        Refused
            If there is no such segment at the threshold.
        """
        several = list(segment) if isinstance(segment, Iterable) else [segment]
        with self._lock:
            members = [find(self._view, one).members for one in several]
            return mesh_of_regions(
                self._graph, np.concatenate([np.zeros(0, np.int32), *members]),
                max_voxels=max_voxels, smooth=smooth, progress=progress,
            )  # fmt: skip

    @property
    def _graph(self) -> RegionGraph:
        return self._view.state.graph


def plan_merge(view: View, ids: Sequence[Any], *, force: bool) -> Plan:
    """Plan to merge segments; the first keeps its id."""
    if len(ids) < 2:
        raise Refused(
            "`others` is empty",
            argument="others",
            remedy=f"pass the segments to merge with {ids[0]}",
        )
    arguments = ["first", *["others"] * (len(ids) - 1)]
    pairs = zip(ids, arguments, strict=True)
    segments = [find_unlocked(view, one, "merged", argument) for one, argument in pairs]
    nodes = [segment.node for segment in segments]
    if len(set(nodes)) < len(nodes):
        twice = next(segment.id for segment in segments if nodes.count(segment.node) > 1)
        raise Refused(
            f"Segment {twice} is named twice", argument="others", remedy="name each segment once"
        )
    anchors, forced = merge_pairs(view, segments, force)
    notes = _crossed_cuts(view, segments)
    if forced:
        notes = (*notes, "Some of them do not touch.")
    members = combinations([segment.members for segment in segments], 2)
    action = Action(
        "merge",
        tuple(segment.id for segment in segments),
        view.threshold,
        (Step(Merge(view.threshold, anchors)),),
        examples=edit_examples(view.state, members, -1),
    )
    return Plan(action, notes=notes, where=segments[0].members[:1])


def plan_lock(view: View, segment: Any) -> Plan:
    """Plan to keep a segment whole and alone at every scale."""
    target = find_unlocked(view, segment, "locked again")
    step = Step(Lock(view.threshold, target.members))
    return Plan(Action("lock", (target.id,), view.threshold, (step,)))


def plan_unlock(view: View, segment: Any) -> Plan:
    """Plan to let go of a locked segment."""
    target = find(view, segment)
    if not is_locked(view, target):
        raise Refused(
            f"Segment {target.id} is not locked, so it cannot be unlocked",
            argument="segment",
            remedy="see segments.locked() for those that are",
        )
    step = Step(Unlock(view.threshold, target.anchor))
    return Plan(Action("unlock", (target.id,), view.threshold, (step,)))


def plan_move(view: View, segment: Any, direction: Literal["up", "down"]) -> Plan:
    """Plan to show a segment's parent, or its children, in its place."""
    target = find_unlocked(view, segment, f"moved {direction} its branch")
    override = Override(direction, view.threshold, target.anchor, fingerprint(target.members))
    frontier = view.new_frontier()
    try:
        frontier.apply(override)
    except BranchEnds as end:
        problem = f"Segment {target.id} {end.problem}"
        raise Refused(problem, argument="segment", remedy=end.remedy) from None
    # Up shows a larger region than the segment, down parts of the segment alone.
    shown = view.state.tree.members(frontier.shown(target.anchor))
    action = Action(direction, (target.id,), view.threshold, override=override)
    return Plan(action, where=as_ids(np.union1d(shown, target.members)))


def plan_mark(view: View, segment: Any, **marks: Any) -> Plan:
    """Plan to name a segment, comment on it, or mark it as reviewed."""
    target = find(view, segment)
    change = MarkChange(target.id, **marks)
    return Plan(Action("mark", (target.id,), view.threshold, mark=change))


def _crossed_cuts(view: View, segments: list[Segment]) -> tuple[str, ...]:
    """Return notes on the older cuts that a merge of these segments crosses."""
    constraints = view.state.tree.constraints
    reached: dict[int, list[set[int]]] = {}  # by cut, the parts that each segment reaches into
    for segment in segments:
        own: dict[int, set[int]] = {}
        for edit, part in constraints.concerning(segment.members, -np.inf, np.inf):
            if isinstance(constraints.edits[edit], Cut):
                own.setdefault(edit, set()).add(part)
        for edit, parts in own.items():
            reached.setdefault(edit, []).append(parts)
    notes = []
    for edit, sets in sorted(reached.items()):
        if len(sets) > 1 and not set.intersection(*sets):
            entry = view.entry_of(edit)
            notes.append(
                f"This merge crosses an earlier cut ({entry.number}. {entry.action.words}), which "
                "no longer holds here from this threshold up."
            )
    return tuple(dict.fromkeys(notes))
