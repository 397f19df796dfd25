"""The covering after each merge."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.evaluate._covering_kernel import covering_kernel, own_kernel
from napari_agglo.evaluate._path import ErrorPath
from napari_agglo.volumes import Contingency

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
