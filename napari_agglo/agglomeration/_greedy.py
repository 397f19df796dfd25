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
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import MEAN, RANDOM, MeanPolicy, Policy

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
    return (*adjacency, *mean_queue(records, forbidden)), _first_ids(graph)


def rescoring_state(
    graph: RegionGraph, edges: NDArray[np.int64], forbidden: NDArray[np.bool_], policy: Policy
) -> State:
    """Return what `merge_by_rescoring` starts from, and the id of the region of each node."""
    adjacency = link(edges, graph.n_regions + 1, edge_records(len(edges)))
    ids = _first_ids(graph)
    if isinstance(policy, MeanPolicy):
        scoring = (MEAN, _cue_column(graph, policy), graph.layout.ndim)
    else:
        scoring = (RANDOM, policy.seed, graph.layout.ndim)
    rows = np.zeros((len(edges), graph.layout.boundary_width), np.int64)
    rows[: graph.n_boundaries] = graph.boundaries
    queue = edge_queue(forbidden)
    fill_queue(adjacency.ends, *queue, *scoring, rows, ids)
    return (*adjacency, *queue, *scoring, graph.regions.copy(), graph.boxes.copy(), rows), ids


def _first_ids(graph: RegionGraph) -> NDArray[np.int32]:
    return np.arange(graph.n_regions + 1, dtype=np.int32)


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
        done = step(*state, ids, winners, losers, priorities, done, stop)
        if done < stop:
            break
    report(progress, "agglomerate", most, most)
    return Merges(winners[:done], losers[:done], priorities[:done])
