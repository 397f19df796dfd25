"""Measures of one segmentation: variation of information, Rand indices, covering, edits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput, check_whole, is_number
from napari_agglo.volumes import (
    Contingency,
    DenseLabels,
    check_same_shape,
    contingency,
    dense_labels,
    is_lazy,
    is_on_disk,
    unwrap,
)

if TYPE_CHECKING:
    import pandas as pd


def dense_gold(gold: Any, name: str = "gold") -> DenseLabels:
    """Return a gold standard on dense ids; refuse one in which nothing is annotated."""
    dense = dense_labels(gold, name)
    if dense.ids.size == 1:  # the 0 alone: every measure of it would be perfect
        raise empty_gold(name)
    return dense


def empty_gold(name: str = "gold") -> InvalidInput:
    """Return the refusal of a gold standard in which nothing is annotated."""
    return InvalidInput(
        f"`{name}` has no annotated voxel: it is 0 everywhere",
        argument=name,
        remedy="pass a label image whose objects have ids above 0, or a crop that has some",
    )


def dense_golds(gold: Any, like: Any, like_name: str) -> list[Any]:
    """Return one gold standard, or a list of them, on dense ids and of the shape of `like`.

    A lazy one beside labels on disk stays as it is: `contingency` reads both slab by slab.
    """
    golds = list(gold) if isinstance(gold, (list, tuple)) else [gold]
    if not golds:
        raise InvalidInput(
            "`gold` is an empty list", argument="gold", remedy="pass one label image or more"
        )
    out = []
    for number, one in enumerate(golds):
        name = "gold" if len(golds) == 1 else f"gold[{number}]"
        if is_on_disk(like) and not isinstance(one, DenseLabels) and is_lazy(unwrap(one, name)):
            lazy = unwrap(one, name)
            check_same_shape(lazy, like, name, like_name)
            out.append(lazy)
            continue
        out.append(dense_gold(one, name))
        check_same_shape(out[-1].image, like, name, like_name)
    return out


def merged_rows(table: Contingency, lut: NDArray[np.uint32]) -> Contingency:
    """Return the table after merging rows into segments ``lut[row]``.

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
    counts = np.bincount(back, table.counts, keys.size).astype(np.int64)
    rows, columns = np.divmod(keys, table.column_ids.size)
    return Contingency(rows, columns, counts, table.row_ids[kept], table.column_ids)


def table_covering(table: Contingency) -> float:
    """Return the covering of the columns (the gold standard) by the rows, 0 to 1.

    For each gold segment the largest intersection over union with any one segment, averaged over
    the gold segments, each with the weight of its voxels (Arbelaez et al. 2011).

    Examples
    --------
    One gold segment is matched exactly, half of the other:

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
        """The Rand index: the share of pairs on which segmentation and gold agree."""
        if self.total == 0:
            return 1.0
        return 1 - ((self.drawn - self.together) + (self.true - self.together)) / self.total

    @property
    def adjusted_rand(self) -> float:
        """The Rand index corrected for chance: 1 is perfect, 0 is chance (Hubert and Arabie)."""
        if self.drawn == self.true == self.together:
            return 1.0
        chance = self.drawn * (self.true / self.total)
        return (self.together - chance) / ((self.drawn + self.true) / 2 - chance)

    @property
    def precision(self) -> float:
        """Share of the pairs within a segment that belong together."""
        return self.together / self.drawn if self.drawn else 1.0

    @property
    def recall(self) -> float:
        """Share of the pairs that belong together that lie within a segment."""
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


def split_vi(
    labels: Any,
    gold: Any,
    *,
    ignore_labels: bool = False,
    progress: ProgressCallback | None = None,
) -> tuple[float, float]:
    """Return the variation of information as its two parts, false merges and false splits.

    With S the segmentation and U the gold standard, false merge is the conditional entropy H(U|S)
    and false split is H(S|U). Their sum is the variation of information; a perfect segmentation
    has (0, 0).

    Parameters
    ----------
    labels : array of int
        The segmentation.
    gold : array of int, same shape
        The gold standard; voxels of 0 are not annotated and are left out. One that is 0
        everywhere is refused.
    ignore_labels : bool
        Leave out voxels whose label is 0 too; otherwise label 0 counts as one segment.
    progress : callable, optional
        Called with a `Progress` now and then; it may raise `Cancelled`.

    Returns
    -------
    false_merge, false_split : float
        Bits. (0.0, 0.0) when `ignore_labels` leaves no voxel to compare.

    Examples
    --------
    An object split into two equal halves has an error of one bit:

    >>> import numpy as np
    >>> split_vi(np.array([1, 1, 2, 2]), np.array([7, 7, 7, 7]))
    (0.0, 1.0)
    """
    table = contingency(labels, dense_gold(gold), ignore_labels=ignore_labels, progress=progress)
    return conditional_entropies(table)


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
        Bits of false split that are as bad as one bit of false merge; above 0.

    Returns
    -------
    float
        ``a`` times the false merges plus the false splits.

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
    """Return (H(column | row), H(row | column)) in bits: the `split_vi` of a table.

    Parameters
    ----------
    table : Contingency
        The overlaps of segments and gold segments.

    Returns
    -------
    tuple of float
        False merges and false splits.

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
            f"`a`, the weight of false merges, must be a number above 0, got {a!r}",
            argument="a",
            remedy="pass 1 to weigh both errors alike, 2 to count a false merge twice",
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
    labels, gold, ignore_labels, progress
        As for `split_vi`.
    min_overlap : int
        Smallest overlap, in voxels, that counts as an edit of a proofreader. The other measures
        count every voxel.

    Returns
    -------
    pandas.Series
        ``vi``, ``false_merge``, ``false_split`` (bits); ``rand``, ``adjusted_rand``,
        ``fowlkes_mallows``; ``adapted_rand_error``, ``adapted_rand_precision``,
        ``adapted_rand_recall``; ``snemi3d_error`` and ``cremi_score``, as these challenges define
        them; ``covering``; ``merges_needed``, ``cuts_needed``, ``edit_distance``; ``segments`` and
        ``gold_segments`` of the whole images, 0 not counted; ``voxels`` compared. When
        `ignore_labels` leaves no voxel, every measure is that of a perfect segmentation.

    Examples
    --------
    >>> import numpy as np
    >>> scores = metrics(np.array([1, 1, 2, 2]), np.array([7, 7, 7, 7]))
    >>> scores["vi"], scores["covering"], scores["merges_needed"]
    (np.float64(1.0), np.float64(0.5), np.float64(1.0))
    """
    table = contingency(labels, dense_gold(gold), ignore_labels=ignore_labels, progress=progress)
    return table_metrics(table, min_overlap=min_overlap)


def table_metrics(table: Contingency, *, min_overlap: int = 1) -> pd.Series[float]:
    """Return the `metrics` of a table.

    Parameters
    ----------
    table : Contingency
        The overlaps of segments and gold segments.
    min_overlap : int
        As for `metrics`.

    Returns
    -------
    Series of float
        The measures by their names.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.evaluate import contingency
    >>> table_metrics(contingency(np.array([1, 1, 1]), np.array([1, 1, 2])))["rand"].round(3)
    np.float64(0.333)
    """
    import pandas as pd  # takes half a second, so only where a table is made

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
    """Return the cuts along gold boundaries, then the merges, that make the segmentation the gold.

    Voxels without a segment (label 0) need no edit.
    """
    check_whole("min_overlap", min_overlap, 1)
    counted = (table.counts >= min_overlap) & (table.rows > 0)
    overlaps = int(counted.sum())
    cuts = overlaps - np.unique(table.rows[counted]).size
    merges = overlaps - np.unique(table.columns[counted]).size
    return cuts, merges


def _snemi3d_error(table: Contingency) -> float:
    """Return 1 - F of pairs as the scripts of SNEMI3D and CREMI define it.

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
