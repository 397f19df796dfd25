"""Labels for the segments that have no partner: none that the reference has, and steady ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._jit import kernel


def name_rest(
    others: Sequence[NDArray[Any]],
    table: NDArray[Any],
    labels: NDArray[np.int64],
    previous: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Return the label of each segment of `table`: the one given, or one of its own.

    One of its own is what it had before, or else its name, or else the smallest, whichever none of
    the `others` has.

    Examples
    --------
    >>> name_rest([np.array([1, 1])], np.array([1, 2]), np.array([0, 1, 0]))
    array([0, 1, 2])
    """
    # No more labels are needed than there are pieces with a pixel: a match has a piece of its own,
    # and so has each segment left alone, since two of these never overlap. The rest is to be safe.
    room = max(int(names.max(initial=0)) + 1 for names in others)
    limit = max(room, len(labels), len(table) + 1)
    taken = np.zeros(limit + room + len(labels), np.bool_)
    for names in others:
        taken[names] = True
    taken[0] = True
    alone = np.zeros(len(labels), np.bool_)
    alone[table] = True
    alone[0] = False
    alone &= labels == 0
    named = labels.copy()
    known = np.zeros(0, np.int64) if previous is None else previous
    _name_kernel(np.flatnonzero(alone), known, limit, taken, named)
    return named


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
