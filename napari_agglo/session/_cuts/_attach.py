"""Giving what belongs to no part yet to the neighbour that it is tied to most."""

from __future__ import annotations

import heapq
from collections import defaultdict

import numpy as np
from numpy.typing import NDArray


def attached(
    ends: NDArray[np.int64],
    cost: NDArray[np.float64],
    unit: NDArray[np.int64],
    owner: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the part of each unit, where those without one join the part of the strongest tie.

    The unit that is tied most strongly goes first, and what joined a part ties others to it; equal
    ties go by unit, then by part. Units that nothing ties to a part keep -1.

    Parameters
    ----------
    ends, cost : ndarray
        Boundaries as pairs of nodes, and how strong each is.
    unit : ndarray of int64
        The unit of each node; units stay whole.
    owner : ndarray of int64
        The part of each unit, or -1.
    """
    pairs = unit[ends]
    ties: dict[int, dict[int, float]] = defaultdict(dict)
    apart = (pairs[:, 0] != pairs[:, 1]) & (owner[pairs] < 0).any(axis=1)
    for (a, b), strength in zip(pairs[apart].tolist(), cost[apart].tolist(), strict=True):
        ties[a][b] = ties[a].get(b, 0.0) + strength
        ties[b][a] = ties[b].get(a, 0.0) + strength
    out = owner.copy()
    strength_to: dict[tuple[int, int], float] = defaultdict(float)
    heap: list[tuple[float, int, int]] = []

    def offer(to: int) -> None:
        part = int(out[to])
        for other, strength in ties[to].items():
            if out[other] < 0:
                strength_to[other, part] += strength
                heapq.heappush(heap, (-strength_to[other, part], other, part))

    for owned in [u for u in list(ties) if owner[u] >= 0]:
        offer(owned)
    while heap:
        _, free, part = heapq.heappop(heap)  # an entry of less than the present strength comes late
        if out[free] < 0:
            out[free] = part
            offer(free)
    return out
