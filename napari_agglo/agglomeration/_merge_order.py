"""The order of merges: the lowest priority first, and of equal ones that of the smallest ids."""

from __future__ import annotations

from typing import Any

import numpy as np

from napari_agglo._numba import inlined


@inlined
def tie_of(a: Any, b: Any) -> Any:
    """Return the ids of two regions as one number, ordered by the smaller id, then the larger."""
    return np.int64(min(a, b)) << 32 | np.int64(max(a, b))


@inlined
def tie_of_edge(ends: Any, ids: Any, edge: Any) -> Any:
    """Return `tie_of` the regions of `edge`; `ids` has the id of the region of each node."""
    return tie_of(np.int64(ids[ends[edge, 0]]), np.int64(ids[ends[edge, 1]]))


@inlined
def ids_of(ends: Any, ids: Any, edge: Any) -> Any:
    """Return (smaller id, larger id) of the regions of `edge`."""
    a = np.int64(ids[ends[edge, 0]])
    b = np.int64(ids[ends[edge, 1]])
    return min(a, b), max(a, b)


@inlined
def comes_before(edge: Any, other: Any, priority: Any, ties: Any) -> Any:
    """Return whether `edge` is merged before `other`."""
    if priority[edge] != priority[other]:
        return priority[edge] < priority[other]
    return ties[edge] < ties[other]
