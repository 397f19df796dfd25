"""Every measure that one table of overlaps gives, as one row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput, is_number, is_whole
from napari_agglo.volumes import (
    Contingency,
    DenseLabels,
    check_same_shape,
    contingency,
    dense_labels,
)

if TYPE_CHECKING:
    import pandas as pd


# One gold standard, or several of the same image.


def dense_golds(gold: Any, like: Any, like_name: str) -> list[DenseLabels]:
    """Return gold standards on dense ids, of the shape of `like`; a list or tuple holds several."""
    given = list(gold) if isinstance(gold, (list, tuple)) else [gold]
    if not given:
        raise InvalidInput("`gold` must hold a gold standard at least, got an empty list.")
    out = []
    for number, one in enumerate(given):
        name = "gold" if len(given) == 1 else f"gold[{number}]"
        dense = one if isinstance(one, DenseLabels) else dense_labels(one, name)
        check_same_shape(dense.image, like, name, like_name)
        out.append(dense)
    return out


# The table of overlaps after merging rows, without looking at the images again.


def merged_rows(table: Contingency, lut: NDArray[np.uint32]) -> Contingency:
    """Return the overlaps of the segments ``lut[row]``; a segment keeps the id of that row.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.evaluate import contingency
    >>> table = contingency(np.array([1, 1, 2]), np.array([1, 1, 1]))
    >>> merged_rows(table, np.array([0, 1, 1], np.uint32)).counts
    array([3])
    """
    kept, compact = np.unique(lut, return_inverse=True)
    rows = compact[table.rows].astype(np.int64)
    # Below 2**63: both factors are numbers of labels, which are 32-bit.
    keys, back = np.unique(rows * table.column_ids.size + table.columns, return_inverse=True)
    counts = np.zeros(keys.size, np.int64)
    np.add.at(counts, back, table.counts)
    rows, columns = np.divmod(keys, table.column_ids.size)
    return Contingency(rows, columns, counts, table.row_ids[kept], table.column_ids)


# The covering of a gold standard: how well each gold segment is met by its best segment.


def table_covering(table: Contingency) -> float:
    """Return the covering of the columns (the gold standard) by the rows, 0 to 1.

    For each gold segment the largest intersection over union with any one segment, averaged over
    the gold segments, each with the weight of its voxels (Arbelaez et al. 2011).

    Examples
    --------
    One of two gold segments is met exactly, of the other one half:

    >>> import numpy as np
    >>> from napari_agglo.evaluate import contingency
    >>> table_covering(contingency(np.array([1, 1, 2, 3]), np.array([8, 8, 9, 9])))
    0.75
    """
    total = table.total
    if total == 0:
        return 1.0
    sizes, n = table.column_sums(), table.counts
    overlap = n / (table.row_sums()[table.rows] + sizes[table.columns] - n)
    best = np.zeros(sizes.size)
    np.maximum.at(best, table.columns, overlap)
    return float((best * sizes).sum()) / total


# Pairs of voxels: how many are together in the segmentation, in the gold standard, in both.


@dataclass(frozen=True)
class Pairs:
    """Numbers of pairs of two different voxels, as floats: they may exceed 64 bits.

    Attributes
    ----------
    together
        In one segment and in one gold segment.
    drawn, true
        In one segment; in one gold segment.
    total
        All pairs.

    Examples
    --------
    >>> Pairs(together=1, drawn=3, true=1, total=3).precision
    0.3333333333333333
    """

    together: float
    drawn: float
    true: float
    total: float

    @property
    def rand(self) -> float:
        """The Rand index: the share of pairs on which both agree."""
        if self.total == 0:
            return 1.0
        return 1 - ((self.drawn - self.together) + (self.true - self.together)) / self.total

    @property
    def adjusted_rand(self) -> float:
        """The Rand index less what chance gives: 1 is perfect, 0 is chance (Hubert and Arabie)."""
        if self.drawn == self.true == self.together:
            return 1.0
        chance = self.drawn * (self.true / self.total)
        return (self.together - chance) / ((self.drawn + self.true) / 2 - chance)

    @property
    def precision(self) -> float:
        """Of the pairs within a segment, the share that belongs together."""
        return self.together / self.drawn if self.drawn else 1.0

    @property
    def recall(self) -> float:
        """Of the pairs that belong together, the share within a segment."""
        return self.together / self.true if self.true else 1.0

    @property
    def adapted_error(self) -> float:
        """The adapted Rand error: 1 - F, where F is the harmonic mean of precision and recall."""
        either = self.drawn + self.true
        return 1 - 2 * self.together / either if either else 0.0

    @property
    def fowlkes_mallows(self) -> float:
        """The geometric mean of precision and recall."""
        return math.sqrt(self.precision * self.recall)


def count_pairs(table: Contingency) -> Pairs:
    """Count the pairs of a table.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.evaluate import contingency
    >>> count_pairs(contingency(np.array([1, 1, 1]), np.array([1, 1, 2])))
    Pairs(together=1.0, drawn=3.0, true=1.0, total=3.0)
    """
    return Pairs(
        together=_pairs(table.counts),
        drawn=_pairs(table.row_sums()),
        true=_pairs(table.column_sums()),
        total=_pairs(np.array([table.total])),
    )


def _pairs(counts: NDArray[np.int64]) -> float:
    as_float = counts.astype(np.float64)
    return float((as_float * (as_float - 1)).sum() / 2)


# The variation of information, split into its two kinds of error.


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


def check_weight(a: float) -> None:
    """Refuse a weight of false merges that is not a positive, finite number."""
    if not (is_number(a) and 0 < a < float("inf")):
        raise InvalidInput(
            f"`a`, the weight of false merges, must be a number above 0, got {a!r}; 1 weighs both "
            "errors alike, 2 counts a false merge twice."
        )


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
