"""Greedy agglomeration of a region graph to the last possible merge."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.agglomeration._adjacency import edge_records, link
from napari_agglo.agglomeration._constraints import constrained_edges
from napari_agglo.agglomeration._mean import mean_queue, merge_by_mean
from napari_agglo.agglomeration._rescoring import edge_queue, fill_queue, merge_by_rescoring
from napari_agglo.features import FeatureState, feature_state
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import (
    FOREST,
    LOGISTIC,
    MEAN,
    RANDOM,
    Forest,
    LearnedPolicy,
    MeanPolicy,
    Policy,
    Scoring,
    no_features,
    scoring,
)

# Merges between two reports of progress: a tenth of a second or less for the cheap policies.
_SLICE = 10_000


@dataclass(frozen=True, eq=False)
class Merges:
    """A sequence of merges: region `losers[k]` became part of `winners[k]` at `priorities[k]`.

    Regions go by dense id, that of their smallest superpixel, so a winner is smaller than its
    loser, and every id loses at most once.
    """

    winners: NDArray[np.int64]
    losers: NDArray[np.int64]
    priorities: NDArray[np.float64]


def merge_greedily(
    graph: RegionGraph,
    policy: Policy,
    *,
    cannot_link: Iterable[tuple[int, int]] | None = None,
    locked: Iterable[int] | None = None,
    rescore: bool = False,
    progress: ProgressCallback | None = None,
) -> Merges:
    """Merge the two regions that the policy puts first until none is left.

    `rescore` sends the mean through the loop that serves every policy: slower, the same merges.
    """
    edges, forbidden = constrained_edges(graph, cannot_link, locked)
    if isinstance(policy, MeanPolicy) and not rescore:
        return _run(graph, merge_by_mean, *mean_state(graph, edges, forbidden, policy), progress)
    return _run(
        graph, merge_by_rescoring, *rescoring_state(graph, edges, forbidden, policy), progress
    )


State = tuple[tuple[Any, ...], NDArray[np.int32]]


def mean_state(
    graph: RegionGraph, edges: NDArray[np.int64], forbidden: NDArray[np.bool_], policy: MeanPolicy
) -> State:
    """Return what `merge_by_mean` starts from, and the id of the region of each node."""
    records = edge_records(len(edges))
    sums = records["sums"][: graph.n_boundaries]
    sums[:, 0] = graph.boundaries[:, _cue_column(graph, policy)]
    for axis in range(graph.layout.ndim):
        sums[:, 1] += 2 * graph.boundaries[:, axis]
    adjacency = link(edges, graph.n_regions + 1, records)
    ids = np.arange(graph.n_regions + 1, dtype=np.int32)
    return (*adjacency, *mean_queue(records, forbidden)), ids


def rescoring_state(
    graph: RegionGraph, edges: NDArray[np.int64], forbidden: NDArray[np.bool_], policy: Policy
) -> State:
    """Return what `merge_by_rescoring` starts from, and the id of the region of each node."""
    rows = np.zeros((len(edges), graph.layout.boundary_width), np.int64)
    rows[: graph.n_boundaries] = graph.boundaries
    if isinstance(policy, LearnedPolicy):
        policy.check(graph)
        features = feature_state(graph, policy.features, rows)
    else:
        features = no_features(graph.regions.copy(), graph.boxes.copy(), rows, graph.layout.ndim)
    queued = np.flatnonzero(~forbidden)
    return start_rescoring(edges, forbidden, queued, policy_scoring(graph, policy), features)


def policy_scoring(
    graph: RegionGraph,
    policy: Policy,
    in_bag: NDArray[np.uint8] | None = None,
    group: NDArray[np.int64] | None = None,
    width: int | None = None,
) -> Scoring:
    """Return a policy as kernels take it; `in_bag` and `group` are for collecting examples."""
    if isinstance(policy, LearnedPolicy):
        kind = FOREST if isinstance(policy.model, Forest) else LOGISTIC
        return scoring(kind, 0, policy.model, policy.features.width, in_bag, group)
    if isinstance(policy, MeanPolicy):
        return scoring(MEAN, _cue_column(graph, policy), width=width or 1, group=group)
    return scoring(RANDOM, policy.seed, width=width or 1, group=group)


def start_rescoring(
    edges: NDArray[np.int64],
    forbidden: NDArray[np.bool_],
    queued: NDArray[np.int64],
    asked: Scoring,
    features: FeatureState,
) -> State:
    """Return linked lists and a queue of the edges `queued`, with all that the kernels need."""
    n_nodes = len(features.regions)
    adjacency = link(edges, n_nodes, edge_records(len(edges)))
    ids = np.arange(n_nodes, dtype=np.int32)
    queue = edge_queue(forbidden)
    fill_queue(queued, *queue, adjacency.ends, ids, *asked, *features)
    touched = np.empty(n_nodes, np.int64)
    return (*adjacency, *queue, touched, *asked, *features), ids


def _cue_column(graph: RegionGraph, policy: MeanPolicy) -> int:
    start: int = graph.layout.boundary_sums(graph.cue_index(policy.cue)).start
    return start


def _run(
    graph: RegionGraph,
    step: Callable[..., int],
    state: tuple[Any, ...],
    ids: NDArray[np.int32],
    progress: ProgressCallback | None,
) -> Merges:
    """Run a merge loop to its end, a slice at a time."""
    most = max(graph.n_regions - 1, 0)
    winners = np.empty(most, np.int64)
    losers = np.empty(most, np.int64)
    priorities = np.empty(most, np.float64)
    done = 0
    while done < most:
        report(progress, "agglomerate", done, most)
        stop = min(done + _SLICE, most)
        before = done
        done = step(*state, ids, winners, losers, priorities, done, stop)
        if done == before:
            break
    report(progress, "agglomerate", most, most)
    return Merges(winners[:done], losers[:done], priorities[:done])
