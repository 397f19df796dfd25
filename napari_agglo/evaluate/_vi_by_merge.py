"""The errors after each merge, from the overlaps of the superpixels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel
from napari_agglo._numba.hash_tables import find_or_enter
from napari_agglo._numba.sums import rounding_error
from napari_agglo._progress import ProgressCallback, report
from napari_agglo.evaluate._metrics import conditional_entropies, count_pairs
from napari_agglo.volumes import Contingency

# Kernels of the curve: both errors and the Rand index after each merge.
#
# Strategy: with h(x, y) = x log2((x + y) / x) + y log2((x + y) / y), the information lost when a
# set of x voxels and a set of y voxels are joined, merging segments a and b
# - removes h(n_aj, n_bj) from the false splits, for each gold segment j that both overlap, and
# - adds h(n_a, n_b) less the same amount to the false merges.
#
# For the Rand index, pairs n_a n_b replace h: the pairs within one gold segment now agree, the
# others disagree. Terms are sums of non-negative numbers and are added with compensation, so that
# the last state is as exact as the first. Each segment keeps a linked list of its overlaps; a hash
# table over (segment, gold) finds the overlap of the larger list for each entry of the smaller one.


@inlined
def _confusion(x: int, y: int) -> float:
    """Return the bits, times voxels, lost by joining a set of x and a set of y voxels."""
    z = float(x + y)
    return x * math.log2(z / x) + y * math.log2(z / y)


class Lists(NamedTuple):
    """Overlaps of each segment: linked lists, and a hash table over (segment, gold segment).

    Invariants: region r keeps its overlaps in list ``holder[r]``, and `pairs` has the list of each
    overlap: -1 once it has joined another overlap. An overlap that moves to another list is entered
    again in the table, which is refilled when it is three quarters full.
    """

    pairs: NDArray[np.int64]  # (overlaps, 2): list, gold segment
    counts: NDArray[np.int64]  # voxels of each overlap
    sizes: NDArray[np.int64]  # voxels of each list
    head: NDArray[np.int64]  # first overlap of each list, or -1
    length: NDArray[np.int64]
    following: NDArray[np.int64]  # next overlap, or -1
    holder: NDArray[np.int64]  # list of each region
    table: NDArray[np.int64]
    used: NDArray[np.int64]  # (1,): places of the table


@kernel
def enter_kernel(lists: Lists, start: Any, stop: Any) -> None:
    """Enter the overlaps `stop` down to `start` into the lists and the table. Checks nothing."""
    pairs, head, following, length = lists.pairs, lists.head, lists.following, lists.length
    for entry in range(stop - 1, start - 1, -1):
        row, column = pairs[entry, 0], pairs[entry, 1]
        following[entry] = head[row]
        head[row] = entry
        length[row] += 1
        find_or_enter(entry, row, column, False, pairs, lists.table)
        lists.used[0] += 1


@kernel
def path_kernel(
    lists: Lists,
    winners: Any,
    losers: Any,
    sums: Any,
    errors: Any,
    joined: Any,
    total: Any,
    total_pairs: Any,
    start: Any,
    budget: Any,
) -> Any:
    """Follow the merges from `start` on, write the errors after each; return the next merge.

    The kernel stops once about `budget` overlaps have been moved: the last merges move most of
    them. `sums` is kept from one call to the next; `joined` are `kept`, `gone` and `met` of the
    `ErrorPath`. Nothing is checked: ids must be dense and every loser must be new.
    """
    pairs, counts, sizes, head, length, following, holder, table, used = lists
    kept, gone, met = joined
    merged, merged_rest, split, split_rest = sums[0], sums[1], sums[2], sums[3]
    apart, apart_rest = sums[4], sums[5]  # pairs on which segmentation and gold disagree
    step = start
    joins = met[start]
    while step < winners.size and budget > 0:
        big, small = holder[winners[step]], holder[losers[step]]
        if length[big] < length[small]:
            big, small = small, big
        budget -= length[small] + 1
        if length[small] > 0:
            shared = 0.0
            agreeing = 0.0
            gain = _confusion(sizes[big], sizes[small])
            entry = head[small]
            while entry >= 0:
                after = following[entry]
                column = pairs[entry, 1]
                other = find_or_enter(entry, big, column, False, pairs, table)
                if other >= 0:
                    shared += _confusion(counts[other], counts[entry])
                    agreeing += float(counts[other]) * float(counts[entry])
                    kept[joins] = other
                    gone[joins] = entry
                    joins += 1
                    counts[other] += counts[entry]
                    pairs[entry, 0] = -1
                else:
                    pairs[entry, 0] = big
                    following[entry] = head[big]
                    head[big] = entry
                    length[big] += 1
                    used[0] += 1
                    if 4 * used[0] > 3 * table.size:
                        table[:] = 0
                        used[0] = 0
                        for live in range(pairs.shape[0]):
                            row, column = pairs[live, 0], pairs[live, 1]
                            if row >= 0:
                                find_or_enter(live, row, column, False, pairs, table)
                                used[0] += 1
                entry = after
            change = float(sizes[big]) * float(sizes[small]) - 2 * agreeing
            apart_rest += rounding_error(apart, change)
            apart += change
            sizes[big] += sizes[small]
            length[small] = 0
            merged_rest += rounding_error(merged, gain - shared)
            merged += gain - shared
            split_rest += rounding_error(split, -shared)
            split -= shared
        holder[winners[step]] = big
        errors[0, step + 1] = max(0.0, (merged + merged_rest) / total)
        errors[1, step + 1] = max(0.0, (split + split_rest) / total)
        errors[2, step + 1] = 1 - (apart + apart_rest) / total_pairs
        step += 1
        met[step] = joins
    sums[0], sums[1], sums[2], sums[3] = merged, merged_rest, split, split_rest
    sums[4], sums[5] = apart, apart_rest
    return step


# Overlaps entered or moved between two reports: some hundredths of a second.
_SLICE = 1 << 17


@dataclass(frozen=True, eq=False)
class ErrorPath:
    """The errors before the first merge and after each, and the overlaps that each merge joined.

    Attributes
    ----------
    false_merge, false_split, rand : ndarray of float64, shape (m + 1,)
        Bits, bits, and the Rand index.
    kept, gone : ndarray of int64
        Numbers of the overlaps joined in one segment: the voxels of `gone` now count in `kept`.
    met : ndarray of int64, shape (m + 1,)
        Step k joined ``kept[met[k]:met[k + 1]]``.
    """

    false_merge: NDArray[np.float64]
    false_split: NDArray[np.float64]
    rand: NDArray[np.float64]
    kept: NDArray[np.int64]
    gone: NDArray[np.int64]
    met: NDArray[np.int64]


def error_path(
    table: Contingency,
    winners: NDArray[np.int64],
    losers: NDArray[np.int64],
    *,
    progress: ProgressCallback | None = None,
) -> ErrorPath:
    """Follow both errors and the Rand index along a sequence of merges.

    Parameters
    ----------
    table : Contingency
        Overlaps of the superpixels with the gold standard.
    winners, losers : ndarray of int64, shape (m,)
        Dense ids: in step k region ``losers[k]`` becomes part of ``winners[k]``.
    progress : callable, optional
        Called with a `Progress` now and then; it may raise `Cancelled`.

    Returns
    -------
    ErrorPath
    """
    k, n, m = table.counts.size, table.row_ids.size, winners.size
    total = max(table.total, 1)
    agreement = count_pairs(table)
    errors = np.empty((3, m + 1))
    start = conditional_entropies(table)
    errors[:, 0] = *start, agreement.rand
    lists = Lists(
        pairs=np.stack([table.rows, table.columns], axis=1),
        counts=table.counts.copy(),
        sizes=table.row_sums(),
        head=np.full(n, -1, np.int64),
        length=np.zeros(n, np.int64),
        following=np.empty(k, np.int64),
        holder=np.arange(n),
        # at most half full with live entries, which leaves room for as many that have moved
        table=np.zeros(1 << (4 * k + 16).bit_length(), np.int64),
        used=np.zeros(1, np.int64),
    )
    work = k + m
    for stop in range(k, 0, -_SLICE):
        report(progress, "errors", k - stop, work)
        enter_kernel(lists, max(stop - _SLICE, 0), stop)
    kept, gone, met = np.empty(k, np.int64), np.empty(k, np.int64), np.zeros(m + 1, np.int64)
    # the sums, each with its rounding error
    together = agreement.together
    disagreeing = (agreement.drawn - together) + (agreement.true - together)
    sums = np.array([start[0] * total, 0.0, start[1] * total, 0.0, disagreeing, 0.0])
    step = 0
    while step < m:
        report(progress, "errors", k + step, work)
        step = path_kernel(
            lists, winners, losers, sums, errors, (kept, gone, met), total,
            max(agreement.total, 1.0), step, _SLICE,
        )  # fmt: skip
    report(progress, "errors", work, work)
    return ErrorPath(errors[0], errors[1], errors[2], kept[: met[m]], gone[: met[m]], met)
