"""Policy of random priorities: a baseline, and a test of what follows.

In its own file because each policy is one: see `_policies`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba.hash_tables import uniform
from napari_agglo.errors import check_whole
from napari_agglo.graph import RegionGraph
from napari_agglo.policy._model import RANDOM
from napari_agglo.policy._policies import policies
from napari_agglo.policy._score import Scoring, scoring


@policies.add("random")
@dataclass(frozen=True)
class RandomPolicy:
    """Merge in random order: a number in [0, 1) from the seed and the ids of both regions.

    Parameters
    ----------
    seed : int
        The same seed gives the same order.
    """

    seed: int = 0
    name: ClassVar[str] = "random"
    probabilistic: ClassVar[bool] = False
    bounded: ClassVar[bool] = True
    informative: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_whole("seed", self.seed, 0, 2**32 - 1)

    def check(self, graph: RegionGraph) -> None:
        """Accept any graph.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.
        """

    def score(self, graph: RegionGraph) -> NDArray[np.float64]:
        """Return a number for each pair of dense ids.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.

        Returns
        -------
        ndarray of float, shape (n_boundaries,)
            The priorities; low merges first.
        """
        seed = int(self.seed)
        return np.array([uniform(seed, u, v) for u, v in graph.edges.tolist()], np.float64)

    def kernel(self, graph: RegionGraph) -> Scoring:
        """Return the record for the compiled loop, with the seed.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.

        Returns
        -------
        Scoring
            The arrays that the compiled loop reads.
        """
        return scoring(RANDOM, int(self.seed))

    def to_json(self) -> dict[str, Any]:
        """Return the name and the seed.

        Returns
        -------
        dict
            Plain numbers and strings, with the name of the policy as "kind".
        """
        return {"kind": self.name, "seed": int(self.seed)}

    @classmethod
    def from_json(cls, words: dict[str, Any]) -> RandomPolicy:
        """Return the policy of the result of `to_json`.

        Parameters
        ----------
        words : dict
            The result of `to_json`.

        Returns
        -------
        RandomPolicy
            The same policy.

        Raises
        ------
        InvalidInput
            If `words` are not those of this policy.
        """
        return cls(words.get("seed"))  # type: ignore[arg-type] # checked by the constructor
