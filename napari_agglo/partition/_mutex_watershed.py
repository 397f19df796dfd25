"""Mutex watershed of superpixels: the strongest evidence, for or against a merge, comes first.

Wolf et al. 2020, "The mutex watershed and its objective". The solver is that of bioimage-cpp, an
optional package.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, part_of, report
from napari_agglo.agglomeration import MergeTree
from napari_agglo.graph import RegionGraph, as_graph, far_pairs
from napari_agglo.partition._adaptive_cut import HALF, check_probabilities
from napari_agglo.partition._methods import METHODS
from napari_agglo.partition._multicut import partition_tree, solvers
from napari_agglo.policy import as_policy, checked_scores, stretched


def mutex_watershed(
    graph: RegionGraph,
    policy: Any = "mean",
    *,
    progress: ProgressCallback | None = None,
) -> MergeTree:
    """Return the mutex watershed of the superpixels, as a merge tree.

    All evidence is taken in the order of its strength. Two superpixels that attract each other are
    merged with all that has been merged to them, unless something in the one repels something in
    the other; those that repel each other are never merged from then on. There is no threshold and
    no parameter.

    With long-range affinities (`affinities` with offsets of more than one voxel), boundaries
    attract, by 1 minus their score, and the pairs of superpixels at the two ends of long-range
    affinities repel, by 1 minus their mean affinity, whether they touch or not. Without them, a
    boundary with a score of less than 0.5 attracts, and any other repels by its score.

    Parameters
    ----------
    graph : RegionGraph
        The superpixels and their statistics.
    policy : Policy, str or callable
        As for `agglomerate`, with scores from 0 to 1; boundaries are scored once, between
        superpixels.
    progress : callable, optional
        Called with the progress so far; raise `Cancelled` in it to stop between the stages.

    Returns
    -------
    MergeTree
        At 0.5 its partition is the mutex watershed. Below 0.5 the segments come apart, above it
        they merge in the order of the policy.

    Raises
    ------
    InvalidInput
        If scores are not from 0 to 1, or bioimage-cpp is not installed.

    Examples
    --------
    The third superpixel is attracted by the second, but the first, merged by then, repels it:

    >>> import napari_agglo as agglo
    >>> graph = agglo.RegionGraph.from_edges([(1, 2), (2, 3), (1, 3)], [0.1, 0.2, 0.85])
    >>> agglo.mutex_watershed(graph).segment(0.5)  # doctest: +SKIP
    array([1, 1, 3])
    """
    graph, policy = as_graph(graph), as_policy(policy)
    policy.check(graph)
    report(progress, "mutex watershed", 0, 3)
    scores = checked_scores(policy, graph)
    check_probabilities(scores, "policy")
    scores = stretched(policy, scores)
    report(progress, "mutex watershed", 1, 3)
    if graph.far:
        far = far_pairs(graph, part_of(progress, 0.3, 0.5))
        names = cluster(graph.n_regions, graph.edges, 1 - scores, far.pairs, far.means)
    else:
        attract = scores < HALF
        names = cluster(
            graph.n_regions, graph.edges[attract], 1 - scores[attract],
            graph.edges[~attract], scores[~attract],
        )  # fmt: skip
    report(progress, "mutex watershed", 2, 3)
    return partition_tree(graph, policy, names, part_of(progress, 0.5, 1.0))


def cluster(
    n_regions: int,
    attractive: NDArray[np.int64],
    attractions: NDArray[np.float64],
    repulsive: NDArray[np.int64],
    repulsions: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Return a number for each of the dense ids 0..n, the same in one segment."""
    package = solvers("The mutex watershed")
    if not len(attractive):
        return np.arange(n_regions + 1)
    nodes = package.graph.UndirectedGraph.from_unique_edges(
        n_regions + 1, attractive.astype(np.uint64)
    )
    labels = package.graph.mutex_watershed.mutex_watershed_clustering(
        nodes, attractions, repulsive.astype(np.uint64).reshape(-1, 2), repulsions
    )
    return np.asarray(labels).astype(np.int64)


METHODS.register("mutex", mutex_watershed)
