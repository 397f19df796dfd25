"""A learned policy: a feature map, a classifier, and a record of how they came about."""

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
