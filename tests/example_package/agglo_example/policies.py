"""A policy: the mean of the boundary cue, held back where regions are large."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo import InvalidInput, RegionGraph


class CautiousPolicy:
    """Merge small regions first: the mean of the cue, and more for each doubling of the size."""

    name = "cautious"
    probabilistic = False

    def __init__(self, step: float = 0.01) -> None:
        self.step = step

    def check(self, graph: RegionGraph) -> None:
        """Refuse a graph without the cue."""
        graph.cue_index("boundary")

    def score(self, graph: RegionGraph) -> NDArray[np.float64]:
        """Return the priority of each boundary, from the statistics of its regions."""
        smaller = graph.sizes[graph.edges].min(axis=1)
        return graph.boundary_mean("boundary") + self.step * np.log2(smaller)

    def kernel(self, graph: RegionGraph) -> None:
        """Return None: `score` is called in the loop."""

    def to_json(self) -> dict[str, Any]:
        """Return the step; a session stores it."""
        return {"kind": self.name, "step": self.step}

    @classmethod
    def from_json(cls, words: dict[str, Any]) -> CautiousPolicy:
        """Return the policy of the result of `to_json`."""
        if not isinstance(words.get("step"), float):
            raise InvalidInput(f"The policy 'cautious' needs a step, got {words!r}")
        return cls(words["step"])


def by_area(graph: RegionGraph) -> NDArray[np.float64]:
    """Merge across large boundaries first: a function is a policy too."""
    return 1 / graph.contact_area()
