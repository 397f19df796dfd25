"""Value of a review of one decision: the expected change of VI, times the doubt of the policy.

Let p be the probability that a merge of two regions, of x and y pixels among N, is wrong. If both
regions are pure and belong together, merging them lowers the false splits by h(x, y) / N bits, with
h(x, y) = x log2((x + y) / x) + y log2((x + y) / y); if they do not, cutting them apart lowers the
false merges by the same amount. A person who knows the answer corrects a wrong decision and leaves
a right one, so the expected decrease of VI is

    (1 - p) h / N    for a boundary between segments,        p h / N    for a merge within one.

That value alone prefers the largest segments: h is large even where the policy is almost certain.
But p is least reliable near 0 and 1: a forest cannot distinguish 0.98 from 0.995, and of the
hundreds of boundaries of a large segment not all are wrong. So the expected decrease is multiplied
by the doubt of the policy, 4 p (1 - p): 1 at p = 0.5, 0 where it is certain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo._numba import kernel
from napari_agglo._numba.union_find import join_sets
from napari_agglo.policy import Policy, is_informative, stretched

if TYPE_CHECKING:
    from napari_agglo.session._suggestions.decisions import Decisions


@dataclass(frozen=True)
class Effort:
    """The expected number of wrong decisions, and of edits that correct them.

    Attributes
    ----------
    false_splits : float
        Boundaries within objects: the sum of 1 - p over the boundaries between segments.
    false_merges : float
        Merges across boundaries of objects: the sum of p over the merges within segments.
    merges, cuts : float
        Edits that correct them. A cut corrects one merge. A merge of two segments may correct many
        boundaries, since k pieces of an object are one after k - 1 merges however often they touch;
        so merges are summed along a maximum spanning forest of the boundaries, without cycles. That
        is the largest sum that cannot exceed the expected number.
    """

    false_splits: float
    false_merges: float
    merges: float
    cuts: float

    @property
    def wrong_decisions(self) -> float:
        """Wrong decisions of both kinds."""
        return self.false_splits + self.false_merges

    @property
    def edits(self) -> float:
        """Edits of both kinds."""
        return self.merges + self.cuts

    def __str__(self) -> str:
        return (
            f"about {round(self.edits)} edits left: {round(self.merges)} merges and "
            f"{round(self.cuts)} cuts"
        )


def effort(boundaries: Decisions, merges: Decisions) -> Effort:
    """Estimate the edits left to make; decisions that a person has answered do not count.

    The estimate is right on average if the policy is calibrated: if, of all decisions that are
    wrong with a probability of 20 %, one in five is wrong.

    Examples
    --------
    Three pieces of one object touch each other; two merges make them one:

    >>> from napari_agglo.session._suggestions.decisions import Decisions
    >>> boundaries = Decisions.of([1, 1, 2], [2, 3, 3], [0.1, 0.1, 0.1])
    >>> print(effort(boundaries, Decisions.of([1], [4], [0.2])))
    about 2 edits left: 2 merges and 0 cuts
    """
    is_open = ~boundaries.answered
    belong = 1 - boundaries.wrong[is_open]
    cuts = float(merges.wrong[~merges.answered].sum())
    ends = np.stack([boundaries.first[is_open], boundaries.second[is_open]])
    ids, number = np.unique(ends, return_inverse=True)
    first, second = number.reshape(2, -1).astype(np.int64)
    order = np.argsort(-belong, kind="stable")  # a maximum spanning forest, by Kruskal
    to_merge = float(_spanning_sum(first, second, belong, order, np.arange(len(ids))))
    return Effort(float(belong.sum()), cuts, to_merge, cuts)


@kernel
def _spanning_sum(
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    weights: NDArray[np.float64],
    order: NDArray[np.int64],
    parents: NDArray[np.int64],
) -> float:
    """Add up the weights, in this order, of the edges that connect two trees. Checks nothing.

    `parents` are those of a union-find in which each node is alone: 0, 1, 2, ...
    """
    total = 0.0
    for k in order:
        if join_sets(first[k], second[k], parents):
            total += weights[k]
    return total


_SURE = 0.95  # probability assumed at the median distance from the threshold, without a better one


def as_probabilities(
    policy: Policy, scale: float, *priorities: ArrayLike
) -> tuple[NDArray[np.float64], ...]:
    """Return the probability that each merge is wrong, from its priority by the policy.

    The priority of a learned policy is that probability, see `stretched`. The mean of a cue is not:
    it is mapped by a logistic curve that is 0.5 at the threshold `scale` and 0.95 at the median
    distance of the priorities from it. That ranks well, but the numbers, and efforts computed from
    them, are a guess. For a random policy all are 0.5.

    Pass all priorities of one segmentation in one call. NaN stays NaN.

    Examples
    --------
    >>> from napari_agglo.policy import MeanPolicy
    >>> (p,) = as_probabilities(MeanPolicy(), 0.5, [0.1, 0.4, 0.5, 0.6, 0.7])
    >>> p.round(3)
    array([0.   , 0.05 , 0.5  , 0.95 , 0.997])
    """
    values = [np.asarray(one, np.float64) for one in priorities]
    if policy.probabilistic:
        return tuple(stretched(policy, one) for one in values)
    if not is_informative(policy):
        return tuple(np.where(np.isnan(one), np.nan, 0.5) for one in values)
    away = np.abs(np.concatenate([one.reshape(-1) for one in values]) - scale)
    away = away[np.isfinite(away)]
    away[away < np.finfo(np.float64).tiny] = 0.0  # at the threshold just below merges at 0
    typical = float(np.median(away)) if away.size else 0.0
    if typical == 0.0:
        typical = float(np.mean(away)) if away.any() else 1.0
    slope = np.log(_SURE / (1 - _SURE)) / typical
    # At an infinite scale nothing is in doubt; clip, so that exp does not overflow.
    return tuple(
        np.where(np.isnan(one), np.nan, 1 / (1 + np.exp(np.clip(slope * (scale - one), -700, 700))))
        for one in values
    )


def confusion(x: ArrayLike, y: ArrayLike) -> NDArray[np.float64]:
    """Return h(x, y): the bits, times pixels, lost by merging x pixels with y others.

    Examples
    --------
    >>> confusion([1, 3], [1, 1]).round(3)
    array([2.   , 3.245])
    """
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    return a * np.log2((a + b) / a) + b * np.log2((a + b) / b)


def expected_gain(
    x: ArrayLike, y: ArrayLike, error: ArrayLike, total: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the expected decrease of VI, in bits, by a review of each decision; and its score.

    `x` and `y` are the pixels of the two regions of each decision, `error` the probability that the
    decision is wrong, `total` the pixels of the volume.

    Examples
    --------
    >>> gains, scores = expected_gain([8, 8], [8, 8], [0.5, 0.1], 16)
    >>> gains, scores.round(3)
    (array([0.5, 0.1]), array([0.5  , 0.036]))
    """
    wrong = np.asarray(error, np.float64)
    gains = wrong * confusion(x, y) / max(total, 1)
    return gains, gains * 4 * wrong * (1 - wrong)
