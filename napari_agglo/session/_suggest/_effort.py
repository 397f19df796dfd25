"""How much is left to do: the expected number of wrong decisions at a scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_agglo._jit import kernel
from napari_agglo.session._suggest._decisions import Apart, Made


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


def effort(apart: Apart, made: Made) -> Effort:
    """Estimate what is left to do, decisions that a person has answered not counted.

    As good as the policy's probabilities are: it is right on average if, of all decisions that the
    policy gives 20 % to be wrong, one in five is.

    Examples
    --------
    Three pieces of one object touch each other; two merges make them one:

    >>> print(effort(Apart.of([1, 1, 2], [2, 3, 3], [0.1, 0.1, 0.1]), Made.of([1], [4], [0.2])))
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
    above: NDArray[np.int64],
) -> float:
    """Add up the weights, in this order, of what connects two trees; `above` is 0, 1, 2, ...

    Checks nothing. Whoever looks for the root of a tree shortens the way for the next.
    """
    total = 0.0
    for k in order:
        a, b = first[k], second[k]
        while above[a] != a:
            above[a] = above[above[a]]
            a = above[a]
        while above[b] != b:
            above[b] = above[above[b]]
            b = above[b]
        if a != b:
            above[max(a, b)] = min(a, b)
            total += weights[k]
    return total
