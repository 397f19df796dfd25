"""Value of a question about one decision.

Let p be the probability that a merge of two regions, of x and y pixels among N, is wrong. If both
regions are pure and belong together, joining them lowers the false splits by h(x, y) / N bits, with
h(x, y) = x log2((x + y) / x) + y log2((x + y) / y); if they do not, parting them lowers the false
merges by the same amount. A person who knows the answer mends a wrong decision and leaves a right
one, so that the expected change of VI by asking is

    (1 - p) h / N    of a boundary that was left apart,        p h / N    of a merge that was made.

That alone would send people to the largest segments: of two giants the policy may be as sure as it
can be, and h still makes up for it. But p is least to be trusted where it is near 0 or 1: a forest
cannot tell 0.98 from 0.995, and a giant has hundreds of boundaries that cannot all be wrong. So the
expected change is multiplied by the policy's doubt, 4 p (1 - p): 1 where it cannot say, 0 where it
is sure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo._numba import kernel
from napari_agglo._numba.union_find import join_sets
from napari_agglo.policy import Policy, is_informative

if TYPE_CHECKING:
    from napari_agglo.session._suggestions.decisions import Decisions

# How much is left to do: the expected number of wrong decisions at a scale.


@dataclass(frozen=True)
class Effort:
    """The expected number of wrong decisions, and of edits that mend them.

    Attributes
    ----------
    false_splits : float
        Boundaries that should not be there: the sum of 1 - p over those left apart. At the scale
        0.5 that is min(p, 1 - p) of each.
    false_merges : float
        Merges that should not have been made: the sum of p.
    merges, cuts : float
        Edits by which they are mended. A cut mends one merge. One merge of two segments may do away
        with many boundaries, k pieces of an object being one after k - 1 merges however often they
        touch; so merges are counted along the boundaries of a maximum spanning forest, which have
        no cycles. That is the largest such sum that cannot exceed what is to be expected.
    """

    false_splits: float
    false_merges: float
    merges: float
    cuts: float

    @property
    def wrong_decisions(self) -> float:
        """Of both kinds."""
        return self.false_splits + self.false_merges

    @property
    def edits(self) -> float:
        """Of both kinds."""
        return self.merges + self.cuts

    def __str__(self) -> str:
        return (
            f"about {round(self.edits)} edits left: {round(self.merges)} merges and "
            f"{round(self.cuts)} cuts"
        )


def effort(apart: Decisions, made: Decisions) -> Effort:
    """Estimate what is left to do, decisions that a person has answered not counted.

    As good as the policy's probabilities are: it is right on average if, of all decisions that the
    policy gives 20 % to be wrong, one in five is.

    Examples
    --------
    Three pieces of one object touch each other; two merges make them one:

    >>> from napari_agglo.session._suggestions.decisions import Decisions
    >>> apart = Decisions.of([1, 1, 2], [2, 3, 3], [0.1, 0.1, 0.1])
    >>> print(effort(apart, Decisions.of([1], [4], [0.2])))
    about 2 edits left: 2 merges and 0 cuts
    """
    open_apart = ~apart.answered
    belong = 1 - apart.wrong[open_apart]
    cuts = float(made.wrong[~made.answered].sum())
    merges = _along_forest(apart.first[open_apart], apart.second[open_apart], belong)
    return Effort(float(belong.sum()), cuts, merges, cuts)


def _along_forest(
    first: NDArray[np.int64], second: NDArray[np.int64], weights: NDArray[np.float64]
) -> float:
    """Return the sum of weights along a maximum spanning forest."""
    ids, number = np.unique(np.concatenate([first, second]), return_inverse=True)
    ends = number.reshape(2, -1).astype(np.int64)
    order = np.argsort(-weights, kind="stable")
    return float(_spanning_sum(ends[0], ends[1], weights, order, np.arange(len(ids))))


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


# How sure a policy that gives no probabilities is taken to be of half of its decisions.
_SURE = 0.95


def as_probabilities(
    policy: Policy, scale: float, *priorities: ArrayLike
) -> tuple[NDArray[np.float64], ...]:
    """Return the probability that each merge is wrong, from its priority by the policy.

    A learned policy says just that. The mean of a cue is not a probability: whoever sets the
    threshold says where the odds are even, and how fast they change on both sides is taken from the
    priorities themselves, by a logistic curve on which the median distance from the threshold means
    95 % sure. That ranks well, but the numbers are a guess; estimates of effort made of them are
    too. Of a random policy's priorities nothing follows: all are 0.5.

    Priorities of one segmentation, at the threshold `scale`, belong in one call. NaN stays NaN.

    Examples
    --------
    >>> from napari_agglo.policy import MeanPolicy
    >>> (p,) = as_probabilities(MeanPolicy(), 0.5, [0.1, 0.4, 0.5, 0.6, 0.7])
    >>> p.round(3)
    array([0.   , 0.05 , 0.5  , 0.95 , 0.997])
    """
    values = [np.asarray(one, np.float64) for one in priorities]
    if policy.probabilistic:
        return tuple(np.clip(one, 0.0, 1.0) for one in values)
    if not is_informative(policy):
        return tuple(np.where(np.isnan(one), np.nan, 0.5) for one in values)
    away = np.abs(np.concatenate([one.reshape(-1) for one in values]) - scale)
    away = away[np.isfinite(away)]
    typical = float(np.median(away)) if away.size else 0.0
    if typical == 0.0:
        typical = float(np.mean(away)) if away.any() else 1.0
    slope = np.log(_SURE / (1 - _SURE)) / typical
    # An infinite scale is one at which nothing is in doubt; exp is kept from overflowing.
    return tuple(
        np.where(np.isnan(one), np.nan, 1 / (1 + np.exp(np.clip(slope * (scale - one), -700, 700))))
        for one in values
    )


def confusion(x: ArrayLike, y: ArrayLike) -> NDArray[np.float64]:
    """Return h(x, y): bits, times pixels, lost by no longer telling x pixels from y others.

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
    """Return by how many bits VI falls, as expected, if each decision is put to a person; scores.

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
