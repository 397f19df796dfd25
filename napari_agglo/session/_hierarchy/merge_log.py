"""The log of merges: a row for every merge of every run, and for every superpixel.

A row stands for the region that its merge made. It has the two regions that were merged, the scale
from which the union is visible (its *birth*), and the cause of the merge: a priority of the policy,
or an edit. The region is a set of superpixels, of which the row has a 128-bit hash, the XOR of the
hashes of the superpixels. Two rows with one hash are the same region, made by different runs.

The *live* rows are the merges of the present run up to the horizon, and above it those of earlier
runs, which are the record of a later replay. The order in which they happened is not stored: of the
merges whose two regions exist, the one of the smallest key (level, priority, ids) came first, as in
any greedy run; those of edits come after the automatic ones of their scale.

A step only adds rows. Four fields of older rows may change: the merge that a region became part of,
the rows of the two regions of a merge, and whether a row is live. The old values are kept in a
`Step`, so that undo puts them back, and drops the rows that the step added.

A region has an id and a name. The *id* (``low``) is its smallest superpixel, and part of the key of
a merge. The *name* is the id that a user sees; see `Names`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import kernel
from napari_agglo._numba.heaps import heap_pop, heap_push
from napari_agglo.agglomeration import Merges
from napari_agglo.session._actions import Ids
from napari_agglo.session._hierarchy.fences import Entered, Regrouped
from napari_agglo.session._hierarchy.superpixels import Divided, read_only, resized

ROW = np.dtype(
    [
        ("parent", np.int32),  # the live merge that takes it in, or -1; outdated if not live
        ("first", np.int32),  # the region that passes its name on; -1 for a superpixel
        ("second", np.int32),
        ("low", np.int32),  # smallest superpixel, the id of the region in keys (not its name)
        ("edit", np.int32),  # index of the edit that made it, -1 for the policy
        ("live", np.int32),  # 1 for a merge of the present tree or on record, else 0; leaf: 0
        ("size", np.int64),  # pixels
        (
            "birth",
            np.float64,
        ),  # scale from which it is visible (an edit at t: t), -inf: superpixel
        ("priority", np.float64),
        ("hash_a", np.int64),
        ("hash_b", np.int64),
    ]
)
CHANGING = ("parent", "first", "second", "live")  # the fields that a step may change

Swap = tuple[int, int]


class Fresh(NamedTuple):
    """Regions at a seam that only one of its two runs has: rows of a step, and the older ones.

    `older` has the regions of the steps before that ended at the same scale. The next replay
    begins with all of them as dirty.
    """

    rows: NDArray[np.int32]
    older: Fresh | None

    def all(self) -> NDArray[np.int32]:
        """Return the rows of all steps.

        A region that occurs twice came and went again: both runs of the seam have it, or neither.
        Rows are toggled (`toggle_rows`), so that such a region ends as clean.
        """
        at: Fresh | None = self
        rows = []
        while at is not None:
            rows.append(at.rows)
            at = at.older
        return np.concatenate(rows)


Seam = tuple[float, Fresh]


@dataclass(eq=False)
class Step:
    """Changes that an edit or a look made, and the state before the step."""

    count: int  # rows
    horizon: float
    seams: tuple[Seam, ...]
    scale: float  # of the edit or the look
    fresh: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    changes: list[NDArray[np.int32]] = field(default_factory=list)  # one field, rows, old values
    entered: Entered | None = None  # None for a look
    divided: list[tuple[int, Divided, Regrouped]] = field(default_factory=list)  # with old leaves
    swap: Swap | None = None


class MergeLog:
    """Rows, with room to grow.

    Superpixel `s` is row ``leaves[s]``, a *leaf*: at first row `s`, another one once it has been
    divided. There is no superpixel 0, so row 0 is unused, and a table over superpixels has a 0
    there.
    """

    def __init__(self, pixels: NDArray[np.int64], merges: Merges) -> None:
        n = len(pixels) - 1
        self.rows = np.zeros(2 * (n + len(merges.winners) + 64), ROW)
        self.count = 0
        self.leaves = self.add_leaves(np.arange(n + 1), pixels)
        end = n + 1 + len(merges.winners)
        self.rows["parent"][n + 1 : end] = -1
        if len(merges.winners):  # a snapshot has rows of its own, and does without the kernel
            winners, losers = read_only(merges.winners), read_only(merges.losers)
            _record(winners, losers, read_only(merges.priorities), np.arange(n + 1), self.rows)
        self.count = end
        self.names = Names(n)

    def add_leaves(self, superpixels: NDArray[Any], pixels: NDArray[Any]) -> NDArray[np.int32]:
        """Add rows for superpixels and return them."""
        new = np.zeros(len(superpixels), ROW)
        for name in ("parent", "first", "second", "edit"):
            new[name] = -1
        new["birth"] = new["priority"] = -np.inf
        new["low"], new["size"] = superpixels, pixels
        number = np.arange(self.count, self.count + len(new))
        new["hash_a"], new["hash_b"] = _mix(number, 1), _mix(number, 2)
        return self.add(new)

    def add(self, new: NDArray[np.void]) -> NDArray[np.int32]:
        """Add rows and return their numbers."""
        end = self.count + len(new)
        if end > len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros(max(len(self.rows), len(new)), ROW)])
        self.rows[self.count : end] = new
        added = np.arange(self.count, end, dtype=np.int32)
        self.count = end
        return added

    def add_one(self, *values: Any) -> int:
        """Add a row of these values, in the order of `ROW`, and return its number."""
        if self.count == len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros(len(self.rows), ROW)])
        self.rows[self.count] = values
        self.count += 1
        return self.count - 1

    def change(self, name: str, at: NDArray[Any], values: Any, step: Step) -> None:
        """Change a field of some rows, and note in a step how it was."""
        if not len(at):
            return
        column = self.rows[name]
        noted = np.empty((len(at), 3), np.int32)
        noted[:, 0], noted[:, 1], noted[:, 2] = CHANGING.index(name), at, column[at]
        step.changes.append(noted)
        column[at] = values

    def remove(self, gone: NDArray[Any], step: Step) -> None:
        """Set `live` of merges to 0, and clear the parent of the regions that they joined."""
        self.change("live", gone, 0, step)
        for name in ("first", "second"):
            child = self.rows[name][gone]
            orphan = child[self.rows["parent"][child] == gone]
            self.change("parent", orphan, -1, step)

    def put_back(self, step: Step) -> None:
        """Restore the rows and names before the last step."""
        for noted in reversed(step.changes):
            at, old = noted[::-1, 1:].T  # the oldest value is put in last
            self.rows[CHANGING[noted[0, 0]]][at] = old
        if step.swap is not None:
            self.names.swap(step.swap)
        self.count = step.count

    def resize(self, n: int) -> None:
        """Make it a log of superpixels 1..`n`."""
        self.names.resize(n)
        self.leaves = resized(self.leaves, n, 0)

    # Reading, at scales up to which the log is true.

    def region(self, superpixel: int, scale: float) -> int:
        """Return the row that holds a superpixel at a scale."""
        return int(region_at(self.leaves[superpixel], scale, self.rows))

    def regions(self, scale: float) -> NDArray[np.int64]:
        """Return the row of every superpixel at a scale, as a table over 0..n."""
        out = np.zeros(len(self.leaves), np.int64)
        regions_at(self.leaves, scale, self.rows, np.empty(self.count, np.int32), out)
        return out

    def subtree(self, node: int, births_from: float = -np.inf) -> NDArray[np.int64]:
        """Return a row and all rows below it, parents first.

        Rows born before `births_from` are returned without those below them.
        """
        room = 256
        while True:
            out, stack = np.empty(room, np.int64), np.empty(room, np.int64)
            n = int(list_subtree(int(node), births_from, self.rows, stack, out))
            if n <= room:
                return out[:n]
            room *= 4

    def children(self, merges: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the two regions of each merge, the one that passes its name on first."""
        ends = np.empty((len(merges), 2), np.int32)
        ends[:, 0], ends[:, 1] = self.rows["first"][merges], self.rows["second"][merges]
        return ends

    def crossing(
        self, order: NDArray[np.int64], members: Ids, parts: NDArray[np.int32]
    ) -> NDArray[np.int64]:
        """Return the merges of a subtree whose regions lie in several parts of a cut, ascending.

        If one merge of an edit crosses parts, all merges of this edit in the subtree are returned.
        """
        is_leaf = self.rows["first"][order] < 0
        spread = np.empty(len(order), np.int64)
        spread[:] = -2
        spread[is_leaf] = parts[members.searchsorted(self.rows["low"][order[is_leaf]])]
        spread_parts(spread, np.empty_like(spread))
        crossing: NDArray[np.int64] = order[spread == -1]
        edits = self.rows["edit"][crossing]
        edits = edits[edits >= 0]
        if len(edits):
            crosses = np.isin(self.rows["edit"][order], edits)
            crossing = order[crosses | (spread == -1)]
        crossing.sort()
        return crossing

    def members(self, node: int) -> Ids:
        """Return the superpixels of a row, ascending."""
        order = self.subtree(node)
        members: Ids = self.rows["low"][order[self.rows["first"][order] < 0]]
        members.sort()
        members.flags.writeable = False
        return members

    def naming(self, node: int) -> int:
        """Return the superpixel that names a row: follow `first` down to a superpixel."""
        return int(naming_leaf(int(node), self.rows))

    def name_table(self, scale: float, locks: NDArray[np.int32]) -> NDArray[np.uint32]:
        """Return the name of the region of each superpixel; `locks` has locked rows, or 0."""
        out = np.zeros(len(self.leaves), np.uint32)
        is_there = np.empty(self.count, np.int8)
        top, first = np.empty(self.count, np.int32), np.empty(self.count, np.int32)
        of_superpixel = self.names.of_superpixel
        names_at(self.leaves, scale, self.rows, locks, of_superpixel, is_there, top, first, out)
        return out

    def in_order(self, merges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return merges in the order in which they happened, for exports.

        The merges are of one run, and each is given before those below it.
        """
        rows = self.rows[merges]
        ends = np.sort(self.rows["low"][self.children(merges)], axis=1).T
        by_edit = rows["edit"] >= 0
        ends[:, by_edit] = -1
        priority = np.where(by_edit, -np.inf, rows["priority"])
        key = (-np.arange(len(merges)), ends[1], ends[0], priority, rows["edit"], rows["birth"])
        ranked = merges[np.lexsort(key)]
        out, above = np.zeros(len(merges), np.int64), np.full(len(merges), -1)
        rank = np.full(self.count, -1, np.int64)
        rank[ranked] = np.arange(len(ranked))
        heap = np.zeros(len(merges) + 1, np.int64)
        order_merges(ranked, rank, self.rows, heap, np.zeros_like(out), above, out)
        return out


class Names:
    """The name of each superpixel, and the superpixel of each name.

    A region has the name of one of its superpixels, so that no two regions of a partition have the
    same name: the name of the larger of the two regions that were merged, or that of the active
    one if a user merged them. A cut gives the name of the segment to the heir, the part that the
    edit names, or else the largest: if another superpixel names this part, the two superpixels swap
    names.

    Examples
    --------
    >>> names = Names(3)
    >>> names.swap((1, 3))
    >>> names.of_superpixel.tolist(), int(names.superpixel_of[3])
    ([0, 3, 2, 1], 1)
    """

    def __init__(self, n: int) -> None:
        self.of_superpixel = np.arange(n + 1, dtype=np.uint32)
        self.superpixel_of = np.arange(n + 1, dtype=np.uint32)

    def resize(self, n: int) -> None:
        """Make it names of superpixels 1..`n`: further ones have their own."""
        old = len(self.of_superpixel)
        self.of_superpixel = resized(self.of_superpixel, n, 0)
        self.superpixel_of = resized(self.superpixel_of, n, 0)
        for table in (self.of_superpixel, self.superpixel_of):
            table[old:] = np.arange(old, n + 1)

    def swap(self, swap: Swap) -> None:
        """Swap the names of two superpixels; a second swap restores them."""
        a, b = swap
        name_a, name_b = self.of_superpixel[a], self.of_superpixel[b]
        self.of_superpixel[a], self.of_superpixel[b] = name_b, name_a
        self.superpixel_of[name_a], self.superpixel_of[name_b] = b, a


def _mix(numbers: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Return 64 bits of hash for each number (the finalizer of splitmix64)."""
    z = numbers.astype(np.uint64) * np.uint64(2) + np.uint64(seed % 2)
    z = z * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))).view(np.int64)


@kernel
def _record(winners: Any, losers: Any, priorities: Any, at: Any, rows: Any) -> None:
    """Write the merges of an agglomeration without edits to `rows`, whose leaves are there.

    `at` is the row of each region.
    """
    count = at.size
    highest = -np.inf
    for k in range(winners.size):
        u = at[winners[k]]
        v = at[losers[k]]
        highest = max(highest, priorities[k])
        swapped = rows[v]["size"] > rows[u]["size"]  # the larger one passes its name on
        row = count + k
        rows[row]["first"] = v if swapped else u
        rows[row]["second"] = u if swapped else v
        rows[row]["low"] = winners[k]
        rows[row]["edit"] = -1
        rows[row]["live"] = 1
        rows[row]["size"] = rows[u]["size"] + rows[v]["size"]
        rows[row]["birth"] = highest
        rows[row]["priority"] = priorities[k]
        rows[row]["hash_a"] = rows[u]["hash_a"] ^ rows[v]["hash_a"]
        rows[row]["hash_b"] = rows[u]["hash_b"] ^ rows[v]["hash_b"]
        rows[u]["parent"] = row
        rows[v]["parent"] = row
        at[winners[k]] = row


@kernel
def region_at(node: Any, scale: Any, rows: Any) -> Any:
    """Return the region that holds `node` at `scale`. No bounds checking."""
    node = np.int64(node)
    while True:
        up = np.int64(rows[node]["parent"])
        if up < 0 or rows[up]["birth"] > scale:
            return node
        node = up


@kernel
def regions_at(leaves: Any, scale: Any, rows: Any, top: Any, out: Any) -> None:
    """Write the region of each superpixel at `scale` to `out`; `top` is a buffer of rows.

    No bounds checking. Rows are read once, in order: a parent mostly comes after its children, so
    that going down the numbers finds its region known. A row may also come after its parent, if it
    took the place of an older row of the same region: then its parents are followed.
    """
    for node in range(top.size):
        top[node] = node
        up = np.int64(rows[node]["parent"])
        if up >= 0 and rows[up]["birth"] <= scale:
            top[node] = up
    for node in range(top.size - 1, -1, -1):
        top[node] = top[top[node]]
    for superpixel in range(1, leaves.size):
        at = np.int64(leaves[superpixel])
        while top[at] != at:
            at = np.int64(top[at])
        top[leaves[superpixel]] = at
        out[superpixel] = at


@kernel
def naming_leaf(node: Any, rows: Any) -> Any:
    """Return the superpixel that names a row. No bounds checking."""
    node = np.int64(node)
    while rows[node]["first"] >= 0:
        node = np.int64(rows[node]["first"])
    return rows[node]["low"]


@kernel
def names_at(
    leaves: Any, scale: Any, rows: Any, locks: Any, of_superpixel: Any, is_there: Any, top: Any,
    first: Any, out: Any,
) -> None:  # fmt: skip
    """Write the name of the region of each superpixel at `scale` to `out`. No bounds checking.

    As `regions_at`, but the fields of a row are read at once, into buffers: whether the region
    exists at the scale (`is_there`), the region that contains it (`top`), and the first of the two
    that were merged (`first`). In `first` a leaf has its negative name, and so has a region once
    its name is known.
    """
    for node in range(top.size - 1, 0, -1):
        is_there[node] = rows[node]["birth"] <= scale
        first[node] = rows[node]["first"]
        if first[node] < 0:
            first[node] = -np.int64(of_superpixel[rows[node]["low"]])
        up = np.int64(rows[node]["parent"])
        top[node] = node
        if up > node:
            if is_there[up] != 0:
                top[node] = top[up]
        elif up >= 0 and rows[up]["birth"] <= scale:
            top[node] = up
    for superpixel in range(1, leaves.size):
        at = np.int64(locks[superpixel])
        if at == 0:
            at = np.int64(leaves[superpixel])
            while top[at] != at:
                at = np.int64(top[at])
            top[leaves[superpixel]] = at
        name = np.int64(first[at])
        while name >= 0:
            name = np.int64(first[name])
        first[at] = name
        out[superpixel] = -name


@kernel
def list_subtree(node: Any, births_from: Any, rows: Any, stack: Any, out: Any) -> Any:
    """Write `node` and the rows below it to `out`, parents first; return how many there are.

    `stack` is a buffer as large as `out`; if the two are too small, the number that is returned is
    larger than they are, and `out` is not complete.
    """
    n = 0
    depth = 1
    stack[0] = node
    while depth > 0:
        if n + depth >= out.size:
            return out.size + 1
        depth -= 1
        at = stack[depth]
        out[n] = at
        n += 1
        if rows[at]["first"] >= 0 and rows[at]["birth"] >= births_from:
            stack[depth] = rows[at]["first"]
            stack[depth + 1] = rows[at]["second"]
            depth += 2
    return n


@kernel
def spread_parts(parts: Any, stack: Any) -> None:
    """Write the part of each region of a subtree, listed parents first; -1 if it is in several.

    `parts` comes in with those of the superpixels, and -2 for merges. Read backwards, the parts of
    the two regions of a merge are on top of the stack.
    """
    depth = 0
    for k in range(parts.size - 1, -1, -1):
        if parts[k] == -2:
            depth -= 1
            parts[k] = stack[depth] if stack[depth] == stack[depth - 1] else -1
            depth -= 1
        stack[depth] = parts[k]
        depth += 1


@kernel
def order_merges(
    ranked: Any, rank: Any, rows: Any, heap: Any, waiting: Any, above: Any, out: Any
) -> None:
    """Write merges to `out` as they happened: the smallest rank of those that are possible.

    `rank` is -1 of rows that are not among the `ranked`; `waiting` comes in as 0, and `above`, the
    merge that each is part of, as -1. No bounds checking.
    """
    size = 0
    for k in range(ranked.size):
        for side in range(2):
            child = rows[ranked[k]]["second"] if side else rows[ranked[k]]["first"]
            if rank[child] >= 0:
                waiting[k] += 1
                above[rank[child]] = k
        if waiting[k] == 0:
            size = heap_push(heap, None, size, k, None)
    n = 0
    while size > 0:
        k = heap[0]
        size = heap_pop(heap, None, size)
        out[n] = ranked[k]
        n += 1
        if above[k] >= 0:
            waiting[above[k]] -= 1
            if waiting[above[k]] == 0:
                size = heap_push(heap, None, size, above[k], None)
