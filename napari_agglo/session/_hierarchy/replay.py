"""The replay: a greedy run again, beside the record of an earlier one.

The *record* is the live merges of the log above the scale at which the replay begins, of all
superpixels for a look and of one segment for a cut. A heap gives them in the order of their keys; a
recorded merge enters it when the record has made both its regions. Boundaries of dirty regions are
in the same heap, and the smallest key of all comes next. Edits, sorted, are a third source of
merges. An *event* is one pair of superpixels whose regions an edit joins, or one part of a cut,
which the edit makes whole.

A region is *clean* if both runs have it now, the recorded one and this one, and *dirty* if only one
of them has. A recorded merge by the policy is repeated, without asking the policy, if this run has
both its regions, they are not locked, are in one part, and no cut keeps them apart for ever.
Otherwise the merge is *gone*. A recorded merge of an edit is gone too, because the edit happens
anew; only at the beginning of a cut, while all of the record is believed (see `run`), it is
repeated. When a merge is gone, each of its two regions that this run has is no longer clean: the
policy is asked about its boundaries, which enter the heap. A region that both runs have in the end
is clean again.

The record may be of several runs, see `Hierarchy`. A *stretch* of it, from one seam to the next, is
of one run: there a merge comes after those that made its two regions. At a seam, the regions that
only one of the two runs has change from clean to dirty, or from dirty to clean: a region is dirty
above the seam if it was dirty below, or is in that set, but not both.

The kernel `advance` does all steps that need neither policy nor edit, and returns to Python for
these. Nothing is written to the log until the replay is over, so a cancelled one leaves no trace in
the tree (pieces of divided superpixels are written before; their step takes them back). After a
cancelled edit the hierarchy knows fewer priorities (`ScoreCache`), and may ask for some again.
"""

# In its own file, apart from `hierarchy`, which says what is replayed for each kind of edit.

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.agglomeration import HEAD, Adjacency
from napari_agglo.session._hierarchy.fences import (
    CUT,
    FIRST_CUT,
    N_CUTS,
    NEXT_CUT,
    Constraints,
    Event,
    empty_fence_sets,
    fill_fence_sets,
)
from napari_agglo.session._hierarchy.merge_log import ROW, MergeLog
from napari_agglo.session._hierarchy.replay_arrays import (
    DIVERGED,
    EDGE,
    JOIN_EDIT,
    JOIN_U,
    LEAF,
    N_DONE,
    N_EDGES,
    N_GONE,
    N_MADE,
    N_PENDING,
    N_WANTED,
    OFFER,
    PAUSED,
    RECORDED,
    SLOT,
    TOP,
    Cuts,
    Dirty,
    KeyQueue,
    Limits,
    Lists,
    Run,
    Work,
)
from napari_agglo.session._hierarchy.replay_kernels import (
    advance,
    may_join,
    offer,
    start_slots,
    start_stream,
    toggle_rows,
)
from napari_agglo.session._hierarchy.superpixels import Scorer, Superpixels

Ids32 = NDArray[np.int32]
_LAST = 2**62  # the tie of what comes after all edits of a scale
_NOWHERE = np.zeros(0, np.int8)
# Merges, and boundaries to score, between two calls of `progress`: about a tenth of a second.
_STEPS, _SCORED = 100_000, 20_000


@dataclass(frozen=True, eq=False)
class ScoreCache:
    """Priorities of boundaries between regions that exist where a replay ended, by pair of rows."""

    pairs: NDArray[np.int64]  # ascending
    priorities: NDArray[np.float64]

    @classmethod
    def empty(cls) -> ScoreCache:
        return cls(np.zeros(0, np.int64), np.zeros(0))

    def find(self, pairs: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Return whether each pair is known, and its priority, which is arbitrary if it is not."""
        at = np.minimum(np.searchsorted(self.pairs, pairs), len(self.pairs) - 1)
        return self.pairs[at] == pairs, self.priorities[at]


@dataclass(frozen=True, eq=False)
class Outcome:
    """Result of a replay, for the log."""

    made: NDArray[np.void]  # new rows
    done: NDArray[np.int32]  # merges whose links must be set: row, first, second
    gone: NDArray[np.int32]  # recorded merges that did not happen
    fresh: NDArray[np.int32]  # regions that only one of the two runs has in the end
    cache: ScoreCache


class Replay:
    """A run over some superpixels, beside a record of it.

    Parameters
    ----------
    log, superpixels, constraints, scorer
        The tree, the graph, the edits and the policy.
    members : ndarray of int32
        Superpixels, ascending.
    nodes : ndarray
        The region that each of them is in at the start.
    recorded : ndarray
        Rows of the recorded merges, by ascending row number.
    fresh : ndarray
        Regions that only one of the two runs has at the start.
    seams : sequence of (float, ndarray)
        Scales at which the record goes over to that of an older run, with the regions that only
        one of the two has there.
    parts : ndarray of int32, optional
        Part of each superpixel in the cut that is made.
    crossing : ndarray, optional
        The recorded merges that join parts of that cut, by ascending row number.
    cache : ScoreCache, optional
        Priorities from the replay below this one.
    """

    def __init__(
        self,
        log: MergeLog,
        superpixels: Superpixels,
        constraints: Constraints,
        scorer: Scorer,
        members: Ids32,
        nodes: NDArray[np.int64],
        recorded: NDArray[np.int64],
        fresh: NDArray[np.int32],
        seams: Sequence[tuple[float, Ids32]] = (),
        parts: NDArray[np.int32] | None = None,
        crossing: NDArray[Any] | None = None,
        cache: ScoreCache | None = None,
    ) -> None:
        self.log, self.superpixels, self.constraints = log, superpixels, constraints
        self.scorer, self.members = scorer, members
        self.cache = ScoreCache.empty() if cache is None else cache
        self.seams = list(seams)
        self.n_scored = 0
        self._target = np.inf
        self._holds = False  # whether boundaries of pending slots need no priority (yet)
        n, start, stop = len(members), superpixels.start, superpixels.stop
        most = int((stop[members] - start[members]).sum()) // 2 + 1  # edge 0 is spare
        rows = log.rows
        self.rows = rows
        self.state = np.zeros(16, np.int64)
        self.state[N_EDGES], self.state[JOIN_EDIT] = 1, -1
        leaves = np.zeros(n, LEAF)
        self.slots = np.zeros(n, SLOT)
        self.work = Work(np.empty(n, np.int32), self.slots, superpixels.slot_of, leaves)
        none = np.zeros(n, np.int32) if parts is None else parts
        start_slots(members, nodes, none, constraints.lock_of, leaves, rows, self.work)
        self.edges = np.zeros(most, EDGE)
        lists = np.zeros((n, 2), np.int32)
        lists[:, HEAD] = -1
        ends = np.zeros((most, 2), np.int32)
        ends[0] = -1
        self.graph = Adjacency(
            ends=ends,
            links=np.zeros((most, 2, 2), np.int32),
            nodes=lists,
            table=np.zeros(1 << max(4, (2 * most).bit_length()), np.int64),
            filled=np.zeros(1, np.int64),
            kept=np.empty(n, np.int32),
            absorbed=np.empty(n, np.int32),
        )
        self.chain = np.zeros((most, 2), np.int32)
        self.stream = self._stream(recorded)
        if crossing is not None:
            self.stream["crosses"][np.searchsorted(recorded, crossing)] = 1
        n_items = most + len(recorded)
        queue = KeyQueue(
            keys=np.empty((n_items, 2)),
            ties=np.empty(n_items, np.int64),
            heap=np.empty(n_items, np.int32),
            place=np.full(n_items, -1, np.int32),
            size=np.zeros(1, np.int64),
        )
        start_stream(most, self.stream, rows, queue)
        fence_sets = empty_fence_sets(n, len(constraints.listed(members)))
        if len(fence_sets[1]):
            fill_fence_sets(
                members, self.work.joined, constraints.heads, constraints.pool, constraints.scales,
                rows, log.leaves, *fence_sets,
            )  # fmt: skip
        arrays, entries, places, tops, used = fence_sets
        self.cuts = Cuts(arrays, entries, places, tops, used, constraints.scales)
        room = len(recorded) + n
        toggled = len(fresh) + sum(len(rows) for _, rows in self.seams)
        self.lists = Lists(
            made=np.empty(n, ROW),
            done=np.empty((room, 3), np.int32),
            gone=np.empty(len(recorded), np.int32),
            pending=np.empty(2 * room + toggled + 16, np.int32),
            wanted=np.empty(most, np.int32),
        )
        # A merge that is made or gone concerns three regions: less than half of the table is ever
        # in use, and of the rest no page is touched.
        n_dirty = 3 * (n + len(recorded)) + len(fresh) + sum(len(more) for _, more in self.seams)
        room = 1 << (2 * n_dirty).bit_length()
        self._dirty = Dirty(
            np.zeros((room, 2), np.int64), np.zeros(room, np.int32), np.zeros(room, np.int8)
        )  # fmt: skip
        self._run = Run(
            self.state, rows, self.stream, self.work, self.graph, self.edges, self.chain, queue,
            self._dirty, self.cuts, self.lists,
        )  # fmt: skip
        self.scorer.begin(n, most)
        self._toggle(fresh)

    def _stream(self, recorded: NDArray[np.int64]) -> NDArray[np.void]:
        """Return the recorded merges, each with its parent merge in the same stretch."""
        n = len(recorded)
        stream = np.zeros(n, RECORDED)
        stream["row"], stream["above"] = recorded, -1
        births = self.rows["birth"][recorded]
        stretch = np.searchsorted([scale for scale, _ in self.seams], births)
        for name in ("first", "second"):
            child = self.rows[name][recorded]
            at = np.minimum(np.searchsorted(recorded, child), n - 1)
            inside = (recorded[at] == child) & (stretch[at] == stretch)
            stream["above"][at[inside]] = np.flatnonzero(inside)
            stream["waiting"] += inside
        return stream

    def run(
        self,
        target: float,
        events_from: Callable[[float], list[Event]],
        progress: ProgressCallback | None = None,
        believes: bool = False,
    ) -> Outcome:
        """Run up to the scale `target`, edits at it included.

        If it `believes`, the record is repeated with its edits until a merge crosses parts; edits
        from there on happen anew. `events_from` returns the events from a scale on, in order.
        """
        report(progress, "applying edits", 0, len(self.members))
        self._target = target
        events = [] if believes else events_from(-np.inf)[::-1]  # the next is the last
        seams = [*self.seams][::-1]
        while True:
            stop, tie = target, _LAST
            if seams and seams[-1][0] <= stop:
                stop = seams[-1][0]
            if events and events[-1].scale <= stop:
                stop, tie = events[-1].scale, events[-1].edit << 32
            why = self._advance(stop, tie, believes, progress)
            if why == DIVERGED:
                believes = False
                birth, edit = self._top()
                later = events_from(birth)
                events = [one for one in later if (one.scale, one.edit) >= (birth, edit)][::-1]
            elif tie != _LAST:
                self._happen(events, progress)
                # All that an edit at the target causes lies above it: no boundary needs a priority.
                self._holds = stop == target
            elif seams and seams[-1][0] == stop:
                self._toggle(seams.pop()[1])
                self._holds = stop == target
            else:
                return self._outcome()

    def _top(self) -> tuple[float, int]:
        """Return scale and edit of the recorded merge at which the run diverges."""
        row = self.stream["row"][self.state[TOP] - len(self.edges)]
        return float(self.rows["birth"][row]), int(self.rows["edit"][row])

    def _advance(
        self, stop: float, tie: int, believes: bool, progress: ProgressCallback | None
    ) -> int:
        """Merge up to a key, and enter boundaries in the heap; return the reason of the end."""
        n_rows, steady = self.log.count, self.scorer.steady
        limits = Limits(self._target, stop, tie, self._holds, believes, steady, _STEPS)
        while True:
            why = advance(limits, n_rows, self._run)
            if why == OFFER:
                self._offer()
                self._score(self.lists.wanted[: self.state[N_WANTED]], progress)
            elif why == PAUSED:
                report(progress, "applying edits", int(self.state[N_DONE]), len(self.members))
            else:
                return int(why)

    def _offer(
        self, within: bool = False, edit: int = -1, scale: float = 0.0, inside: Any = _NOWHERE
    ) -> None:
        """List the boundaries of pending slots that are to enter the heap; see the kernel."""
        own = self.superpixels
        offer(within, edit, scale, inside, self._run, own.start, own.stop, own.adjacent)

    def _score(self, wanted: NDArray[np.int32], progress: ProgressCallback | None) -> None:
        """Set the priority of boundaries: the known one, or that of the policy."""
        unknown = wanted[self.edges["known"][wanted] == 0]
        if len(self.cache.pairs) and len(unknown):
            known, priorities = self.cache.find(self._pairs(unknown))
            self.edges["priority"][unknown[known]] = priorities[known]
            self.edges["known"][unknown[known]] = 1
            unknown = unknown[~known]
        for start in range(0, len(unknown), _SCORED):
            batch = unknown[start : start + _SCORED]
            if start or len(unknown) > _SCORED:
                report(progress, "applying edits", int(self.state[N_DONE]), len(self.members))
            self.edges["priority"][batch] = self.scorer.score(
                batch, self.graph.ends, self.work, self.edges, self.chain, self.superpixels
            )
            self.edges["known"][batch] = 1
            self.n_scored += len(batch)

    def _pairs(self, edges: NDArray[Any]) -> NDArray[np.int64]:
        nodes = np.sort(self.slots["node"][self.graph.ends[edges]].astype(np.int64), axis=1)
        pairs: NDArray[np.int64] = nodes[:, 0] << 32 | nodes[:, 1]
        return pairs

    def _toggle(self, fresh: NDArray[np.int32]) -> None:
        """Turn clean regions dirty, and dirty ones clean; add their slots to the pending ones."""
        toggle_rows(fresh, self.rows, self._dirty)
        for row in fresh.tolist():
            slot = self._slot(int(self.rows["low"][row]))
            same = all(self.slots[h][slot] == self.rows[h][row] for h in ("hash_a", "hash_b"))
            if slot >= 0 and same:
                self.lists.pending[self.state[N_PENDING]] = slot
                self.state[N_PENDING] += 1

    def _slot(self, superpixel: int) -> int:
        """Return the slot of a superpixel, -1 if it is not in the replay."""
        joined, slot = self.work.joined, int(self.superpixels.slot_of[superpixel])
        while slot >= 0 and joined[slot] != slot:
            slot = int(joined[slot])
        return slot

    def _slots(self, superpixels: Ids32) -> NDArray[np.int64]:
        """Return the slots of superpixels, each once."""
        joined, slots = self.work.joined, self.superpixels.slot_of[superpixels]
        while True:
            slots = np.unique(slots)
            above = joined[slots]
            if (above == slots).all():
                return slots.astype(np.int64)
            slots = above

    # Edits that happen.

    def _happen(self, events: list[Event], progress: ProgressCallback | None) -> None:
        """Let the events of the next edit happen, then let its recorded merges be gone."""
        scale, edit = events[-1].scale, events[-1].edit
        self._holds = True
        while events and (events[-1].scale, events[-1].edit) == (scale, edit):
            event = events.pop()
            slots = self._slots(event.superpixels)
            if event.is_pair:
                a, b = (self._slot(superpixel) for superpixel in event.superpixels.tolist())
                if a != b and self._may_join(slots, event):
                    self._join(a, b, event, True)
            elif event.partial or not self._may_join(slots, event):
                self._join_by_policy(slots, event, progress)
            else:
                order = slots[np.argsort(self.slots["low"][slots])].tolist()
                for slot in order[1:]:
                    self._join(order[0], slot, event, False)
        self._advance(scale, (edit + 1) << 32, False, progress)
        self._holds = False

    def _may_join(self, inside: NDArray[np.int64], event: Event) -> bool:
        """Tell whether an edit may join slots: ask the kernel only if a lock or cut may forbid it.

        Slots are restless if one is locked, they are of several parts, or a newer cut is in a set.
        """
        slots = self.slots[inside]
        restless = slots["locked"].any() or (slots["part"] != slots["part"][0]).any()
        fence_sets = slots["fence_set"]
        for fence_set in fence_sets[self.cuts.fence_sets[fence_sets, N_CUTS] > 0].tolist():
            cut = int(self.cuts.fence_sets[fence_set, FIRST_CUT])
            while cut >= 0 and not restless:
                restless = self.cuts.entries[cut, CUT] > event.edit
                cut = int(self.cuts.entries[cut, NEXT_CUT])
        return not restless or bool(
            may_join(inside, event.scale, event.edit, self.slots, self.cuts)
        )

    def _join(self, first: int, second: int, event: Event, is_active: bool) -> None:
        joined = self.work.joined
        while joined[first] != first:
            first = int(joined[first])
        self.state[JOIN_U:TOP] = first, second, event.edit, is_active
        self._advance(event.scale, 0, False, None)

    def _join_by_policy(
        self, slots: NDArray[np.int64], event: Event, progress: ProgressCallback | None
    ) -> None:
        """Join the regions of a part pairwise, the lowest priority first, as far as is allowed."""
        joined, ends = self.work.joined, self.graph.ends
        inside = np.zeros(len(self.slots), np.int8)
        inside[slots] = 1
        pending = self.lists.pending[: self.state[N_PENDING]].copy()  # kept for afterwards
        while True:
            roots = np.flatnonzero(inside & (joined == np.arange(len(joined))))
            self.state[N_PENDING] = len(roots)
            self.lists.pending[: len(roots)] = roots
            self._offer(True, event.edit, event.scale, inside)
            wanted = self.lists.wanted[: self.state[N_WANTED]].copy()
            self.state[N_WANTED] = self.state[N_PENDING] = 0
            if not len(wanted):
                break
            self._score(wanted, progress)
            ids = np.sort(self.slots["low"][ends[wanted]], axis=1)
            best = np.lexsort((ids[:, 1], ids[:, 0], self.edges["priority"][wanted]))[0]
            a, b = ends[wanted[best]].tolist()
            if self.slots["low"][b] < self.slots["low"][a]:
                a, b = b, a
            self._join(a, b, event, False)
            pending = np.append(pending, self.lists.pending[: self.state[N_PENDING]])
            inside[self._slot(int(self.slots["low"][a]))] = 1
        self.state[N_PENDING] = len(pending)
        self.lists.pending[: len(pending)] = pending

    def _outcome(self) -> Outcome:
        made, done, gone = self.lists[:3]
        ends = self.graph.ends[: self.state[N_EDGES]]
        edges = np.flatnonzero((ends[:, 0] >= 0) & (self.edges["known"][: len(ends)] != 0))
        # Between regions that both have closed superpixels, a boundary may be incomplete.
        edges = edges[(self.slots["closed"][ends[edges]] < 0).any(axis=1)]
        pairs = self._pairs(edges)
        order = np.argsort(pairs)
        _, nodes, marks = self._dirty
        return Outcome(
            made[: self.state[N_MADE]],
            done[: self.state[N_DONE]],
            gone[: self.state[N_GONE]],
            nodes[marks == 3],
            ScoreCache(pairs[order], self.edges["priority"][edges[order]]),
        )
