"""Labels for the segments that have no partner: none that the reference has, and steady ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._jit import kernel


def name_rest(
    reference: NDArray[Any],
    other: NDArray[Any],
    partners: NDArray[np.int64],
    n_first: int,
    previous: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Return the label of each segment of `other`: its partner's, or one of its own.

    One of its own is what it had before, or else its name, or else the smallest, whichever is free.

    Examples
    --------
    >>> name_rest(np.array([1, 1]), np.array([1, 2]), np.array([0, 1, 0]), 2)
    array([0, 1, 2])
    """
    # No more labels are needed than there are pieces with a pixel: a match has a piece of its own,
    # and so has each segment left alone, since two of these never overlap. The rest is to be safe.
    limit = max(n_first, len(partners), len(other) + 1)
    taken = np.zeros(limit + n_first + len(partners), np.bool_)
    taken[reference] = True
    taken[0] = True
    alone = np.zeros(len(partners), np.bool_)
    alone[other] = True
    alone[0] = False
    alone &= partners == 0
    labels = partners.copy()
    known = np.zeros(0, np.int64) if previous is None else previous
    _name_kernel(np.flatnonzero(alone), known, limit, taken, labels)
    return labels


@kernel
def _name_kernel(alone: Any, known: Any, limit: Any, taken: Any, labels: Any) -> None:
    """Give labels that are not taken: known ones first, then names, then any. Checks nothing."""
    for name in alone:
        if name < known.size and known[name] < limit and not taken[known[name]]:
            labels[name] = known[name]
            taken[known[name]] = True
    for name in alone:
        if labels[name] == 0 and not taken[name]:
            labels[name] = name
            taken[name] = True
    free = 1
    for name in alone:
        if labels[name] == 0:
            while taken[free]:
                free += 1
            labels[name] = free
            taken[free] = True
