"""Greedy hierarchical agglomeration: a region graph and a policy give a merge tree."""

from __future__ import annotations

from napari_agglo.agglomeration._adjacency import (
    HEAD,
    NEXT,
    Adjacency,
    attach,
    link,
)
from napari_agglo.agglomeration._agglomerate import (
    Merges,
    RescoringState,
    agglomerate,
    merge_greedily,
    merge_tree,
    policy_scoring,
    start_rescoring,
)
from napari_agglo.agglomeration._format_threshold import (
    BEFORE,
    below_first,
    is_before,
    is_beyond,
    plain_threshold,
    plain_thresholds,
    threshold_phrase,
    threshold_text,
)
from napari_agglo.agglomeration._merge_tree import MergeTree, NameInheritance
from napari_agglo.agglomeration._rescoring import (
    EdgeQueue,
    enter_edges,
    merge_pair,
    remove_edge,
)

__all__ = [
    "BEFORE",
    "HEAD",
    "NEXT",
    "Adjacency",
    "EdgeQueue",
    "NameInheritance",
    "MergeTree",
    "Merges",
    "RescoringState",
    "agglomerate",
    "attach",
    "below_first",
    "enter_edges",
    "is_before",
    "is_beyond",
    "link",
    "merge_greedily",
    "merge_tree",
    "merge_pair",
    "plain_threshold",
    "plain_thresholds",
    "policy_scoring",
    "remove_edge",
    "start_rescoring",
    "threshold_phrase",
    "threshold_text",
]
