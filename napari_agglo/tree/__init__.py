"""The merge tree, and how it is made of a region graph and a policy."""

from napari_agglo.tree._agglomerate import agglomerate
from napari_agglo.tree._merge_tree import Heritage, MergeTree

__all__ = ["Heritage", "MergeTree", "agglomerate"]
