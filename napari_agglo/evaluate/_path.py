"""The errors after each merge, from the overlaps of the superpixels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.evaluate._pairs import count_pairs
from napari_agglo.evaluate._path_kernel import enter_kernel, path_kernel
from napari_agglo.evaluate._vi import conditional_entropies
from napari_agglo.volumes import Contingency

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
