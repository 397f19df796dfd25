"""The policy of a trained classifier."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo.errors import InvalidInput, SetOption
from napari_agglo.features import FeatureMap, feature_matrix
from napari_agglo.graph import RegionGraph, refuse_hulls
from napari_agglo.policy._model import FOREST, LOGISTIC, Forest, Model
from napari_agglo.policy._policies import Policy, policy_record
from napari_agglo.policy._score import Scoring, scoring


@dataclass(frozen=True, eq=False)
class LearnedPolicy:
    """The probability that a merge is wrong, as learned from a gold standard.

    0.5 is the natural threshold.

    Parameters
    ----------
    features : FeatureMap
        The features of two regions and their boundary.
    model : Forest or Logistic
        The fitted classifier, as arrays.
    record : dict
        Settings and results of the training: plain numbers, strings, lists and dicts.
    """

    features: FeatureMap
    model: Model
    record: dict[str, Any] = field(default_factory=dict)
    name: ClassVar[str] = "learned"
    probabilistic: ClassVar[bool] = True

    def __repr__(self) -> str:
        kind = type(self.model).__name__.lower()
        size = f" of {len(self.model.roots)} trees" if isinstance(self.model, Forest) else ""
        strategy = self.record.get("strategy", "?")
        cues = ", ".join(self.features.cues + self.features.words)
        return f"LearnedPolicy({strategy}, {kind}{size}, {self.features.preset} features of {cues})"

    def check(self, graph: RegionGraph) -> None:
        """Refuse a graph with other cues, bins or statistics than the policy was trained on.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.

        Raises
        ------
        InvalidInput
            If the graph cannot be scored.
        """
        wrong = []
        if graph.cue_names != self.features.cues:
            wrong.append(
                f"cues {list(graph.cue_names)} where the policy has {list(self.features.cues)}"
            )
        if graph.layout.powers == 1:
            wrong.append("statistics='mean' where the policy needs 'all'")
        elif graph.word_names != self.features.words:
            wrong.append(
                f"words {list(graph.word_names)} where the policy has {list(self.features.words)}"
            )
        elif graph.layout.bins != self.features.bins:
            wrong.append(f"bins={graph.layout.bins} where the policy has {self.features.bins}")
        if wrong:
            raise InvalidInput(
                f"This policy was not trained for such a graph: it has {' and '.join(wrong)}",
                argument="policy",
                remedy="build the graph as for the training",
            )
        if self.features.options.hulls:
            refuse_hulls(graph, policy=True)

    def score(self, graph: RegionGraph) -> NDArray[np.float64]:
        """Return the probability that merging across each boundary of `graph` is wrong.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.

        Returns
        -------
        ndarray of float, shape (n_boundaries,)
            The priorities; low merges first.
        """
        self.check(graph)
        return self.model.predict(feature_matrix(graph, self.features))

    def kernel(self, graph: RegionGraph) -> Scoring:
        """Return the record of the classifier for the compiled loop.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.

        Returns
        -------
        Scoring
            The arrays that the compiled loop reads.
        """
        kind = FOREST if isinstance(self.model, Forest) else LOGISTIC
        return scoring(kind, 0, self.model, self.features.width)

    def to_json(self) -> dict[str, Any]:
        """Return the features and the record; the arrays of the classifier are in its file.

        Returns
        -------
        dict
            Plain numbers, strings, lists and dicts.
        """
        return {
            "kind": self.name,
            "preset": self.features.preset,
            "cues": list(self.features.cues),
            "bins": self.features.bins,
            **({"words": list(self.features.words)} if self.features.words else {}),
            "record": self.record,
        }

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the policy as one ``.npz`` file, whole or not at all; `load_policy` reads it.

        The same training gives the same bytes.

        Parameters
        ----------
        path : path-like
            The file to write, ``NAME.npz``.

        Returns
        -------
        Path
            The file that was written.

        Raises
        ------
        InvalidInput
            If the name does not end in ``.npz``, or the file cannot be written.
        """
        if not str(path).endswith(".npz"):
            raise InvalidInput(
                f"`path` must end in .npz, got {str(path)!r}",
                argument="path",
                remedy=SetOption("path", str(Path(path).with_suffix(".npz"))),
            )
        from napari_agglo.policy._file import save_policy

        return save_policy(self, path)


def stretched(policy: Policy, scores: ArrayLike) -> NDArray[np.float64]:
    """Return the scores of a learned policy, stretched so that 1 is the highest possible one.

    The trees of *agglo* call too many merges wrong, and the policy gives 0.5 where they give
    `neutral` (`ForestSettings`), in proportion, so that it never gives 1. Here 0 and 0.5 stay, and
    what is above 0.5 is stretched up to 1: probabilities for what weighs them, as a suggestion.

    Examples
    --------
    >>> policy = LearnedPolicy(None, None, {"neutral": 0.625})  # never above 0.8
    >>> stretched(policy, [0.2, 0.5, 0.65, 0.8])
    array([0.2 , 0.5 , 0.75, 1.  ])
    """
    values = np.asarray(scores, np.float64)
    highest = 0.5 / (policy_record(policy) or {}).get("neutral", 0.5)
    above = 0.5 + (values - 0.5) * (0.5 / (highest - 0.5))
    return np.clip(np.where(values > 0.5, above, values), 0.0, 1.0)
