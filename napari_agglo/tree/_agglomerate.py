"""From a region graph and a policy to a merge tree: the public face of the agglomeration."""

from __future__ import annotations

from collections.abc import Iterable

from napari_agglo._progress import ProgressCallback
from napari_agglo.agglomeration import merge_greedily
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import Policy, as_policy
from napari_agglo.tree._merge_tree import MergeTree


def agglomerate(
    graph: RegionGraph,
    policy: Policy | str = "mean",
    *,
    seed: int = 0,
    cannot_link: Iterable[tuple[int, int]] | None = None,
    locked: Iterable[int] | None = None,
    progress: ProgressCallback | None = None,
) -> MergeTree:
    """Merge the two regions that the policy puts first, again and again, until none is left.

    After a merge, every boundary of the new region is scored anew from the sums of the statistics.
    Equal priorities are merged in the order of (smaller id, larger id), a region's id being here
    that of its smallest superpixel, so the same input gives the same tree, bit for bit.

    Parameters
    ----------
    graph : RegionGraph
        What to agglomerate; it is not changed.
    policy : Policy or str
        ``"mean"`` (of the cue "boundary"), ``"random"``, or a policy.
    seed : int
        Seed of ``"random"``.
    cannot_link : iterable of pairs of int, optional
        Superpixels (the user's ids) whose regions must never become one.
    locked : iterable of int, optional
        Superpixels (the user's ids) that must stay alone.
    progress : callable, optional
        Called with a `Progress` several times a second; raise `Cancelled` in it to stop.

    Returns
    -------
    MergeTree

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo import region_graph
    >>> superpixels = np.array([[1, 2, 3, 4]])
    >>> boundary = np.array([[0.0, 0.2, 0.6, 0.2]])
    >>> tree = agglomerate(region_graph(superpixels, boundary))
    >>> tree.segment(0.3)
    array([[1, 1, 3, 4]])
    >>> tree.segment(0.4)
    array([[1, 1, 1, 1]])
    >>> agglomerate(region_graph(superpixels, boundary), cannot_link=[(1, 4)]).segment(1.0)
    array([[1, 1, 1, 4]])
    """
    if not isinstance(graph, RegionGraph):
        raise InvalidInput(
            f"`graph` must be a RegionGraph, got {type(graph).__name__}; make one with "
            "region_graph(superpixels, cues)."
        )
    merges = merge_greedily(
        graph,
        as_policy(policy, seed),
        cannot_link=cannot_link,
        locked=locked,
        progress=progress,
    )
    return MergeTree(
        graph.superpixels, merges.winners, merges.losers, merges.priorities, graph.sizes
    )
