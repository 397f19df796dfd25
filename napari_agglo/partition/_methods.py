"""Registry of the ways to choose a partition: a threshold, adaptive cut, multicut, mutex."""

# In its own file: the place to add another way.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from napari_agglo._progress import ProgressCallback
from napari_agglo._registry import Registry
from napari_agglo.agglomeration import MergeTree, merge_tree
from napari_agglo.graph import RegionGraph
from napari_agglo.partition._adaptive_cut import adaptive_cut
from napari_agglo.partition._multicut import multicut
from napari_agglo.partition._mutex_watershed import mutex_watershed
from napari_agglo.policy import Policy, as_policy

Method = Callable[..., MergeTree]  # of a graph and a policy, with `progress` and options by name

METHODS: Registry[Method] = Registry("napari_agglo.partitions", "method")


def _adaptive(
    graph: RegionGraph, policy: Policy, *, progress: ProgressCallback | None = None
) -> MergeTree:
    return adaptive_cut(merge_tree(graph, policy, progress=progress), policy)


METHODS.register("threshold", merge_tree)
METHODS.register("adaptive", _adaptive)
METHODS.register("multicut", multicut)
METHODS.register("mutex", mutex_watershed)


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

    Examples
    --------
    >>> from napari_agglo.graph import RegionGraph
    >>> METHODS.names()
    ('threshold', 'adaptive', 'multicut', 'mutex')
    >>> graph = RegionGraph.from_edges([(1, 2), (2, 3)], [0.1, 0.8])
    >>> build_tree(graph, "mean", "adaptive").n_segments(0.5)
    2
    """
    return METHODS[method](graph, as_policy(policy), progress=progress, **options)
