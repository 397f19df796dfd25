"""The tree under live edits: look at a scale, edit there, take it back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.agglomeration import Merges, merge_greedily
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import Policy
from napari_agglo.session._edits import Cut, Edit, Ids, Lock, Merge, Unlock, as_ids
from napari_agglo.session._repair._constraints import Constraints, Entered
from napari_agglo.session._repair._crossing import before_crossing
from napari_agglo.session._repair._events import ASSEMBLE, JOIN
from napari_agglo.session._repair._ground import Ground
from napari_agglo.session._repair._growth import (
    N_LOGGED,
    N_NODES,
    join_nodes,
    roll_back,
    set_link_now,
    set_until_now,
)
from napari_agglo.session._repair._nodes import (
    BIRTH,
    FIRST,
    LOW,
    PARENT,
    Nodes,
    region_at,
    regions_at,
    subtree,
)
from napari_agglo.session._repair._run import Asker, Changes, Events, Known, repair
from napari_agglo.session._repair._working import (
    Places,
    Working,
    claim_leaves,
    number_regions,
    working_graph,
)


@dataclass(frozen=True, eq=False)
class Step:
    """What an edit or a look changed."""

    changes: list[Changes]
    entered: Entered | None  # None for a look
    horizon: float  # all of these as they were before
    known: Known


class Hierarchy:
    """T(E): the merge tree of a graph, a policy and live edits.

    Everything up to the scale `horizon` is as it should be; above, it is repaired when one looks.
    An edit lowers the horizon to its scale, a look raises it, and taking an edit back restores what
    was before it.

    Parameters
    ----------
    graph : RegionGraph
    policy : Policy
    merges : Merges, optional
        The agglomeration without edits, if it is known.
    progress : callable, optional
        Told how far the agglomeration is; may raise `Cancelled`.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo import region_graph
    >>> from napari_agglo.policy import MeanPolicy
    >>> row = np.array([[1, 2, 3, 4]])
    >>> tree = Hierarchy(region_graph(row, np.array([[0.0, 0.2, 0.6, 0.8]])), MeanPolicy())
    >>> tree.regions(0.3)[1:]
    array([5, 5, 3, 4])
    >>> tree.do(Merge(0.3, ((3, 4),)))
    >>> tree.members(tree.region(3, 0.3))
    array([3, 4], dtype=int32)
    >>> tree.undo()
    Merge(scale=0.3, pairs=((3, 4),))
    """

    def __init__(
        self,
        graph: RegionGraph,
        policy: Policy,
        merges: Merges | None = None,
        progress: ProgressCallback | None = None,
    ) -> None:
        if merges is None:
            merges = merge_greedily(graph, policy, progress=progress)
        self.nodes = Nodes(graph.sizes, len(merges.winners))
        self.nodes.record(merges.winners, merges.losers, merges.priorities)
        self.ground = Ground.of(graph)
        self.constraints = Constraints(graph.n_regions)
        self.asker = Asker(graph, policy)
        self.horizon = np.inf
        self.asked = 0  # boundaries that the policy was asked about in all
        self._known = Known.nothing()
        self._steps: list[Step] = []
        n = graph.n_regions + 1
        self._places = Places(np.full(n, -1, np.int32), np.zeros(n, np.int32))

    @property
    def edits(self) -> list[Edit]:
        """The live edits, oldest first."""
        return list(self.constraints.edits)

    # Reading.

    def region(self, superpixel: int, scale: float) -> int:
        """Return the node that holds a superpixel at a scale; look there first."""
        lock = self.constraints.lock_of[superpixel]
        if lock:
            return int(lock)
        leaf = self.nodes.leaves[superpixel]
        return int(region_at(leaf, scale, *self.nodes.arrays))

    def regions(self, scale: float) -> NDArray[np.int64]:
        """Return the node of every superpixel at a scale, as a table over 0..n."""
        self.look(scale)
        out = np.zeros(len(self.nodes.leaves), np.int64)
        top = np.zeros(self.nodes.count, np.int32)
        regions_at(self.nodes.leaves, scale, self.nodes.links, self.nodes.scales, top, out)
        lock_of = self.constraints.lock_of
        np.copyto(out, lock_of, where=lock_of > 0)
        return out

    def members(self, node: int) -> Ids:
        """Return the superpixels of a node, ascending."""
        order = self._subtree(node)
        leaf = self.nodes.links[order, FIRST] < 0
        return as_ids(self.nodes.links[order[leaf], LOW])

    def asleep(self) -> list[tuple[int, int]]:
        """Return which pairs are not together, and which parts not whole, where they were to be.

        Each as the index of the edit, and which of its pairs or parts: a newer edit forbids it.
        """
        edits = self.constraints.edits
        self.look(max((edit.scale for edit in edits), default=-np.inf))
        found = []
        for index, edit in enumerate(edits):
            wishes = list(self.constraints.parts[index])
            if isinstance(edit, Merge):
                wishes = [as_ids(pair) for pair in edit.pairs]
            for k, wish in enumerate(wishes):
                first = self.region(wish[0], edit.scale)
                if any(self.region(superpixel, edit.scale) != first for superpixel in wish[1:]):
                    found.append((index, k))
        return found

    # Repairing.

    def look(self, scale: float, progress: ProgressCallback | None = None) -> None:
        """Make the tree true up to a scale; `progress` may cancel, and then nothing has changed."""
        if scale <= self.horizon:
            return
        regions = self.regions(self.horizon)
        slot_nodes = np.zeros(len(regions), np.int64)
        number = np.zeros(self.nodes.count, np.int32)
        try:
            n = number_regions(regions, number, self._places.slot_of, slot_nodes)
            members = np.arange(1, len(regions), dtype=np.int32)
            work = self._work(members, slot_nodes[:n], np.zeros(n, np.int64))
            names = [
                (index, k)
                for index, edit in enumerate(self.constraints.edits)
                if self.horizon < edit.scale <= scale
                for k in range(self._n_items(index))
            ]
            step = Step([], None, self.horizon, self._known)
            self._repair(work, self._events(names, None), scale, step, progress=progress)
        finally:
            self._places.slot_of[:] = -1
        self.horizon = scale
        self._steps.append(step)

    def do(self, edit: Edit, progress: ProgressCallback | None = None) -> None:
        """Let an edit happen. It must be one that the rules allow; nothing is refused here."""
        self.look(edit.scale, progress)
        step = Step([], None, self.horizon, self._known)
        try:
            match edit:
                case Merge():
                    entered = self._merge(edit, step)
                case Cut():
                    entered = self._cut(edit, step, progress)
                case Lock():
                    entered = self._lock(edit, step)
                case Unlock():
                    entered = self._unlock(edit, step)
        except BaseException:
            self._put_back(step)
            raise
        self.horizon = min(self.horizon, edit.scale)
        self._steps.append(Step(step.changes, entered, step.horizon, step.known))

    def undo(self) -> Edit:
        """Take the last edit back: everything is again as it was before it."""
        if not self.constraints.edits:
            raise InvalidInput("There is no edit to undo.")
        edit = self.constraints.edits[-1]
        while True:
            step = self._steps.pop()
            self._put_back(step)
            if step.entered is not None:
                self.constraints.take_back(step.entered)
                return edit

    def _put_back(self, step: Step) -> None:
        for changes in reversed(step.changes):
            n = len(changes.log)
            roll_back(self.nodes.links, self.nodes.scales, changes.log, changes.logged, n)
            self.nodes.count = changes.count
        self.horizon = step.horizon
        self._known = step.known

    # The edits.

    def _merge(self, edit: Merge, step: Step) -> Entered:
        index = len(self.constraints.edits)
        for a, b in edit.pairs:
            u, v = (self.region(s, edit.scale) for s in (a, b))
            if u != v:
                self._join([u, v], edit.scale, index, step)
        return self.constraints.enter(edit)

    def _cut(self, edit: Cut, step: Step, progress: ProgressCallback | None) -> Entered:
        node = self.region(int(edit.parts[0][0]), edit.scale)
        members = np.concatenate(edit.parts)
        slot_of = self._places.slot_of
        try:
            slot_of[members] = np.repeat(
                np.arange(len(edit.parts)), [len(part) for part in edit.parts]
            )
            order = self._subtree(node)
            links = self.nodes.links
            leaves = links[order[links[order, FIRST] < 0], LOW]
            if len(leaves) != len(members) or (slot_of[leaves] < 0).any():
                raise InvalidInput(
                    "`parts` must be disjoint and make up one segment: give each of its "
                    "superpixels once."
                )
            slot_nodes, lowest = before_crossing(self.nodes, order, slot_of)
            if lowest < np.inf:
                self._divide(edit, node, members, slot_nodes, lowest, step, progress)
        finally:
            slot_of[members] = -1
        return self.constraints.enter(edit, edit.parts)

    def _divide(
        self,
        edit: Cut,
        node: int,
        members: NDArray[np.int32],
        slot_nodes: NDArray[np.int64],
        lowest: float,
        step: Step,
        progress: ProgressCallback | None,
    ) -> None:
        """Run again within each part, from below the first merge that crosses them."""
        slot_of = self._places.slot_of
        links = self.nodes.links
        groups = slot_of[links[slot_nodes, LOW]].astype(np.int64)
        inside = np.zeros(len(members), np.int32)
        stack = np.zeros(len(members) + 1, np.int64)
        claim_leaves(slot_nodes, links, stack, slot_of, inside)
        names = self.constraints.concerning(inside, lowest, edit.scale)
        work = self._work(inside, slot_nodes, groups)
        events = self._events(names, slot_of, edit)
        self._repair(work, events, edit.scale, step, holder=node, progress=progress)

    def _lock(self, edit: Lock, step: Step) -> Entered:
        node = self.region(int(edit.members[0]), edit.scale)
        self._set_free(node, edit.scale, step)
        return self.constraints.enter(edit, locked=edit.members, lock=node)

    def _unlock(self, edit: Unlock, step: Step) -> Entered:
        node = int(self.constraints.lock_of[edit.superpixel])
        members = self.members(node)
        if self.nodes.scales[node, BIRTH] > edit.scale:
            order = self._subtree(node, np.nextafter(edit.scale, np.inf))
            links, scales, _ = self.nodes.arrays
            ends = (links[order, FIRST] < 0) | (scales[order, BIRTH] <= edit.scale)
            pieces = order[ends]
            pieces = pieces[np.argsort(links[pieces, LOW])]
            index = len(self.constraints.edits)
            node = self._join(pieces.tolist(), edit.scale, index, step)
        self._set_free(node, edit.scale, step)
        return self.constraints.enter(edit, (members,), locked=members, lock=0)

    def _join(self, pieces: list[int], scale: float, index: int, step: Step) -> int:
        self.nodes.make_room(len(pieces))
        log, logged, state = _small_log(self.nodes.count, len(pieces))
        whole = pieces[0]
        for piece in pieces[1:]:
            whole = int(
                join_nodes(whole, piece, scale, index, *self.nodes.arrays, log, logged, state)
            )
        self._keep(log, logged, state, step)
        return whole

    def _set_free(self, node: int, scale: float, step: Step) -> None:
        """From `scale` on nothing is recorded of a node, nor of what it may become."""
        log, logged, state = _small_log(self.nodes.count, 1)
        set_link_now(node, PARENT, -1, self.nodes.links, log, state)
        set_until_now(node, scale, self.nodes.scales, log, logged, state)
        self._keep(log, logged, state, step)

    def _keep(
        self,
        log: NDArray[np.int64],
        logged: NDArray[np.float64],
        state: NDArray[np.int64],
        step: Step,
    ) -> None:
        n = int(state[N_LOGGED])
        step.changes.append(Changes(log[:n].copy(), logged[:n].copy(), self.nodes.count))
        self.nodes.count = int(state[N_NODES])

    # What they have in common.

    def _subtree(self, node: int, births_from: float = -np.inf) -> NDArray[np.int64]:
        """Return a node and what it is made of, not looking into what was born earlier."""
        room = 256
        while True:
            out = np.zeros(room, np.int64)
            stack = np.zeros(room, np.int64)
            n = int(subtree(node, births_from, self.nodes.links, self.nodes.scales, stack, out))
            if n <= room:
                return out[:n]
            room *= 4

    def _work(
        self,
        members: NDArray[np.int32],
        slot_nodes: NDArray[np.int64],
        groups: NDArray[np.int64],
    ) -> Working:
        low = self.nodes.links[slot_nodes, LOW]
        locked = self.constraints.lock_of[low] > 0
        return working_graph(
            self.nodes, self.ground, self._places, members, slot_nodes, groups, locked
        )

    def _n_items(self, index: int) -> int:
        edit = self.constraints.edits[index]
        return len(edit.pairs) if isinstance(edit, Merge) else len(self.constraints.parts[index])

    def _events(
        self,
        names: list[tuple[int, int]],
        slot_of: NDArray[np.int32] | None,
        cut: Cut | None = None,
    ) -> Events:
        """Return edits as events; with `slot_of`, only what happens within it."""
        rows, scales, lists = [], [], []
        n = 0
        by_scale = sorted((self.constraints.scales[index], index, k) for index, k in set(names))
        for _, index, k in by_scale:
            edit = self.constraints.edits[index]
            if isinstance(edit, Merge):
                a, b = edit.pairs[k]
                if slot_of is not None and (slot_of[a] < 0 or slot_of[b] < 0):
                    continue
                rows.append((index, JOIN, a, b, 0))
            else:
                part = self.constraints.parts[index][k]
                inside = part if slot_of is None else part[slot_of[part] >= 0]
                rows.append((index, ASSEMBLE, n, n + len(inside), len(inside) < len(part)))
                lists.append(inside)
                n += len(inside)
            scales.append(edit.scale)
        if cut is not None:
            for part in cut.parts:
                rows.append((len(self.constraints.edits), ASSEMBLE, n, n + len(part), 0))
                lists.append(part)
                n += len(part)
                scales.append(cut.scale)
        return Events(
            table=np.array(rows, np.int64).reshape(-1, 5),
            scales=np.array(scales, np.float64),
            members=np.concatenate(lists) if lists else np.zeros(0, np.int32),
        )

    def _repair(
        self,
        work: Working,
        events: Events,
        target: float,
        step: Step,
        holder: int = -1,
        progress: ProgressCallback | None = None,
    ) -> None:
        changes, known, asked = repair(
            self.nodes, self.ground, self.constraints, self.asker, work, events, self._known,
            target, holder, progress,
        )  # fmt: skip
        step.changes.append(changes)
        if holder < 0:
            self._known = known
        self.asked += asked


def _small_log(
    count: int, joins: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    state = np.zeros(8, np.int64)
    state[N_NODES] = count
    room = 10 * joins + 4
    return np.zeros((room, 3), np.int64), np.zeros(room), state
