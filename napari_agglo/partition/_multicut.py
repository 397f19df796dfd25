"""Multicut: the partition of least total cost of the boundaries that it cuts.

Also called correlation clustering. The solver is that of bioimage-cpp, an optional package.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, part_of, report
from napari_agglo.agglomeration import MergeTree, merge_greedily
from napari_agglo.errors import InvalidInput, check_choice, is_number
from napari_agglo.graph import RegionGraph, as_graph, contracted
from napari_agglo.partition._adaptive_cut import HALF, check_probabilities
from napari_agglo.partition._methods import METHODS
from napari_agglo.policy import as_policy, checked_scores, stretched

SOLVERS = ("kernighan-lin", "greedy")
_LEAST = 1e-6


def multicut(
    graph: RegionGraph,
    policy: Any = "mean",
    *,
    beta: float = 0.5,
    solver: str = "kernighan-lin",
    progress: ProgressCallback | None = None,
) -> MergeTree:
    """Return the multicut of the boundaries of superpixels, as a merge tree.

    A boundary with the probability p to be one costs ``log((1 - p) / p) + log((1 - beta) / beta)``
    if it is cut. Boundaries are scored once, between superpixels, so that a policy trained by
    ``strategy="flat"`` fits best.

    Parameters
    ----------
    graph : RegionGraph
        The superpixels and their statistics.
    policy : Policy, str or callable
        As for `agglomerate`, with scores from 0 to 1.
    beta : float
        Above 0.5 more boundaries are cut, below it fewer.
    solver : {"kernighan-lin", "greedy"}
        *kernighan-lin* improves the result of *greedy* by moves of superpixels.
    progress : callable, optional
        Called with the progress so far; raise `Cancelled` in it to stop between the stages.

    Returns
    -------
    MergeTree
        At 0.5 its partition is the multicut. Below 0.5 the segments come apart, above it they merge
        in the order of the policy.

    Raises
    ------
    InvalidInput
        If scores are not from 0 to 1, or bioimage-cpp is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> import napari_agglo as agglo
    >>> graph = agglo.region_graph(np.array([[1, 2, 3]]), np.array([[0.1, 0.1, 0.9]]))
    >>> agglo.multicut(graph).segment(0.5)  # doctest: +SKIP
    array([[1, 1, 3]])
    """
    if not is_number(beta) or not 0 < beta < 1:
        raise InvalidInput(
            f"`beta` must be between 0 and 1, got {beta!r}", argument="beta", remedy="use 0.5"
        )
    check_choice("solver", solver, SOLVERS)
    graph, policy = as_graph(graph), as_policy(policy)
    policy.check(graph)
    report(progress, "multicut", 0, 3)
    scores = checked_scores(policy, graph)
    check_probabilities(scores, "policy")
    scores = stretched(policy, scores)
    report(progress, "multicut", 1, 3)
    apart = np.clip(scores, _LEAST, 1 - _LEAST)
    costs = np.log((1 - apart) / apart) + np.log((1 - beta) / beta)
    names = cut_boundaries(graph.n_regions, graph.edges, costs, solver)
    report(progress, "multicut", 2, 3)
    return partition_tree(graph, policy, names, part_of(progress, 0.5, 1.0))


def solvers(method: str) -> Any:
    """Import the solvers, or raise an error that names the package to install."""
    try:
        import bioimage_cpp
    except ImportError:
        raise InvalidInput(
            f"{method} needs the package bioimage-cpp, which is not installed",
            argument="method",
            remedy="pip install 'napari-agglo[multicut]'",
        ) from None
    return bioimage_cpp


def cut_boundaries(
    n_regions: int, edges: NDArray[np.int64], costs: NDArray[np.float64], solver: str
) -> NDArray[np.int64]:
    """Return a number for each of the dense ids 0..n, the same in one segment."""
    package = solvers("The multicut")
    multicuts = package.graph.multicut
    nodes = package.graph.UndirectedGraph.from_unique_edges(n_regions + 1, edges.astype(np.uint64))
    objective = multicuts.MulticutObjective(nodes, costs)
    if not len(edges):
        return np.arange(n_regions + 1)
    labels = multicuts.GreedyAdditiveMulticut().optimize(objective)
    if solver == "kernighan-lin":
        objective = multicuts.MulticutObjective(nodes, costs, initial_labels=labels)
        labels = multicuts.KernighanLinMulticut().optimize(objective)
    return np.asarray(labels).astype(np.int64)


def partition_tree(
    graph: RegionGraph,
    policy: Any,
    names: NDArray[np.int64],
    progress: ProgressCallback | None = None,
) -> MergeTree:
    """Return a tree whose partition at 0.5 has the superpixels of one name and no gap together."""
    inside = names[graph.edges[:, 0]] == names[graph.edges[:, 1]]
    # Without the boundaries that are cut, each segment is merged to its end, and no further.
    parts = dataclasses.replace(
        graph, edges=graph.edges[inside], boundaries=graph.boundaries[inside]
    )
    within = merge_greedily(parts, policy, progress=part_of(progress, 0.0, 0.5))
    region = np.arange(graph.n_regions + 1, dtype=np.uint32)  # the smallest superpixel of each
    for winner, loser in zip(within.winners[::-1], within.losers[::-1], strict=True):
        region[loser] = region[winner]
    first = np.unique(region)
    coarse = merge_greedily(contracted(graph, region), policy, progress=part_of(progress, 0.5, 1.0))
    return MergeTree(
        graph.superpixels,
        np.concatenate([within.winners, first[coarse.winners].astype(np.int64)]),
        np.concatenate([within.losers, first[coarse.losers].astype(np.int64)]),
        np.concatenate(
            [
                np.minimum(within.priorities, HALF),
                np.maximum(coarse.priorities, np.nextafter(HALF, 1.0)),
            ]
        ),
    )


METHODS.register("multicut", multicut)
