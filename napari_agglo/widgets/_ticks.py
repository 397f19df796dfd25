"""Thresholds of a hierarchy by numbers of merges, as sliders, keys and the players need them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from napari_agglo.agglomeration import below_first
from napari_agglo.evaluate import shortest_threshold

SLIDER_STEPS = 200  # from one end to the other, by arrow keys, keys of the canvas or a player


class Ticks:
    """The states of a hierarchy by their number of merges, from `MergeTree.heights`.

    Equal steps of a slider are equal numbers of merges. A threshold cannot separate merges of equal
    height: only the state after the last of them is reachable.

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
        """The number of merges in a step of a key or of the player."""
        return max(1, round(self.last / SLIDER_STEPS))

    @property
    def span(self) -> tuple[float, float]:
        """The range of thresholds with different states; it includes 0 and 1."""
        return min(0.0, self.threshold(0)), max(1.0, self.threshold(self.last))

    def merges(self, threshold: float) -> int:
        """Return the number of merges done at a threshold."""
        return int(np.searchsorted(self._heights, threshold, side="right"))

    def reachable(self, merges: int) -> int:
        """Return the last reachable state with at most so many merges."""
        merges = min(max(merges, 0), self.last)
        if merges in (0, self.last) or self._heights[merges] > self._heights[merges - 1]:
            return merges
        return int(np.searchsorted(self._heights, self._heights[merges], side="left"))

    def threshold(self, merges: int) -> float:
        """Return a threshold of the last reachable state, with as few digits as possible."""
        state = self.reachable(merges)
        above = float(self._heights[state]) if state < self.last else math.inf
        if state > 0:
            return shortest_threshold(float(self._heights[state - 1]), above, decimals=0)
        return below_first(above)

    def moved(self, merges: int, by: int) -> int:
        """Return the state so many merges further, or back, but at least one state."""
        state = self.reachable(merges + by)
        if by > 0 and state <= merges < self.last:  # within a plateau: to its end
            return self.merges(float(self._heights[merges]))
        return state


def knee(heights: NDArray[np.float64]) -> int:
    """Return the number of merges after which heights begin to rise steeply.

    It is the merge farthest below the straight line from the first to the last: a first threshold
    for a hierarchy without a gold standard.

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
