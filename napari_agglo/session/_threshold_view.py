"""The view of a session: the segment of each superpixel at the threshold, kept up to date.

`Frontier` holds the nodes that are visible at one scale, moved up and down their branches by
overrides. `View` holds the table of names at the threshold, looks it up again only where an edit
was made, and turns overrides into edits where one is edited (`View.made_real`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.agglomeration._merge_tree import map_labels
from napari_agglo.errors import InvalidInput
from napari_agglo.session._actions import (
    Cut,
    Edit,
    Ids,
    Merge,
    Override,
    Plan,
    Step,
    Up,
    fingerprint,
)
from napari_agglo.session._boundary_scores import BoundaryScores
from napari_agglo.session._hierarchy.hierarchy import Hierarchy
from napari_agglo.session._state import Applied, State

if TYPE_CHECKING:
    from napari_agglo.session._history import Entry, History


class BranchEnds(InvalidInput):
    """A segment cannot be moved further; the words go on after its name."""


class Frontier:
    """The nodes of a tree that are visible at one scale, moved by overrides in their order.

    A pure function of the tree and of the overrides made at this scale; those of other scales do
    not show here.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo import region_graph
    >>> from napari_agglo.policy import MeanPolicy
    >>> from napari_agglo.session._actions import Down
    >>> row = np.array([[1, 2, 3, 4]])
    >>> tree = Hierarchy(region_graph(row, np.array([[0.0, 0.2, 0.6, 0.8]])), MeanPolicy())
    >>> frontier = Frontier(tree, 0.5, [Down(0.5, 1)])
    >>> [tree.members(frontier.shown(superpixel)).tolist() for superpixel in (1, 3)]
    [[1, 2], [3]]
    """

    def __init__(self, tree: Hierarchy, scale: float, overrides: Iterable[Override] = ()) -> None:
        self.tree = tree
        self.scale = scale
        self._raised: dict[int, int] = {}  # region of the frontier: what is shown in its place
        self._opened: set[int] = set()  # what is shown in pieces
        for override in overrides:
            if override.scale == scale:
                self.apply(override)

    def shown(self, superpixel: int) -> int:
        """Return the node that is shown where a superpixel is."""
        base = self.tree.region(superpixel, self.scale)
        node = self._raised.get(base, base)
        while node in self._opened:
            (node,) = [c for c in self.tree.children(node) if superpixel in self.tree.members(c)]
        return node

    def moved(self) -> set[int]:
        """Return the nodes that are shown though they are not of this scale."""
        found = set(self._raised.values())
        for node in self._opened:
            found |= {child for child in self.tree.children(node) if child not in self._opened}
        return found

    def apply(self, override: Override) -> None:
        """Move the segment that is shown at a superpixel; refuse where its branch ends.

        Refused too where another segment is shown there than the one that was moved, or where it is
        locked.
        """
        node = self.shown(override.superpixel)
        if self.tree.constraints.lock_of[override.superpixel]:
            raise BranchEnds("is locked, and so it is whole and alone at every scale; unlock it.")
        if override.of and override.of != fingerprint(self.tree.members(node)):
            raise BranchEnds("is another one than was moved here.")
        if isinstance(override, Up):
            self._up(node, override.superpixel)
        else:
            self._down(node)

    def _up(self, node: int, superpixel: int) -> None:
        base = self.tree.region(superpixel, self.scale)
        top = self._raised.get(base, base)
        if node != top:  # it is a piece: show the whole of which it is one
            while node not in (children := self.tree.children(top)):
                (top,) = [c for c in children if superpixel in self.tree.members(c)]
            self._close(top)
            return
        parent = self.tree.parent(node)
        if parent is None:
            raise BranchEnds(
                "becomes part of nothing larger: nothing that it touches may merge with it. Merge "
                "it by hand."
            )
        self._close(parent)
        for piece in self.tree.pieces(parent, self.scale):
            self._raised[piece] = parent

    def _down(self, node: int) -> None:
        children = self.tree.children(node)
        if not children:
            raise BranchEnds(
                "is a single superpixel, which has nothing below it; place seeds in it to cut it."
            )
        if node not in self._raised.values():
            self._opened.add(node)
            return
        for child in children:
            for piece in self.tree.pieces(child, self.scale):
                if piece == child:
                    del self._raised[piece]
                else:
                    self._raised[piece] = child

    def _close(self, node: int) -> None:
        """Show nothing within a node in pieces any more."""
        inside = set(self.tree.log.subtree(node).tolist())
        self._opened -= inside

    def edit_for(self, superpixel: int) -> Edit | None:
        """Return the edit that turns the override shown at a superpixel into merges or a cut."""
        base = self.tree.region(superpixel, self.scale)
        if base in self._raised:
            return self._as_merge(self._raised[base])
        if base in self._opened:
            return self._as_cut(base)
        return None

    def _as_merge(self, node: int) -> Merge:
        """Return the merge of all that a node holds at this scale, paired as in the tree."""
        naming = self.tree.log.naming
        pairs: list[tuple[int, int]] = []
        pieces = set(self.tree.pieces(node, self.scale))
        waiting = [node]
        while waiting:
            at = waiting.pop()
            if at not in pieces:
                first, *others = self.tree.children(at)
                pairs += [(naming(first), naming(other)) for other in others]
                waiting += [first, *others]
        return Merge(self.scale, tuple(reversed(pairs)))

    def _as_cut(self, node: int) -> Cut:
        """Return the cut of a region of the frontier into what is shown of it."""
        parts = []
        waiting = [node]
        while waiting:
            at = waiting.pop()
            if at in self._opened:
                waiting += self.tree.children(at)
            else:
                parts.append(self.tree.members(at))
        parts.sort(key=lambda part: int(part[0]))
        # The names that are seen stay: that of the whole is seen on the part that it comes from.
        naming = self.tree.log.naming(node)
        (heir,) = [k for k, part in enumerate(parts) if naming in part]
        return Cut(self.scale, tuple(parts), heir)


# Callers more than this many edits behind must recompute everything.
_REMEMBERED = 1000


class View:
    """The segments at a threshold, by name: the dense id of one of their superpixels.

    After an edit at the threshold, names are looked up again only where it was made; after one at
    another scale, all are, when they are next needed.
    """

    def __init__(self, state: State, history: History, threshold: float) -> None:
        self.state = state
        self.history = history
        self._threshold = threshold
        self._names: NDArray[np.uint32] | None = None
        self._table: NDArray[Any] | None = None
        self._frontier: tuple[int, Frontier] | None = None
        self.version = 0  # changes whenever a segment may have
        self.boundary_scores = BoundaryScores()
        self.cut_pairs: dict[int, tuple[Any, NDArray[np.int64]]] = {}  # cache of `decisions`
        self._moves: list[tuple[int, NDArray[np.int32]]] = []  # superpixels by version ...
        self._since = 0  # ... and the version from which on they are known

    @property
    def threshold(self) -> float:
        """The scale of the view."""
        return self._threshold

    @threshold.setter
    def threshold(self, threshold: float) -> None:
        if threshold != self._threshold:
            self._threshold = threshold
            self.forget()

    def forget(self) -> None:
        """Look everything up again when it is next needed."""
        self._names = self._table = self._frontier = None
        self.version += 1
        self._moves, self._since = [], self.version

    @property
    def frontier(self) -> Frontier:
        """The visible nodes, with the overrides of this scale that still lead somewhere."""
        if self._frontier is None or self._frontier[0] != self.state.version:
            self._frontier = self.state.version, self.new_frontier()
        return self._frontier[1]

    def new_frontier(self) -> Frontier:
        """Return the visible nodes as an object of its own, to try overrides on."""
        frontier = Frontier(self.state.tree, self._threshold)
        for override in self._overrides():
            try:
                frontier.apply(override)
            except InvalidInput:  # its branch ends sooner now
                continue
        return frontier

    def _overrides(self) -> list[Override]:
        return [one for one in self.state.overrides if one.scale == self._threshold]

    def names(self, progress: ProgressCallback | None = None) -> NDArray[np.uint32]:
        """Return the name of the segment of each superpixel; it is not to be changed."""
        if self._names is None:
            tree = self.state.tree
            tree.look(self._threshold, progress)
            names = tree.table(self._threshold)
            for node in self.frontier.moved():
                names[tree.members(node)] = tree.name(node)
            self._names = names
        return self._names

    def naming(self) -> NDArray[np.bool_]:
        """Return a mask of the superpixels that name a segment, one of each segment."""
        mask: NDArray[np.bool_] = self.names() == self.state.tree.names.of_superpixel
        mask[0] = False
        return mask

    def table(self) -> NDArray[Any]:
        """Return the user's id of the segment of each superpixel; it is not to be changed."""
        if self._table is None:
            labels = self.state.graph.superpixels
            self._table = labels.ids[self.names()].astype(labels.dtype.newbyteorder("="))
        return self._table

    def labels(self, index: Any = ...) -> NDArray[Any]:
        """Return the segments as a label image, or the part of it at an index."""
        table = self.table()
        part = self.state.graph.superpixels.image[index]
        out = np.empty(np.shape(part), table.dtype)
        map_labels(np.ascontiguousarray(part).reshape(-1), table, out.reshape(-1))
        return out

    def node(self, name: int) -> int | None:
        """Return the visible node of a name, if there is one."""
        tree = self.state.tree
        superpixel = int(tree.names.superpixel_of[name])
        node = self.frontier.shown(superpixel)
        return node if tree.log.naming(node) == superpixel else None

    def inner_nodes(self) -> NDArray[np.int64]:
        """Return the merges within the visible segments, each before those that it is made of."""
        tree = self.state.tree
        regions = tree.regions(self._threshold)
        for node in self.frontier.moved():
            regions[tree.members(node)] = node
        found = []
        at: NDArray[np.int64] = np.unique(regions[1:])
        while len(at):
            inner = at[tree.log.rows["first"][at] >= 0]
            found.append(inner)
            at = tree.log.children(inner).reshape(-1).astype(np.int64)
        return np.concatenate(found) if found else at

    def entry_of(self, edit: int) -> Entry:
        """Return the entry of the history that a live edit of the tree belongs to."""
        return self.history.done[self.state.owner(edit)]

    def asleep(self) -> list[str]:
        """Return the edits that a newer one prevents, in words."""
        tree, words = self.state.tree, []
        for edit, k in tree.asleep():
            entry = self.entry_of(edit)
            what = "pair" if isinstance(tree.edits[edit], Merge) else "part"
            words.append(f"{entry.number}. {entry.action.words}: {what} {k + 1} is not together")
        return words

    def update(self, applied: Applied, *, moved: bool) -> NDArray[np.int32]:
        """Bring the view up to date after an action was applied or taken back.

        Return the superpixels whose segment changed; none if it was made at another scale, where
        it would take a look to know. `moved` says whether overrides changed.
        """
        action, here = applied.action, applied.action.threshold == self._threshold
        learned = action.policy is not None
        if moved or learned or (action.steps and (not here or self._overrides())):
            self.forget()
        elif action.steps:
            self.version += 1
            self._table = None
            if self._names is not None:
                return self._refresh(self.state.anchors(applied))
            self._moves, self._since = [], self.version
        if not here:
            return np.zeros(0, np.int32)
        anchors = self.state.anchors(applied)
        members = [members for _, members in self._regions(anchors)]
        return np.unique(np.concatenate([anchors, *members]))

    def _refresh(self, anchors: NDArray[np.int32]) -> NDArray[np.int32]:
        """Look up the regions of some superpixels again, where alone something has changed."""
        assert self._names is not None
        n = self.state.graph.n_regions
        if len(self._names) != n + 1:  # superpixels were divided, or made whole again
            more = np.zeros(max(0, n + 1 - len(self._names)), np.uint32)
            self._names = np.concatenate([self._names[: n + 1], more])
        touched = [anchors]  # with those that are gone
        for node, members in self._regions(anchors):
            self._names[members] = self.state.tree.name(node)
            touched.append(members)
        changed: NDArray[np.int32] = np.unique(np.concatenate(touched))
        self._moves.append((self.version, changed))
        if len(self._moves) > _REMEMBERED:
            self._since = self._moves.pop(0)[0]
        return changed

    def _regions(self, anchors: NDArray[np.int32]) -> Iterator[tuple[int, Ids]]:
        """Go through the regions at the threshold that hold some superpixels."""
        tree, left = self.state.tree, anchors[anchors <= self.state.graph.n_regions]
        while len(left):
            node = tree.region(int(left[0]), self._threshold)
            members = tree.members(node)
            yield node, members
            at = np.minimum(np.searchsorted(members, left), len(members) - 1)
            left = left[members[at] != left]

    def moved_since(self, version: int) -> NDArray[np.int64] | None:
        """Return the superpixels that may have moved since a version; None: any."""
        if version < self._since:
            return None
        newer = [np.zeros(0, np.int64)]
        for number, touched in reversed(self._moves):
            if number <= version:
                break
            newer.append(touched.astype(np.int64))
        return np.unique(np.concatenate(newer))

    def segments_at(self, superpixels: NDArray[Any]) -> tuple[int, ...]:
        """Return the user's ids of the segments of some superpixels, the largest first."""
        graph = self.state.graph
        here = superpixels[superpixels <= graph.n_regions]
        if not len(here):
            return ()
        names, which = np.unique(self.names()[here], return_inverse=True)
        sizes = np.bincount(which.reshape(-1), graph.sizes[here], minlength=len(names))
        order = np.argsort(-sizes, kind="stable")
        return tuple(int(k) for k in graph.ids[names[order]])

    def made_real(self, plan: Plan, progress: ProgressCallback | None = None) -> Plan:
        """Return a plan that first turns the overrides of its segments into edits.

        Nothing else that is visible may change. An override elsewhere may lead to something else
        in the changed tree; then all overrides of this scale become edits.
        """
        action, state = plan.action, self.state
        if not action.steps or action.policy is not None or not self._overrides():
            return plan
        names = np.searchsorted(state.graph.ids, np.array(action.ids, np.uint64)).tolist()
        nodes = [self.node(name) for name in names]
        anchors = [int(state.tree.members(node)[0]) for node in nodes if node is not None]
        real = _real(self.frontier, state.overrides, anchors)
        before = _moved_sets(self.frontier)
        trial = real.before(plan)
        state.apply(trial.action, trial.divisions, progress, trusted=True)
        after = _moved_sets(self.frontier)
        state.take_back()
        if after == before - real.sets:
            return trial
        frontier = self.frontier
        anchors = [int(state.tree.members(node)[0]) for node in sorted(frontier.moved())]
        edits = _real(frontier, state.overrides, anchors).edits
        dropped = [k for k, one in enumerate(state.overrides) if one.scale == self._threshold]
        return Real(edits, tuple(dropped)).before(plan)


@dataclass(frozen=True, eq=False)
class Real:
    """Edits after which segments are at this scale as overrides show them.

    Attributes
    ----------
    edits : tuple of Edit
        In order.
    dropped : tuple of int
        The overrides that no longer count, by index.
    sets : set of bytes
        The segments that are then no longer seen through an override, as `_moved_sets` gives them.
    """

    edits: tuple[Edit, ...] = ()
    dropped: tuple[int, ...] = ()
    sets: frozenset[bytes] = frozenset()

    def before(self, plan: Plan) -> Plan:
        """Return a plan that makes these edits first."""
        steps = plan.action.steps
        action = replace(plan.action, steps=(*map(Step, self.edits), *steps), dropped=self.dropped)
        known = plan.divisions or ((),) * len(steps)
        return replace(plan, action=action, divisions=(*((),) * len(self.edits), *known))


def _real(frontier: Frontier, overrides: tuple[Override, ...], superpixels: Iterable[int]) -> Real:
    """Make real the segments that are visible at these superpixels, and no more than that takes."""
    tree = frontier.tree
    moved = {node: set(tree.members(node).tolist()) for node in frontier.moved()}
    edits: list[Edit] = []
    touched: set[int] = set()
    for superpixel in superpixels:
        if superpixel in touched:
            continue
        edit = frontier.edit_for(superpixel)
        if edit is not None:
            edits.append(edit)
            shown = tree.members(frontier.shown(superpixel)).tolist()
            touched |= {*shown, *tree.members(tree.region(superpixel, frontier.scale)).tolist()}
    dropped = tuple(
        k for k, o in enumerate(overrides) if o.scale == frontier.scale and o.superpixel in touched
    )
    sets = {tree.members(node).tobytes() for node, members in moved.items() if members <= touched}
    return Real(tuple(edits), dropped, frozenset(sets))


def _moved_sets(frontier: Frontier) -> set[bytes]:
    """Return the segments that are visible through an override, as sets of superpixels."""
    return {frontier.tree.members(node).tobytes() for node in frontier.moved()}
