"""Volumes under training: their gold standards, and an epoch of examples from each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.agglomeration import policy_scoring, start_rescoring
from napari_agglo.features import FeatureMap, feature_matrix, feature_state
from napari_agglo.graph import RegionGraph
from napari_agglo.learning._assignment import assignment, boundary_labels, gold_table
from napari_agglo.learning._collect import (
    AT_ONCE,
    EXAMPLES,
    LEFT,
    MERGES,
    collect_loose,
    collect_strict,
)
from napari_agglo.learning._examples import Examples, joined
from napari_agglo.policy import Policy
from napari_agglo.volumes import Contingency

# Rows of room for examples between two returns to Python.
_ROOM = 4096

Tell = Callable[[int, int, int], None]  # merges done, merges at most, examples so far


@dataclass(frozen=True, eq=False)
class Lesson:
    """A graph and what its gold standards say of it."""

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
        """Agglomerate to A*, noting what the policy suggests on the way, or nearly suggests."""
        labels = boundary_labels(self.graph.edges, self.assigned)
        state, ids = self._start(features, policy, in_bag, labels != 0, np.zeros(len(labels), bool))
        tally = np.array([0, 0, (labels < 0).sum()], np.int64)
        assigned = self.assigned.copy()
        return self._run(
            features,
            lambda *room: bool(
                collect_strict(*state, ids, assigned, labels, near_misses, *room, tally)  # type: ignore[call-arg]
            ),
            tally,
            int(tally[LEFT]),
            tell,
        )

    def loose(
        self, features: FeatureMap, policy: Policy, in_bag: NDArray[np.uint8], tell: Tell
    ) -> Examples:
        """Agglomerate to the end, noting what each merge does to the Rand index."""
        known: NDArray[np.bool_] = np.any(self.assigned > 0, axis=0)
        usable = known[self.graph.edges[:, 0]] & known[self.graph.edges[:, 1]]
        state, ids = self._start(features, policy, in_bag, usable, ~usable)
        tally = np.zeros(3, np.int64)
        cells = self._cells()
        return self._run(
            features,
            lambda *room: bool(collect_loose(*state, ids, *cells, *room, tally)),  # type: ignore[call-arg]
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
    ) -> Any:
        asked = policy_scoring(self.graph, policy, in_bag, self.group, features.width)
        state = feature_state(self.graph, features)
        return start_rescoring(self.graph.edges, forbidden, np.flatnonzero(queued), asked, state)

    def _run(
        self,
        features: FeatureMap,
        step: Callable[..., bool],
        tally: NDArray[np.int64],
        most: int,
        tell: Tell,
    ) -> Examples:
        full: list[Examples] = []
        over = False
        while not over:
            room = Examples(
                np.zeros((_ROOM, features.width), np.float32),
                np.zeros(_ROOM, np.int8),
                np.zeros(_ROOM, np.int64),
            )
            before = sum(len(part) for part in full)
            tally[EXAMPLES] = 0
            while not over and tally[EXAMPLES] + AT_ONCE <= _ROOM:
                tell(int(tally[MERGES]), most, before + int(tally[EXAMPLES]))
                over = step(room.rows, room.labels, room.owners)
            full.append(room.first(int(tally[EXAMPLES])))
        return joined(full, features.width)

    def _cells(self) -> tuple[NDArray[Any], ...]:
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
        return head, following, key, count.copy(), np.concatenate(gold_of), sums


def lesson(graph: RegionGraph, golds: list[Any], mask: Any, first_owner: int) -> Lesson:
    """Compare a graph with its gold standards."""
    tables = tuple(gold_table(graph, gold, mask) for gold in golds)
    assigned = np.stack([assignment(table, graph.n_regions) for table in tables])
    return Lesson(graph, tables, assigned, first_owner)
