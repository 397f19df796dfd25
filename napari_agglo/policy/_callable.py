"""A Python function as a policy, by itself or by its name ``module:function``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from napari_agglo._data_warnings import warn_caller
from napari_agglo._registry import named_errors
from napari_agglo.errors import AggloError, DataWarning, InvalidInput, did_you_mean
from napari_agglo.features import check_blocks
from napari_agglo.graph import RegionGraph, graph_of_pairs, sample_of_pairs
from napari_agglo.policy._policies import (
    Policy,
    is_bounded,
    missing_members,
    policies,
    policy_features,
)

_SAMPLE = 64  # boundaries on which a policy is tried, a chunk of the merge loop
_ROUNDING = 1e-9  # by which a score of a bounded policy may be outside of 0 to 1


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
        return checked_numbers(_call_function(self.function, graph, self.name), graph, self.name)

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
    scores = checked_numbers(_call_function(policy.score, graph, policy.name), graph, policy.name)
    outside = np.flatnonzero((scores < -_ROUNDING) | (scores > 1 + _ROUNDING))
    if len(outside) and is_bounded(policy, graph):
        word = "probabilistic" if policy.probabilistic else "bounded"
        raise InvalidInput(
            f"The policy {policy.name!r} has {word} = True, so that its scores must be from 0 to 1,"
            f" and scores a boundary {scores[outside[0]]:.6g} ({len(outside)} of {len(scores)} "
            "are outside)",
            argument="policy",
            remedy=f"let its score return numbers from 0 to 1, or set {word} = False",
        )
    return scores


def check_local(policy: Policy, graph: RegionGraph) -> None:
    """Try a policy that is scored in Python on some boundaries; warn of one that is not local.

    The merge loop passes boundaries as they come, so the score of one must not depend on others.
    """
    features = policy_features(policy)
    if features is not None:
        check_blocks(graph, features)
    if graph.n_boundaries == 0 or policy.kernel(graph) is not None:
        return
    if problem := not_local(policy, graph):
        warn_caller(DataWarning(problem, argument="policy", remedy=MAKE_LOCAL))


MAKE_LOCAL = "compute each score from the statistics of the boundary and its two regions"


def not_local(policy: Policy, graph: RegionGraph) -> str:
    """Return in words a boundary that a policy scores otherwise alone; no text if there is none."""
    rows = sample_of_pairs(graph, _SAMPLE)
    step = max(len(rows) // 4, 1)
    among = checked_scores(policy, graph_of_pairs(graph, rows))[::step]
    alone = [checked_scores(policy, graph_of_pairs(graph, row[None])) for row in rows[::step]]
    wrong = np.flatnonzero(~np.isclose(np.concatenate(alone), among, 1e-6, 1e-9))
    if not len(wrong):
        return ""
    k = int(wrong[0])
    return (
        f"The policy {policy.name!r} is not local: it scores a boundary {among[k]:.6g} among "
        f"others and {alone[k][0]:.6g} alone, so that the merges depend on chance"
    )


def _call_function(function: Callable[[RegionGraph], Any], graph: RegionGraph, name: str) -> Any:
    """Call a function of a user, and note its name on any error."""
    with named_errors("policy", name):
        return function(graph)


def checked_numbers(scores: Any, graph: RegionGraph, name: str) -> NDArray[np.float64]:
    """Return the scores of a policy as an array; refuse all but a finite number per boundary."""
    try:
        is_complex = np.iscomplexobj(np.asarray(scores))
        numbers = np.full(0, np.nan) if is_complex else np.asarray(scores, np.float64)
    except (TypeError, ValueError):
        is_complex, numbers = False, np.full(0, np.nan)
    if numbers.shape != (graph.n_boundaries,) or not np.isfinite(numbers).all():
        if hasattr(scores, "score"):
            raise _factory(name, f"returns {type(scores).__name__}, which is a policy, not numbers")
        wrong = np.flatnonzero(~np.isfinite(numbers)) if numbers.ndim == 1 else numbers
        got = f"an array of shape {numbers.shape}"
        if is_complex:
            got = "complex numbers"
        elif not isinstance(scores, np.ndarray) and numbers.shape != (graph.n_boundaries,):
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


def _factory(name: str, problem: str) -> InvalidInput:
    """Return the error of a function that makes a policy, and is none."""
    return InvalidInput(
        f"`policy` must be a policy, or a function from a graph to numbers, and {name!r} {problem}",
        argument="policy",
        remedy="call the function, and pass its result: by name, that is an object of its module, "
        "MODULE:NAME",
    )


def _refuse_factory(function: Callable[..., Any], name: str) -> None:
    """Refuse a function that cannot be called with a graph."""
    try:
        parameters = signature(function)
    except (TypeError, ValueError):  # of C, which may not tell
        return
    try:
        parameters.bind(None)
    except TypeError:
        raise _factory(
            name, f"cannot be called with a graph alone: {name.partition(':')[2]}{parameters}"
        ) from None


def import_policy(name: str) -> Any:
    """Return the object ``module:attribute``; only called with a name that a user typed."""
    module, _, attribute = name.partition(":")
    remedy = f"check the name, install {module}, or add its folder to PYTHONPATH"
    if module == "__main__" or "<" in attribute:  # of a script, or inside another function
        remedy = "pass the function itself in Python, or define it in a module that can be imported"
    elif module.endswith(".py"):
        remedy = f"leave out .py: {module.removesuffix('.py').replace('/', '.')}:{attribute}"
    try:
        value: Any = import_module(module)
        for part in attribute.split("."):
            value = getattr(value, part)
    except Exception as error:  # a module may raise anything while it is imported
        plain = isinstance(error, (ImportError, AttributeError, ValueError))
        kind = "" if plain else f"{type(error).__name__}: "
        raise InvalidInput(
            f"`policy` {name!r} cannot be imported: {kind}{error}",
            argument="policy",
            remedy=remedy if plain else f"fix the module {module}",
        ) from error
    if not (callable(value) or hasattr(value, "score")):
        raise InvalidInput(
            f"`policy` {name!r} must be a function or a policy, and is {value!r:.40}",
            argument="policy",
            remedy="name a function of a graph",
        )
    return value


def as_policy(policy: Any, seed: int = 0) -> Policy:
    """Return the policy that an argument stands for.

    Parameters
    ----------
    policy : Policy, callable or str
        A policy itself; the name of one in the registry; a function (see `CallablePolicy`); or
        ``"module:function"``, which is imported.
    seed : int
        Seed of the policy ``"random"``.

    Returns
    -------
    Policy
        The policy.

    Examples
    --------
    >>> as_policy("mean")
    MeanPolicy(cue='boundary')
    >>> as_policy("math:fsum")
    CallablePolicy(math:fsum)
    """
    if isinstance(policy, str):
        if ":" in policy:
            policy = import_policy(policy)
        elif policy in policies:
            options = {"seed": seed} if policy == "random" else {}
            policy = _made(policies[policy], policy, **options)
    if isinstance(policy, type):
        policy = _made(policy, getattr(policy, "name", policy.__name__))
    if isinstance(policy, Policy):
        return policy
    if hasattr(policy, "score"):  # meant as a policy
        lacks = " and no ".join(missing_members(policy))
        raise InvalidInput(
            f"`policy` is an object of the class {type(policy).__name__}, which has no {lacks}",
            argument="policy",
            remedy="write the missing members of a policy, or pass a function",
        )
    if callable(policy):
        made = CallablePolicy(policy)
        _refuse_factory(policy, made.name)
        return made
    names = ", ".join(map(repr, policies))
    raise InvalidInput(
        f"`policy` must be {names} or a policy, got {policy!r}{did_you_mean(policy, policies)}",
        argument="policy",
        remedy="pass one of these names, a function, or the result of train or load_policy, or "
        f"install a package with such an entry point in {policies.group}",
    )


def _made(kind: Any, name: object, **options: Any) -> Any:
    """Return the policy of a class with its defaults; refuse a class that needs more arguments."""
    try:
        return kind(**options)
    except AggloError:
        raise
    except Exception as error:
        owner = policies.package_of(name) if isinstance(name, str) else None
        raise InvalidInput(
            f"The policy {name!r}{f' of the package {owner}' if owner else ''} cannot be made "
            f"without arguments: {error}",
            argument="policy",
            remedy="pass a policy made with its arguments, or give its parameters defaults",
        ) from error
