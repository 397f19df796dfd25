"""A Python function as a policy, by itself or by its name ``module:function``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import AggloError, InvalidInput, did_you_mean
from napari_agglo.graph import RegionGraph
from napari_agglo.policy._policies import Policy, RandomPolicy, policies


@dataclass(frozen=True)
class CallablePolicy:
    """Policy by a Python function; slow, as the merge loop calls the function after each merge.

    Parameters
    ----------
    function : callable
        Takes a `RegionGraph` and returns a finite number for each boundary, low merges first. It
        must be *local*: the number may depend only on the statistics of the boundary and of its two
        regions. The loop passes small graphs of the boundaries to score, without cues, boxes and
        label image, and with one region for each side of each boundary.

    Examples
    --------
    >>> import numpy as np
    >>> import napari_agglo as agglo
    >>> graph = agglo.region_graph(np.array([[1, 2, 3, 4]]), np.array([[0.0, 0.2, 0.6, 0.2]]))
    >>> tree = agglo.agglomerate(graph, lambda graph: 1 - graph.boundary_mean("boundary"))
    >>> tree.priorities.round(2)
    array([0.6, 0.6, 0.9])
    """

    function: Callable[[RegionGraph], Any]
    probabilistic: ClassVar[bool] = False
    kind: ClassVar[str] = "callable"  # as sessions store it

    def __repr__(self) -> str:
        return f"CallablePolicy({self.name})"

    @property
    def name(self) -> str:
        """``module:function``."""
        inner = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        return f"{getattr(self.function, '__module__', '?')}:{inner}"

    def check(self, graph: RegionGraph) -> None:
        """Accept any graph: the function may refuse it.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.
        """

    def score(self, graph: RegionGraph) -> NDArray[np.float64]:
        """Return the numbers of the function, checked.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.

        Returns
        -------
        ndarray of float, shape (n_boundaries,)
            The priorities; low merges first.

        Raises
        ------
        InvalidInput
            If the function does not return a finite number for each boundary.
        """
        return checked_numbers(_asked(self.function, graph, self.name), graph, self.name)

    def kernel(self, graph: RegionGraph) -> None:
        """Return None: the function is not compiled.

        Parameters
        ----------
        graph : RegionGraph
            The regions and boundaries, with their statistics.
        """

    def to_json(self) -> dict[str, Any]:
        """Return the name of the function, which must be passed again to open a session.

        Returns
        -------
        dict
            The name ``module:function``, with "callable" as "kind".
        """
        return {"kind": self.kind, "function": self.name}


def checked_scores(policy: Policy, graph: RegionGraph) -> NDArray[np.float64]:
    """Return the scores of a policy, checked; the merge loop relies on the check."""
    return checked_numbers(_asked(policy.score, graph, policy.name), graph, policy.name)


def _asked(function: Callable[[RegionGraph], Any], graph: RegionGraph, name: str) -> Any:
    """Return what a function gives; its error gets a note, so that nobody takes it for ours."""
    try:
        return function(graph)
    except Exception as error:
        if not isinstance(error, AggloError) and not getattr(error, "__notes__", ()):
            error.add_note(f"raised by the policy {name!r}")
        raise


def checked_numbers(scores: Any, graph: RegionGraph, name: str) -> NDArray[np.float64]:
    """Return the scores of a policy as an array; refuse all but a finite number per boundary."""
    try:
        numbers = np.asarray(scores, np.float64)
    except (TypeError, ValueError):
        numbers = np.full(1, np.nan)
    if numbers.shape != (graph.n_boundaries,) or not np.isfinite(numbers).all():
        wrong = np.flatnonzero(~np.isfinite(numbers)) if numbers.ndim == 1 else numbers
        got = f"an array of shape {numbers.shape}"
        if not isinstance(scores, np.ndarray) and numbers.shape != (graph.n_boundaries,):
            got = f"{type(scores).__name__} {scores!r:.40}"
        elif numbers.shape == (graph.n_boundaries,):
            got = f"{numbers[wrong[0]]} for {len(wrong)} of them, first for boundary {wrong[0]}"
        raise InvalidInput(
            f"The policy {name!r} must return a finite number for each of {graph.n_boundaries} "
            f"boundaries, got {got}",
            argument="policy",
            remedy="fix its function",
        )
    return numbers


def import_policy(name: str) -> Any:
    """Return the object ``module:attribute``; only called with a name that a user typed."""
    module, _, attribute = name.partition(":")
    remedy = f"check the name, install {module}, or add its folder to PYTHONPATH"
    if module == "__main__" or "<" in attribute:  # of a script, or inside another function
        remedy = "pass the function itself in Python, or define it in a module that can be imported"
    try:
        value: Any = import_module(module)
        for part in attribute.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidInput(
            f"`policy` {name!r} cannot be imported: {error}",
            argument="policy",
            remedy=remedy,
        ) from error
    return value


def as_policy(policy: Any, seed: int = 0) -> Policy:
    """Return the policy that an argument stands for.

    That is a policy itself; one by its name in the registry; a function (see `CallablePolicy`); or
    ``"module:function"``, which is imported.

    Examples
    --------
    >>> as_policy("mean")
    MeanPolicy(cue='boundary')
    >>> as_policy("math:fsum")
    CallablePolicy(math:fsum)
    """
    if isinstance(policy, str):
        if policy == RandomPolicy.name:
            return RandomPolicy(seed)
        if ":" in policy:
            policy = import_policy(policy)
        elif policy in policies:
            return policies[policy]()
    if isinstance(policy, type):
        policy = policy()
    if isinstance(policy, Policy):
        return policy
    if callable(policy):
        return CallablePolicy(policy)
    names = ", ".join(map(repr, policies))
    raise InvalidInput(
        f"`policy` must be {names} or a policy, got {policy!r}{did_you_mean(policy, policies)}",
        argument="policy",
        remedy="pass one of these names, a function, or the result of train or load_policy",
    )
