"""A way to choose segments: the priorities squared, so that 0.5 is 0.71 of the policy."""

import napari_agglo as agglo


def by_square(graph, policy, *, progress=None, power: float = 2.0):
    """Return the tree of the policy with its priorities raised to a power."""
    tree = agglo.agglomerate(graph, policy, progress=progress)
    return agglo.MergeTree(tree.superpixels, tree.winners, tree.losers, tree.priorities**power)
