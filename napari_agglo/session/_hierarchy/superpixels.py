"""Superpixels as replays read them: neighbours and rows of statistics, also where one is in pieces.

The pieces of a divided superpixel are further superpixels. Nothing of the graph is written over:
lists that change are written anew behind the others, so that taking a division back finds the old
ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel
from napari_agglo._numba.callbacks import raise_error
from napari_agglo.agglomeration import policy_scoring
from napari_agglo.agglomeration._rescoring import EdgeQueue, fill_queue
from napari_agglo.features import FeatureState, empty_features, fill_features
from napari_agglo.graph import Division, Hulls, RegionGraph, add_hull
from napari_agglo.policy import MEAN, Policy, Scoring, no_features, policy_features
from napari_agglo.session._hierarchy.forest_cells import (
    Cells,
    Thresholds,
    empty_cells,
    forest_thresholds,
    score_in_cells,
)


@dataclass(frozen=True, eq=False)
class Divided:
    """State of the lists before a division, to take it back."""

    n: int  # superpixels before
    superpixel: int
    row: int
    around: NDArray[np.int64]  # superpixels whose lists changed, and where these were
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    n_adjacent: int
    n_rows: tuple[int, int]


class Superpixels:
    """Neighbour lists of a graph, and its rows with those of later pieces.

    ``adjacent[start[s] : stop[s]]`` are the neighbours of superpixel `s`, each with the number of
    the boundary. Rows after those of the graph are in `more_regions` and `more_boundaries`.
    """

    def __init__(self, graph: RegionGraph) -> None:
        n = graph.n_regions
        start = np.zeros(n + 2, np.int64)
        self.graph = graph
        self.adjacent = np.zeros((2 * graph.n_boundaries, 2), np.int32)
        _list_neighbours(read_only(graph.edges), start, self.adjacent)
        self.start, self.stop = start[:-1].copy(), start[1:].copy()
        self.n_adjacent = len(self.adjacent)
        self.more_regions = np.zeros((0, graph.layout.region_width), np.int64)
        self.more_boundaries = np.zeros((0, graph.layout.boundary_width), np.int64)
        self.row_of = np.arange(n + 1)  # row of each superpixel, counted through both tables
        self.hulls = graph.hulls  # of all rows, if the policy reads them
        # The slot of each superpixel in a replay, -1 of all when none runs: whoever runs a replay
        # sets its superpixels to -1 afterwards, so that a replay of few need not go through all.
        self.slot_of = np.full(n + 1, -1, np.int32)

    @property
    def n(self) -> int:
        """Number of superpixels."""
        return len(self.start) - 1

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """The arrays as kernels take them."""
        return (
            self.start,
            self.stop,
            self.adjacent,
            read_only(self.graph.regions),
            self.more_regions,
            read_only(self.graph.boundaries),
            self.more_boundaries,
            self.row_of,
        )

    def contact(
        self, members: NDArray[np.int32], name: int, names: NDArray[np.uint32]
    ) -> tuple[int, int]:
        """Return the first of some superpixels that touches one of a name, and that one; or 0, 0.

        `names` is the table of names of the superpixels.
        """
        here, there = _first_contact(
            read_only(members), name, names, self.start, self.stop, self.adjacent
        )
        return int(here), int(there)

    def divide(self, division: Division) -> Divided:
        """Replace a superpixel and its boundaries by its pieces and theirs."""
        pieces = division.members
        around = np.unique(division.new.edges)
        old = around[around <= self.n]
        before = Divided(
            n=self.n,
            superpixel=division.superpixel,
            row=int(self.row_of[division.superpixel]),
            around=old,
            start=self.start[old],
            stop=self.stop[old],
            n_adjacent=self.n_adjacent,
            n_rows=(len(self.more_regions), len(self.more_boundaries)),
        )
        self._resize(self.n + len(pieces) - 1)
        first_row = len(self.graph.regions) + len(self.more_regions)
        first_edge = len(self.graph.boundaries) + len(self.more_boundaries)
        self.row_of[pieces] = first_row + np.arange(len(pieces))
        self.more_regions = np.concatenate([self.more_regions, division.new.regions])
        self.more_boundaries = np.concatenate([self.more_boundaries, division.new.boundaries])
        if self.hulls is not None:
            self.hulls = self.hulls.joined(division.piece_hulls())
        touching: dict[int, list[tuple[int, int]]] = {s: [] for s in pieces.tolist()}
        for k, (u, v) in enumerate(division.new.edges.tolist()):
            touching.setdefault(u, []).append((v, first_edge + k))
            touching.setdefault(v, []).append((u, first_edge + k))
        for superpixel, new in touching.items():
            if superpixel not in pieces:
                own = self.adjacent[self.start[superpixel] : self.stop[superpixel]]
                new = [*map(tuple, own[own[:, 0] != division.superpixel].tolist()), *new]
            self._write(superpixel, np.array(new, np.int32).reshape(-1, 2))
        return before

    def revert(self, before: Divided) -> None:
        """Undo the last division."""
        self._resize(before.n)
        self.start[before.around] = before.start
        self.stop[before.around] = before.stop
        self.row_of[before.superpixel] = before.row
        self.n_adjacent = before.n_adjacent
        self.more_regions = self.more_regions[: before.n_rows[0]]
        self.more_boundaries = self.more_boundaries[: before.n_rows[1]]
        if self.hulls is not None:
            n_rows = len(self.graph.regions) + before.n_rows[0]
            self.hulls = self.hulls.take(np.arange(n_rows))

    def _write(self, superpixel: int, neighbours: NDArray[np.int32]) -> None:
        n = self.n_adjacent + len(neighbours)
        if n > len(self.adjacent):
            more = np.zeros((max(n, len(self.adjacent)), 2), np.int32)
            self.adjacent = np.concatenate([self.adjacent, more])
        self.adjacent[self.n_adjacent : n] = neighbours
        self.start[superpixel] = self.n_adjacent
        self.stop[superpixel] = self.n_adjacent = n

    def _resize(self, n: int) -> None:
        self.start, self.stop, self.row_of = (
            resized(table, n, 0) for table in (self.start, self.stop, self.row_of)
        )
        self.slot_of = resized(self.slot_of, n, -1)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous view that cannot be written to.

    An array of a file is such a one; with all others as one type, kernels are compiled once.
    """
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


@kernel
def _first_contact(
    members: Any, name: Any, names: Any, start: Any, stop: Any, adjacent: Any
) -> Any:
    """Return the first member with a neighbour of a name, and that neighbour. No bounds checking.

    Both are 0 if there is none.
    """
    for k in range(members.size):
        for at in range(start[members[k]], stop[members[k]]):
            if names[adjacent[at, 0]] == name:
                return np.int64(members[k]), np.int64(adjacent[at, 0])
    return np.int64(0), np.int64(0)


def resized(table: NDArray[Any], n: int, value: int) -> NDArray[Any]:
    """Return a table of superpixels as one of 1..`n`; further ones have `value`.

    Examples
    --------
    >>> resized(np.array([0, 7, 8]), 3, -1)
    array([ 0,  7,  8, -1])
    """
    kept = table[: n + 1]
    return np.concatenate([kept, np.full(n + 1 - len(kept), value, table.dtype)])


@kernel
def _list_neighbours(edges: Any, start: Any, adjacent: Any) -> None:
    """Fill `start`, which is zero, and `adjacent`. No bounds checking."""
    n = start.size - 1
    for k in range(edges.shape[0]):
        for side in range(2):
            start[edges[k, side] + 1] += 1
    for node in range(n):
        start[node + 1] += start[node]
    # `start` of a superpixel moves on to its end, which is the start of the next.
    for k in range(edges.shape[0]):
        for side in range(2):
            at = start[edges[k, side]]
            adjacent[at, 0] = edges[k, 1 - side]
            adjacent[at, 1] = k
            start[edges[k, side]] = at + 1
    for node in range(n, 0, -1):
        start[node] = start[node - 1]
    start[0] = 0


# The policy, which scores boundaries of regions: statistics are rows that add up.


_NO_STARTS = np.zeros(1, np.int64)


class Scorer:
    """A policy that scores the boundaries of a replay.

    It goes through the very kernels that agglomeration uses, which are compiled by then; of the
    mean, no kernel is needed at all. Rows and features of slots and edges are kept through a
    replay. After more than `few` boundaries in one replay a forest is evaluated through
    `forest_cells`, which keep the leaves that each boundary reached. In a shorter replay few
    boundaries come twice, and the cells would cost more than they save.
    """

    few = 2000

    def __init__(self, graph: RegionGraph, policy: Policy) -> None:
        self._graph, self._policy = graph, policy
        self._features = policy_features(policy)
        # Whether just the boundary counts.
        self.steady = self._features is None and self._scoring.kind == MEAN
        self._sizes = (0, 0)
        self._rows: FeatureState | None = None
        self._cells: Cells | None = None
        self._n_scored = 0

    @cached_property
    def _scoring(self) -> Scoring:
        """The policy as kernels ask it: a forest is packed at first use, not when it is opened."""
        return policy_scoring(self._graph, self._policy)

    @cached_property
    def _thresholds(self) -> Thresholds | None:
        """Thresholds of the forest: sorted at first use, as most sessions never need them."""
        return forest_thresholds(self._scoring, self._features)

    def begin(self, n_slots: int, n_edges: int) -> None:
        """Forget the rows of the last replay, and expect so many regions and boundaries."""
        self._rows, self._cells, self._sizes = None, None, (n_slots, n_edges)
        self._n_scored = 0

    def _start(self, hulls: Hulls | None) -> FeatureState:
        """Make room for the rows, as far as they are used; `hulls` are of all superpixels."""
        n_slots, n_edges = self._sizes
        layout, by_mean = self._graph.layout, self.steady
        regions = np.zeros((1 if by_mean else n_slots, layout.region_width), np.int64)
        boxes = np.zeros((len(regions), 2, layout.ndim), np.int32)
        boundaries = np.zeros((n_edges, layout.boundary_width), np.int64)
        if self._features is None:
            rows = no_features(regions, boxes, boundaries, layout.ndim)
        else:
            rows = empty_features(self._graph, self._features, regions, boxes, boundaries, hulls)
        self._ids = np.zeros(n_slots, np.int32)
        self._queue = EdgeQueue(
            priority=np.zeros(n_edges),
            ties=np.zeros(n_edges, np.int64),
            heap=np.zeros(n_edges, np.int32),
            place=np.zeros(n_edges, np.int32),
            size=np.zeros(1, np.int64),
        )
        return rows

    def score(
        self,
        batch: NDArray[np.int32],
        ends: NDArray[np.int32],
        work: tuple[NDArray[Any], ...],
        edges: NDArray[np.void],
        chain: NDArray[np.int32],
        superpixels: Superpixels,
    ) -> NDArray[np.float64]:
        """Return the priorities of edges of a replay, whose arrays these are."""
        layout, by_mean = self._graph.layout, self.steady
        hulls = superpixels.hulls
        rows = self._rows = self._rows or self._start(hulls)
        changed = np.empty((2, 2 * len(batch)), np.int64)
        n_slots, n_edges = add_up(
            batch, not by_mean, layout.ndim, ends, work, edges, chain, superpixels.arrays,
            rows.regions, rows.boundaries, _NO_STARTS if hulls is None else hulls.starts,
            rows.hulls, self._ids, changed,
        )  # fmt: skip
        if by_mean:
            boundaries = rows.boundaries[batch]
            faces = boundaries[:, layout.faces].sum(axis=1)
            means: NDArray[np.float64] = boundaries[:, self._scoring.parameter] / (
                255.0 * (2 * faces)  # the expression of the merge loop, to the last bit
            )
            return means
        if self._features is not None:
            fill_features(changed[0, :n_slots], changed[1, :n_edges], rows)
        numbers = batch.astype(np.int64)
        self._n_scored += len(batch)
        if self._n_scored > self.few and self._thresholds is not None:
            # Cells that begin now know nothing of regions and boundaries as they were before.
            if self._cells is None:
                self._cells = empty_cells(rows, self._thresholds)
            priorities = np.empty(len(batch))
            score_in_cells(
                numbers, changed[0, :n_slots], changed[1, :n_edges], ends, self._ids, rows,
                self._thresholds, self._cells, priorities,
            )  # fmt: skip
            return priorities
        queue = self._queue
        queue.place[numbers], queue.size[0] = -1, 0
        fill_queue(numbers, queue, ends, self._ids, self._scoring, rows)
        raise_error()
        return queue.priority[batch]


@inlined
def _add_row(rows: Any, more: Any, at: Any, sums: Any, into: Any) -> None:
    """Add row `at`, wherever it is kept, to ``sums[into]``."""
    if at < rows.shape[0]:
        for column in range(sums.shape[1]):
            sums[into, column] += rows[at, column]
    else:
        for column in range(sums.shape[1]):
            sums[into, column] += more[at - rows.shape[0], column]


@kernel
def add_up(
    batch: Any, with_regions: Any, ndim: Any, ends: Any, work: Any, edges: Any, chain: Any,
    superpixels: Any, regions: Any, boundaries: Any, hull_starts: Any, hulls: Any, ids: Any,
    changed: Any,
) -> Any:  # fmt: skip
    """Bring the rows of the edges in `batch`, and of their regions, up to date.

    Superpixels and boundaries that have come to a slot or an edge since are added to its row. Which
    slots and which edges these are is listed in `changed`; returns the two numbers. Hulls of slots
    are merged from those of superpixels, whose rows begin at `hull_starts`. A superpixel comes to a
    slot with the whole slot that it was in, whose hull is not used again.

    No bounds checking.
    """
    _, slots, slot_of, leaves = work
    start, stop, adjacent, rows, more_rows, faces, more_faces, row_of = superpixels
    contact = 1 + 2 * ndim
    n_slots = 0
    n_edges = 0
    for k in range(batch.size):
        edge = np.int64(batch[k])
        at = np.int64(edges[edge]["summed"])
        at = np.int64(chain[at, 1]) if at >= 0 else np.int64(edges[edge]["first"])
        if at >= 0:
            changed[1, n_edges] = edge
            n_edges += 1
        while at >= 0:
            _add_row(faces, more_faces, np.int64(chain[at, 0]), boundaries, edge)
            at = np.int64(chain[at, 1])
        edges[edge]["summed"] = edges[edge]["last"]
        for side in range(2 if with_regions else 0):
            slot = np.int64(ends[edge, side])
            ids[slot] = slots[slot]["low"]
            leaf = np.int64(slots[slot]["unsummed"])
            if leaf >= 0:
                changed[0, n_slots] = slot
                n_slots += 1
            while leaf >= 0:
                superpixel = leaves[leaf]["superpixel"]
                row = np.int64(row_of[superpixel])
                _add_row(rows, more_rows, row, regions, slot)
                if hulls.first.size > 0:
                    stop_row = np.int64(hull_starts[row + 1])
                    add_hull(slot, np.int64(hull_starts[row]), stop_row, hulls)
                leaves[leaf]["home"] = slot
                # Faces within the region, which both of its superpixels count, are no contact.
                for neighbour in range(start[superpixel], stop[superpixel]):
                    other = np.int64(slot_of[adjacent[neighbour, 0]])
                    if other < 0 or other == leaf or leaves[other]["home"] != slot:
                        continue
                    at = np.int64(adjacent[neighbour, 1])
                    for axis in range(ndim):
                        if at < faces.shape[0]:
                            count = faces[at, axis]
                        else:
                            count = more_faces[at - faces.shape[0], axis]
                        regions[slot, contact + axis] -= 2 * count
                leaf = np.int64(leaves[leaf]["next"])
            slots[slot]["unsummed"] = -1
    return n_slots, n_edges
