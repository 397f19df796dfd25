"""Thresholds of a hierarchy by numbers of merges, and their places on the track of a slider."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from napari_agglo.agglomeration import below_first
from napari_agglo.evaluate import shortest_threshold

SLIDER_STEPS = 200  # from one end to the other, by arrow keys, keys of the canvas or a player
# Share of the track by the value of the threshold, for priorities from 0 to 1; the rest is by the
# number of states. Most merges of a learned policy have a priority near 0, so that by number alone
# nearly all thresholds would share the end of the track; 0.1 to 0.9 has half of it with this share.
_BY_VALUE = 0.65
_TRACK = 1000  # places of a track, at least


class Ticks:
    """The states of a hierarchy by their number of merges, from `MergeTree.heights`.

    A threshold cannot separate merges of equal height: only the state after the last of them is
    reachable. The track of a slider has a place for each reachable state.

    Examples
    --------
    >>> ticks = Ticks(np.array([0.1, 0.3, 0.3, 0.3, 0.8]))
    >>> ticks.merges(0.5), ticks.threshold(4), ticks.threshold(3), ticks.threshold(0)
    (4, 0.3, 0.1, 0.0)
    >>> ticks.moved(1, +1), ticks.moved(4, -1), ticks.moved(5, +1)
    (4, 1, 5)
    >>> ticks.place(0), ticks.place(1), ticks.place(4), ticks.place(5) == ticks.end
    (0, 198, 477, True)
    >>> ticks.state(197), ticks.state(198), ticks.stepped(4, +1), ticks.stepped(4, -1)
    (0, 1, 5, 1)
    """

    def __init__(self, heights: NDArray[np.float64]) -> None:
        self._heights = np.asarray(heights, float)

    @property
    def first(self) -> float:
        """The height of the first merge; inf without merges."""
        return float(self._heights[0]) if self.last else math.inf

    @property
    def last(self) -> int:
        """The number of all merges."""
        return len(self._heights)

    @cached_property
    def _states(self) -> NDArray[np.int64]:
        """The reachable numbers of merges, ascending."""
        ends = np.flatnonzero(np.diff(self._heights)) + 1
        return np.unique(np.concatenate([[0], ends, [self.last]]))

    @cached_property
    def _places(self) -> NDArray[np.int64]:
        """The place of each reachable state, strictly ascending from 0 to `end`."""
        n = len(self._states) - 1
        if n == 0:
            return np.zeros(1, np.int64)
        along = np.arange(n + 1) / n
        high = float(self._heights[-1])
        if self._heights[0] >= 0 and 0 < high <= 1:
            values = np.concatenate([[0.0], self._heights[self._states[1:] - 1] / high])
            along = _BY_VALUE * values + (1 - _BY_VALUE) * along
        # At least one place from each state to the next.
        length = max(_TRACK, math.ceil(2 * n / (1 - _BY_VALUE)))
        return np.round(length * along).astype(np.int64)

    @property
    def end(self) -> int:
        """The last place of the track, that of all merges."""
        return int(self._places[-1])

    @property
    def step(self) -> int:
        """The number of places in a step of a key or of the player."""
        return max(1, round(self.end / SLIDER_STEPS))

    def place(self, merges: int) -> int:
        """Return the place of the last reachable state with at most so many merges."""
        return int(self._places[np.searchsorted(self._states, self.reachable(merges))])

    def state(self, place: int) -> int:
        """Return the number of merges of the last state at or before a place."""
        at = int(np.searchsorted(self._places, place, side="right")) - 1
        return int(self._states[max(at, 0)])

    def stepped(self, merges: int, direction: int) -> int:
        """Return the state a step up (+1) or down (-1) the track, but at least one state."""
        there = self.state(self.place(merges) + direction * self.step)
        return self.moved(merges, 1) if direction > 0 and there <= merges else there

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
