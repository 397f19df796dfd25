"""Policies: their protocol, their registry, and the policies of this package.

A policy assigns a priority to every boundary; the boundary of the lowest priority is merged first.
To add one, write a class with the members of `Policy` and register it: here, or from another
package by an entry point of the group ``napari_agglo.policies`` (docs/extending.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo._numba.hash_tables import uniform
from napari_agglo._registry import Registry
from napari_agglo.errors import InvalidInput, SetOption, check_whole
from napari_agglo.features import FeatureMap, feature_matrix
from napari_agglo.graph import RegionGraph
from napari_agglo.policy._model import FOREST, LOGISTIC, MEAN, RANDOM, Forest, Model
from napari_agglo.policy._score import Scoring, scoring


@runtime_checkable
class Policy(Protocol):
    """The members of a policy.

    A policy is *local*: the priority of a boundary depends only on the statistics of that boundary
    and of its two regions, so that after a merge only the boundaries of the new region are scored
    again. Three further attributes are optional: `features` (a `FeatureMap` that the kernel reads),
    `record` (a dict about the training), and `informative` (False if scores depend on the ids of
    the regions, not on the boundary).

    A class in the registry can be called without arguments, and has a class method ``from_json``
    that makes a policy from the result of `to_json`.
    """

    @property
    def name(self) -> str:
        """Name in the registry, in interfaces and in sessions."""

    @property
    def probabilistic(self) -> bool:
        """Whether priorities are probabilities that a merge is wrong; 0.5 is natural then."""

    def check(self, graph: RegionGraph) -> None:
        """Raise `InvalidInput` if the policy cannot score `graph`.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.
        """

    def score(self, graph: RegionGraph) -> NDArray[np.float64]:
        """Return the priority of every boundary of `graph`; low merges first.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.
        """

    def kernel(self, graph: RegionGraph) -> Scoring | None:
        """Return the record for the compiled loop; None if the loop must call `score`.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.
        """

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON with "kind", the name, from which the policy can be made again."""


class PolicyClass(Protocol):
    """A class of policies, as the registry has it."""

    def __call__(self) -> Policy:
        """Return the policy with its defaults."""

    def from_json(self, words: dict[str, Any]) -> Policy:
        """Return the policy of the result of `to_json`; raise `InvalidInput` for anything else."""


policies: Registry[PolicyClass] = Registry("napari_agglo.policies", "policy")


def policy_features(policy: Policy) -> FeatureMap | None:
    """Return the features that the kernel of a policy reads; None if it reads none."""
    return getattr(policy, "features", None)


def policy_record(policy: object) -> dict[str, Any] | None:
    """Return the training record of a policy; None if it was not trained."""
    return getattr(policy, "record", None)


def is_informative(policy: Policy) -> bool:
    """Return whether the scores of a policy depend on the boundary."""
    return bool(getattr(policy, "informative", True))


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
        """Refuse a graph with other cues, bins or statistics than the policy was trained on."""
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

    def score(self, graph: RegionGraph) -> NDArray[np.float64]:
        """Return the probability that merging across each boundary of `graph` is wrong."""
        self.check(graph)
        return self.model.predict(feature_matrix(graph, self.features))

    def kernel(self, graph: RegionGraph) -> Scoring:
        """Return the record of the classifier for the compiled loop."""
        kind = FOREST if isinstance(self.model, Forest) else LOGISTIC
        return scoring(kind, 0, self.model, self.features.width)

    def to_json(self) -> dict[str, Any]:
        """Return the features and the record; the arrays of the classifier are in its file."""
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


@policies.add("mean")
@dataclass(frozen=True)
class MeanPolicy:
    """Merge first where the mean of a cue over the boundary is lowest.

    Of a graph without the cue "boundary", the default, the first oriented cue is taken.
    """

    cue: str = "boundary"
    name: ClassVar[str] = "mean"
    probabilistic: ClassVar[bool] = False

    def cue_in(self, graph: RegionGraph) -> str:
        """Return the cue in a graph; refuse one that has no value on some faces."""
        name, layout = self.cue, graph.layout
        if name == MeanPolicy.cue and name not in graph.cue_names:
            oriented = (k for k, row in enumerate(layout.sources) if len(row) > 1)
            name = next((graph.cue_names[k] for k in oriented), name)
        if not layout.sampled(graph.cue_index(name)).all():
            raise InvalidInput(
                f"The cue {name!r} has no value on faces across some axes, so that a boundary may "
                "have no mean",
                argument="cue",
                remedy="merge by the cue of the nearest voxels along all axes",
            )
        return name

    def check(self, graph: RegionGraph) -> None:
        """Refuse a graph without the cue."""
        self.cue_in(graph)

    def score(self, graph: RegionGraph) -> NDArray[np.float64]:
        """Return the mean of the cue over each boundary."""
        return graph.boundary_mean(self.cue_in(graph))

    def kernel(self, graph: RegionGraph) -> Scoring:
        """Return the column of the cue's sum."""
        return scoring(MEAN, graph.layout.boundary_sums(graph.cue_index(self.cue_in(graph))).start)

    def to_json(self) -> dict[str, Any]:
        """Return the cue."""
        return {"kind": self.name, "cue": self.cue}

    @classmethod
    def from_json(cls, words: dict[str, Any]) -> MeanPolicy:
        """Return the policy of the result of `to_json`."""
        if not isinstance(words.get("cue"), str):
            raise InvalidInput(
                f"The policy 'mean' needs the name of a cue, got {words!r}",
                argument="words",
                remedy="name one, such as {'cue': 'boundary'}",
            )
        return cls(words["cue"])


@policies.add("random")
@dataclass(frozen=True)
class RandomPolicy:
    """Merge in random order: a number in [0, 1) from the seed and the ids of both regions."""

    seed: int = 0
    name: ClassVar[str] = "random"
    probabilistic: ClassVar[bool] = False
    informative: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_whole("seed", self.seed, 0, 2**32 - 1)

    def check(self, graph: RegionGraph) -> None:
        """Accept any graph."""

    def score(self, graph: RegionGraph) -> NDArray[np.float64]:
        """Return a number for each pair of dense ids."""
        seed = int(self.seed)
        return np.array([uniform(seed, u, v) for u, v in graph.edges.tolist()], np.float64)

    def kernel(self, graph: RegionGraph) -> Scoring:
        """Return the seed."""
        return scoring(RANDOM, int(self.seed))

    def to_json(self) -> dict[str, Any]:
        """Return the seed."""
        return {"kind": self.name, "seed": int(self.seed)}

    @classmethod
    def from_json(cls, words: dict[str, Any]) -> RandomPolicy:
        """Return the policy of the result of `to_json`."""
        return cls(words.get("seed"))  # type: ignore[arg-type] # checked by the constructor


@policies.add("oriented mean")
@dataclass(frozen=True)
class OrientedMeanPolicy:
    """Merge first where the mean of an oriented cue over the boundary is lowest.

    A face reads the channel of its own direction: of an oriented map (`oriented_boundary`) that of
    its border, and of affinities that of its axis. Without a name the first oriented cue that has a
    value on all faces is taken.
    """

    cue: str | None = None
    name: ClassVar[str] = "oriented mean"
    probabilistic: ClassVar[bool] = False

    def mean_in(self, graph: RegionGraph) -> MeanPolicy:
        """Return the mean of the cue in a graph; refuse a graph without an oriented cue."""
        layout = graph.layout
        whole = [
            name
            for k, name in enumerate(graph.cue_names)
            if layout.sources and len(layout.sources[k]) > 1 and layout.sampled(k).all()
        ]
        if self.cue is None and not whole:
            raise InvalidInput(
                f"The policy 'oriented mean' needs an oriented cue, and the cues are "
                f"{', '.join(graph.cue_names)}",
                argument="policy",
                remedy=(
                    "pass oriented_boundary(image) or affinities(array) among the cues",
                    SetOption("policy", "mean"),
                ),
            )
        return MeanPolicy(whole[0] if self.cue is None else self.cue)

    def check(self, graph: RegionGraph) -> None:
        """Refuse a graph without the cue."""
        self.mean_in(graph).check(graph)

    def score(self, graph: RegionGraph) -> NDArray[np.float64]:
        """Return the mean of the cue over each boundary."""
        return self.mean_in(graph).score(graph)

    def kernel(self, graph: RegionGraph) -> Scoring:
        """Return the column of the cue's sum."""
        return self.mean_in(graph).kernel(graph)

    def to_json(self) -> dict[str, Any]:
        """Return the cue."""
        return {"kind": self.name, "cue": self.cue}

    @classmethod
    def from_json(cls, words: dict[str, Any]) -> OrientedMeanPolicy:
        """Return the policy of the result of `to_json`."""
        cue = words.get("cue")
        if not (cue is None or isinstance(cue, str)):
            raise InvalidInput(
                f"The policy 'oriented mean' needs the name of a cue or none, got {words!r}",
                argument="words",
                remedy="name one, such as {'cue': 'boundary_oriented'}",
            )
        return cls(cue)
