"""Transfer of the edits of a session to the tree of another policy."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import Policy
from napari_agglo.session._actions import Cut, Edit, Ids, Lock, Merge, Unlock, as_ids
from napari_agglo.session._cut_methods import boundary_costs, connected_pieces, segment_of
from napari_agglo.session._hierarchy.hierarchy import Hierarchy

Reach = dict[int, set[int]]  # of each cut, the parts reached into


class Classes:
    """Disjoint sets of superpixels, each named after its smallest.

    Dicts, not the arrays of ``_numba.union_find``: edits name a few superpixels out of millions.

    Examples
    --------
    >>> classes = Classes()
    >>> classes.reach[8] = {0: {1}}
    >>> classes.unite(8, 3)
    3
    >>> classes.members(classes.find(8)), classes.reach[3]
    ([3, 8], {0: {1}})
    """

    def __init__(self) -> None:
        self.reach: dict[int, Reach] = {}  # of each class, the parts of cuts that it reaches into
        self.locked: set[int] = set()  # classes that must stay alone
        self._parent: dict[int, int] = {}
        self._members: dict[int, list[int]] = {}

    def find(self, superpixel: int) -> int:
        """Return the class of a superpixel."""
        parent = self._parent
        at = superpixel
        while at in parent:
            at = parent[at]
        while superpixel != at:
            parent[superpixel], superpixel = at, parent[superpixel]
        return at

    def members(self, name: int) -> list[int]:
        """Return the superpixels of a class."""
        return self._members.get(name, [name])

    def several(self) -> list[list[int]]:
        """Return the classes of two superpixels or more."""
        return list(self._members.values())

    def add_reach(self, superpixel: int, cut: int, part: int) -> None:
        """Record that a superpixel is in a part of a cut."""
        self.reach.setdefault(self.find(superpixel), {}).setdefault(cut, set()).add(part)

    def unite(self, a: int, b: int) -> int:
        """Make the classes of two superpixels one, and return it."""
        a, b = sorted((self.find(a), self.find(b)))
        if a != b:
            few, many = self.members(b), self.members(a)
            if len(few) > len(many):
                few, many = many, few
            self._members[a] = [*many] if len(many) == 1 else many
            self._members[a] += few
            self._members.pop(b, None)
            self._parent[b] = a
            short, long = sorted((self.reach.get(a, {}), self.reach.pop(b, {})), key=len)
            for cut, parts in short.items():
                long[cut] = long.get(cut, set()) | parts
            self.reach[a] = long
            if b in self.locked:
                self.locked.remove(b)
                self.locked.add(a)
        return a


@dataclass(frozen=True)
class Conflict:
    """A requirement of an edit that newer edits contradict."""

    index: int  # of the edit
    edit: Edit
    which: tuple[int, ...]  # number of the pair of a merge, or of two parts of a cut; () of a lock
    words: str  # for the user


class Requirements:
    """The requirements of live edits that can be fulfilled together; newer edits win.

    Edits of all scales are read as if made at one. A merge requires that the two superpixels of
    each pair are together, a cut that superpixels of different parts are apart, a lock that its
    segment is whole and alone; an edit that was unlocked requires nothing. From the newest edit to
    the oldest, a requirement is accepted unless it contradicts an accepted one: a merge overrides a
    pair of parts of an older cut, and a cut an older merge, never the other way round.
    """

    def __init__(self, edits: Sequence[Edit], ids: NDArray[np.uint64]) -> None:
        self.edits = list(edits)
        self.pairs: dict[int, list[tuple[int, int]]] = {}  # of each merge
        self.cuts: dict[int, tuple[Ids, ...]] = {}
        self.joined: dict[int, set[tuple[int, int]]] = {}  # of each cut, pairs of parts overridden
        self.locks: dict[int, Ids] = {}
        self.conflicts: list[Conflict] = []
        self.together = Classes()
        self._ids = ids
        live = _live_locks(edits)
        # Only superpixels that must be together with others need their reach here.
        self._is_anchor = np.zeros(len(ids), np.bool_)
        for edit in edits:
            if isinstance(edit, Merge):
                self._is_anchor[[s for pair in edit.pairs for s in pair]] = True
            elif isinstance(edit, Lock):
                self._is_anchor[edit.members] = True
        for index in range(len(edits) - 1, -1, -1):
            edit = edits[index]
            if isinstance(edit, Merge):
                self._take_merge(index, edit)
            elif isinstance(edit, Cut):
                self._take_cut(index, edit)
            elif isinstance(edit, Lock) and index in live:
                self._take_lock(index, edit)
        self.conflicts.sort(key=lambda one: (one.index, one.which))

    def keeps_apart(self, cut: int, a: set[int], b: set[int]) -> bool:
        """Return whether a cut separates a class in parts `a` from a class in parts `b`."""
        joined = self.joined[cut]
        return any(i != j and (min(i, j), max(i, j)) not in joined for i in a for j in b)

    def separating_cut(self, a: Reach, b: Reach) -> int | None:
        """Return a cut that separates two classes of this reach, or None."""
        if len(b) < len(a):
            a, b = b, a
        for cut, parts in a.items():
            if cut in b and self.keeps_apart(cut, parts, b[cut]):
                return cut
        return None

    def may_unite(self, classes: Classes, a: int, b: int) -> bool:
        """Return whether two classes may be in one segment."""
        if a in classes.locked or b in classes.locked:
            return a == b
        return self.separating_cut(classes.reach.get(a, {}), classes.reach.get(b, {})) is None

    def _take_merge(self, index: int, edit: Merge) -> None:
        together = self.together
        kept = []
        for k in range(len(edit.pairs) - 1, -1, -1):
            a, b = (together.find(superpixel) for superpixel in edit.pairs[k])
            if a == b or self.may_unite(together, a, b):
                together.unite(a, b)
                kept.append(edit.pairs[k])
                continue
            newer = "lock" if together.locked & {a, b} else "cut"
            u, v = (self._ids[superpixel] for superpixel in edit.pairs[k])
            self._add_conflict(
                index, (k,), f"Superpixels {u} and {v} are not merged: a newer {newer} forbids it."
            )
        if kept:
            self.pairs[index] = kept[::-1]

    def _take_cut(self, index: int, edit: Cut) -> None:
        reached: dict[int, set[int]] = {}
        for k, part in enumerate(edit.parts):
            for superpixel in part[self._is_anchor[part]].tolist():
                self.together.add_reach(superpixel, index, k)
                reached.setdefault(self.together.find(superpixel), set()).add(k)
        joined = {
            pair for parts in reached.values() for pair in itertools.combinations(sorted(parts), 2)
        }
        self.cuts[index], self.joined[index] = edit.parts, joined
        for i, j in sorted(joined):
            u, v = (self._ids[edit.parts[k][0]] for k in (i, j))
            self._add_conflict(
                index,
                (i, j),
                f"The parts of superpixels {u} and {v} are not cut apart: a newer edit joins them.",
            )

    def _take_lock(self, index: int, edit: Lock) -> None:
        together = self.together
        inside = set(edit.members.tolist())
        reach: Reach = {}
        is_free = True
        for name in {together.find(superpixel) for superpixel in inside}:
            is_free &= name not in together.locked and inside.issuperset(together.members(name))
            for cut, parts in together.reach.get(name, {}).items():
                reach[cut] = reach.get(cut, set()) | parts
        if is_free and not any(self.keeps_apart(cut, p, p) for cut, p in reach.items()):
            first = min(inside)
            for superpixel in inside:
                together.unite(first, superpixel)
            together.locked.add(together.find(first))
            self.locks[index] = edit.members
            return
        segment = self._ids[edit.members[0]]
        self._add_conflict(
            index,
            (),
            f"The segment of superpixel {segment} is not locked: newer edits differ.",
        )

    def _add_conflict(self, index: int, which: tuple[int, ...], words: str) -> None:
        self.conflicts.append(Conflict(index, self.edits[index], which, words))


def _live_locks(edits: Sequence[Edit]) -> set[int]:
    """Return the indices of the locks that nothing has unlocked since."""
    live: dict[int, Ids] = {}
    for index, edit in enumerate(edits):
        if isinstance(edit, Lock):
            live[index] = edit.members
        elif isinstance(edit, Unlock):
            for k in [k for k, members in live.items() if (members == edit.superpixel).any()]:
                del live[k]
    return set(live)


# Strategy of cutting a segment: the merges of the tree are repeated in their order, on classes of
# superpixels that must be together, and merges that would unite separated classes are left out.
# Where a side of a merge is divided, the two classes of the strongest tie are united first. In the
# end a requirement separates any two classes of a segment that touch, and a segment without such a
# requirement is whole.


Tie = tuple[int, int, float]  # two superpixels and the strength of the boundary between them


def divided_segments(
    hierarchy: Hierarchy, requirements: Requirements, nodes: Collection[int], policy: Policy | None
) -> list[tuple[Ids, ...]]:
    """Return the parts of each segment that must be cut, each part connected.

    `hierarchy` has no edits; no superpixel of `nodes` must be together with one elsewhere. A tie is
    as strong as its boundary is costly to cut by the policy, or without one as it is wide.
    """
    graph = hierarchy.superpixels.graph
    segments = [hierarchy.members(node) for node in nodes]
    members = np.sort(np.concatenate(segments))
    classes = _classes(requirements, members)
    touching: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for u, v, strength in _ties(graph, members, policy):
        touching[u].append((v, strength))
        touching[v].append((u, strength))
    for one, other in _meetings(hierarchy, nodes):
        ties = [(s, t, strength) for s in one for t, strength in touching[s] if t in other]
        _unite(requirements, classes, ties)
    parts_of_each = []
    for segment in segments:
        by_class = defaultdict(list)
        for superpixel in segment.tolist():
            by_class[classes.find(superpixel)].append(superpixel)
        parts = [piece for own in by_class.values() for piece in connected_pieces(graph, own)]
        if len(parts) > 1:
            parts_of_each.append(tuple(as_ids(part) for part in parts))
    return parts_of_each


def _classes(requirements: Requirements, members: Ids) -> Classes:
    """Return the classes of `members` that must be together, with the reach of each."""
    classes = Classes()
    for index, parts in requirements.cuts.items():
        for k, part in enumerate(parts):
            for superpixel in np.intersect1d(part, members, assume_unique=True).tolist():
                classes.add_reach(superpixel, index, k)
    for superpixel in members.tolist():
        name = requirements.together.find(superpixel)
        classes.unite(name, superpixel)
        if name in requirements.together.locked:
            classes.locked.add(classes.find(name))
    return classes


def _ties(graph: RegionGraph, members: Ids, policy: Policy | None) -> Iterator[Tie]:
    segment = segment_of(graph, members)
    if policy is None:
        strength = graph.boundaries[segment.rows, graph.layout.faces] @ graph.face_areas()
    else:
        strength = boundary_costs(graph, segment, policy).cost
    for (u, v), tie in zip(graph.edges[segment.rows].tolist(), strength.tolist(), strict=True):
        yield u, v, tie


def _meetings(hierarchy: Hierarchy, nodes: Collection[int]) -> Iterator[tuple[list[int], set[int]]]:
    """Yield the superpixels of both sides of each merge of some segments, in order.

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
    merges.reverse()  # children before parents, also after the sort, which is stable
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


def _unite(requirements: Requirements, classes: Classes, ties: list[Tie]) -> None:
    """Unite the classes of two sides where requirements allow it, the strongest tie first."""
    while True:
        strength: dict[tuple[int, int], float] = defaultdict(float)
        for s, t, tie in ties:
            a, b = classes.find(s), classes.find(t)
            if a != b:
                strength[min(a, b), max(a, b)] += tie
        allowed = [pair for pair in strength if requirements.may_unite(classes, *pair)]
        if not allowed:
            return
        classes.unite(*min(allowed, key=lambda pair: (-strength[pair], pair)))
        if len(strength) == 1:
            return


def transfer_edits(
    hierarchy: Hierarchy,
    old_edits: Sequence[Edit],
    threshold: float,
    progress: ProgressCallback | None = None,
    policy: Policy | None = None,
) -> tuple[list[Edit], list[Conflict]]:
    """Make the edits of one tree on another, as requirements on superpixels.

    Afterwards, at the threshold: the two superpixels of every pair of a merge are in one segment;
    two superpixels of different parts of a cut are in two; a locked segment is whole, alone and
    locked. Requirements that contradict a newer edit are returned as conflicts. A segment with
    superpixels that must be apart is cut along the merges of the new tree, and a superpixel of no
    part goes where its tie is strongest; any other segment stays as the new policy made it.

    `hierarchy` is the tree of the new policy, without edits; it is changed, and must be discarded
    after an error. `old_edits` are live, oldest first, of any scale. Return the edits made at the
    threshold, in order (cuts, merges with the remaining pairs, locks), and the conflicts.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo import region_graph
    >>> from napari_agglo.policy import MeanPolicy
    >>> from napari_agglo.session._actions import as_ids
    >>> row = np.array([[1, 2, 3, 4]])
    >>> tree = Hierarchy(region_graph(row, np.array([[0.1, 0.1, 0.2, 0.9]])), MeanPolicy())
    >>> tree.table(0.3)
    array([0, 1, 1, 1, 4], dtype=uint32)
    >>> edits = [Merge(0.2, ((1, 3),)), Cut(0.2, (as_ids([1]), as_ids([3]))), Merge(0.9, ((3, 4),))]
    >>> new_edits, conflicts = transfer_edits(tree, edits, 0.3)
    >>> tree.table(0.3)
    array([0, 1, 1, 3, 3], dtype=uint32)
    >>> [one.words for one in conflicts]
    ['Superpixels 1 and 3 are not merged: a newer cut forbids it.']
    """
    ids = hierarchy.superpixels.graph.ids
    hierarchy.look(threshold, progress)
    requirements = Requirements(old_edits, ids)
    edits: list[Edit] = []
    to_cut = _segments_to_cut(hierarchy, requirements, threshold)
    for k, nodes in enumerate(to_cut):
        report(progress, "cut", k, len(to_cut))
        for parts in divided_segments(hierarchy, requirements, nodes, policy):
            edits.append(Cut(threshold, parts))
    edits += [Merge(threshold, tuple(pairs)) for _, pairs in sorted(requirements.pairs.items())]
    for index in sorted(requirements.locks):
        members = requirements.locks[index]
        first, *others = members.tolist()
        if others:
            edits.append(Merge(threshold, tuple((first, other) for other in others)))
        edits.append(Lock(threshold, members))
    for k, edit in enumerate(edits):
        report(progress, "replay", k, len(edits))
        hierarchy.do(edit)
    return edits, requirements.conflicts


def _segments_to_cut(
    hierarchy: Hierarchy, requirements: Requirements, threshold: float
) -> list[list[int]]:
    """Return the segments that requirements divide; segments to be joined are in one list."""
    regions = hierarchy.regions(threshold)
    sizes = np.bincount(regions[1:])
    groups = Classes()  # of segments
    for members in requirements.together.several():
        nodes = np.unique(regions[members]).tolist()
        for node in nodes[1:]:
            groups.unite(nodes[0], node)
    for index, parts in requirements.cuts.items():
        for k, part in enumerate(parts):
            for node in np.unique(regions[part]).tolist():
                groups.add_reach(node, index, k)
    names = {
        name
        for name, reach in groups.reach.items()
        if any(requirements.keeps_apart(cut, parts, parts) for cut, parts in reach.items())
    }
    for locked in requirements.locks.values():
        name = groups.find(int(regions[locked[0]]))
        if sizes[groups.members(name)].sum() > len(locked):
            names.add(name)
    return [sorted(groups.members(name)) for name in sorted(names)]
