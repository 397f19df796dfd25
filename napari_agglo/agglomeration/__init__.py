"""Greedy hierarchical agglomeration: a region graph and a policy give a sequence of merges."""

from napari_agglo.agglomeration._greedy import (
    Merges,
    merge_greedily,
    policy_scoring,
    start_rescoring,
)
from napari_agglo.agglomeration._rescoring import enter_edges, merge_pair, remove_edge

__all__ = [
    "Merges",
    "enter_edges",
    "merge_greedily",
    "merge_pair",
    "policy_scoring",
    "remove_edge",
    "start_rescoring",
]
