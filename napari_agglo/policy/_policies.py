"""Policies: their protocol and their registry.

A policy assigns a priority to every boundary; the boundary of the lowest priority is merged first.
To add one, write a class with the members of `Policy` and register it: in a new file of this
folder, by ``@policies.add(name)``, or from another package by an entry point of the group
``napari_agglo.policies`` (docs/extending.md).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from inspect import signature
from typing import Any, ClassVar, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from napari_agglo._registry import Registry
from napari_agglo.errors import InvalidInput
from napari_agglo.features import FeatureMap
from napari_agglo.graph import RegionGraph, with_hulls
from napari_agglo.policy._score import Scoring


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

    def __repr__(self) -> str:
        return f"NamedFunction({self.name!r})"

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
    try:
        signature(value).bind()
    except ValueError:  # a class of C may have no signature
        pass
    except TypeError as error:
        raise InvalidInput(
            f"the class {value.__name__} cannot be made without arguments: {error}",
            remedy="give the parameters of its constructor defaults",
        ) from None
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
    >>> from napari_agglo.policy import MeanPolicy
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
