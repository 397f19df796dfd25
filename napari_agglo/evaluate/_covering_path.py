"""The covering after each merge."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel
from napari_agglo._progress import ProgressCallback, report
from napari_agglo.evaluate._path import ErrorPath, rounding
from napari_agglo.volumes import Contingency

# What the kernel of the covering keeps: regions, lists of gold segments, heaps of overlaps.
#
# A segment's list, doubly linked, holds the gold segments whose best overlap it is. The overlaps of
# a gold segment are a heap, a part of one array, the greatest key first. Nothing is checked.


@inlined
def root(region: int, parent: NDArray[np.int64]) -> int:
    """Return the segment that a region is part of, and shorten the way to it."""
    while parent[region] != region:
        parent[region] = parent[parent[region]]
        region = parent[region]
    return region


@inlined
def link(gold: int, segment: int, head: Any, after: Any, before: Any, owner: Any) -> None:
    """Put a gold segment at the beginning of a segment's list."""
    owner[gold] = segment
    before[gold] = -1
    after[gold] = head[segment]
    if head[segment] >= 0:
        before[head[segment]] = gold
    head[segment] = gold


@inlined
def unlink(gold: int, head: Any, after: Any, before: Any, owner: Any) -> None:
    """Take a gold segment out of the list of its owner."""
    if before[gold] >= 0:
        after[before[gold]] = after[gold]
    else:
        head[owner[gold]] = after[gold]
    if after[gold] >= 0:
        before[after[gold]] = before[gold]


@inlined
def rise(at: int, low: int, keys: Any, heap: Any, place: Any) -> None:
    """Move the entry at place `at` up to where it belongs in the heap that begins at `low`."""
    entry = heap[at]
    while at > low:
        up = low + (at - low - 1) // 2
        if keys[heap[up]] >= keys[entry]:
            break
        heap[at] = heap[up]
        place[heap[at]] = at
        at = up
    heap[at] = entry
    place[entry] = at


@inlined
def sink(low: int, high: int, keys: Any, heap: Any, place: Any) -> None:
    """Move the first entry of the heap ``heap[low:high]`` down to where it belongs."""
    entry = heap[low]
    at = low
    while True:
        child = low + 2 * (at - low) + 1
        if child >= high:
            break
        if child + 1 < high and keys[heap[child + 1]] > keys[heap[child]]:
            child += 1
        if keys[heap[child]] <= keys[entry]:
            break
        heap[at] = heap[child]
        place[heap[at]] = at
        at = child
    heap[at] = entry
    place[entry] = at


# Kernels of the curve: the covering after each merge.
#
# Strategy: a merge of a and b changes the overlap (intersection over union, IoU) of the new segment
# with every gold segment that it meets. It can rise only where both met that gold segment, and
# falls where the segment grew without gaining. So:
# - Each gold segment keeps its overlaps in a heap whose keys are never too low. A key is raised at
#   once, when two overlaps join; that others have fallen shows when they come to the top.
# - Each segment keeps a list of the gold segments whose best overlap it is: after a merge only
#   those of a and b are looked at, and those where an overlap rose above the best.
# - A gold segment that lies wholly in one segment stays so. It overlaps nothing else, its IoU is
#   the ratio of the sizes, and a segment of size n adds (sum of squared sizes of these) / n.


@kernel
def own_kernel(
    rows: NDArray[np.int64],
    counts: NDArray[np.int64],
    gold_sizes: NDArray[np.int64],
    heap: NDArray[np.int64],
    first: NDArray[np.int64],
    head: NDArray[np.int64],
    after: NDArray[np.int64],
    before: NDArray[np.int64],
    owner: NDArray[np.int64],
    inside: NDArray[np.float64],
) -> None:
    """Give each gold segment to the superpixel that it overlaps best. Nothing is checked."""
    for gold in range(gold_sizes.size):
        if first[gold] == first[gold + 1]:
            continue
        entry = heap[first[gold]]
        if counts[entry] == gold_sizes[gold]:
            inside[rows[entry]] += float(gold_sizes[gold]) ** 2
        else:
            link(gold, rows[entry], head, after, before, owner)


@kernel
def covering_kernel(
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    counts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    gold_sizes: NDArray[np.int64],
    winners: NDArray[np.int64],
    losers: NDArray[np.int64],
    start: int,
    budget: int,
    kept: NDArray[np.int64],
    gone: NDArray[np.int64],
    met: NDArray[np.int64],
    parent: NDArray[np.int64],
    keys: NDArray[np.float64],
    heap: NDArray[np.int64],
    first: NDArray[np.int64],
    place: NDArray[np.int64],
    head: NDArray[np.int64],
    after: NDArray[np.int64],
    before: NDArray[np.int64],
    owner: NDArray[np.int64],
    worth: NDArray[np.float64],
    inside: NDArray[np.float64],
    best: NDArray[np.float64],
    sums: NDArray[np.float64],
    total: int,
    covering: NDArray[np.float64],
) -> int:
    """Walk the merges from `start` on, write the covering after each; return where it stopped.

    It stops once about `budget` gold segments have been looked at. ``worth[j]`` is what gold
    segment j adds to the sum, `inside` the sum of squares of those that lie wholly in a segment,
    `best` the largest IoU so far. Nothing is checked.
    """
    covered, rest = sums[0], sums[1]
    step = start
    while step < winners.size and budget > 0:
        segment, loser = winners[step], losers[step]
        change = 0.0
        if inside[segment] > 0:
            change -= inside[segment] / sizes[segment]
        if inside[loser] > 0:
            change -= inside[loser] / sizes[loser]
        parent[loser] = segment
        sizes[segment] += sizes[loser]
        inside[segment] += inside[loser]
        # To be looked at: what both owned, as one list hanging from `pending`.
        pending = head[segment]
        if pending < 0:
            pending = head[loser]
        elif head[loser] >= 0:
            tail = head[loser]
            while after[tail] >= 0:
                tail = after[tail]
            after[tail] = pending
            pending = head[loser]
        head[segment] = -1
        head[loser] = -1
        for join in range(met[step], met[step + 1]):
            entry = kept[join]
            gold = columns[entry]
            counts[entry] += counts[gone[join]]
            counts[gone[join]] = 0
            union = sizes[segment] + gold_sizes[gold] - counts[entry]
            value = counts[entry] / union
            best[gold] = max(best[gold], value)
            if value > keys[entry]:
                keys[entry] = value
                rise(place[entry], first[gold], keys, heap, place)
            stranger = owner[gold] != segment and owner[gold] != loser
            if stranger and value * gold_sizes[gold] > worth[gold]:
                unlink(gold, head, after, before, owner)
                after[gold] = pending
                pending = gold
        budget -= met[step + 1] - met[step] + 1
        while pending >= 0:
            gold = pending
            pending = after[gold]
            budget -= 1
            low, high = first[gold], first[gold + 1]
            entry = heap[low]
            holder = root(rows[entry], parent)
            while True:
                value = -1.0
                if counts[entry] > 0:
                    union = sizes[holder] + gold_sizes[gold] - counts[entry]
                    value = counts[entry] / union
                if value >= keys[entry]:
                    break
                keys[entry] = value
                sink(low, high, keys, heap, place)
                entry = heap[low]
                holder = root(rows[entry], parent)
            change -= worth[gold]
            if counts[entry] == gold_sizes[gold]:
                inside[holder] += float(gold_sizes[gold]) ** 2
                owner[gold] = -1
                worth[gold] = 0.0
            else:
                worth[gold] = value * gold_sizes[gold]
                change += worth[gold]
                link(gold, holder, head, after, before, owner)
        if inside[segment] > 0:
            change += inside[segment] / sizes[segment]
        rest += rounding(covered, change)
        covered += change
        covering[step + 1] = (covered + rest) / total
        step += 1
    sums[0], sums[1] = covered, rest
    return step


# Gold segments looked at between two reports: some hundredths of a second.
_SLICE = 1 << 18


def covering_path(
    table: Contingency,
    winners: NDArray[np.int64],
    losers: NDArray[np.int64],
    joined: ErrorPath,
    *,
    progress: ProgressCallback | None = None,
) -> tuple[NDArray[np.float64], float]:
    """Follow the covering along a sequence of merges.

    Parameters
    ----------
    table, winners, losers, progress
        As for `error_path`.
    joined : ErrorPath
        What `error_path` returned: it says which overlaps joined in each step.

    Returns
    -------
    covering : ndarray of float64, shape (m + 1,)
        Before the first merge and after each.
    best : float
        The covering if each gold segment could choose its segment from any state.
    """
    m, total = winners.size, table.total
    covering = np.ones(m + 1)
    if total == 0:
        return covering, 1.0
    counts, sizes, gold_sizes = table.counts.copy(), table.row_sums(), table.column_sums()
    keys = counts / (sizes[table.rows] + gold_sizes[table.columns] - counts)
    heap = np.lexsort((-keys, table.columns))  # best first, which is a heap
    first = np.searchsorted(table.columns[heap], np.arange(gold_sizes.size + 1))
    place = np.empty_like(heap)
    place[heap] = np.arange(heap.size)
    best = np.zeros(gold_sizes.size)
    np.maximum.at(best, table.columns, keys)
    n = table.row_ids.size
    parent = np.arange(n)
    # Doubly linked lists: a segment's first gold segment; the neighbours of each in its list.
    head, after, before = np.full(n, -1), np.full(best.size, -1), np.full(best.size, -1)
    owner, worth = np.full(best.size, -1), best * gold_sizes
    inside = np.zeros(n)
    sums = np.array([worth.sum(), 0.0])
    own_kernel(table.rows, counts, gold_sizes, heap, first, head, after, before, owner, inside)
    covering[0] = sums[0] / total
    step = 0
    while step < m:
        report(progress, "covering", step, m)
        step = covering_kernel(
            table.rows, table.columns, counts, sizes, gold_sizes, winners, losers, step, _SLICE,
            joined.kept, joined.gone, joined.met, parent, keys, heap, first, place, head, after,
            before, owner, worth, inside, best, sums, total, covering,
        )  # fmt: skip
    report(progress, "covering", m, m)
    return covering, float((best * gold_sizes).sum()) / total
