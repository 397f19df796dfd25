"""The variation of information, split into its two kinds of error."""

from __future__ import annotations

from typing import Any

import numpy as np

from napari_agglo._progress import ProgressCallback
from napari_agglo.evaluate._points import check_weight
from napari_agglo.volumes import Contingency, contingency


def split_vi(
    labels: Any,
    gold: Any,
    *,
    ignore_labels: bool = False,
    progress: ProgressCallback | None = None,
) -> tuple[float, float]:
    """Return how wrong a segmentation is: by false merges and by false splits, in bits.

    With S the segmentation and U the gold standard, false merge is H(U|S): what is still unknown
    of the gold segment once the segment is known. False split is H(S|U). Their sum is the
    variation of information; a perfect segmentation has (0, 0).

    Parameters
    ----------
    labels : array of int
        The segmentation.
    gold : array of int, same shape
        The gold standard; voxels of 0 are not annotated and are left out.
    ignore_labels : bool
        Leave out voxels whose label is 0 too; otherwise label 0 counts as one segment.
    progress : callable, optional
        Called with a `Progress` now and then; it may raise `Cancelled`.

    Returns
    -------
    false_merge, false_split : float
        Bits. (0.0, 0.0) when no voxel is left to compare.

    Examples
    --------
    One object split into two equal halves is wrong by one bit:

    >>> import numpy as np
    >>> split_vi(np.array([1, 1, 2, 2]), np.array([7, 7, 7, 7]))
    (0.0, 1.0)
    """
    return conditional_entropies(
        contingency(labels, gold, ignore_labels=ignore_labels, progress=progress)
    )


def weighted_vi(
    labels: Any,
    gold: Any,
    a: float = 1.0,
    *,
    ignore_labels: bool = False,
    progress: ProgressCallback | None = None,
) -> float:
    """Return the variation of information with false merges weighted by `a`, in bits.

    Parameters
    ----------
    labels, gold, ignore_labels, progress
        As for `split_vi`.
    a : float
        How many bits of false split are as bad as one bit of false merge; above 0.

    Examples
    --------
    >>> import numpy as np
    >>> weighted_vi(np.array([1, 1, 1, 1]), np.array([7, 7, 8, 8]), a=3)
    3.0
    """
    check_weight(a)
    false_merge, false_split = split_vi(
        labels, gold, ignore_labels=ignore_labels, progress=progress
    )
    return a * false_merge + false_split


def conditional_entropies(table: Contingency) -> tuple[float, float]:
    """Return (H(column | row), H(row | column)) in bits: `split_vi` of a table made before.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.evaluate import contingency
    >>> conditional_entropies(contingency(np.array([1, 1]), np.array([1, 2])))
    (1.0, 0.0)
    """
    total = table.total
    if total == 0:
        return 0.0, 0.0
    # Each term is non-negative and exactly 0 where there is no error: nothing cancels.
    n = table.counts
    merge = n * np.log2(table.row_sums()[table.rows] / n)
    split = n * np.log2(table.column_sums()[table.columns] / n)
    return float(merge.sum()) / total, float(split.sum()) / total
