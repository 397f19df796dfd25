"""The policies that need no learning, as plain values, and what else may be given for one."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.features import FeatureMap, feature_matrix
from napari_agglo.graph import RegionGraph
from napari_agglo.policy._model import Forest, Model

# A learned policy: a feature map, a classifier, and a record of how they came about.


@dataclass(frozen=True, eq=False)
class LearnedPolicy:
    """The probability that a merge is wrong, as learned from a gold standard.

    0.5 is the natural threshold.

    Parameters
    ----------
    features : FeatureMap
        What is read off two regions and their boundary.
    model : Forest or Logistic
        The fitted classifier, as arrays.
    record : dict
        How it was trained and how well that went: plain numbers, strings, lists and dicts.
    """

    features: FeatureMap
    model: Model
    record: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        kind = type(self.model).__name__.lower()
        size = f" of {len(self.model.roots)} trees" if isinstance(self.model, Forest) else ""
        strategy = self.record.get("strategy", "?")
        cues = ", ".join(self.features.cues)
        return f"LearnedPolicy({strategy}, {kind}{size}, {self.features.preset} features of {cues})"

    def check(self, graph: RegionGraph) -> None:
        """Refuse a graph with other cues, bins or statistics than the policy was trained on."""
        wrong = []
        if graph.cue_names != self.features.cues:
            wrong.append(
                f"cues {list(graph.cue_names)} where the policy has {list(self.features.cues)}"
            )
        if graph.layout.powers == 1:
            wrong.append("statistics='mean' where the policy needs 'all'")
        elif graph.layout.bins != self.features.bins:
            wrong.append(f"bins={graph.layout.bins} where the policy has {self.features.bins}")
        if wrong:
            raise InvalidInput(
                "This policy was not trained for such a graph: it has "
                + " and ".join(wrong)
                + ". Build the graph as for the training."
            )

    def score(self, graph: RegionGraph) -> NDArray[np.float64]:
        """Return the probability that merging across each boundary of `graph` is wrong."""
        self.check(graph)
        return self.model.predict(feature_matrix(graph, self.features))

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the policy as one ``.npz`` file, whole or not at all; `load_policy` reads it."""
        from napari_agglo.policy._file import save_policy

        return save_policy(self, path)


@dataclass(frozen=True)
class MeanPolicy:
    """Merge first where the mean of a cue over the boundary is lowest."""

    cue: str = "boundary"


@dataclass(frozen=True)
class RandomPolicy:
    """Merge in random order: a number in [0, 1) from the seed and the ids of both regions."""

    seed: int = 0

    def __post_init__(self) -> None:
        if not (isinstance(self.seed, (int, np.integer)) and 0 <= self.seed < 2**32):
            raise InvalidInput(
                f"`seed` must be a whole number from 0 to {2**32 - 1}, got {self.seed!r}."
            )


Policy = MeanPolicy | RandomPolicy | LearnedPolicy


def as_policy(policy: Policy | str, seed: int = 0) -> Policy:
    """Return the policy that is meant: itself, or the one of that name.

    Examples
    --------
    >>> as_policy("mean")
    MeanPolicy(cue='boundary')
    """
    if isinstance(policy, Policy):
        return policy
    if policy == "mean":
        return MeanPolicy()
    if policy == "random":
        return RandomPolicy(seed)
    raise InvalidInput(
        f"`policy` must be 'mean', 'random' or a policy (from `train` or `load_policy`), "
        f"got {policy!r}."
    )
