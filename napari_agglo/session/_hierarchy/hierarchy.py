"""The tree under live edits: look at a scale, edit there, undo.

How a cut at t is made (docs/proofreading.md has the steps): the tree is made true up to t (`look`),
and the merges of the segment are taken from the log as a record. A `Replay` of just these
superpixels runs from single superpixels up to t. Boundaries that leave the segment need no
priority: the segment was one region at t, and up to t the cut keeps its parts from everything
outside. The record is repeated until a merge crosses parts, or not at all if a superpixel is
divided. From there on, older edits happen anew, then the events of the cut itself, one for each
part, and the policy is asked about regions that only one of the two runs has, the recorded one and
this one. New merges are added to the log, and recorded ones that did not happen are no longer live.
The merges above t stay as a record, and are replayed by the next look there.

During the replay the parts are kept apart by their numbers (`SLOT.part`). After it the cut is
entered in `Constraints`, from which every later replay fills fence sets that keep the parts apart.
If the merges that cross the parts are the last ones of the segment, each part is a region already:
these merges are gone, and there is nothing to replay (`_is_last`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.agglomeration import Merges, merge_greedily
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import Division, RegionGraph
from napari_agglo.policy import Policy, graph_for
from napari_agglo.session._actions import Cut, Edit, Ids, Lock, Merge, Unlock, as_ids
from napari_agglo.session._hierarchy.fences import Constraints, Event
from napari_agglo.session._hierarchy.merge_log import ROW, Fresh, MergeLog, Names, Seam, Step
from napari_agglo.session._hierarchy.replay import Outcome, Replay, ScoreCache
from napari_agglo.session._hierarchy.superpixels import Scorer, Superpixels

_NO_ROWS = np.zeros(0, np.int32)


class Hierarchy:
    """T(E): the merge tree of a graph, a policy and live edits.

    The tree is true up to the scale `horizon`; above, the log has merges of earlier runs, which a
    look replays. An edit lowers the horizon to its scale, a look raises it. Each is a *step*, and
    undo restores the state before the step of the edit.

    The merges above the horizon may be of several runs. After an edit at 0.4, a look at 0.6 and an
    edit at 0.2, the merges between 0.2 and 0.6 are of the run with the first edit alone, and the
    merges above 0.6 of the run without edits. A *seam* is a scale at which the merges below are of
    one run and the merges above of an older one: here 0.2, which is the horizon, and 0.6.

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
    >>> tree.table(0.3)
    array([0, 1, 1, 3, 4], dtype=uint32)
    >>> tree.do(Merge(0.3, ((4, 3),)))
    >>> tree.table(0.3)
    array([0, 1, 1, 4, 4], dtype=uint32)
    >>> tree.undo()
    Merge(scale=0.3, pairs=((4, 3),))
    """

    def __init__(
        self,
        graph: RegionGraph,
        policy: Policy,
        merges: Merges | None = None,
        progress: ProgressCallback | None = None,
    ) -> None:
        graph = graph_for(policy, graph)
        if merges is None:
            merges = merge_greedily(graph, policy, progress=progress)
        self.log = MergeLog(graph.sizes, merges)
        self.superpixels = Superpixels(graph)
        self.constraints = Constraints(graph.n_regions)
        self.scorer = Scorer(graph, policy)
        self.n_scored = 0  # boundaries that the policy has scored in all replays
        self.horizon = np.inf
        # With each seam the regions that only one of its two runs has there. The first seam is the
        # horizon, unless that is infinite.
        self.seams: tuple[Seam, ...] = ()
        self.steps: list[Step] = []  # edits and looks, oldest first
        self._cache = ScoreCache.empty()

    @property
    def edits(self) -> list[Edit]:
        """The live edits, oldest first."""
        return list(self.constraints.edits)

    @property
    def names(self) -> Names:
        """The names of superpixels."""
        return self.log.names

    # Changing.

    def look(self, scale: float, progress: ProgressCallback | None = None) -> None:
        """Make the tree true up to a scale; if `progress` cancels, nothing has changed."""
        if scale <= self.horizon:
            return
        rows = self.log.rows[: self.log.count]
        births = rows["birth"]
        live = (rows["live"] != 0) & (births > self.horizon) & (births <= scale)
        locks = self.constraints.lock_of[rows["low"]]
        live &= (locks == 0) | (births > births[locks])  # not the parts of a locked segment
        fresh, *passed = [(at, fresh.all()) for at, fresh in self.seams if at <= scale]
        events = self.constraints.events_between(self.horizon, scale)
        members = np.arange(1, self.superpixels.n + 1, dtype=np.int32)
        nodes = self._regions(self.horizon)[1:]
        try:
            replay = Replay(
                self.log, self.superpixels, self.constraints, self.scorer, members, nodes,
                np.flatnonzero(live), fresh[1], passed, cache=self._cache,
            )  # fmt: skip
            outcome = replay.run(scale, lambda _: events, progress)
        finally:
            self.superpixels.slot_of[:] = -1
        self.n_scored += replay.n_scored
        step = self._begin(scale)
        self._write(outcome, step)
        # Priorities are of pairs of rows, that is of sets of pixels, and so outlive an edit, which
        # adds rows. Undo drops rows, whose numbers are used again: it forgets the priorities.
        self._cache = outcome.cache
        step.fresh = outcome.fresh
        self.end_step(step)

    def do(
        self,
        edit: Edit,
        progress: ProgressCallback | None = None,
        divisions: Sequence[Division] = (),
    ) -> None:
        """Let an edit happen; whether a user may do that is decided elsewhere.

        A cut may come with `divisions` of superpixels of its segment, each made on the graph after
        the one before, whose pieces are then among its parts; all are undone together.
        """
        self.look(edit.scale, progress)
        step = self._begin(edit.scale)
        try:
            match edit:
                case Merge():
                    step.fresh = self._merge(edit, step)
                case Cut():
                    step.fresh = self._cut(edit, step, divisions, progress)
                case Lock():
                    step.fresh = self._lock(edit, step)
                case Unlock():
                    step.fresh = self._unlock(edit, step)
        except BaseException:
            self._put_back(step)
            raise
        self.end_step(step)

    def end_step(self, step: Step) -> None:
        """Set the horizon to the scale of a step, and keep the regions of its seam."""
        scale = step.scale
        older = None
        # An edit at the horizon itself: the seam there already has regions, of earlier edits at
        # this scale or of the look that ended here. The next look differs from the older run by
        # both sets, less the regions that are in both.
        if step.entered is not None and scale == self.horizon:
            older = self.seams[0][1]
        above = (seam for seam in self.seams if seam[0] > scale)
        self.seams = () if scale == np.inf else ((scale, Fresh(step.fresh, older)), *above)
        self.horizon = scale
        self.steps.append(step)

    def undo(self) -> Edit:
        """Undo the last edit and all looks since; restore the state before the edit."""
        if not self.constraints.edits:
            raise InvalidInput("There is no edit to undo.")
        edit = self.constraints.edits[-1]
        while True:
            step = self.steps.pop()
            self._put_back(step)
            if step.entered is not None:
                return edit

    def _begin(self, scale: float) -> Step:
        return Step(self.log.count, self.horizon, self.seams, scale)

    def _put_back(self, step: Step) -> None:
        """Restore the state before the last step; known priorities are forgotten."""
        self.log.put_back(step)
        self.horizon, self.seams = step.horizon, step.seams
        self._cache = ScoreCache.empty()
        if step.entered is not None:
            self.constraints.take_back(step.entered)
        for leaf, divided, regrouped in reversed(step.divided):
            self.superpixels.revert(divided)
            self.constraints.revert(regrouped)
            self.log.resize(divided.n)
            self.log.leaves[divided.superpixel] = leaf

    def _write(self, outcome: Outcome, step: Step) -> None:
        """Write the outcome of a replay to the log."""
        self.log.remove(outcome.gone, step)
        if not len(outcome.done):
            return
        self.log.add(outcome.made)
        row, first, second = outcome.done.T
        old = row < step.count
        self.log.change("first", row[old], first[old], step)
        self.log.change("second", row[old], second[old], step)
        self.log.change("parent", first, row, step)
        self.log.change("parent", second, row, step)

    def _join(
        self, pieces: list[int], scale: float, edit: int, is_active: bool, step: Step
    ) -> list[int]:
        """Join regions as an edit does and return the new rows.

        The first gives its name, if it `is_active`, else that of the larger is kept at each step.
        """
        whole, new = pieces[0], []
        for piece in pieces[1:]:
            u, v = self.log.rows[whole], self.log.rows[piece]
            swaps = (v["size"], u["low"]) > (u["size"], v["low"])
            first, second = (piece, whole) if swaps and not is_active else (whole, piece)
            added = self.log.add_one(
                -1, first, second, min(u["low"], v["low"]), edit, 1, u["size"] + v["size"], scale,
                np.nan, u["hash_a"] ^ v["hash_a"], u["hash_b"] ^ v["hash_b"],
            )  # fmt: skip
            self.log.change("parent", np.array([whole, piece]), added, step)
            whole = added
            new.append(whole)
        return new

    def _merge(self, edit: Merge, step: Step) -> NDArray[np.int32]:
        """Join the regions of each pair; return the rows of these regions and of their unions."""
        index = len(self.constraints.edits)
        fresh = []
        for a, b in edit.pairs:
            u, v = self._region(a, edit.scale), self._region(b, edit.scale)
            if u != v:
                fresh += [u, v, *self._join([u, v], edit.scale, index, True, step)]
        step.entered = self.constraints.enter(edit)
        return np.array(fresh, np.int32)

    def _cut(
        self,
        edit: Cut,
        step: Step,
        divisions: Sequence[Division],
        progress: ProgressCallback | None,
    ) -> NDArray[np.int32]:
        anchor = divisions[0].superpixel if divisions else int(edit.parts[0][0])
        node = self._region(anchor, edit.scale)
        naming = self.log.naming(node)
        order = self.log.subtree(node)
        fresh = np.concatenate([_NO_ROWS, *(self._divide(one, step) for one in divisions)])
        members = np.concatenate(edit.parts)
        parts = np.arange(len(edit.parts), dtype=np.int32).repeat([*map(len, edit.parts)])
        ascending = members.argsort(kind="stable")
        members, parts = members[ascending], parts[ascending]
        rows = self.log.rows
        leaf = rows["first"][order] < 0
        more = [division.members[1:] for division in divisions]
        members_now = np.concatenate([rows["low"][order[leaf]], *more])
        members_now.sort()
        if len(members_now) != len(members) or (members_now != members).any():
            raise InvalidInput(
                "`parts` must be disjoint and make up one segment: give each of its superpixels "
                "once."
            )
        crossing = np.zeros(0, np.int64)
        if not divisions:
            crossing = self.log.crossing(order, members, parts)
        if self._is_last(crossing, len(edit.parts)):
            outcome = self._without(crossing)
        else:
            outcome = self._replay_cut(
                edit, members, parts, np.sort(order[~leaf]), crossing, fresh, divisions, progress
            )
        self._write(outcome, step)
        step.entered = self.constraints.enter(edit, edit.parts)
        heir = edit.heir
        if heir is None:
            sizes = [rows["size"][self.log.leaves[part]].sum() for part in edit.parts]
            heir = int(np.argmax(sizes))
        self._pass_name(naming, self._region(int(edit.parts[heir][0]), edit.scale), step)
        return outcome.fresh

    def _is_last(self, crossing: NDArray[np.int64], n_parts: int) -> bool:
        """Tell whether the merges that cross parts are the last ones of their segment.

        They are one merge, or all merges of one edit. Each joined two regions: without k such
        merges the segment is k + 1 regions, and if there are k + 1 parts, these are the parts.
        """
        edits = self.log.rows["edit"][crossing]
        if len(crossing) != n_parts - 1 or not n_parts > 1:
            return False
        return len(crossing) == 1 or bool(((edits >= 0) & (edits == edits[0])).all())

    def _without(self, last: NDArray[np.int64]) -> Outcome:
        """Return the outcome of a cut into the regions that the last merges have joined.

        The parts are whole already, and nothing is left to merge: there is nothing to replay.
        """
        ends = self.log.children(last).reshape(-1).tolist()
        fresh = np.array([*{*ends} ^ {*last.tolist()}], np.int32)  # the parts, and the whole
        return Outcome(
            np.zeros(0, ROW), np.zeros((0, 3), np.int32), last.astype(np.int32), fresh,
            ScoreCache.empty(),
        )  # fmt: skip

    def _replay_cut(
        self,
        edit: Cut,
        members: Ids,
        parts: NDArray[np.int32],
        recorded: NDArray[np.int64],
        crossing: NDArray[np.int64],
        fresh: NDArray[np.int32],
        divisions: Sequence[Division],
        progress: ProgressCallback | None,
    ) -> Outcome:
        index = len(self.constraints.edits)
        own = [Event(edit.scale, index, part, False) for part in edit.parts]
        slot_of = self.superpixels.slot_of

        def events(begin: float) -> list[Event]:
            older = self.constraints.events_within(members, slot_of, begin, edit.scale)
            return older + own

        try:
            replay = Replay(
                self.log, self.superpixels, self.constraints, self.scorer, members,
                self.log.leaves[members].astype(np.int64), recorded, fresh,
                parts=parts, crossing=crossing,
            )  # fmt: skip
            outcome = replay.run(edit.scale, events, progress, believes=not divisions)
        finally:
            slot_of[members] = -1
        self.n_scored += replay.n_scored
        return outcome

    def _divide(self, division: Division, step: Step) -> NDArray[np.int32]:
        """Put pieces in the place of a superpixel; return the rows of the pieces and of it."""
        leaf = int(self.log.leaves[division.superpixel])
        divided = self.superpixels.divide(division)
        regrouped = self.constraints.divide(division.superpixel, division.members[1:])
        step.divided.append((leaf, divided, regrouped))
        self.log.resize(self.superpixels.n)
        pieces = self.log.add_leaves(division.members, division.new.regions[:, 0])
        # All pieces together are the same region as the superpixel was.
        for name in ("hash_a", "hash_b"):
            hashes = self.log.rows[name]
            hashes[pieces[0]] = hashes[leaf] ^ np.bitwise_xor.reduce(hashes[pieces[1:]])
        self.log.leaves[division.members] = pieces
        return np.append(pieces, np.int32(leaf))

    def _lock(self, edit: Lock, step: Step) -> NDArray[np.int32]:
        """Enter a lock; return the row of the locked segment, which no run merges any more."""
        node = self._region(int(edit.members[0]), edit.scale)
        step.entered = self.constraints.enter(edit, locked=edit.members, lock=node)
        return np.array([node], np.int32)

    def _unlock(self, edit: Unlock, step: Step) -> NDArray[np.int32]:
        """Keep the merges of a locked segment up to the scale; join the regions that they make."""
        node = int(self.constraints.lock_of[edit.superpixel])
        naming, members, rows = self.log.naming(node), self.log.members(node), self.log.rows
        if rows["birth"][node] > edit.scale:
            order = self.log.subtree(node, np.nextafter(edit.scale, np.inf))
            unseen = rows["birth"][order] > edit.scale
            self.log.remove(order[unseen], step)
            pieces = order[~unseen]
            pieces = pieces[np.argsort(rows["low"][pieces])]
            index = len(self.constraints.edits)
            node = self._join(pieces.tolist(), edit.scale, index, False, step)[-1]
        step.entered = self.constraints.enter(edit, (members,), locked=members)
        self._pass_name(naming, node, step)
        return np.array([node], np.int32)

    def _pass_name(self, naming: int, heir: int, step: Step) -> None:
        """Give the name of a former region, named by the superpixel `naming`, to the row `heir`.

        If another superpixel names the heir, the two superpixels swap names, also where `heir`
        contains both.
        """
        own = self.log.naming(heir)
        if own != naming:
            step.swap = (naming, own)
            self.names.swap(step.swap)

    # Reading.

    def _region(self, superpixel: int, scale: float) -> int:
        lock = int(self.constraints.lock_of[superpixel])
        return lock or self.log.region(superpixel, scale)

    def _regions(self, scale: float) -> NDArray[np.int64]:
        out = self.log.regions(scale)
        lock_of = self.constraints.lock_of
        np.copyto(out, lock_of, where=lock_of > 0)
        return out

    def region(self, superpixel: int, scale: float) -> int:
        """Return the row of the region that holds a superpixel at a scale."""
        self.look(scale)
        return self._region(superpixel, scale)

    def regions(self, scale: float) -> NDArray[np.int64]:
        """Return the row of every superpixel at a scale, as a table over 0..n."""
        self.look(scale)
        return self._regions(scale)

    def members(self, node: int) -> Ids:
        """Return the superpixels of a region, ascending."""
        return self.log.members(node)

    def children(self, node: int) -> list[int]:
        """Return the regions that a region was made of: two, or more if an edit joined more."""
        rows = self.log.rows
        if rows["first"][node] < 0:
            return []
        parts: list[int] = []
        edit = rows["edit"][node]
        waiting = [node]
        while waiting:
            at = waiting.pop()
            if at == node or (edit >= 0 and rows["edit"][at] == edit):
                waiting += [int(rows["second"][at]), int(rows["first"][at])]
            else:
                parts.append(at)
        return parts

    def parent(self, node: int, progress: ProgressCallback | None = None) -> int | None:
        """Return the region that a region is next merged into, or None.

        Looks as far up as is needed. If an edit joins several regions, it is the union of all.
        """
        if node == self.constraints.lock_of[self.log.rows["low"][node]]:
            return None
        ahead = max(0.05, 0.1 * abs(self.horizon))
        for attempt in itertools.count():
            rows = self.log.rows
            up = int(rows["parent"][node])
            if up >= 0 and rows["birth"][up] <= self.horizon:
                break
            if self.horizon == np.inf:
                return None
            # The record may be wrong, but it is the best guess of how far one must look. Without
            # one, steps double, and end: a root has no parent at any scale.
            further = self.horizon + ahead * 2**attempt if attempt < 6 else np.inf
            self.look(float(rows["birth"][up]) if up >= 0 else further, progress)
        edit = rows["edit"][up]
        while edit >= 0:
            above = int(rows["parent"][up])
            if above < 0 or rows["birth"][above] > self.horizon or rows["edit"][above] != edit:
                break
            up = above
        return up

    def birth(self, node: int) -> float:
        """Return the scale from which a region is visible; -inf for a superpixel."""
        return float(self.log.rows["birth"][node])

    def pieces(self, node: int, scale: float) -> list[int]:
        """Return the regions at a lower scale of which a region is the union."""
        ends = self._pieces(node, scale)
        locked = self.constraints.lock_of[self.log.rows["low"][ends]].any()
        return [node] if locked else ends

    def _pieces(self, node: int, scale: float) -> list[int]:
        rows = self.log.rows
        order = self.log.subtree(node, np.nextafter(scale, np.inf))
        ends: list[int] = order[
            (rows["first"][order] < 0) | (rows["birth"][order] <= scale)
        ].tolist()
        return ends

    def table(self, scale: float) -> NDArray[np.uint32]:
        """Return the name of the region of every superpixel at a scale, as a table over 0..n."""
        self.look(scale)
        return self.log.name_table(scale, self.constraints.lock_of)

    def name(self, node: int) -> int:
        """Return the name of a region, a dense id; no other region at its scale has this name."""
        return int(self.names.of_superpixel[self.log.naming(node)])

    def asleep(self) -> list[tuple[int, int]]:
        """Return the pairs of merges and the parts of cuts that newer edits keep apart.

        Each is the index of the edit, and the index of its pair or part.
        """
        constraints, apart, tables = self.constraints, [], {}
        self.look(max((edit.scale for edit in constraints.edits), default=-np.inf))
        for index, edit in enumerate(constraints.edits):
            groups = list(constraints.parts[index])
            if isinstance(edit, Merge):
                groups = [as_ids(pair) for pair in edit.pairs]
            if groups and edit.scale not in tables:
                tables[edit.scale] = self._regions(edit.scale)
            for k, group in enumerate(groups):
                regions = tables[edit.scale][group]
                if (regions != regions[0]).any():
                    apart.append((index, k))
        return apart
