"""From merges to thresholds and back: equal steps of the slider are equal numbers of merges."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_PLACES = 6  # after the point; a threshold that needs more is given in full


class Ticks:
    """The states of a hierarchy by the number of merges that they need.

    Merges of equal height cannot be told apart by a threshold: only the state after the last of
    them can be seen.

    Parameters
    ----------
    heights : ndarray of float, ascending
        The threshold from which each merge counts, `MergeTree.heights`.

    Examples
    --------
    >>> ticks = Ticks(np.array([0.1, 0.3, 0.3, 0.3, 0.8]))
    >>> ticks.merges(0.5), ticks.threshold(4), ticks.threshold(3), ticks.threshold(0)
    (4, 0.3, 0.1, 0.0)
    >>> ticks.moved(1, +1), ticks.moved(4, -1), ticks.moved(5, +1)
    (4, 1, 5)
    """

    def __init__(self, heights: NDArray[np.float64]) -> None:
        self._heights = np.asarray(heights, float)

    @property
    def last(self) -> int:
        """The number of all merges."""
        return len(self._heights)

    @property
    def step(self) -> int:
        """How many merges a step of a key or of the player has."""
        return max(1, round(self.last / 200))

    @property
    def span(self) -> tuple[float, float]:
        """The thresholds between which anything happens; 0 and 1 are within."""
        return min(0.0, self.threshold(0)), max(1.0, self.threshold(self.last))

    def merges(self, threshold: float) -> int:
        """Return how many merges are done at a threshold."""
        return int(np.searchsorted(self._heights, threshold, side="right"))

    def reachable(self, merges: int) -> int:
        """Return the last state that a threshold can give, with so many merges at most."""
        merges = min(max(merges, 0), self.last)
        if merges in (0, self.last) or self._heights[merges] > self._heights[merges - 1]:
            return merges
        return int(np.searchsorted(self._heights, self._heights[merges], side="left"))

    def threshold(self, merges: int) -> float:
        """Return a threshold at which the last reachable state is seen, as short as can be."""
        state = self.reachable(merges)
        above = float(self._heights[state]) if state < self.last else math.inf
        if state > 0:
            return shortest(float(self._heights[state - 1]), above)
        return 0.0 if above > 0 else float(np.nextafter(above, -math.inf))

    def moved(self, merges: int, by: int) -> int:
        """Return the state so many merges further, or back, but one state at least."""
        state = self.reachable(merges + by)
        if by > 0 and state <= merges < self.last:  # within a plateau: to its end
            return self.merges(float(self._heights[merges]))
        return state


def shortest(low: float, high: float) -> float:
    """Return the number of fewest decimals from `low` to below `high`.

    Examples
    --------
    >>> shortest(0.41873, 0.43), shortest(0.5, 0.5000001), shortest(0.1234567, 0.1234568)
    (0.42, 0.5, 0.1234567)
    """
    for places in range(_PLACES + 1):
        found = round(math.ceil(low * 10**places) / 10**places, places)
        if low <= found < high:
            return found
    return low


def knee(heights: NDArray[np.float64]) -> int:
    """Return the number of merges after which heights begin to rise steeply.

    It is the merge farthest below the straight line from the first to the last: a guess where to
    begin to look, when there is no gold standard to ask.

    Examples
    --------
    >>> knee(np.array([0.0, 0.0, 0.1, 0.1, 0.9, 1.0]))
    4
    """
    n = len(heights)
    if n < 3 or heights[-1] <= heights[0]:
        return n
    line = np.linspace(heights[0], heights[-1], n)
    return int(np.argmax(line - heights)) + 1
