"""Adaptive cut of a merge tree: a threshold of its own for each branch.

Liu, Seyedhosseini and Tasdizen 2016, "Image segmentation using hierarchical merge tree": a merge is
done or not, and is done only if all merges below it are; of the sets of merges that obey this, the
most probable is taken, found by one pass up the tree and one down.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import kernel
from napari_agglo._progress import ProgressCallback
from napari_agglo.agglomeration import MergeTree, merge_tree
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph
from napari_agglo.partition._methods import METHODS
from napari_agglo.policy import Policy, stretched

HALF = 0.5  # the threshold at which the trees of this folder have their result
_ABOVE = np.nextafter(HALF, 1.0)
_LEAST = 1e-6  # probability: one certain merge must not outweigh all others


@kernel
def choose_merges(children: Any, apart: Any, n_leaves: Any, merged: Any, best: Any) -> None:
    """Write 1 to ``merged[node]`` for the merges to do. No bounds checking.

    A node above `n_leaves` is the result of a merge, `apart` the probability that its children stay
    apart. Invariant of the pass up: ``merged[node]`` is the energy, minus the log of the
    probability, of doing all merges of the node's branch, and ``best[node]`` the least energy of
    the branch. On the way down a node below one that is done is done.
    """
    for node in range(n_leaves + 1, children.shape[0]):
        a = children[node, 0]
        b = children[node, 1]
        p = apart[node]
        merged[node] = merged[a] + merged[b] - np.log(1.0 - p)
        best[node] = min(merged[node], best[a] + best[b] - np.log(p))
    for node in range(children.shape[0] - 1, n_leaves, -1):
        # `best` of a node below one that is done was set to infinity.
        is_done = merged[node] <= best[node]
        if is_done:
            for side in range(2):
                child = children[node, side]
                best[child] = np.inf
        merged[node] = 1.0 if is_done else 0.0


def adaptive_cut(tree: MergeTree, policy: Policy | None = None) -> MergeTree:
    """Return the tree with the merges of the most probable consistent set first.

    Priorities are read as probabilities that the two regions stay apart, as those of a learned
    policy are. The merges of the set come first, with priorities of at most 0.5; all others follow,
    above 0.5. So the partition at 0.5 is that of the set, and that of another threshold is coarser
    or finer.

    Parameters
    ----------
    tree : MergeTree
        A tree with priorities from 0 to 1.
    policy : Policy, optional
        The policy of the tree, if it is learned: one of *agglo* never gives 1.

    Returns
    -------
    MergeTree
        The same merges in another order.

    Examples
    --------
    A merge at 0.6 is done where the one above it certainly belongs together:

    >>> import numpy as np
    >>> import napari_agglo as agglo
    >>> graph = agglo.region_graph(np.array([[1, 2, 3]]), np.array([[0.0, 0.0, 0.0]]))
    >>> tree = agglo.MergeTree(
    ...     graph.superpixels, np.array([1, 1]), np.array([2, 3]), np.array([0.6, 0.01])
    ... )
    >>> tree.n_segments(0.5), agglo.adaptive_cut(tree).n_segments(0.5)
    (3, 1)
    """
    if not isinstance(tree, MergeTree):
        raise InvalidInput(
            f"`tree` must be a MergeTree, got {type(tree).__name__}",
            argument="tree",
            remedy="pass agglomerate(graph, policy)",
        )
    check_probabilities(tree.priorities, "tree")
    n = tree.n_superpixels
    children = np.zeros((n + 1 + tree.n_merges, 2), np.int64)
    children[n + 1 :] = tree.children
    apart = np.full(len(children), HALF)
    priorities = tree.priorities if policy is None else stretched(policy, tree.priorities)
    apart[n + 1 :] = np.clip(priorities, _LEAST, 1 - _LEAST)
    merged, best = np.zeros(len(children)), np.zeros(len(children))
    choose_merges(children, apart, n, merged, best)
    return chosen_first(tree, merged[n + 1 :] > 0)


@METHODS.add("adaptive")
def cut_adaptively(
    graph: RegionGraph, policy: Policy, *, progress: ProgressCallback | None = None
) -> MergeTree:
    """Return the adaptive cut of the merge tree of a graph."""
    return adaptive_cut(merge_tree(graph, policy, progress=progress), policy)


def chosen_first(tree: MergeTree, chosen: NDArray[np.bool_]) -> MergeTree:
    """Return the tree with chosen merges first, up to 0.5, and all others above 0.5.

    Below a chosen merge all merges must be chosen.
    """
    order = np.argsort(~chosen, kind="stable")
    priorities = np.where(
        chosen, np.minimum(tree.priorities, HALF), np.maximum(tree.priorities, _ABOVE)
    )
    return MergeTree(
        tree.superpixels,
        tree.winners[order],
        tree.losers[order],
        priorities[order],
        tree.sizes,
    )


def check_probabilities(priorities: NDArray[np.float64], argument: str) -> None:
    """Refuse priorities that are not from 0 to 1."""
    if len(priorities) and (priorities.min() < 0 or priorities.max() > 1):
        raise InvalidInput(
            "The priorities must be probabilities from 0 to 1, and are from "
            f"{priorities.min():.3g} to {priorities.max():.3g}",
            argument=argument,
            remedy="use a learned policy, or the mean of a cue from 0 to 1",
        )
