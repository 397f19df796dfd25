"""The errors after each merge, from the overlaps of the superpixels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel
from napari_agglo._numba.hash_tables import pair_slot
from napari_agglo._progress import ProgressCallback, report
from napari_agglo.evaluate._metrics import conditional_entropies, count_pairs
from napari_agglo.volumes import Contingency

# Kernels of the curve: both errors and the Rand index after each merge.
#
# Strategy: with h(x, y) = x log2((x + y) / x) + y log2((x + y) / y), the information lost when a
# pile of x and a pile of y are no longer told apart, merging segments a and b
# - removes h(n_aj, n_bj) from the false splits, for each gold segment j that both overlap, and
# - adds h(n_a, n_b) less the same amount to the false merges.
#
# For the Rand index pairs n_a n_b take the place of h: those within one gold segment now agree, the
# others disagree. Terms are sums of non-negative numbers and are added with compensation, so that
# the last state is as exact as the first. Each segment keeps a linked list of its overlaps; a hash
# table over (segment, gold) finds the overlap of the larger list for each entry of the smaller one.


@inlined
def _confusion(x: int, y: int) -> float:
    """Bits, times voxels, lost by no longer telling x voxels from y others."""
    z = float(x + y)
    return x * math.log2(z / x) + y * math.log2(z / y)


@inlined
def rounding(a: float, b: float) -> float:
    """Return what a + b loses by rounding (Knuth's two-sum), to be kept beside the sum."""
    total = a + b
    of_b = total - a
    return (a - (total - of_b)) + (b - of_b)


@inlined
def _insert(entry: int, rows: NDArray[np.int64], columns: NDArray[np.int64],
            places: NDArray[np.int64]) -> None:  # fmt: skip
    slot = pair_slot(rows[entry], columns[entry], places.size - 1)
    while places[slot] != 0:
        slot = (slot + 1) & (places.size - 1)
    places[slot] = entry + 1


@kernel
def enter_kernel(
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    start: int,
    stop: int,
    head: NDArray[np.int64],
    length: NDArray[np.int64],
    following: NDArray[np.int64],
    places: NDArray[np.int64],
) -> None:
    """Enter the overlaps `stop` down to `start` into the lists and the table. Checks nothing."""
    for entry in range(stop - 1, start - 1, -1):
        following[entry] = head[rows[entry]]
        head[rows[entry]] = entry
        length[rows[entry]] += 1
        _insert(entry, rows, columns, places)


@kernel
def path_kernel(
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    counts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    winners: NDArray[np.int64],
    losers: NDArray[np.int64],
    start: int,
    budget: int,
    head: NDArray[np.int64],
    length: NDArray[np.int64],
    holder: NDArray[np.int64],
    following: NDArray[np.int64],
    places: NDArray[np.int64],
    places_used: NDArray[np.int64],
    sums: NDArray[np.float64],
    total: int,
    total_pairs: float,
    errors: NDArray[np.float64],
    kept: NDArray[np.int64],
    gone: NDArray[np.int64],
    met: NDArray[np.int64],
) -> int:
    """Walk the merges from `start` on and write the errors after each; return where it stopped.

    It stops once about `budget` overlaps have been moved: the last merges move most of them.

    `rows`, `counts` and `sizes` are used up. `head`, `length` and `following` are the linked lists;
    region r keeps its overlaps in list ``holder[r]``. `places` is the hash table of entry numbers
    plus one: an entry that moves is entered anew and never deleted, for a look-up compares with
    where the entry is now (row -1: gone), and the table is refilled when three quarters full.
    `places_used` and `sums` go from one call to the next. Nothing is checked: ids must be dense and
    every loser must be new.
    """
    used = places_used[0]
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
                slot = pair_slot(big, columns[entry], places.size - 1)
                other = places[slot] - 1
                while other >= 0 and (rows[other] != big or columns[other] != columns[entry]):
                    slot = (slot + 1) & (places.size - 1)
                    other = places[slot] - 1
                if other >= 0:
                    shared += _confusion(counts[other], counts[entry])
                    agreeing += float(counts[other]) * float(counts[entry])
                    kept[joins] = other
                    gone[joins] = entry
                    joins += 1
                    counts[other] += counts[entry]
                    rows[entry] = -1
                else:
                    rows[entry] = big
                    following[entry] = head[big]
                    head[big] = entry
                    length[big] += 1
                    places[slot] = entry + 1
                    used += 1
                    if 4 * used > 3 * places.size:
                        places[:] = 0
                        used = 0
                        for live in range(rows.size):
                            if rows[live] >= 0:
                                _insert(live, rows, columns, places)
                                used += 1
                entry = after
            change = float(sizes[big]) * float(sizes[small]) - 2 * agreeing
            apart_rest += rounding(apart, change)
            apart += change
            sizes[big] += sizes[small]
            length[small] = 0
            merged_rest += rounding(merged, gain - shared)
            merged += gain - shared
            split_rest += rounding(split, -shared)
            split -= shared
        holder[winners[step]] = big
        errors[0, step + 1] = max(0.0, (merged + merged_rest) / total)
        errors[1, step + 1] = max(0.0, (split + split_rest) / total)
        errors[2, step + 1] = 1 - (apart + apart_rest) / total_pairs
        step += 1
        met[step] = joins
    places_used[0] = used
    sums[0], sums[1], sums[2], sums[3] = merged, merged_rest, split, split_rest
    sums[4], sums[5] = apart, apart_rest
    return step


# Overlaps entered or moved between two reports: some hundredths of a second.
_SLICE = 1 << 17


@dataclass(frozen=True, eq=False)
class ErrorPath:
    """The errors before the first merge and after each, and which overlaps became one when.

    Attributes
    ----------
    false_merge, false_split, rand : ndarray of float64, shape (m + 1,)
        Bits, bits, and the Rand index.
    kept, gone : ndarray of int64
        Numbers of the overlaps that met in one segment: the voxels of `gone` now count in `kept`.
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
    pairs = count_pairs(table)
    errors = np.empty((3, m + 1))
    start = conditional_entropies(table)
    errors[:, 0] = *start, pairs.rand
    rows, counts = table.rows.copy(), table.counts.copy()
    head, length = np.full(n, -1, np.int64), np.zeros(n, np.int64)
    following = np.empty(k, np.int64)
    # At most half full with live entries, which leaves room for as many that have moved.
    places = np.zeros(1 << (4 * k + 16).bit_length(), np.int64)
    work = k + m
    for stop in range(k, 0, -_SLICE):
        report(progress, "errors", k - stop, work)
        first = max(stop - _SLICE, 0)
        enter_kernel(rows, table.columns, first, stop, head, length, following, places)
    sizes, holder = table.row_sums(), np.arange(n)
    kept, gone, met = np.empty(k, np.int64), np.empty(k, np.int64), np.zeros(m + 1, np.int64)
    # What goes from slice to slice: places used; the sums, each with what rounding has lost.
    used = np.array([k], np.int64)
    disagreeing = (pairs.drawn - pairs.together) + (pairs.true - pairs.together)
    sums = np.array([start[0] * total, 0.0, start[1] * total, 0.0, disagreeing, 0.0])
    step = 0
    while step < m:
        report(progress, "errors", k + step, work)
        step = path_kernel(
            rows, table.columns, counts, sizes, winners, losers, step, _SLICE, head, length,
            holder, following, places, used, sums, total, max(pairs.total, 1.0), errors,
            kept, gone, met,
        )  # fmt: skip
    report(progress, "errors", work, work)
    return ErrorPath(errors[0], errors[1], errors[2], kept[: met[m]], gone[: met[m]], met)
