"""Training volumes: their gold standards, and the examples of an epoch from each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba.callbacks import raise_error
from napari_agglo.agglomeration import RescoringState, policy_scoring, start_rescoring
from napari_agglo.features import FeatureMap, feature_matrix, feature_state
from napari_agglo.graph import RegionGraph
from napari_agglo.learning._collect_examples import (
    AT_ONCE,
    EXAMPLES,
    LEFT,
    MERGES,
    Cells,
    Room,
    collect_loose,
    collect_strict,
)
from napari_agglo.learning._fit import Examples, joined
from napari_agglo.policy import Policy
from napari_agglo.volumes import (
    Contingency,
    check_mask,
    check_same_shape,
    contingency,
    dense_labels,
    is_on_disk,
)

# The optimal agglomeration A* assigns each superpixel to the gold segment that it overlaps most; of
# equal overlaps, to that of the smallest id. A superpixel without an annotated pixel is assigned to
# 0, "don't know".


def gold_table(graph: RegionGraph, gold: Any, mask: Any = None) -> Contingency:
    """Return the overlaps of superpixels and gold; pixels outside `mask` are not annotated."""
    if mask is None and is_on_disk(graph.superpixels.image):  # counted slab by slab
        return contingency(graph.superpixels, gold, ignore_labels=True)
    labels = dense_labels(gold, "gold")  # with its origin, which is compared when they are counted
    check_same_shape(graph.superpixels.image, labels.image, "superpixels", "gold")
    if mask is not None:
        inside = check_mask(mask, labels.image.shape)
        inner = dense_labels(np.where(inside, gold, 0), "gold")
        labels = replace(inner, origin=labels.origin)
    return contingency(graph.superpixels, labels, ignore_labels=True)


def assignment(table: Contingency, n_regions: int) -> NDArray[np.int64]:
    """Return the dense gold id of each dense superpixel id, 0 for "don't know"."""
    out = np.zeros(n_regions + 1, np.int64)
    # ascending counts, and of equal ones descending columns: the last one written is the best
    order = np.lexsort((-table.columns, table.counts))
    out[table.rows[order]] = table.columns[order]
    return out


def assign(graph: RegionGraph, gold: Any, *, mask: Any = None) -> NDArray[np.uint64]:
    """Return the gold id of each superpixel in A*, the optimal agglomeration.

    Parameters
    ----------
    graph : RegionGraph
        The superpixels.
    gold : array of int
        The gold standard; 0 is not annotated.
    mask : array of bool, optional
        Pixels where the gold standard is reliable; all by default.

    Returns
    -------
    ndarray of uint64, shape (n + 1,)
        Gold id by dense superpixel id; 0 is "don't know".

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo import region_graph
    >>> graph = region_graph(np.array([1, 1, 1, 2, 2]), np.zeros(5))
    >>> assign(graph, np.array([7, 7, 9, 0, 0]))
    array([0, 7, 0], dtype=uint64)
    """
    table = gold_table(graph, gold, mask)
    return table.column_ids[assignment(table, graph.n_regions)]


def boundary_labels(edges: NDArray[np.int64], assignments: NDArray[np.int64]) -> NDArray[np.int8]:
    """Label pairs of regions: -1 should merge, +1 should not, 0 don't know.

    Parameters
    ----------
    edges : ndarray of int, shape (m, 2)
        Pairs of nodes.
    assignments : ndarray of int, shape (golds, nodes)
        For each gold standard, the gold segment that each node lies in; 0 for none or several.

    Returns
    -------
    ndarray of int8, shape (m,)
        The sign of the sum of the labels by all gold standards.

    Examples
    --------
    >>> edges, gold_of = np.array([[0, 1], [1, 2], [2, 3]]), np.array([[5, 5, 7, 0]])
    >>> boundary_labels(edges, gold_of).tolist()
    [-1, 1, 0]
    """
    first = assignments[:, edges[:, 0]]
    second = assignments[:, edges[:, 1]]
    votes = np.where(first == second, -1, 1) * ((first > 0) & (second > 0))
    out: NDArray[np.int8] = np.sign(votes.sum(axis=0)).astype(np.int8)
    return out


# Examples between two returns to Python.
_ROOM = 4096

Tell = Callable[[int, int, int], None]  # merges done, merges at most, examples so far


@dataclass(frozen=True, eq=False)
class TrainingVolume:
    """A graph and its comparison with its gold standards."""

    graph: RegionGraph
    tables: tuple[Contingency, ...]
    assigned: NDArray[np.int64]  # (golds, nodes): gold segment of each superpixel, 0 don't know
    first_owner: int  # owners of this volume begin here

    @property
    def n_owners(self) -> int:
        """Number of owners: the gold segments of the first gold standard, and "don't know"."""
        return int(self.assigned[0].max()) + 1

    @property
    def group(self) -> NDArray[np.int64]:
        """Owner of each node."""
        owners: NDArray[np.int64] = self.assigned[0] + self.first_owner
        return owners

    def flat(self, features: FeatureMap) -> Examples:
        """Return every labelled boundary of the initial graph."""
        labels = boundary_labels(self.graph.edges, self.assigned)
        known = np.flatnonzero(labels)
        rows = feature_matrix(self.graph, features)[known]
        first, second = self.group[self.graph.edges[known].T]
        odd = (first + second) & 1 == 1
        owners = np.where(odd, np.minimum(first, second), np.maximum(first, second))
        owners = np.where(first == second, first, owners)
        return Examples(rows, labels[known], owners)

    def strict(
        self,
        features: FeatureMap,
        policy: Policy,
        in_bag: NDArray[np.uint8],
        tell: Tell,
        *,
        near_misses: bool = False,
    ) -> Examples:
        """Return the examples of an agglomeration to A*: each suggested merge, and near misses."""
        labels = boundary_labels(self.graph.edges, self.assigned)
        state = self._start(features, policy, in_bag, labels != 0, np.zeros(len(labels), bool))
        tally = np.array([0, 0, (labels < 0).sum()], np.int64)
        assigned = self.assigned.copy()
        return self._run(
            features,
            lambda room: bool(collect_strict(*state, assigned, labels, near_misses, room)),
            tally,
            int(tally[LEFT]),
            tell,
        )

    def loose(
        self, features: FeatureMap, policy: Policy, in_bag: NDArray[np.uint8], tell: Tell
    ) -> Examples:
        """Return the examples of a full agglomeration, labelled by the change of the Rand index."""
        known: NDArray[np.bool_] = np.any(self.assigned > 0, axis=0)
        usable = known[self.graph.edges[:, 0]] & known[self.graph.edges[:, 1]]
        state = self._start(features, policy, in_bag, usable, ~usable)
        tally = np.zeros(3, np.int64)
        cells = self._cells()
        return self._run(
            features,
            lambda room: bool(collect_loose(*state, cells, room)),
            tally,
            int(known.sum()),
            tell,
        )

    def _start(
        self,
        features: FeatureMap,
        policy: Policy,
        in_bag: NDArray[np.uint8],
        queued: NDArray[np.bool_],
        forbidden: NDArray[np.bool_],
    ) -> RescoringState:
        scoring = policy_scoring(self.graph, policy, in_bag, self.group, features.width)
        state = feature_state(self.graph, features)
        return start_rescoring(self.graph.edges, forbidden, np.flatnonzero(queued), scoring, state)

    def _run(
        self,
        features: FeatureMap,
        step: Callable[[Room], bool],
        tally: NDArray[np.int64],
        most: int,
        tell: Tell,
    ) -> Examples:
        parts: list[Examples] = []
        is_over = False
        while not is_over:
            room = Room(
                np.zeros((_ROOM, features.width), np.float32),
                np.zeros(_ROOM, np.int8),
                np.zeros(_ROOM, np.int64),
                tally,
                np.zeros(1, np.int64),
            )
            before = sum(len(part) for part in parts)
            tally[EXAMPLES] = 0
            while not is_over and tally[EXAMPLES] + AT_ONCE <= _ROOM:
                tell(int(tally[MERGES]), most, before + int(tally[EXAMPLES]))
                is_over = step(room)
                raise_error()
            n = int(tally[EXAMPLES])
            parts.append(Examples(room.rows[:n], room.labels[:n], room.owners[:n]))
        return joined(parts, features.width)

    def _cells(self) -> Cells:
        """Return overlaps as linked lists by node, sorted by gold segment, all golds in one."""
        rows, keys, counts, gold_of = [], [], [], []
        first = 0
        for gold, table in enumerate(self.tables):
            rows.append(table.rows)
            keys.append(table.columns + first)
            counts.append(table.counts)
            gold_of.append(np.full(len(table.column_ids), gold))
            first += len(table.column_ids)
        row, key, count = (np.concatenate(parts) for parts in (rows, keys, counts))
        order = np.lexsort((key, row))
        row, key, count = row[order], key[order], count[order]
        head = np.full(self.graph.n_regions + 1, -1, np.int64)
        starts = np.flatnonzero(np.diff(row, prepend=-1))
        head[row[starts]] = starts
        following = np.arange(1, len(row) + 1)
        following[np.append(starts[1:], len(row)).astype(np.int64) - 1] = -1
        sums = np.zeros((len(self.tables), 3))
        return Cells(head, following, key, count.copy(), np.concatenate(gold_of), sums)


def training_volume(
    graph: RegionGraph, golds: list[Any], mask: Any, first_owner: int
) -> TrainingVolume:
    """Compare a graph with its gold standards."""
    tables = tuple(gold_table(graph, gold, mask) for gold in golds)
    assigned = np.stack([assignment(table, graph.n_regions) for table in tables])
    return TrainingVolume(graph, tables, assigned, first_owner)
