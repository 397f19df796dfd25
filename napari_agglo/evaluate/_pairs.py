"""Pairs of voxels: how many are together in the segmentation, in the gold standard, in both."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_agglo.volumes import Contingency


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
