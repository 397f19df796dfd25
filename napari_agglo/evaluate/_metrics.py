"""Every measure that one table of overlaps gives, as one row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput, is_whole
from napari_agglo.evaluate._covering import table_covering
from napari_agglo.evaluate._pairs import count_pairs
from napari_agglo.evaluate._vi import conditional_entropies
from napari_agglo.volumes import Contingency, contingency

if TYPE_CHECKING:
    import pandas as pd


def metrics(
    labels: Any,
    gold: Any,
    *,
    ignore_labels: bool = False,
    min_overlap: int = 1,
    progress: ProgressCallback | None = None,
) -> pd.Series[float]:
    """Compare a segmentation with the gold standard by every measure at once.

    Parameters
    ----------
    labels : array of int
        The segmentation.
    gold : array of int, same shape
        The gold standard; voxels of 0 are not annotated and are left out.
    ignore_labels : bool
        Leave out voxels whose label is 0 too; otherwise label 0 counts as one segment.
    min_overlap : int
        An overlap of fewer voxels is not worth an edit of a proofreader; all other measures count
        every voxel.
    progress : callable, optional
        Called with a `Progress` now and then; it may raise `Cancelled`.

    Returns
    -------
    pandas.Series
        ``vi``, ``false_merge``, ``false_split`` (bits); ``rand``, ``adjusted_rand``,
        ``fowlkes_mallows``; ``adapted_rand_error``, ``adapted_rand_precision``,
        ``adapted_rand_recall``; ``snemi3d_error`` and ``cremi_score``, as these challenges define
        them; ``covering``; ``merges_needed``, ``cuts_needed``, ``edit_distance``; ``segments`` and
        ``gold_segments`` of the whole images, 0 not counted; ``voxels`` compared. When none is left
        to compare, nothing is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> scores = metrics(np.array([1, 1, 2, 2]), np.array([7, 7, 7, 7]))
    >>> scores["vi"], scores["covering"], scores["merges_needed"]
    (np.float64(1.0), np.float64(0.5), np.float64(1.0))
    """
    table = contingency(labels, gold, ignore_labels=ignore_labels, progress=progress)
    return table_metrics(table, min_overlap=min_overlap)


def table_metrics(table: Contingency, *, min_overlap: int = 1) -> pd.Series[float]:
    """Return the `metrics` of a table made before.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.evaluate import contingency
    >>> table_metrics(contingency(np.array([1, 1, 1]), np.array([1, 1, 2])))["rand"].round(3)
    np.float64(0.333)
    """
    import pandas as pd  # half a second that only those who want a table should wait

    false_merge, false_split = conditional_entropies(table)
    pairs = count_pairs(table)
    cuts, merges = _edits(table, min_overlap)
    snemi3d = _snemi3d_error(table)
    return pd.Series(
        {
            "vi": false_merge + false_split,
            "false_merge": false_merge,
            "false_split": false_split,
            "rand": pairs.rand,
            "adjusted_rand": pairs.adjusted_rand,
            "adapted_rand_error": pairs.adapted_error,
            "adapted_rand_precision": pairs.precision,
            "adapted_rand_recall": pairs.recall,
            "snemi3d_error": snemi3d,
            "cremi_score": math.sqrt(snemi3d * (false_merge + false_split)),
            "fowlkes_mallows": pairs.fowlkes_mallows,
            "covering": table_covering(table),
            "merges_needed": merges,
            "cuts_needed": cuts,
            "edit_distance": cuts + merges,
            "segments": table.row_ids.size - 1,
            "gold_segments": table.column_ids.size - 1,
            "voxels": table.total,
        },
        dtype=float,
    )


def _edits(table: Contingency, min_overlap: int) -> tuple[int, int]:
    """Return how many cuts along gold borders, then merges, make the segmentation the gold.

    Where there is no segment (label 0) there is nothing to cut or to merge.
    """
    if not (is_whole(min_overlap) and min_overlap >= 1):
        raise InvalidInput(
            f"`min_overlap` must be a number of voxels, 1 or more, got {min_overlap!r}."
        )
    counted = (table.counts >= min_overlap) & (table.rows > 0)
    overlaps = int(counted.sum())
    cuts = overlaps - np.unique(table.rows[counted]).size
    merges = overlaps - np.unique(table.columns[counted]).size
    return cuts, merges


def _snemi3d_error(table: Contingency) -> float:
    """Return 1 - F of pairs as SNEMI3D's and CREMI's script has it.

    A voxel makes a pair with itself, and each voxel of label 0 is a segment of its own.
    """
    if table.total == 0:
        return 0.0
    alone = float(table.counts[table.rows == 0].sum())
    both = _squares(table.counts[table.rows > 0]) + alone
    drawn = _squares(table.row_sums()[1:]) + alone
    true = _squares(table.column_sums())
    return max(0.0, 1 - 2 * both / (drawn + true))


def _squares(counts: Any) -> float:
    """Sum of squares, in floats: a square of voxels may exceed 64 bits."""
    return float(np.square(counts.astype(np.float64)).sum())
