"""Policy scores of the boundaries between visible segments, kept up to date.

After an edit only the boundaries of the changed segments are scored again, since the two sides of
the others are the same. In its own file because it is a cache with a result of its own.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_agglo.graph import RegionGraph, contracted
from napari_agglo.policy import Policy, is_informative
from napari_agglo.session._cut_methods.segment_graph import SegmentGraph, induced
from napari_agglo.volumes import DenseLabels

if TYPE_CHECKING:
    from napari_agglo.session._threshold_view import View

Scores = tuple[NDArray[np.int64], NDArray[np.float64]]
_MOST = 0.1  # share of superpixels that moved, above which all boundaries are scored again


class BoundaryScores:
    """Pairs of segments (names) that touch, and the score of each boundary."""

    def __init__(self) -> None:
        self._version = -1
        self._names = np.zeros(1, np.uint32)
        self._scores: Scores = np.zeros((0, 2), np.int64), np.zeros(0)

    def now(self, view: View) -> Scores:
        """Return the pairs, in the order of their smallest superpixels, and their scores."""
        names, graph, policy = view.names(), view.state.graph, view.state.policy
        if self._version == view.version:
            return self._scores
        moved = None if self._version < 0 else view.moved_since(self._version)
        if moved is None or len(moved) > _MOST * len(names):
            every = np.arange(1, len(names))
            self._scores = boundary_scores(graph, policy, names, every, view.threshold)
        elif len(moved):
            self._score_again(graph, policy, names, moved, view.threshold)
        self._version, self._names = view.version, names.copy()
        return self._scores

    def _score_again(
        self,
        graph: RegionGraph,
        policy: Policy,
        names: NDArray[np.uint32],
        moved: NDArray[np.int64],
        threshold: float,
    ) -> None:
        n = max(len(names), len(self._names))
        is_changed = np.zeros(n, np.bool_)
        is_changed[names[moved[moved < len(names)]]] = True
        is_changed[self._names[moved[moved < len(self._names)]]] = True
        changed = is_changed[names]
        touching = _either(changed, graph.edges)
        is_near = np.zeros(n, np.bool_)
        is_near[names[graph.edges[touching]]] = True
        is_near |= is_changed
        near = np.flatnonzero(is_near[names[1:]]) + 1
        pairs, scores = boundary_scores(graph, policy, names, near, threshold)
        new = _either(is_changed, pairs)
        old = ~_either(is_changed, self._scores[0])
        pairs = np.concatenate([self._scores[0][old], pairs[new]])
        scores = np.concatenate([self._scores[1][old], scores[new]])
        low = np.zeros(n, np.int64)
        low[names[::-1]] = np.arange(len(names))[::-1]  # the smallest is written last
        order = np.lexsort((low[pairs[:, 1]], low[pairs[:, 0]]))
        self._scores = pairs[order], scores[order]


def _either(chosen: NDArray[np.bool_], pairs: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which pairs have a chosen end; ten times as fast as ``any`` along the short axis."""
    return chosen[pairs[:, 0]] | chosen[pairs[:, 1]]


def boundary_scores(
    graph: RegionGraph,
    policy: Policy,
    names: NDArray[np.uint32],
    superpixels: NDArray[np.int64],
    threshold: float,
) -> Scores:
    """Return the pairs of segments that touch, and the score of each boundary.

    `superpixels` are those of whole segments. By a random policy every score is the threshold.
    """
    some = without_image(graph)
    if len(superpixels) < graph.n_regions:
        number = np.full(graph.n_regions + 1, -1)
        number[superpixels] = np.arange(len(superpixels))
        rows = np.flatnonzero(np.minimum(number[graph.edges[:, 0]], number[graph.edges[:, 1]]) >= 0)
        some = induced(graph, SegmentGraph(superpixels, rows, number[graph.edges[rows]]))
    own = np.concatenate([[0], names[superpixels]])
    _, first, which = np.unique(own, return_index=True, return_inverse=True)
    # Number segments by their smallest superpixel, as agglomeration does, to break ties as it does.
    lut = first[which].astype(np.uint32)
    coarse = contracted(some, lut)
    if is_informative(policy):
        scores = policy.score(coarse)
    else:
        scores = np.full(coarse.n_boundaries, threshold)
    return own[np.unique(lut)][coarse.edges].astype(np.int64), scores


def without_image(graph: RegionGraph) -> RegionGraph:
    """Return a graph whose label image has one pixel for each superpixel, quick to relabel."""
    numbers = np.arange(1, graph.n_regions + 1, dtype=np.uint32)
    labels = DenseLabels(numbers, graph.ids, graph.superpixels.dtype)
    return dataclasses.replace(graph, superpixels=labels, cues=None)
