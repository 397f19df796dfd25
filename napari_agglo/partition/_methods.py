"""Registry of the ways to choose a partition, and `build_tree`, which calls one by its name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from napari_agglo._progress import ProgressCallback
from napari_agglo._registry import Registry, named_errors
from napari_agglo.agglomeration import MergeTree, merge_tree
from napari_agglo.errors import InvalidInput, did_you_mean
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import as_policy, check_local

Method = Callable[..., MergeTree]  # of a graph and a policy, with `progress` and options by name


def _accept(name: str, value: Any) -> Method:
    """Return the function of an entry point; refuse anything else, and one without `progress`."""
    if isinstance(value, type) or not callable(value):
        raise TypeError(f"it must be a function of a graph and a policy, got {value!r:.60}")
    method: Method = value
    _check_options(name, method, {"progress": None})
    return method


METHODS: Registry[Method] = Registry("napari_agglo.partitions", "method", accept=_accept)
METHODS.register("threshold", merge_tree)


def build_tree(
    graph: RegionGraph,
    policy: Any = "mean",
    method: str = "threshold",
    *,
    progress: ProgressCallback | None = None,
    **options: Any,
) -> MergeTree:
    """Return the merge tree of a graph by a method; its partition at 0.5 is the result.

    Parameters
    ----------
    graph : RegionGraph
        The superpixels and their statistics.
    policy : Policy, str or callable
        As for `napari_agglo.agglomerate`.
    method : str
        ``"threshold"``, greedy agglomeration; ``"adaptive"``, its `adaptive_cut`; ``"multicut"``;
        ``"mutex"``, the `mutex_watershed`; or the method of another package, by an entry point of
        the group ``napari_agglo.partitions``.
    progress : callable, optional
        Called with the progress so far; it may raise `Cancelled`.
    **options
        Options of the method, such as `beta` of the multicut.

    Returns
    -------
    MergeTree
        The tree; ``tree.segment(0.5)`` is the partition.

    Warns
    -----
    DataWarning
        If a function or feature of another package is not local.

    Examples
    --------
    >>> from napari_agglo.graph import RegionGraph
    >>> from napari_agglo.partition import METHODS
    >>> METHODS.names()
    ('threshold', 'adaptive', 'multicut', 'mutex')
    >>> graph = RegionGraph.from_edges([(1, 2), (2, 3)], [0.1, 0.8])
    >>> build_tree(graph, "mean", "adaptive").n_segments(0.5)
    2
    """
    function = METHODS[method]
    checked = as_policy(policy)
    _check_options(method, function, {"progress": progress, **options})
    checked.check(graph)
    if METHODS.package_of(method) is None:  # others agglomerate, which checks it
        check_local(checked, graph)
    with named_errors("method", method):
        tree = function(graph, checked, progress=progress, **options)
    if not isinstance(tree, MergeTree):
        raise InvalidInput(
            f"The method {method!r} must return a MergeTree, got {type(tree).__name__}",
            argument="method",
            remedy="let it return a MergeTree: see the page on adaptive cuts and multicuts",
        )
    return tree


def _check_options(name: str, function: Method, options: dict[str, Any]) -> None:
    """Refuse options that the function of a method does not take."""
    parameters = inspect.signature(function).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return
    known = [one.name for one in parameters][2:]  # after the graph and the policy
    for option in options:
        if option not in known:
            others = [one for one in known if one != "progress"]
            remedy = f"use {' or '.join(others)}" if others else "leave it out"
            if option == "progress":
                remedy = "add the parameter *, progress=None to its function"
            raise InvalidInput(
                f"The method {name!r} has no parameter {option!r}{did_you_mean(option, others)}",
                argument=option,
                remedy=remedy,
            )
