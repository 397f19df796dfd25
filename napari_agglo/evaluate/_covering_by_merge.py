"""The covering after each merge."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel
from napari_agglo._numba.heaps import heap_settle
from napari_agglo._numba.sums import rounding_error
from napari_agglo._numba.union_find import find_root
from napari_agglo._progress import ProgressCallback, report
from napari_agglo.evaluate._vi_by_merge import ErrorPath
from napari_agglo.volumes import Contingency


class Overlaps(NamedTuple):
    """Overlaps of segments and gold segments; those that join others have a count of 0."""

    rows: NDArray[np.int64]  # superpixel of each overlap
    columns: NDArray[np.int64]  # gold segment of each overlap
    counts: NDArray[np.int64]  # voxels of each overlap
    sizes: NDArray[np.int64]  # of segments, by their winner
    gold_sizes: NDArray[np.int64]


class Ranking(NamedTuple):
    """The overlaps of each gold segment as an indexed heap, the greatest key first.

    Invariant: a key is never less than the intersection over union of its overlap. The heap of gold
    segment j is ``heap[first[j] : first[j + 1]]``.
    """

    keys: NDArray[np.float64]
    heap: NDArray[np.int64]
    first: NDArray[np.int64]
    place: NDArray[np.int64]  # of each overlap, counted from the first of its heap


class Owned(NamedTuple):
    """Lists, doubly linked, of the gold segments whose best overlap a segment is."""

    head: NDArray[np.int64]  # first gold segment of each segment, or -1
    after: NDArray[np.int64]  # the next in the list, or -1
    before: NDArray[np.int64]  # the previous one, or -1
    owner: NDArray[np.int64]  # segment of each gold segment; -1 if that lies wholly in one


class Joins(NamedTuple):
    """The merges, and the overlaps that join in each of them; see `ErrorPath`."""

    winners: NDArray[np.int64]
    losers: NDArray[np.int64]
    parents: NDArray[np.int64]  # union-find of the segments
    kept: NDArray[np.int64]
    gone: NDArray[np.int64]
    met: NDArray[np.int64]


class Terms(NamedTuple):
    """The covering and what it is the sum of."""

    worth: NDArray[np.float64]  # term of each gold segment
    inside: NDArray[np.float64]  # squares of the gold segments wholly in each segment, summed
    best: NDArray[np.float64]  # the largest IoU of each gold segment so far
    sums: NDArray[np.float64]  # (2,): the sum so far, and its rounding error
    covering: NDArray[np.float64]  # before the first merge and after each


@inlined
def _link(gold: Any, segment: Any, owned: Owned) -> None:
    """Put a gold segment at the beginning of a segment's list."""
    head, after, before, owner = owned
    owner[gold] = segment
    before[gold] = -1
    after[gold] = head[segment]
    if head[segment] >= 0:
        before[head[segment]] = gold
    head[segment] = gold


@inlined
def _unlink(gold: Any, owned: Owned) -> None:
    """Take a gold segment out of the list of its owner."""
    head, after, before, owner = owned
    if before[gold] >= 0:
        after[before[gold]] = after[gold]
    else:
        head[owner[gold]] = after[gold]
    if after[gold] >= 0:
        before[after[gold]] = before[gold]


@inlined
def _overlaps_more(entry: Any, other: Any, keys: Any, _: Any) -> Any:
    """Tell whether the key of `entry` is the greater one."""
    return keys[entry] > keys[other]


@inlined
def _settle(entry: Any, gold: Any, ranking: Ranking) -> None:
    """Restore the heap of a gold segment after the key of one of its overlaps has changed."""
    keys, heap, first, place = ranking
    low, high = first[gold], first[gold + 1]
    part = heap[low:high]
    heap_settle(entry, place[entry], _overlaps_more, keys, keys, part, place, high - low)


# Kernels of the curve: the covering after each merge.
#
# Strategy: a merge of a and b changes the overlap (intersection over union, IoU) of the new segment
# with every gold segment that it meets. It can rise only where both met that gold segment, and
# falls where the segment grew without gaining. So:
# - Each gold segment keeps its overlaps in a heap whose keys are never too low. A key is raised at
#   once when two overlaps join; a key that is too high is lowered when it reaches the top.
# - Each segment keeps a list of the gold segments whose best overlap it is: after a merge only
#   those of a and b are updated, and those where an overlap rose above the best.
# - A gold segment that lies wholly in one segment stays so. It overlaps nothing else, its IoU is
#   the ratio of the sizes, and a segment of size n adds (sum of squared sizes of these) / n.


@kernel
def own_kernel(overlaps: Overlaps, ranking: Ranking, owned: Owned, inside: Any) -> None:
    """Enter each gold segment in the list of the superpixel of its best overlap. Checks nothing."""
    rows, counts, gold_sizes = overlaps.rows, overlaps.counts, overlaps.gold_sizes
    heap, first = ranking.heap, ranking.first
    for gold in range(gold_sizes.size):
        if first[gold] == first[gold + 1]:
            continue
        entry = heap[first[gold]]
        if counts[entry] == gold_sizes[gold]:
            inside[rows[entry]] += float(gold_sizes[gold]) ** 2
        else:
            _link(gold, rows[entry], owned)


@kernel
def covering_kernel(
    overlaps: Overlaps,
    ranking: Ranking,
    owned: Owned,
    joins: Joins,
    terms: Terms,
    total: Any,
    start: Any,
    budget: Any,
) -> Any:
    """Follow the merges from `start` on, write the covering after each; return the next merge.

    The kernel stops once about `budget` gold segments have been updated. No bounds checking.
    """
    rows, columns, counts, sizes, gold_sizes = overlaps
    keys, heap, first, _ = ranking
    head, after, _, owner = owned
    winners, losers, parents, kept, gone, met = joins
    worth, inside, best, sums, covering = terms
    covered, rest = sums[0], sums[1]
    step = start
    while step < winners.size and budget > 0:
        segment, loser = winners[step], losers[step]
        change = 0.0
        if inside[segment] > 0:
            change -= inside[segment] / sizes[segment]
        if inside[loser] > 0:
            change -= inside[loser] / sizes[loser]
        parents[loser] = segment
        sizes[segment] += sizes[loser]
        inside[segment] += inside[loser]
        # The gold segments to update: those that either owned, as one list from `pending` on.
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
                _settle(entry, gold, ranking)
            is_owned_elsewhere = owner[gold] != segment and owner[gold] != loser
            if is_owned_elsewhere and value * gold_sizes[gold] > worth[gold]:
                _unlink(gold, owned)
                after[gold] = pending
                pending = gold
        budget -= met[step + 1] - met[step] + 1
        while pending >= 0:
            gold = pending
            pending = after[gold]
            budget -= 1
            entry = heap[first[gold]]
            holder = find_root(rows[entry], parents)
            # The key on top may be too high. Once it is exact, no other overlap can be greater.
            while True:
                value = -1.0
                if counts[entry] > 0:
                    union = sizes[holder] + gold_sizes[gold] - counts[entry]
                    value = counts[entry] / union
                if value >= keys[entry]:
                    break
                keys[entry] = value
                _settle(entry, gold, ranking)
                entry = heap[first[gold]]
                holder = find_root(rows[entry], parents)
            change -= worth[gold]
            if counts[entry] == gold_sizes[gold]:
                inside[holder] += float(gold_sizes[gold]) ** 2
                owner[gold] = -1
                worth[gold] = 0.0
            else:
                worth[gold] = value * gold_sizes[gold]
                change += worth[gold]
                _link(gold, holder, owned)
        if inside[segment] > 0:
            change += inside[segment] / sizes[segment]
        rest += rounding_error(covered, change)
        covered += change
        covering[step + 1] = (covered + rest) / total
        step += 1
    sums[0], sums[1] = covered, rest
    return step


# Gold segments updated between two reports: some hundredths of a second.
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
        The result of `error_path`, for the overlaps that joined in each step.

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
    place = np.empty_like(heap)  # of each overlap in the heap of its gold segment
    place[heap] = np.arange(heap.size) - first[table.columns[heap]]
    best = np.zeros(gold_sizes.size)
    np.maximum.at(best, table.columns, keys)
    n = table.row_ids.size
    overlaps = Overlaps(table.rows, table.columns, counts, sizes, gold_sizes)
    ranking = Ranking(keys, heap, first, place)
    owned = Owned(np.full(n, -1), *(np.full(best.size, -1) for _ in range(3)))
    worth, inside = best * gold_sizes, np.zeros(n)
    sums = np.array([worth.sum(), 0.0])  # and its rounding error
    own_kernel(overlaps, ranking, owned, inside)
    covering[0] = sums[0] / total
    joins = Joins(winners, losers, np.arange(n), joined.kept, joined.gone, joined.met)
    terms = Terms(worth, inside, best, sums, covering)
    step = 0
    while step < m:
        report(progress, "covering", step, m)
        step = covering_kernel(overlaps, ranking, owned, joins, terms, total, step, _SLICE)
    report(progress, "covering", m, m)
    return covering, float((best * gold_sizes).sum()) / total
