"""Greedy hierarchical agglomeration: a region graph and a policy give a sequence of merges."""

from napari_agglo.agglomeration._greedy import Merges, merge_greedily

__all__ = ["Merges", "merge_greedily"]
