"""What leaves a session, by kind."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.agglomeration import Heritage, MergeTree
from napari_agglo.session._exports import (
    EditRow,
    check_target,
    export_agglomerate,
    export_edits,
    export_graphml,
    export_labels,
    export_regions,
    export_tree,
)
from napari_agglo.session._frontier import in_order, inner_nodes
from napari_agglo.session._hierarchy.nodes import BIRTH, EDIT, FIRST, LOW, PRIORITY, SECOND
from napari_agglo.session._noting import Noting
from napari_agglo.session._rules import Refused
from napari_agglo.session._view import Seen

KINDS = ("labels", "regions", "edits", "tree", "graphml", "agglomerate")
_OPTIONS = {"agglomerate": ("affinities", "superpixels")}


class Exporting(Noting):
    """Files for people and other programs."""

    def export(
        self,
        path: str | PathLike[str],
        kind: str = "labels",
        *,
        overwrite: bool = False,
        progress: ProgressCallback | None = None,
        **options: Any,
    ) -> Path:
        """Write what is seen, or what was done, whole or not at all.

        Parameters
        ----------
        path : path-like
            What to write.
        kind : str
            ``"labels"`` (the format that the suffix names), ``"regions"`` (CSV, a row a segment
            with its marks), ``"edits"`` (CSV, with time stamps), ``"tree"`` (CSV, a row a merge at
            every scale), ``"graphml"``, or ``"agglomerate"`` (webKnossos).
        overwrite : bool
            Whether what is at `path` may be replaced.
        progress : callable, optional
            Told how far it is; raise `Cancelled` in it to stop.
        **options
            Of ``"agglomerate"``: ``superpixels``, where to write the label image, and
            ``affinities``, how much speaks for merging at each boundary, in the order of
            ``graph.edges``; see `docs/exports.md`.
        """
        with self._lock:
            if kind not in KINDS:
                raise Refused(f"`kind` must be one of {', '.join(KINDS)}, got {kind!r}.")
            _check_options(kind, options)
            check_target(path, overwrite, with_key=kind == "labels")
            graph, marks = self._state.graph, self._state.marks
            if kind == "edits":
                return export_edits(path, self._edit_rows(), overwrite=overwrite)
            if kind == "tree":
                return self._export_tree(path, overwrite, progress)
            lut = graph.ids[self._seen.names(progress)]
            if kind == "labels":
                return export_labels(path, graph, lut, overwrite=overwrite)
            if kind == "regions":
                return export_regions(path, graph, lut, marks, overwrite=overwrite)
            if kind == "graphml":
                pairs, said = self._seen.between.now(self._seen)
                return export_graphml(
                    path, graph, lut, marks, (graph.ids[pairs], said), overwrite=overwrite,
                    progress=progress,
                )  # fmt: skip
            return export_agglomerate(
                path, graph, lut, overwrite=overwrite, progress=progress, **options
            )

    def _edit_rows(self) -> list[EditRow]:
        live = {entry.number for entry in self._history.done}
        tree = self._state.tree
        asleep = {self._history.done[self._state.owner(edit)].number for edit, _ in tree.asleep()}
        return [
            EditRow(
                entry.number, entry.time, entry.action.kind, entry.action.threshold,
                entry.action.ids,
                "undone" if entry.number not in live
                else "asleep" if entry.number in asleep else "live",
            )
            for entry in self._history.entries
        ]  # fmt: skip

    def edited_tree(self, progress: ProgressCallback | None = None) -> MergeTree:
        """Return the hierarchy with all edits, as it is at every scale: for plots, films, reports.

        What was moved up or down its branch is not in it, since that is a way of seeing. Regions
        are named as in any tree, after the larger one, whatever was active when they were merged. A
        locked segment is whole from 0 on.

        Parameters
        ----------
        progress : callable, optional
            Told how far the look at the highest scales is; raise `Cancelled` in it to stop.
        """
        with self._lock:
            inner, ends, _ = self._all_merges(progress)
            record, graph = self._state.tree.record, self._state.graph
            births = record.nodes.scales[inner, BIRTH].copy()
            locked = record.constraints.lock_of[ends[:, 0]] > 0
            births[locked] = births.min(initial=0.0)  # whole from the start
            order = np.argsort(~locked, kind="stable")
            winners, losers = ends[order].T.copy()
            superpixels = self._state.still_superpixels()
            return MergeTree(superpixels, winners, losers, births[order], graph.sizes)

    def _all_merges(
        self, progress: ProgressCallback | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
        """Return all merges as nodes, in order, with the regions of each: the smaller id first.

        And the regions again as the tree has them: the first passes its name on.
        """
        state = self._state
        state.tree.look(np.inf, progress)
        nodes = state.tree.record.nodes
        inner = in_order(nodes, inner_nodes(Seen(state, np.inf)))
        lows = nodes.links[nodes.links[inner][:, [FIRST, SECOND]], LOW]
        return inner, np.sort(lows, axis=1).astype(np.int64), lows

    def _export_tree(
        self, path: str | PathLike[str], overwrite: bool, progress: ProgressCallback | None
    ) -> Path:
        state = self._state
        inner, ends, lows = self._all_merges(progress)
        nodes = state.tree.record.nodes
        children = nodes.links[inner][:, [FIRST, SECOND]]
        named = [[state.tree.name(child) for child in pair] for pair in children.tolist()]
        names = np.array(named, np.uint32).reshape(-1, 2)
        edits = nodes.links[inner, EDIT].astype(np.int64)
        by_hand = np.unique(edits[edits >= 0]).tolist()
        owner = {k: self._history.done[state.owner(k)].number for k in by_hand}
        owners = [owner.get(k, 0) for k in edits.tolist()]
        said = np.where(edits >= 0, np.nan, nodes.scales[inner, PRIORITY])
        return export_tree(
            path, state.graph.superpixels, ends[:, 0], ends[:, 1], said,
            nodes.scales[inner, BIRTH], np.array(owners, np.int64), overwrite=overwrite,
            heritage=Heritage(names[:, 0], names[:, 1], lows[:, 0] > lows[:, 1]),
        )  # fmt: skip


def _check_options(kind: str, options: Mapping[str, Any]) -> None:
    known = _OPTIONS.get(kind, ())
    for name in options:
        if name not in known:
            has = f"it has {' and '.join(known)}" if known else "leave it out"
            raise Refused(f"An export of {kind} has no option {name!r}; {has}.")
