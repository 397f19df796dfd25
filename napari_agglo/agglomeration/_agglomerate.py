"""Agglomeration of a region graph by a policy to a merge tree: checks, constraints, progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._data_warnings import warn_caller
from napari_agglo._numba.callbacks import raise_error
from napari_agglo._progress import ProgressCallback, report
from napari_agglo.agglomeration._adjacency import Adjacency, link
from napari_agglo.agglomeration._edge_lists import edge_records, link_lists
from napari_agglo.agglomeration._lazy_rescoring import bounds, enter_bounds, merge_lazily
from napari_agglo.agglomeration._mean import mean_queue, merge_by_mean
from napari_agglo.agglomeration._merge_tree import MergeTree
from napari_agglo.agglomeration._rescoring import (
    EdgeQueue,
    edge_queue,
    fill_queue,
    merge_by_rescoring,
)
from napari_agglo.errors import DataWarning, InvalidInput, SetOption, is_whole
from napari_agglo.features import FeatureMap, FeatureState, feature_state
from napari_agglo.graph import RegionGraph, as_graph
from napari_agglo.policy import (
    CHUNK,
    FOREST,
    MEAN,
    Policy,
    Scoring,
    as_policy,
    check_local,
    checked_scores,
    data_differences,
    no_features,
    policy_features,
    python_scoring,
)

if TYPE_CHECKING:
    import networkx as nx

# A constraint is an edge that is never queued. A cannot-link between two superpixels that do not
# touch becomes an edge without a face. When regions merge, their parallel edges merge too, and a
# merge forbidden to a part is forbidden to the whole, so that the constraint follows its
# superpixels through every merge at no cost to the loop.


def constrained_edges(
    graph: RegionGraph,
    cannot_link: Iterable[tuple[int, int]] | None,
    locked: Iterable[int] | None,
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the edges of `graph` and of cannot-links, and a mask of the forbidden edges."""
    edges = graph.edges
    forbidden: NDArray[np.bool_] = np.zeros(len(edges), np.bool_)
    if locked is not None:
        is_locked = np.zeros(graph.n_regions + 1, np.bool_)
        if not isinstance(locked, Iterable):
            raise InvalidInput(
                f"`locked` must be a list of ids of superpixels, got {locked!r}",
                argument="locked",
                remedy=SetOption("locked", [locked]),
            )
        is_locked[_dense(graph, list(locked), "locked")] = True
        forbidden = is_locked[edges[:, 0]] | is_locked[edges[:, 1]]
    if cannot_link is not None:
        pairs = _pairs(graph, cannot_link)
        n = np.int64(graph.n_regions + 1)
        keys = np.unique(pairs[:, 0] * n + pairs[:, 1])
        known = edges[:, 0] * n + edges[:, 1]  # ascending, as the edges of a graph are
        at = np.minimum(np.searchsorted(known, keys), max(len(known) - 1, 0))
        exists = known[at] == keys if len(known) else np.zeros(len(keys), np.bool_)
        forbidden[at[exists]] = True
        new = keys[~exists]
        edges = np.concatenate([edges, np.stack([new // n, new % n], axis=1)])
        forbidden = np.concatenate([forbidden, np.ones(len(new), np.bool_)])
    return edges, forbidden


def _pairs(graph: RegionGraph, cannot_link: Iterable[tuple[int, int]]) -> NDArray[np.int64]:
    expected = "`cannot_link` must be pairs of two different superpixels, such as [(3, 8)]"
    advice = "remove entries that are not pairs"
    try:
        pairs = [tuple(pair) for pair in cannot_link]
    except TypeError:
        raise InvalidInput(
            f"{expected}; got {cannot_link!r}", argument="cannot_link", remedy=advice
        ) from None
    for pair in pairs:
        if len(pair) != 2 or pair[0] == pair[1]:
            raise InvalidInput(f"{expected}; got {pair!r}", argument="cannot_link", remedy=advice)
    flat = [superpixel for pair in pairs for superpixel in pair]
    return np.sort(_dense(graph, flat, "cannot_link").reshape(-1, 2), axis=1)


def _dense(graph: RegionGraph, ids: list[int], name: str) -> NDArray[np.int64]:
    """Return the dense ids of the user's; refuse 0 and ids that the image does not have."""
    for superpixel in ids:
        if not (is_whole(superpixel) and 0 < superpixel < 2**64):
            raise InvalidInput(
                f"`{name}` must be ids of superpixels, got {superpixel!r}",
                argument=name,
                remedy="use the ids of the label image",
            )
    array = np.array(ids, np.uint64)
    at = np.minimum(np.searchsorted(graph.ids, array), graph.n_regions)
    missing = array[graph.ids[at] != array]
    if len(missing):
        raise InvalidInput(
            f"`{name}` names {len(missing)} superpixels that the image does not have, "
            f"the first being {missing[0]}",
            argument=name,
            remedy="use the ids of the label image",
        )
    return at.astype(np.int64)


# Merges between two reports of progress: a tenth of a second or less for the cheap policies.
_SLICE = 10_000


@dataclass(frozen=True, eq=False)
class Merges:
    """A sequence of merges: region `losers[k]` became part of `winners[k]` at `priorities[k]`.

    The dense id of a region is that of its smallest superpixel, so a winner is smaller than its
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
    """Merge the boundary of the lowest priority until none is left.

    `rescore` uses the loop for every policy also for the mean and for a forest: slower, the same
    merges.
    """
    edges, forbidden = constrained_edges(graph, cannot_link, locked)
    policy.check(graph)
    scoring = policy_scoring(graph, policy)
    if scoring.kind == MEAN and not rescore:
        column = scoring.parameter
        return _run(graph, merge_by_mean, mean_state(graph, edges, forbidden, column), progress)
    features = policy_features(policy)
    if scoring.kind == FOREST and features is not None and not rescore:
        lazy = lazy_state(graph, edges, forbidden, features, scoring)
        return _run(graph, merge_lazily, lazy, progress)
    state = rescoring_state(graph, edges, forbidden, policy)
    return _run(graph, merge_by_rescoring, state, progress)


# The arguments of the loops: records, and at the end the id of the region of each node.
MeanState = tuple[NDArray[Any], ...]  # arrays of `EdgeLists` and a `MeanQueue`, ids
RescoringState = tuple[
    Adjacency, EdgeQueue, NDArray[np.int64], Scoring, FeatureState, NDArray[np.int32]
]


def mean_state(
    graph: RegionGraph, edges: NDArray[np.int64], forbidden: NDArray[np.bool_], column: int
) -> MeanState:
    """Return the initial state of `merge_by_mean`.

    `column` is the column of the sum of the cue in the rows of the boundaries.
    """
    records = edge_records(len(edges))
    sums = records["sums"][: graph.n_boundaries]
    sums[:, 0] = graph.boundaries[:, column]
    for axis in range(graph.layout.ndim):
        sums[:, 1] += 2 * graph.boundaries[:, axis]
    lists = link_lists(edges, graph.n_regions + 1, records)
    ids = np.arange(graph.n_regions + 1, dtype=np.int32)
    return (*lists, *mean_queue(records, forbidden), ids)


def rescoring_state(
    graph: RegionGraph, edges: NDArray[np.int64], forbidden: NDArray[np.bool_], policy: Policy
) -> RescoringState:
    """Return the initial state of `merge_by_rescoring`."""
    rows = np.zeros((len(edges), graph.layout.boundary_width), np.int64)
    rows[: graph.n_boundaries] = graph.boundaries
    features = policy_features(policy)
    if features is None:
        state = no_features(graph.regions.copy(), graph.boxes.copy(), rows, graph.layout.ndim)
    else:
        state = feature_state(graph, features, rows)
    queued = np.flatnonzero(~forbidden)
    return start_rescoring(edges, forbidden, queued, policy_scoring(graph, policy), state)


def lazy_state(
    graph: RegionGraph,
    edges: NDArray[np.int64],
    forbidden: NDArray[np.bool_],
    features: FeatureMap,
    scoring: Scoring,
) -> tuple[Any, ...]:
    """Return the initial state of `merge_lazily`."""
    rows = np.zeros((len(edges), graph.layout.boundary_width), np.int64)
    rows[: graph.n_boundaries] = graph.boundaries
    state = feature_state(graph, features, rows)
    n_nodes = len(state.regions)
    adjacency, queue = link(edges, n_nodes), edge_queue(forbidden)
    lower = bounds(scoring, len(edges))
    ids, touched = np.arange(n_nodes, dtype=np.int32), np.empty(n_nodes, np.int64)
    queued = np.flatnonzero(~forbidden)
    enter_bounds(queued, len(queued), 0.0, lower, queue, adjacency.ends, ids, state)
    return adjacency, queue, touched, lower, state, ids


def policy_scoring(
    graph: RegionGraph,
    policy: Policy,
    in_bag: NDArray[np.uint8] | None = None,
    group: NDArray[np.int64] | None = None,
    width: int | None = None,
) -> Scoring:
    """Return the record of a policy for kernels.

    `in_bag`, `group` and the `width` of a row of features are for the collection of examples.
    """
    scoring = policy.kernel(graph)
    if scoring is None:
        scoring = python_scoring(graph, lambda pairs: checked_scores(policy, pairs))
    if in_bag is not None and policy_features(policy) is not None:
        scoring = scoring._replace(in_bag=in_bag)
    if group is not None:
        scoring = scoring._replace(group=group)
    if width is not None:
        scoring = scoring._replace(rows=np.zeros((CHUNK, width), np.float32))
    return scoring


def start_rescoring(
    edges: NDArray[np.int64],
    forbidden: NDArray[np.bool_],
    queued: NDArray[np.int64],
    scoring: Scoring,
    features: FeatureState,
) -> RescoringState:
    """Return the state of a loop: the adjacency of `edges`, and a queue of the edges `queued`."""
    n_nodes = len(features.regions)
    adjacency = link(edges, n_nodes)
    ids = np.arange(n_nodes, dtype=np.int32)
    queue = edge_queue(forbidden)
    fill_queue(queued, queue, adjacency.ends, ids, scoring, features)
    raise_error()
    touched = np.empty(n_nodes, np.int64)
    return adjacency, queue, touched, scoring, features, ids


def _run(
    graph: RegionGraph,
    step: Callable[..., int],
    state: tuple[Any, ...],
    progress: ProgressCallback | None,
) -> Merges:
    """Run a merge loop to its end, a slice at a time.

    A slice may be over before its first merge, while boundaries on top of the queue are refined.
    """
    queue = next((part for part in state if isinstance(part, EdgeQueue)), None)
    most = max(graph.n_regions - 1, 0)
    winners = np.empty(most, np.int64)
    losers = np.empty(most, np.int64)
    priorities = np.empty(most, np.float64)
    done = 0
    while done < most:
        report(progress, "agglomerate", done, most)
        stop = min(done + _SLICE, most)
        before = done
        done = step(*state, winners, losers, priorities, done, stop)
        raise_error()
        if done == before and (queue is None or queue.size[0] == 0):
            break
    report(progress, "agglomerate", most, most)
    return Merges(winners[:done], losers[:done], priorities[:done])


def agglomerate(
    graph: RegionGraph | nx.Graph[Any] | tuple[Any, Any],
    policy: Policy | str = "mean",
    *,
    seed: int = 0,
    cannot_link: Iterable[tuple[int, int]] | None = None,
    locked: Iterable[int] | None = None,
    progress: ProgressCallback | None = None,
) -> MergeTree:
    """Merge the two regions of the boundary of lowest priority until no boundary is left.

    After a merge, every boundary of the new region is scored again from the sums of the statistics.
    Equal priorities are merged in the order of (smaller id, larger id), where the id of a region is
    that of its smallest superpixel, so that the same input gives the same tree, bit for bit.

    Parameters
    ----------
    graph : RegionGraph, networkx.Graph, or pair (edges, weights)
        The regions and boundaries; it is not changed. A networkx graph needs the attribute "weight"
        (`RegionGraph.from_networkx`); edges are pairs of ids (`RegionGraph.from_edges`).
    policy : Policy or str
        ``"mean"`` (of the cue "boundary"), ``"random"``, the name of another policy in the registry
        (``napari-agglo plugins`` lists those of other packages), a policy of `train` or
        `load_policy`, a function from a `RegionGraph` to a number for each boundary, or
        ``"module:function"``. docs/extending.md says how to write one.
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

    Warns
    -----
    DataWarning
        If a learned policy was trained on other data than these: see `data_differences`; or if a
        function or feature of another package is not local.

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
    graph, policy = as_graph(graph), as_policy(policy, seed)
    for difference in data_differences(policy, graph):
        warn_caller(DataWarning(str(difference), argument="policy"))
    policy.check(graph)
    check_local(policy, graph)
    return merge_tree(graph, policy, cannot_link=cannot_link, locked=locked, progress=progress)


def merge_tree(
    graph: RegionGraph,
    policy: Policy,
    *,
    cannot_link: Iterable[tuple[int, int]] | None = None,
    locked: Iterable[int] | None = None,
    progress: ProgressCallback | None = None,
) -> MergeTree:
    """Return the tree of `agglomerate`, without a warning that the policy knows other data."""
    merges = merge_greedily(
        graph, policy, cannot_link=cannot_link, locked=locked, progress=progress
    )
    return MergeTree._of(
        graph.superpixels, merges.winners, merges.losers, merges.priorities, graph.sizes
    )
