"""Policies: their protocol, their registry, and the policies of this package.

A policy assigns a priority to every boundary; the boundary of the lowest priority is merged first.
To add one, write a class with the members of `Policy` and register it: here, or from another
package by an entry point of the group ``napari_agglo.policies`` (docs/extending.md).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba.hash_tables import uniform
from napari_agglo._registry import Registry
from napari_agglo.errors import InvalidInput, SetOption, check_whole
from napari_agglo.features import FeatureMap
from napari_agglo.graph import RegionGraph, with_hulls
from napari_agglo.policy._model import MEAN, RANDOM
from napari_agglo.policy._score import Scoring, scoring


@runtime_checkable
class Policy(Protocol):
    """The members of a policy.

    A policy is *local*: the priority of a boundary depends only on the statistics of that boundary
    and of its two regions, so that after a merge only the boundaries of the new region are scored
    again. Four further attributes are optional: `features` (a `FeatureMap` that the kernel reads),
    `record` (a dict about the training), `informative` (False if scores depend on the ids of the
    regions, not on the boundary), and `bounded` (True if priorities by cues are from 0 to 1).

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

        Raises
        ------
        InvalidInput
            If the graph lacks a cue or a statistic that the policy reads.
        """

    def score(self, graph: RegionGraph) -> NDArray[np.float64]:
        """Return the priority of every boundary of `graph`; low merges first.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.

        Returns
        -------
        ndarray of float, shape (n_boundaries,)
            The priorities, finite numbers.
        """

    def kernel(self, graph: RegionGraph) -> Scoring | None:
        """Return the record for the compiled loop; None if the loop must call `score`.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.

        Returns
        -------
        Scoring or None
            The arrays that the compiled loop reads.
        """

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON with "kind", the name, from which the policy can be made again.

        Returns
        -------
        dict
            Plain numbers, strings, lists and dicts.
        """


class PolicyClass(Protocol):
    """A class of policies, as the registry has it."""

    def __call__(self) -> Policy:
        """Return the policy with its defaults."""

    def from_json(self, words: dict[str, Any]) -> Policy:
        """Return the policy of the result of `to_json`; raise `InvalidInput` for anything else."""


@dataclass(frozen=True)
class NamedFunction:
    """A function that a package names as a policy: the policy, and its class in the registry.

    Parameters
    ----------
    name : str
        The name of its entry point, which sessions store.
    function : callable
        As of `CallablePolicy`.
    """

    name: str
    function: Callable[[RegionGraph], Any]
    probabilistic: ClassVar[bool] = False

    def __call__(self) -> NamedFunction:
        """Return the policy: a function has no parameters."""
        return self

    def check(self, graph: RegionGraph) -> None:
        """Accept any graph: the function may refuse it."""

    def score(self, graph: RegionGraph) -> NDArray[np.float64]:
        """Return the numbers of the function, which the merge loop checks."""
        scores: NDArray[np.float64] = self.function(graph)
        return scores

    def kernel(self, graph: RegionGraph) -> None:
        """Return None: the function is not compiled."""

    def to_json(self) -> dict[str, Any]:
        """Return the name."""
        return {"kind": self.name}

    def from_json(self, words: dict[str, Any]) -> NamedFunction:
        """Return the policy itself."""
        return self


_MEMBERS = ("name", "probabilistic", "check", "score", "kernel", "to_json")  # of `Policy`


def missing_members(value: object, members: tuple[str, ...] = _MEMBERS) -> list[str]:
    """Return the members of a policy that a class or object does not have."""
    return [name for name in members if not hasattr(value, name)]


def _accept(name: str, value: Any) -> PolicyClass:
    """Return the value of an entry point as a class of policies; refuse one that cannot be used."""
    if not isinstance(value, type):
        if callable(value) and not hasattr(value, "score"):
            return NamedFunction(name, value)
        raise InvalidInput(
            f"it is an object of the class {type(value).__name__}, and must be a class of policies "
            "or a function",
            remedy=f"name the class {type(value).__name__} in its entry point",
        )
    lacks = missing_members(value, (*_MEMBERS, "from_json"))
    if lacks and not {*lacks} - {"name", "probabilistic"}:  # a constructor may set these
        with suppress(Exception):
            lacks = missing_members(value(), tuple(lacks))
    if lacks:
        raise InvalidInput(
            f"the class {value.__name__} has no {' and no '.join(lacks)}",
            remedy="write the members that the page on extending lists",
        )
    own = getattr(value, "name", None)
    if isinstance(own, str) and own != name:
        raise InvalidInput(
            f"the name of the class {value.__name__} is {own!r}, and that of its entry point "
            f"{name!r}: a session, which stores the first, could not find it",
            remedy="give both the same name",
        )
    return cast(PolicyClass, value)


policies: Registry[PolicyClass] = Registry("napari_agglo.policies", "policy", accept=_accept)


def policy_features(policy: Policy) -> FeatureMap | None:
    """Return the features that the kernel of a policy reads; None if it reads none."""
    return getattr(policy, "features", None)


def graph_for(policy: Policy, graph: RegionGraph) -> RegionGraph:
    """Return a graph with all that the features of a policy read.

    That is more than rows of statistics if the policy reads convex hulls. Graphs made from this one
    have them then, also those without pixels.
    """
    features = policy_features(policy)
    return with_hulls(graph) if features is not None and features.options.hulls else graph


def policy_record(policy: object) -> dict[str, Any] | None:
    """Return the training record of a policy; None if it was not trained.

    Parameters
    ----------
    policy : Policy
        A policy of any kind.

    Returns
    -------
    dict or None
        The options of the training, its data and its errors, as the policy file has them.

    Examples
    --------
    >>> policy_record(MeanPolicy()) is None
    True
    """
    return getattr(policy, "record", None)


def is_bounded(policy: Policy, graph: RegionGraph | None = None) -> bool:
    """Return whether all priorities of a policy are from 0 to 1, as are then its thresholds.

    Weights of the user, of which `graph` may be made, can be any numbers.
    """
    by_cues = graph is None or graph.face_parts == 1
    return policy.probabilistic or (by_cues and getattr(policy, "bounded", False))


def is_informative(policy: Policy) -> bool:
    """Return whether the scores of a policy depend on the boundary."""
    return bool(getattr(policy, "informative", True))


@policies.add("mean")
@dataclass(frozen=True)
class MeanPolicy:
    """Merge first where the mean of a cue over the boundary is lowest.

    Of a graph without the cue "boundary", the default, the first oriented cue is taken.

    Parameters
    ----------
    cue : str
        The name of the cue.
    """

    cue: str = "boundary"
    name: ClassVar[str] = "mean"
    probabilistic: ClassVar[bool] = False
    bounded: ClassVar[bool] = True

    def cue_in(self, graph: RegionGraph) -> str:
        """Return the cue in a graph; refuse one that has no value on some faces.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.

        Returns
        -------
        str
            The name of the cue.
        """
        name, layout = self.cue, graph.layout
        if name == MeanPolicy.cue and name not in graph.cue_names:
            oriented = (k for k, row in enumerate(layout.sources) if len(row) > 1)
            name = next((graph.cue_names[k] for k in oriented), name)
        if not layout.sampled(graph.cue_index(name)).all():
            raise InvalidInput(
                f"The cue {name!r} has no value on faces across some axes, so a boundary may have "
                "no mean",
                argument="cue",
                remedy="merge by the cue of the nearest voxels along all axes",
            )
        return name

    def check(self, graph: RegionGraph) -> None:
        """Refuse a graph without the cue.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.

        Raises
        ------
        InvalidInput
            If the graph cannot be scored.
        """
        self.cue_in(graph)

    def score(self, graph: RegionGraph) -> NDArray[np.float64]:
        """Return the mean of the cue over each boundary.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.

        Returns
        -------
        ndarray of float, shape (n_boundaries,)
            The priorities; low merges first.
        """
        return graph.boundary_mean(self.cue_in(graph))

    def kernel(self, graph: RegionGraph) -> Scoring:
        """Return the record for the compiled loop, with the column of the cue's sum.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.

        Returns
        -------
        Scoring
            The arrays that the compiled loop reads.
        """
        return scoring(MEAN, graph.layout.boundary_sums(graph.cue_index(self.cue_in(graph))).start)

    def to_json(self) -> dict[str, Any]:
        """Return the cue.

        Returns
        -------
        dict
            Plain numbers and strings, with the name of the policy as "kind".
        """
        return {"kind": self.name, "cue": self.cue}

    @classmethod
    def from_json(cls, words: dict[str, Any]) -> MeanPolicy:
        """Return the policy of the result of `to_json`.

        Parameters
        ----------
        words : dict
            The result of `to_json`.

        Returns
        -------
        MeanPolicy
            The same policy.

        Raises
        ------
        InvalidInput
            If `words` are not those of this policy.
        """
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


@policies.add("oriented mean")
@dataclass(frozen=True)
class OrientedMeanPolicy:
    """Merge first where the mean of an oriented cue over the boundary is lowest.

    A face reads the channel of its own direction: of an oriented map (`oriented_boundary`) that of
    its border, and of affinities that of its axis. Without a name the first oriented cue that has a
    value on all faces is taken.

    Parameters
    ----------
    cue : str, optional
        The name of an oriented cue.

    Examples
    --------
    >>> import numpy as np
    >>> import napari_agglo as agglo
    >>> affinities = agglo.affinities(np.ones((2, 1, 3)), [(-1, 0), (0, -1)])
    >>> graph = agglo.region_graph(np.array([[1, 2, 3]]), affinities)
    >>> agglo.agglomerate(graph, "oriented mean").n_segments(0.5)
    1
    """

    cue: str | None = None
    name: ClassVar[str] = "oriented mean"
    probabilistic: ClassVar[bool] = False
    bounded: ClassVar[bool] = True

    def mean_in(self, graph: RegionGraph) -> MeanPolicy:
        """Return the mean of the cue in a graph; refuse a graph without an oriented cue.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.

        Returns
        -------
        MeanPolicy
            The mean of that cue.
        """
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
        """Refuse a graph without the cue.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.

        Raises
        ------
        InvalidInput
            If the graph cannot be scored.
        """
        self.mean_in(graph).check(graph)

    def score(self, graph: RegionGraph) -> NDArray[np.float64]:
        """Return the mean of the cue over each boundary.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.

        Returns
        -------
        ndarray of float, shape (n_boundaries,)
            The priorities; low merges first.
        """
        return self.mean_in(graph).score(graph)

    def kernel(self, graph: RegionGraph) -> Scoring:
        """Return the record for the compiled loop, with the column of the cue's sum.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.

        Returns
        -------
        Scoring
            The arrays that the compiled loop reads.
        """
        return self.mean_in(graph).kernel(graph)

    def to_json(self) -> dict[str, Any]:
        """Return the cue.

        Returns
        -------
        dict
            Plain numbers and strings, with the name of the policy as "kind".
        """
        return {"kind": self.name, "cue": self.cue}

    @classmethod
    def from_json(cls, words: dict[str, Any]) -> OrientedMeanPolicy:
        """Return the policy of the result of `to_json`.

        Parameters
        ----------
        words : dict
            The result of `to_json`.

        Returns
        -------
        OrientedMeanPolicy
            The same policy.

        Raises
        ------
        InvalidInput
            If `words` are not those of this policy.
        """
        cue = words.get("cue")
        if not (cue is None or isinstance(cue, str)):
            raise InvalidInput(
                f"The policy 'oriented mean' needs the name of a cue or none, got {words!r}",
                argument="words",
                remedy="name one, such as {'cue': 'boundary_oriented'}",
            )
        return cls(cue)
