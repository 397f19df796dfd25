"""The view of a session: the segment of each superpixel at the threshold, kept up to date.

`Frontier` has the nodes that are visible at one scale, moved up and down their branches by
overrides. `View` has the table of names at the threshold, updates it only where an edit was made,
and turns the overrides of an edited segment into edits (`View.made_real`).
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
    fingerprint,
)
from napari_agglo.session._boundary_scores import BoundaryScores
from napari_agglo.session._hierarchy.hierarchy import Hierarchy
from napari_agglo.session._state import Applied, State

if TYPE_CHECKING:
    from napari_agglo.session._history import Entry, History


class BranchEnds(InvalidInput):
    """A segment that cannot be moved along its branch; the message follows the name of it."""


class Frontier:
    """The nodes of a tree that are visible at one scale, moved by overrides in their order.

    A pure function of the tree and of the overrides of this scale.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo import region_graph
    >>> from napari_agglo.policy import MeanPolicy
    >>> from napari_agglo.session._actions import Override
    >>> row = np.array([[1, 2, 3, 4]])
    >>> tree = Hierarchy(region_graph(row, np.array([[0.0, 0.2, 0.6, 0.8]])), MeanPolicy())
    >>> frontier = Frontier(tree, 0.5, [Override("down", 0.5, 1)])
    >>> [tree.members(frontier.shown(superpixel)).tolist() for superpixel in (1, 3)]
    [[1, 2], [3]]
    """

    def __init__(self, tree: Hierarchy, scale: float, overrides: Iterable[Override] = ()) -> None:
        self.tree = tree
        self.scale = scale
        self._raised: dict[int, int] = {}  # region of this scale: the node shown in its place
        self._opened: set[int] = set()  # nodes whose children are shown in their place
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
        """Return the shown nodes that are not regions of this scale."""
        nodes = set(self._raised.values())
        for node in self._opened:
            nodes |= {child for child in self.tree.children(node) if child not in self._opened}
        return nodes

    def apply(self, override: Override) -> None:
        """Move the segment that is shown at a superpixel.

        Refuse to if its branch ends, if it is locked, or if it is another segment than was moved.
        """
        node = self.shown(override.superpixel)
        if self.tree.constraints.lock_of[override.superpixel]:
            raise BranchEnds("is locked", remedy="unlock it first")
        if override.of and override.of != fingerprint(self.tree.members(node)):
            raise BranchEnds("is not the one that was moved")
        if override.direction == "up":
            self._up(node, override.superpixel)
        else:
            self._down(node)

    def _up(self, node: int, superpixel: int) -> None:
        base = self.tree.region(superpixel, self.scale)
        top = self._raised.get(base, base)
        if node != top:  # a piece: show its parent
            while node not in (children := self.tree.children(top)):
                (top,) = [c for c in children if superpixel in self.tree.members(c)]
            self._close(top)
            return
        parent = self.tree.parent(node)
        if parent is None:
            raise BranchEnds(
                "has no parent: no segment that it touches may merge with it",
                remedy="merge it by hand",
            )
        self._close(parent)
        for piece in self.tree.pieces(parent, self.scale):
            self._raised[piece] = parent

    def _down(self, node: int) -> None:
        children = self.tree.children(node)
        if not children:
            raise BranchEnds(
                "is a single superpixel, without children", remedy="place points in it to cut it"
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
        """Show a node as a whole, and no longer the pieces within it."""
        self._opened -= set(self.tree.log.subtree(node).tolist())

    def edit_for(self, superpixel: int) -> Edit | None:
        """Return the edit that turns the override shown at a superpixel into merges or a cut."""
        base = self.tree.region(superpixel, self.scale)
        if base in self._raised:
            return self._as_merge(self._raised[base])
        if base in self._opened:
            return self._as_cut(base)
        return None

    def _as_merge(self, node: int) -> Merge:
        """Return the merge of the regions of this scale in a node, in pairs as in the tree."""
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
        """Return the cut of a region of this scale into its shown pieces."""
        parts = []
        waiting = [node]
        while waiting:
            at = waiting.pop()
            if at in self._opened:
                waiting += self.tree.children(at)
            else:
                parts.append(self.tree.members(at))
        parts.sort(key=lambda part: int(part[0]))
        # Shown names stay: the name of the whole is that of the part with its naming superpixel.
        naming = self.tree.log.naming(node)
        (heir,) = [k for k, part in enumerate(parts) if naming in part]
        return Cut(self.scale, tuple(parts), heir)


_REMEMBERED = 1000  # edits; a cache that is further behind must be computed again


class View:
    """The segments at a threshold, by name: the dense id of one of their superpixels.

    After an edit at the threshold, names are updated only where it was made; after one at another
    scale, all names are, when they are next needed.
    """

    def __init__(self, state: State, history: History, threshold: float) -> None:
        self.state = state
        self.history = history
        self._threshold = threshold
        self._names: NDArray[np.uint32] | None = None
        self._table: NDArray[Any] | None = None
        self._frontier: tuple[int, Frontier] | None = None
        self.version = 0  # another number whenever a segment may have changed
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
        """Discard all cached values; they are computed again when they are next needed."""
        self._names = self._table = self._frontier = None
        self.version += 1
        self._moves, self._since = [], self.version

    @property
    def frontier(self) -> Frontier:
        """The visible nodes, with the overrides of this scale that are still possible."""
        if self._frontier is None or self._frontier[0] != self.state.version:
            self._frontier = self.state.version, self.new_frontier()
        return self._frontier[1]

    def new_frontier(self) -> Frontier:
        """Return the visible nodes as an object of its own, to try overrides on."""
        frontier = Frontier(self.state.tree, self._threshold)
        for override in self._overrides():
            try:
                frontier.apply(override)
            except InvalidInput:  # an edit has shortened the branch
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

    def visible_nodes(self) -> NDArray[np.int64]:
        """Return the nodes of all visible segments, ascending."""
        tree = self.state.tree
        regions = tree.regions(self._threshold)
        for node in self.frontier.moved():
            regions[tree.members(node)] = node
        is_visible = np.zeros(tree.log.count, np.bool_)
        is_visible[regions[1:]] = True
        return np.flatnonzero(is_visible)

    def inner_nodes(self) -> NDArray[np.int64]:
        """Return the merges within the visible segments, parents before children."""
        levels, log = [], self.state.tree.log
        at = self.visible_nodes()
        while len(at):
            inner = at[log.rows["first"][at] >= 0]
            levels.append(inner)
            at = log.children(inner).reshape(-1).astype(np.int64)
        return np.concatenate(levels) if levels else at

    def entry_of(self, edit: int) -> Entry:
        """Return the entry of the history that a live edit of the tree belongs to."""
        return self.history.done[self.state.owner(edit)]

    def asleep(self) -> list[str]:
        """Return the edits that a newer edit suspends, in words."""
        tree, words = self.state.tree, []
        for edit, k in tree.asleep():
            entry = self.entry_of(edit)
            what = "pair" if isinstance(tree.edits[edit], Merge) else "part"
            words.append(f"{entry.number}. {entry.action.words}: {what} {k + 1} is not together")
        return words

    def update(self, applied: Applied, *, moved: bool) -> NDArray[np.int32]:
        """Bring the view up to date after an action was applied or taken back.

        Return the superpixels whose segment changed; none after an action at another scale, where
        they are not known yet. `moved` is whether overrides changed.
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
        return self._touched(anchors, [members for _, members in self._regions(anchors)])

    def _refresh(self, anchors: NDArray[np.int32]) -> NDArray[np.int32]:
        """Update the names in the regions of some superpixels, where alone they have changed."""
        assert self._names is not None
        n = self.state.graph.n_regions
        if len(self._names) != n + 1:  # superpixels were divided, or made whole again
            more = np.zeros(max(0, n + 1 - len(self._names)), np.uint32)
            self._names = np.concatenate([self._names[: n + 1], more])
        touched = []
        for node, members in self._regions(anchors):
            self._names[members] = self.state.tree.name(node)
            touched.append(members)
        changed = self._touched(anchors, touched)
        self._moves.append((self.version, changed))
        if len(self._moves) > _REMEMBERED:
            self._since = self._moves.pop(0)[0]
        return changed

    def _regions(self, anchors: NDArray[np.int32]) -> Iterator[tuple[int, Ids]]:
        """Yield the regions at the threshold that hold some superpixels."""
        tree, left = self.state.tree, anchors[anchors <= self.state.graph.n_regions]
        while len(left):
            node = tree.region(int(left[0]), self._threshold)
            members = tree.members(node)
            yield node, members
            left = left[members.take(members.searchsorted(left), mode="clip") != left]

    def _touched(self, anchors: NDArray[np.int32], regions: list[Ids]) -> NDArray[np.int32]:
        """Return the superpixels of the regions of anchors, and pieces that are there no more."""
        return np.concatenate([anchors[anchors > self.state.graph.n_regions], *regions])

    def moved_since(self, version: int) -> NDArray[np.int64] | None:
        """Return the superpixels that may have moved since a version; None if all may have."""
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
        names = self.names()[here]
        if (names == names[0]).all():
            return (int(graph.ids[names[0]]),)
        order = names.argsort(kind="stable")
        names = names[order]
        begins = np.ones(len(names), np.bool_)
        begins[1:] = names[1:] != names[:-1]
        starts = begins.nonzero()[0]
        sizes = np.add.reduceat(graph.sizes[here[order]], starts)
        largest = (-sizes).argsort(kind="stable")
        return tuple(graph.ids[names[starts[largest]]].tolist())

    def made_real(self, plan: Plan, progress: ProgressCallback | None = None) -> Plan:
        """Return a plan that first turns the overrides of its segments into edits.

        No other visible segment may change. If the edits change what an override elsewhere shows,
        all overrides of this scale become edits.
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
    """Edits after which segments are regions of the scale as overrides show them."""

    edits: tuple[Edit, ...] = ()
    dropped: tuple[int, ...] = ()  # overrides that the edits replace, by index
    sets: frozenset[bytes] = frozenset()  # segments no longer shown by overrides, as `_moved_sets`

    def before(self, plan: Plan) -> Plan:
        """Return a plan that makes these edits first."""
        steps = plan.action.steps
        action = replace(plan.action, steps=(*map(Step, self.edits), *steps), dropped=self.dropped)
        known = plan.divisions or ((),) * len(steps)
        return replace(plan, action=action, divisions=(*((),) * len(self.edits), *known))


def _real(frontier: Frontier, overrides: tuple[Override, ...], superpixels: Iterable[int]) -> Real:
    """Return the edits that make the visible segments of some superpixels real."""
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
    """Return the segments that overrides show, as bytes of their superpixels."""
    return {frontier.tree.members(node).tobytes() for node in frontier.moved()}
