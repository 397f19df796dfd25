"""Refinement of a merge tree to finer superpixels, for comparison with a tree of these.

In its own file because it makes a tree, for the command line and the Compare widget; the other
files of this folder compare tables of labels.
"""

from __future__ import annotations

import numpy as np

from napari_agglo.agglomeration import MergeTree
from napari_agglo.errors import InvalidInput
from napari_agglo.volumes import DenseLabels, check_same_shape


def refined(tree: MergeTree, superpixels: DenseLabels) -> MergeTree:
    """Return a tree on finer superpixels, which first joins the pieces of each superpixel.

    A session may divide superpixels. The hierarchy before the edits, refined to the superpixels
    after them, can be compared with the edited one, or shown in one movie with it.

    Parameters
    ----------
    tree : MergeTree
        A hierarchy.
    superpixels : DenseLabels
        The superpixels of `tree`, some or all of them divided.

    Returns
    -------
    MergeTree
        The same partitions from the lowest threshold of `tree` on; `tree` itself if nothing is
        divided.

    Examples
    --------
    >>> import napari_agglo as agglo
    >>> from napari_agglo.volumes import dense_labels
    >>> tree = agglo.agglomerate(agglo.region_graph(np.array([[1, 1, 2]]), np.zeros((1, 3))))
    >>> finer = refined(tree, dense_labels(np.array([[1, 7, 2]]), "superpixels"))
    >>> finer
    MergeTree(3 superpixels, 2 merges, priorities 0 to 0)
    """
    coarse = tree.superpixels
    check_same_shape(superpixels.image, coarse.image, "superpixels", "tree")
    if superpixels is coarse:
        return tree
    owner = np.zeros(len(superpixels.ids), np.int64)
    owner[superpixels.image] = coarse.image
    if not np.array_equal(owner[superpixels.image], coarse.image):
        raise InvalidInput(
            "`superpixels` must be those of the tree, or parts of them, but some overlap two",
            argument="superpixels",
            remedy="agglomerate a graph of these superpixels instead",
        )
    if np.array_equal(owner, np.arange(len(coarse.ids))):
        return tree
    pieces = np.arange(1, len(owner))
    first = np.zeros(len(coarse.ids), np.int64)  # the smallest piece of each
    first[owner[:0:-1]] = pieces[::-1]
    joined = pieces[first[owner[1:]] != pieces]
    regions = first.tolist()  # by the names in `tree`: each goes by its smallest piece
    winners, losers = first[owner[joined]].tolist(), joined.tolist()
    for winner, loser in zip(tree.winners.tolist(), tree.losers.tolist(), strict=True):
        low, high = sorted((regions[winner], regions[loser]))
        winners.append(low)
        losers.append(high)
        regions[winner] = low
    lowest = np.full(len(joined), tree.priorities.min(initial=0.0))
    priorities = np.concatenate([lowest, tree.priorities])
    return MergeTree(superpixels, np.array(winners, np.int64), np.array(losers, np.int64),
                     priorities)  # fmt: skip
