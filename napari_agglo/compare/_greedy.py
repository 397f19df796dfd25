"""Match pairs one to one, the largest overlap first, without sorting them all.

Strategy: a pair that is the largest of both its segments is taken by the greedy order whatever the
others are. So all such pairs are taken at once, pairs with a segment that is taken are dropped, and
this is repeated. A few rounds leave nothing, nearly always; whatever is left then is sorted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._jit import kernel
from napari_agglo.compare._overlaps import Overlaps

_ROUNDS = 12


def match_largest(pairs: Overlaps, previous: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Return the partner of each second segment among the first ones; 0 for none.

    Parameters
    ----------
    pairs : Overlaps
        The pairs that may be matched.
    previous : ndarray of int64, optional
        Partners to be kept, by the same names, where they still overlap.

    Examples
    --------
    >>> from napari_agglo.compare import overlaps
    >>> match_largest(overlaps([1, 1, 2], [1, 2, 2], [5, 4, 3]))
    array([0, 1, 2])
    """
    partner_of_first = np.zeros(pairs.n_first, np.int64)
    partner = np.zeros(pairs.n_second, np.int64)
    hint = np.zeros(0, np.int64) if previous is None else previous
    _keep_kernel(pairs.first, pairs.second, hint, partner_of_first, partner)
    live = np.arange(len(pairs))
    best_first = np.empty(pairs.n_first, np.int64)
    best_second = np.empty(pairs.n_second, np.int64)
    left = _rounds_kernel(
        pairs.first, pairs.second, pairs.sizes, live, best_first, best_second, partner_of_first,
        partner, _ROUNDS,
    )  # fmt: skip
    rest = live[:left]
    order = rest[np.argsort(-pairs.sizes[rest], kind="stable")]
    _take_kernel(pairs.first, pairs.second, order, partner_of_first, partner)
    return partner


@kernel
def _keep_kernel(first: Any, second: Any, hint: Any, of_first: Any, of_second: Any) -> None:
    """Match the pairs that a hint names, each segment once. Nothing is checked."""
    for i in range(first.size):
        f, s = first[i], second[i]
        if s < hint.size and hint[s] == f and of_first[f] == 0 and of_second[s] == 0:
            of_first[f] = s
            of_second[s] = f


@kernel
def _rounds_kernel(
    first: Any, second: Any, sizes: Any, live: Any, best_first: Any, best_second: Any,
    of_first: Any, of_second: Any, rounds: Any,
) -> Any:  # fmt: skip
    """Match pairs that are the best of both; return how many in `live` are left over.

    Nothing is checked. Pairs come in ascending order of names, so that of equals the first is best.
    """
    n = live.size
    for _ in range(rounds):
        kept = 0
        for j in range(n):
            i = live[j]
            if of_first[first[i]] == 0 and of_second[second[i]] == 0:
                live[kept] = i
                kept += 1
        n = kept
        if n == 0:
            break
        for j in range(n):
            best_first[first[live[j]]] = -1
            best_second[second[live[j]]] = -1
        for j in range(n):
            i = live[j]
            f, s = first[i], second[i]
            if best_first[f] < 0 or sizes[i] > sizes[best_first[f]]:
                best_first[f] = i
            if best_second[s] < 0 or sizes[i] > sizes[best_second[s]]:
                best_second[s] = i
        for j in range(n):
            i = live[j]
            if best_first[first[i]] == i and best_second[second[i]] == i:
                of_first[first[i]] = second[i]
                of_second[second[i]] = first[i]
    return n


@kernel
def _take_kernel(first: Any, second: Any, order: Any, of_first: Any, of_second: Any) -> None:
    """Match pairs in the order given where both are free. Nothing is checked."""
    for i in order:
        if of_first[first[i]] == 0 and of_second[second[i]] == 0:
            of_first[first[i]] = second[i]
            of_second[second[i]] = first[i]
