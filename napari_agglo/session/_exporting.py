"""The export of a session: its view for export kinds, and the hierarchy with all edits."""

from __future__ import annotations

from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.agglomeration import Heritage, MergeTree
from napari_agglo.graph import RegionGraph
from napari_agglo.session._annotations import Marks
from napari_agglo.session._exports import write_export
from napari_agglo.session._exports.csv_tables import EditRow, MergeRows
from napari_agglo.session._frontier import in_order, inner_nodes
from napari_agglo.session._hierarchy.nodes import BIRTH, EDIT, FIRST, LOW, PRIORITY, SECOND
from napari_agglo.session._history import History
from napari_agglo.session._noting import Noting
from napari_agglo.session._state import State
from napari_agglo.session._view import Seen


class SessionExport:
    """A session as an `ExportView`."""

    def __init__(
        self, state: State, seen: Seen, history: History, progress: ProgressCallback | None
    ) -> None:
        self._state, self._seen, self._history = state, seen, history
        self._progress = progress

    @property
    def graph(self) -> RegionGraph:
        return self._state.graph

    @property
    def threshold(self) -> float:
        return self._seen.threshold

    @property
    def marks(self) -> Marks:
        return self._state.marks

    @cached_property
    def lut(self) -> NDArray[np.uint64]:
        return self.graph.ids[self._seen.names(self._progress)]

    @property
    def boundary_scores(self) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        pairs, scores = self._seen.between.now(self._seen)
        return self.graph.ids[pairs], scores

    @property
    def edits(self) -> list[EditRow]:
        done = self._history.done
        live = {entry.number for entry in done}
        asleep = {done[self._state.owner(edit)].number for edit, _ in self._state.tree.asleep()}
        return [
            EditRow(
                entry.number, entry.time, entry.action.kind, entry.action.threshold,
                entry.action.ids,
                "undone" if entry.number not in live
                else "asleep" if entry.number in asleep else "live",
            )
            for entry in self._history.entries
        ]  # fmt: skip

    @cached_property
    def merges(self) -> MergeRows:
        state = self._state
        inner, ends, lows = all_merges(state, self._progress)
        nodes = state.tree.record.nodes
        children = nodes.links[inner][:, [FIRST, SECOND]]
        named = [[state.tree.name(child) for child in pair] for pair in children.tolist()]
        names = np.array(named, np.uint32).reshape(-1, 2)
        edits = nodes.links[inner, EDIT].astype(np.int64)
        by_hand = np.unique(edits[edits >= 0]).tolist()
        owner = {k: self._history.done[state.owner(k)].number for k in by_hand}
        winners, losers = ends.T.copy()
        return MergeRows(
            MergeTree(state.graph.superpixels, winners, losers, nodes.scales[inner, BIRTH].copy()),
            np.where(edits >= 0, np.nan, nodes.scales[inner, PRIORITY]),
            np.array([owner.get(k, 0) for k in edits.tolist()], np.int64),
            Heritage(names[:, 0], names[:, 1], lows[:, 0] > lows[:, 1]),
        )


def all_merges(
    state: State, progress: ProgressCallback | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Return all merges as nodes, in order, with the regions of each, the smaller id first.

    The last array has the same regions in the order of the tree: the first passes its name on.
    """
    state.tree.look(np.inf, progress)
    nodes = state.tree.record.nodes
    inner = in_order(nodes, inner_nodes(Seen(state, np.inf)))
    lows = nodes.links[nodes.links[inner][:, [FIRST, SECOND]], LOW]
    return inner, np.sort(lows, axis=1).astype(np.int64), lows


def edited_tree(state: State) -> MergeTree:
    """Return the hierarchy with all edits; see `Session.tree`."""
    inner, ends, _ = all_merges(state)
    record = state.tree.record
    births = record.nodes.scales[inner, BIRTH].copy()
    locked = record.constraints.lock_of[ends[:, 0]] > 0
    births[locked] = births.min(initial=0.0)  # a locked segment is whole from the start
    order = np.argsort(~locked, kind="stable")
    winners, losers = ends[order].T.copy()
    superpixels = state.still_superpixels()
    return MergeTree(superpixels, winners, losers, births[order], state.graph.sizes)


class Exporting(Noting):
    """Files for people and other programs."""

    _tree: tuple[int, MergeTree] | None = None  # with the version of the state that it is of

    def export(
        self,
        path: str | PathLike[str],
        kind: str = "labels",
        *,
        overwrite: bool = False,
        progress: ProgressCallback | None = None,
        **options: Any,
    ) -> Path:
        """Write the segments at the threshold, the edits or the merges, whole or not at all.

        Parameters
        ----------
        path : path-like
            The file or folder to write.
        kind : str
            ``"labels"`` (the format that the suffix names), ``"regions"`` (CSV, a row a segment
            with its marks), ``"edits"`` (CSV, with time stamps), ``"tree"`` (CSV, a row a merge at
            every scale), ``"graphml"``, ``"agglomerate"`` (webKnossos), or a kind of another
            package; `napari_agglo.session.export_kinds` lists them all.
        overwrite : bool
            Whether a file at `path` may be replaced.
        progress : callable, optional
            Called with a `Progress` now and then; it may raise `Cancelled`.
        **options
            Of ``"agglomerate"``: ``superpixels``, the label image to write, and ``affinities``,
            the evidence for merging across each boundary, in the order of ``graph.edges``; see
            `docs/exports.md`.
        """
        with self._lock:
            view = SessionExport(self._state, self._seen, self._history, progress)
            return write_export(
                view, path, kind, overwrite=overwrite, progress=progress, options=options
            )

    @property
    def tree(self) -> MergeTree:
        """The hierarchy with all edits, at every scale: for plots, films, reports.

        Moves up or down a branch are not in it, since they only change the view. Regions are named
        as in any tree, after the larger one, whatever was active when they were merged. A locked
        segment is whole from 0 on. Computed up to the highest scales on first use after an edit;
        ``look(progress, threshold=inf)`` does that with progress.
        """
        with self._lock:
            if self._tree is None or self._tree[0] != self._state.version:
                self._tree = self._state.version, edited_tree(self._state)
            return self._tree[1]
