"""The data of a session for exports, and the hierarchy with all edits."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.agglomeration import MergeTree, NameInheritance
from napari_agglo.graph import RegionGraph
from napari_agglo.session._edit_table import details_of
from napari_agglo.session._exports.csv_tables import EditRow, MergeRows
from napari_agglo.session._history import History
from napari_agglo.session._marks import Marks
from napari_agglo.session._state import State
from napari_agglo.session._store.stored_policy import can_score
from napari_agglo.session._threshold_view import View


class SessionExport:
    """A session as an `ExportView`."""

    def __init__(
        self, view: View, progress: ProgressCallback | None, superpixels: str = ""
    ) -> None:
        """`superpixels` is their fingerprint, by which the table of edits knows them."""
        self._view, self._state = view, view.state
        self._superpixels = superpixels
        self._progress = progress

    @property
    def graph(self) -> RegionGraph:
        return self._state.graph

    @property
    def threshold(self) -> float:
        return self._view.threshold

    @property
    def marks(self) -> Marks:
        return self._state.marks

    @cached_property
    def lut(self) -> NDArray[np.uint64]:
        return self.graph.ids[self._view.names(self._progress)]

    @property
    def boundary_scores(self) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        if not can_score(self._state.policy):  # no priority is known
            return np.zeros((0, 2), np.uint64), np.zeros(0)
        pairs, scores = self._view.boundary_scores.now(self._view)
        return self.graph.ids[pairs], scores

    @property
    def edits(self) -> list[EditRow]:
        done = zip(self._view.history.done, self._state.done, strict=True)
        live = {entry.number: applied for entry, applied in done}
        asleep = {self._view.entry_of(edit).number for edit, _ in self._state.tree.asleep()}
        return [
            EditRow(
                entry.number, entry.time, entry.action.kind, entry.action.threshold,
                entry.action.ids,
                "undone" if entry.number not in live
                else "asleep" if entry.number in asleep else "live",
                details_of(self._state, live[entry.number]) if entry.number in live else "",
                self._superpixels,
            )
            for entry in self._view.history.entries
        ]  # fmt: skip

    @cached_property
    def merges(self) -> MergeRows:
        state = self._state
        inner, ends, lows = all_merges(state, self._progress)
        rows = state.tree.log.rows[inner]
        children = zip(rows["first"].tolist(), rows["second"].tolist(), strict=True)
        named = [[state.tree.name(child) for child in pair] for pair in children]
        names = np.array(named, np.uint32).reshape(-1, 2)
        edits = rows["edit"].astype(np.int64)
        by_hand = np.unique(edits[edits >= 0]).tolist()
        owner = {k: self._view.entry_of(k).number for k in by_hand}
        winners, losers = ends.T.copy()
        return MergeRows(
            MergeTree(
                state.graph.superpixels, winners, losers, rows["birth"].copy(), state.graph.sizes
            ),
            np.where(edits >= 0, np.nan, rows["priority"]),
            np.array([owner.get(k, 0) for k in edits.tolist()], np.int64),
            NameInheritance(names[:, 0], names[:, 1], lows[:, 0] > lows[:, 1]),
        )


def all_merges(
    state: State, progress: ProgressCallback | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Return all merges as nodes, in order, with the two regions of each, the smaller id first.

    The last array has the same regions in the order of the tree: the first keeps its name.
    """
    state.tree.look(np.inf, progress)
    log = state.tree.log
    inner = log.in_order(View(state, History(), np.inf).inner_nodes())
    lows = log.rows["low"][log.children(inner)]
    return inner, np.sort(lows, axis=1).astype(np.int64), lows


def edited_tree(state: State) -> MergeTree:
    """Return the hierarchy with all edits; see `Session.tree`."""
    inner, ends, _ = all_merges(state)
    births = state.tree.log.rows["birth"][inner]
    locked = state.tree.constraints.lock_of[ends[:, 0]] > 0
    births[locked] = births.min(initial=0.0)  # a locked segment is whole from the start
    order = np.argsort(~locked, kind="stable")
    winners, losers = ends[order].T.copy()
    superpixels = state.still_superpixels()
    return MergeTree(superpixels, winners, losers, births[order], state.graph.sizes)
