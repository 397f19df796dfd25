"""Sorting edges by priority: a radix sort of the bits of non-negative floats, in linear time.

numpy's argsort took a fifth of the time of a whole agglomeration of five million boundaries; this
takes a quarter of that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._jit import kernel

_BITS = 11  # of a digit: 2048 places to write to at a time stay in the nearest memory


def sort_edges(priority: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the edges of finite priority >= 0, lowest first, and their priorities.

    Edges of equal priority stay in the order of their numbers.

    Examples
    --------
    >>> import numpy as np
    >>> sort_edges(np.array([0.5, 0.0, np.inf, 0.25]))
    (array([1, 3, 0], dtype=int32), array([0.  , 0.25, 0.5 ]))
    """
    edges = np.flatnonzero(priority < np.inf).astype(np.int32)
    # Adding zero turns -0.0, whose sign bit would sort it last, into 0.0.
    keys = (priority[edges] + 0.0).view(np.int64)
    other_keys = np.empty_like(keys)
    other_edges = np.empty_like(edges)
    for shift in range(0, 64, _BITS):
        counts = np.zeros(1 << _BITS, np.int64)
        _count_digits(keys, shift, counts)
        if counts.max() == len(keys):  # all agree in this digit
            continue
        starts = np.cumsum(counts) - counts
        _scatter(keys, edges, shift, starts, other_keys, other_edges)
        keys, other_keys = other_keys, keys
        edges, other_edges = other_edges, edges
    return edges, keys.view(np.float64)


@kernel
def _count_digits(keys: Any, shift: Any, counts: Any) -> None:
    """Count the keys of each digit. No bounds checking."""
    for k in range(keys.size):
        counts[(keys[k] >> shift) & (counts.size - 1)] += 1


@kernel
def _scatter(keys: Any, edges: Any, shift: Any, starts: Any, out_keys: Any, out_edges: Any) -> None:
    """Write each key and edge where its digit's turn is; `starts` moves on. No bounds checking."""
    for k in range(keys.size):
        digit = (keys[k] >> shift) & (starts.size - 1)
        at = starts[digit]
        starts[digit] = at + 1
        out_keys[at] = keys[k]
        out_edges[at] = edges[k]
