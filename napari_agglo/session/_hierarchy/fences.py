"""Live edits, the parts of cuts that regions overlap, and up to which level cuts separate regions.

A cut has a *fence* around its parts: up to and including the scale of the cut the fence keeps them
apart from all other regions, and from each other for ever (rule 4 of docs/proofreading.md). Whether
a cut keeps two regions apart depends only on the parts that each overlaps, and on the number of its
pixels in them: a region of a replay has both in its *fence set*.

A fence set has an entry for each part that a region overlaps, with the number of its pixels in the
part; entries of one cut are chained. When regions merge, the fence set with fewer cuts is emptied
into the other. One hash table finds the chain of a cut in a fence set; entries that move to another
fence set are entered again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel, subroutine
from napari_agglo._numba.hash_tables import find_entry, find_or_enter
from napari_agglo.session._actions import Edit, Ids, Merge, as_ids
from napari_agglo.session._hierarchy.superpixels import resized

# Live edits, and which of them concern a superpixel: anchors of merges, parts of cuts, locks.


class Entered(NamedTuple):
    """An edit that was entered, and the state before it, to take it back."""

    superpixels: NDArray[np.int32]  # that it names, in the order of its entries
    pooled: int  # entries before it
    locked: Ids
    locks: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Regrouped:
    """Parts of cuts before a superpixel in them was divided."""

    n: int  # superpixels
    pooled: int
    parts: dict[int, tuple[Ids, ...]]


@dataclass(frozen=True, eq=False)
class Event:
    """One pair of an edit whose regions are joined in a replay, or one part to make whole."""

    scale: float
    edit: int
    superpixels: Ids  # the pair, or the part as far as it is in the replay ...
    is_pair: bool
    partial: bool = False  # ... and whether more of it lies elsewhere


_NONE = np.zeros(0, np.int32)


class Constraints:
    """The live edits, oldest first, and a list of those that concern each superpixel.

    An entry of `pool` is (edit, part, next), the part being -1 - k for an anchor of its pair k.
    A segment that was locked and is unlocked at t counts from then on as the only part of a cut at
    t: apart from all other regions up to t, and whole at t.
    """

    def __init__(self, n: int) -> None:
        self.edits: list[Edit] = []
        self.parts: list[tuple[Ids, ...]] = []  # of cuts, and of what was unlocked
        self.scales = np.zeros(16)
        self.heads = np.full(n + 1, -1, np.int32)
        self.pool = np.zeros((64, 3), np.int32)
        self.pooled = 0
        self.lock_of = np.zeros(n + 1, np.int32)  # node of the locked segment

    def enter(
        self,
        edit: Edit,
        parts: tuple[Ids, ...] = (),
        locked: Ids | None = None,
        lock: int = 0,
    ) -> Entered:
        """Enter an edit; `locked` are superpixels that it locks with `lock`, or unlocks with 0."""
        index, start = len(self.edits), self.pooled
        self.edits.append(edit)
        self.parts.append(parts)
        if index == len(self.scales):
            self.scales = np.concatenate([self.scales, np.zeros(index)])
        self.scales[index] = edit.scale
        superpixels = _NONE
        if isinstance(edit, Merge):
            superpixels = np.array(edit.pairs, np.int32).reshape(-1)
            pairs = [-1 - k for k in range(len(edit.pairs)) for _ in range(2)]
            self._link(superpixels, np.array(pairs, np.int32), index)
        elif parts:
            superpixels = np.concatenate(parts)
            which = np.arange(len(parts), dtype=np.int32).repeat([*map(len, parts)])
            self._link(superpixels, which, index)
        if locked is None:
            return Entered(superpixels, start, _NONE, _NONE)
        entered = Entered(superpixels, start, locked, self.lock_of[locked])
        self.lock_of[locked] = lock
        return entered

    def enter_all(self, edits: Sequence[tuple[Edit, tuple[Ids, ...]]]) -> list[Entered]:
        """Enter edits that lock nothing, each with its parts, as `enter` does, in one turn."""
        first = len(self.edits)
        self.edits += [edit for edit, _ in edits]
        self.parts += [parts for _, parts in edits]
        if len(self.edits) > len(self.scales):
            self.scales = np.concatenate([self.scales, np.zeros(len(self.edits))])
        self.scales[first : len(self.edits)] = [edit.scale for edit, _ in edits]
        # Sets of superpixels, the pair of an anchor or a part, with their numbers; and how many
        # each edit has.
        sets: list[Any] = []
        which: list[int] = []
        counts = []
        for edit, parts in edits:
            if isinstance(edit, Merge):
                sets += edit.pairs
                which += range(-1, -1 - len(edit.pairs), -1)
            sets += parts
            which += range(len(parts))
            counts.append(len(sets))
        ends = np.cumsum([0, *map(len, sets)])
        superpixels = np.concatenate([_NONE, *sets], dtype=np.int32)
        last = [0, *ends[np.array(counts, np.int64)].tolist()]
        start = self.pooled
        if len(superpixels):
            self._link(superpixels, np.repeat(np.array(which, np.int32), np.diff(ends)), first)
            self.pool[start : self.pooled, 0] += np.repeat(
                np.arange(len(edits), dtype=np.int32), np.diff(last)
            )
        return [
            Entered(superpixels[begin:end], start + begin, _NONE, _NONE)
            for begin, end in pairwise(last)
        ]

    def take_back(self, entered: Entered) -> None:
        """Remove the last edit."""
        self.edits.pop()
        self.parts.pop()
        # An entry keeps the head before it. A superpixel that is named twice has the oldest head in
        # its first entry, which is put back last.
        last = entered.pooled + len(entered.superpixels)
        self.heads[entered.superpixels[::-1]] = self.pool[entered.pooled : last, 2][::-1]
        self.lock_of[entered.locked] = entered.locks
        self.pooled = entered.pooled

    def listed(self, members: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the places of the entries of superpixels in `pool`, the newest of each first."""
        at = self.heads[members] if self.pooled else _NONE
        entries = []
        while len(at := at[at >= 0]):
            entries.append(at)
            at = self.pool[at, 2]
        return np.concatenate(entries) if entries else _NONE

    def concerning(
        self, members: NDArray[np.int32], low: float, high: float
    ) -> list[tuple[int, int]]:
        """Return the edits at scales `low` to `high` that name `members`, and the pair or part."""
        listed = self.listed(members)
        if not len(listed):
            return []
        edit, part = self.pool[listed, :2].T
        within = (low <= self.scales[edit]) & (self.scales[edit] <= high)
        which = np.where(part < 0, -1 - part, part)
        keys = np.unique(edit[within].astype(np.int64) << 32 | which[within])
        return [(key >> 32, key & 0xFFFFFFFF) for key in keys.tolist()]

    def entries(self, superpixel: int) -> list[tuple[int, int]]:
        """Return the edits that name a superpixel, newest first, with part or -1 - pair."""
        rows = self.pool[self.listed(as_ids([superpixel])), :2]
        return [(edit, part) for edit, part in rows.tolist()]

    def divide(self, superpixel: int, pieces: NDArray[np.int64]) -> Regrouped:
        """Enter the new `pieces` of a superpixel into its parts of cuts; anchors stay.

        Return the state before, for `revert`.
        """
        before = Regrouped(len(self.heads) - 1, self.pooled, {})
        self._resize(before.n + len(pieces))
        for edit, part in self.entries(superpixel):
            if part >= 0:
                before.parts[edit] = parts = self.parts[edit]
                whole = as_ids(np.concatenate([parts[part], pieces]))
                self.parts[edit] = (*parts[:part], whole, *parts[part + 1 :])
                self._link(pieces.astype(np.int32), np.full(len(pieces), part, np.int32), edit)
        return before

    def revert(self, before: Regrouped) -> None:
        """Undo the last division."""
        self._resize(before.n)
        self.pooled = before.pooled
        for edit, parts in before.parts.items():
            self.parts[edit] = parts

    def events_between(self, low: float, high: float) -> list[Event]:
        """Return the events above the scale `low`, up to `high`, in order."""
        scales = self.scales[: len(self.edits)]
        events = []
        for index in np.flatnonzero((low < scales) & (scales <= high)).tolist():
            edit = self.edits[index]
            n = len(edit.pairs) if isinstance(edit, Merge) else len(self.parts[index])
            events += [self._event(index, k) for k in range(n)]
        return sorted(events, key=lambda event: (event.scale, event.edit))

    def events_within(
        self, members: NDArray[np.int32], inside: NDArray[np.int32], low: float, high: float
    ) -> list[Event]:
        """Return the events among `members` from scale `low` to `high`, in order.

        `inside` is a table over all superpixels, 0 or more for `members` and negative for others. A
        merge with one end elsewhere is left out: it would cross the border of the segment that is
        cut. A part that is not all in `members` is returned as far as it is.
        """
        events = []
        for index, k in self.concerning(members, low, high):
            event = self._event(index, k)
            here = inside[event.superpixels] >= 0
            if event.is_pair and here.all():
                events.append(event)
            elif not event.is_pair:
                part = event.superpixels[here]
                events.append(replace(event, superpixels=part, partial=not here.all()))
        return sorted(events, key=lambda event: (event.scale, event.edit))

    def _event(self, index: int, k: int) -> Event:
        edit = self.edits[index]
        if isinstance(edit, Merge):
            return Event(edit.scale, index, np.array(edit.pairs[k], np.int32), True)
        return Event(edit.scale, index, self.parts[index][k], False)

    def _link(self, superpixels: NDArray[np.int32], which: NDArray[np.int32], edit: int) -> None:
        if self.pooled + len(superpixels) > len(self.pool):
            more = np.zeros((max(len(self.pool), len(superpixels)), 3), np.int32)
            self.pool = np.concatenate([self.pool, more])
        _link(superpixels, which, edit, self.pooled, self.heads, self.pool)
        self.pooled += len(superpixels)

    def _resize(self, n: int) -> None:
        self.heads = resized(self.heads, n, -1)
        self.lock_of = resized(self.lock_of, n, 0)


@kernel
def _link(superpixels: Any, which: Any, index: Any, first: Any, heads: Any, pool: Any) -> None:
    """Put an entry before those that each superpixel has. No bounds checking."""
    for k in range(superpixels.size):
        at = first + k
        pool[at, 0] = index
        pool[at, 1] = which[k]
        pool[at, 2] = heads[superpixels[k]]
        heads[superpixels[k]] = at


# Columns of `entries`; the first two, fence set and cut, are the key of a chain in the table.
# Columns of `fence_sets`: the first entry of its first cut, and the number of its cuts.
FENCE_SET, CUT, PART, PIXELS, NEXT_CUT, NEXT_PART = 0, 1, 2, 3, 4, 5
FIRST_CUT, N_CUTS = 0, 1


def empty_fence_sets(n_slots: int, n_entries: int) -> tuple[Any, ...]:
    """Return the arrays of fence sets for so many regions with so many entries in all."""
    fence_sets = np.zeros((n_slots, 2), np.int64)
    fence_sets[:, FIRST_CUT] = -1
    return (
        fence_sets,
        np.zeros((n_entries, 6), np.int64),
        np.zeros(1 << max(3, (4 * n_entries).bit_length()), np.int64),
        np.full(n_slots, -np.inf),  # the highest scale of the cuts in a fence set
        np.zeros(2, np.int64),  # entries in use, and places of the table
    )


@inlined
def _count_place(entries: Any, table: Any, used: Any) -> None:
    """Count a place of the table that has been taken; fill the table anew when it gets full."""
    used[1] += 1
    if 4 * used[1] > 3 * table.size:
        table[:] = 0
        used[1] = 0
        for known in range(used[0]):
            fence_set = entries[known, FENCE_SET]
            if fence_set >= 0:
                find_or_enter(known, fence_set, entries[known, CUT], False, entries, table)
                used[1] += 1


@inlined
def _put(entry: Any, fence_set: Any, fence_sets: Any, entries: Any, table: Any, used: Any) -> Any:
    """Put one entry into a fence set; return whether the set had an entry of this part already.

    Then the pixels are added to that one. Only the first entry of a chain has the number of its
    fence set in ``FENCE_SET``, others have -1. The table may still have an entry where it was the
    first one of a chain before; the ``FENCE_SET`` of the entry shows that it no longer is.
    """
    entries[entry, FENCE_SET] = -1
    entries[entry, NEXT_PART] = -1
    known = find_or_enter(entry, fence_set, entries[entry, CUT], False, entries, table)
    if known < 0:
        entries[entry, FENCE_SET] = fence_set
        entries[entry, NEXT_CUT] = fence_sets[fence_set, FIRST_CUT]
        fence_sets[fence_set, FIRST_CUT] = entry
        fence_sets[fence_set, N_CUTS] += 1
        _count_place(entries, table, used)
        return False
    while True:
        if entries[known, PART] == entries[entry, PART]:
            entries[known, PIXELS] += entries[entry, PIXELS]
            return True
        if entries[known, NEXT_PART] < 0:
            break
        known = entries[known, NEXT_PART]
    entries[known, NEXT_PART] = entry
    return False


@kernel
def fill_fence_sets(
    members: Any, slot_of: Any, heads: Any, pool: Any, edit_scale: Any, rows: Any,
    leaves: Any, fence_sets: Any, entries: Any, table: Any, tops: Any, used: Any,
) -> None:  # fmt: skip
    """Put the cuts of ``members[k]`` into the fence set of ``slot_of[k]``. No bounds checking."""
    for k in range(members.size):
        superpixel = members[k]
        slot = np.int64(slot_of[k])
        at = np.int64(heads[superpixel])
        while at >= 0:
            if pool[at, 1] >= 0:
                entry = used[0]
                entries[entry, CUT] = pool[at, 0]
                entries[entry, PART] = pool[at, 1]
                entries[entry, PIXELS] = rows[leaves[superpixel]]["size"]
                used[0] += 1
                if _put(entry, slot, fence_sets, entries, table, used):
                    used[0] -= 1
                tops[slot] = max(tops[slot], edit_scale[pool[at, 0]])
            at = np.int64(pool[at, 2])


@subroutine
def merge_fence_sets(
    into: Any, other: Any, fence_sets: Any, entries: Any, table: Any, tops: Any, used: Any
) -> None:
    """Empty the fence set `other` into the fence set `into`."""
    cut = fence_sets[other, FIRST_CUT]
    while cut >= 0:
        after = entries[cut, NEXT_CUT]
        entry = cut
        while entry >= 0:
            following = entries[entry, NEXT_PART]
            _put(entry, into, fence_sets, entries, table, used)
            entry = following
        cut = after
    fence_sets[other, FIRST_CUT] = -1
    fence_sets[other, N_CUTS] = 0
    tops[into] = max(tops[into], tops[other])


@inlined
def _shares_part(u: Any, v: Any, entries: Any) -> Any:
    """Return whether two chains of one cut have a part in common."""
    while u >= 0:
        other = v
        while other >= 0:
            if entries[u, PART] == entries[other, PART]:
                return True
            other = entries[other, NEXT_PART]
        u = entries[u, NEXT_PART]
    return False


@inlined
def _inside(chain: Any, size: Any, entries: Any) -> Any:
    """Return whether a region of `size` pixels lies wholly in the parts of a chain."""
    while chain >= 0:
        size -= entries[chain, PIXELS]
        chain = entries[chain, NEXT_PART]
    return size == 0


@inlined
def _apart_by(
    fence_set: Any, size: Any, other: Any, newer_than: Any, both: Any, edit_scale: Any,
    fence_sets: Any, entries: Any, table: Any,
) -> Any:  # fmt: skip
    """Return the level up to which cuts in `fence_set` keep its region apart from that of `other`.

    With `both` only cuts that the two have in common are looked at, without it only the others.
    """
    end = -np.inf
    cut = fence_sets[fence_set, FIRST_CUT]
    while cut >= 0:
        index = entries[cut, CUT]
        if index > newer_than:
            chain = find_entry(other, index, False, entries, table)
            if chain >= 0:
                if both and not _shares_part(cut, chain, entries):
                    return np.inf
            elif not both and _inside(cut, size, entries):
                end = max(end, np.nextafter(edit_scale[index], np.inf))
        cut = entries[cut, NEXT_CUT]
    return end


@subroutine
def apart_until(
    u: Any, v: Any, size_u: Any, size_v: Any, level: Any, newer_than: Any, edit_scale: Any,
    fence_sets: Any, entries: Any, table: Any, tops: Any,
) -> Any:  # fmt: skip
    """Return the level up to which cuts newer than an edit keep two fence sets apart: -inf to inf.

    A result at or below `level` does not matter to the caller and may be too low: a fence set of
    many cuts that are all below `level` is skipped. With an infinite `level` only parts of one
    cut, which are apart for ever, are compared.
    """
    if fence_sets[v, N_CUTS] < fence_sets[u, N_CUTS]:
        u, v = v, u
        size_u, size_v = size_v, size_u
    end = -np.inf
    if fence_sets[u, N_CUTS] > 0:
        end = _apart_by(u, size_u, v, newer_than, True, edit_scale, fence_sets, entries, table)
    if end < np.inf and tops[u] >= level:
        more = _apart_by(u, size_u, v, newer_than, False, edit_scale, fence_sets, entries, table)
        end = max(end, more)
    if end < np.inf and tops[v] >= level:
        more = _apart_by(v, size_v, u, newer_than, False, edit_scale, fence_sets, entries, table)
        end = max(end, more)
    return end
