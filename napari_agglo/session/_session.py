"""A proofreading session: segments at a threshold, edits, undo, all of it on disk.

`Session` is a facade. A pure function of the view (in `_plan_edits`, `_plan_cuts` or
`_suggestions`) plans an edit: it returns a `Plan` or raises `Refused`. `_history` applies the plan,
writes it to the journal and updates the view; then `changed` is emitted. `_edit_verbs` has the
methods that edit segments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from shutil import rmtree
from typing import Any, ClassVar, Self

from numpy.typing import NDArray
from psygnal import Signal

from napari_agglo._progress import ProgressCallback
from napari_agglo.agglomeration import MergeTree, agglomerate, threshold_text
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph
from napari_agglo.learning._train import Seed
from napari_agglo.policy import Policy, as_policy
from napari_agglo.session import _edit_verbs as verbs
from napari_agglo.session._actions import Change, Plan
from napari_agglo.session._check_tree import check_scores, check_tree
from napari_agglo.session._edit_table import AppliedTable, apply_table
from napari_agglo.session._exports import write_export
from napari_agglo.session._exports.session_export import SessionExport, edited_tree
from napari_agglo.session._history import SessionHistory, Transactions, no_garbage_collection
from napari_agglo.session._incremental_vi import SessionErrors
from napari_agglo.session._marks import Annotations
from napari_agglo.session._plan_edits import (
    Segment,
    Segments,
    check_threshold,
    find,
    plan_mark,
)
from napari_agglo.session._relearn import WEIGHT, check_options, check_volumes
from napari_agglo.session._relearn.refit import Volumes, Weight
from napari_agglo.session._start_segments import (
    lowest_threshold,
    partition_of,
    plan_start,
    segment_graph_of,
)
from napari_agglo.session._store import Report, SessionSources, Store, check_path
from napari_agglo.session._store.stored_policy import can_score, check_storable, warn_of_unnamed
from napari_agglo.session._suggestions.suggestion_queue import Suggestions
from napari_agglo.volumes import warn_of_places


class Session:
    """Proofread a segmentation at any scale; use `Session.create` or `Session.open`.

    Every edit is on the disk when its method returns, and can be undone, without limit, also after
    the session was closed and opened again. All ids are the user's. docs/proofreading.md says
    what an edit means at, below and above the threshold.

    A method that changes something raises `Refused` if that is impossible, and `NotSaved` if the
    disk does not take it; then nothing has changed.

    Parameters
    ----------
    transactions : Transactions
        Of the package itself: `create` and `open` pass it.

    Attributes
    ----------
    changed : Signal
        Emitted with the `Change` after each action, undo and redo.
    threshold_changed : Signal
        Emitted with the threshold when it is moved.

    Examples
    --------
    >>> import tempfile, numpy as np, napari_agglo as agglo
    >>> superpixels = np.array([[5, 6, 7, 8]])
    >>> graph = agglo.region_graph(superpixels, np.array([[0.0, 0.2, 0.6, 0.8]]))
    >>> folder = tempfile.TemporaryDirectory()
    >>> session = Session.create(f"{folder.name}/cells.agglo", graph)
    >>> session.threshold = 0.3
    >>> session.labels()
    array([[5, 5, 7, 8]])
    >>> print(session.merge(8, 7))
    merged 7 into 8 at 0.3.
    >>> session.labels()
    array([[5, 5, 8, 8]])
    >>> session.close()
    >>> with Session.open(f"{folder.name}/cells.agglo") as session:
    ...     print(session.undo())
    ...     session.labels()
    undone: merged 7 into 8 at 0.3.
    array([[5, 5, 7, 8]])
    >>> folder.cleanup()
    """

    changed: ClassVar[Signal] = Signal(Change)
    threshold_changed: ClassVar[Signal] = Signal(float)

    def __init__(self, transactions: Transactions) -> None:
        if not isinstance(transactions, Transactions):
            raise InvalidInput(
                "A Session is not made by calling the class",
                argument="path",
                remedy="use Session.open(path), or Session.create(path, graph) for a new one",
            )
        self._transactions = transactions
        self._store, self._state = transactions.store, transactions.state
        self._history, self._view = transactions.history, transactions.view
        self._lock = transactions.lock
        self._errors = SessionErrors(transactions)
        self._actions = SessionHistory(transactions)
        self._segments = Segments(transactions)
        self._tree: tuple[int, MergeTree] | None = None  # with the version of its state

    @classmethod
    def create(
        cls,
        path: str | PathLike[str],
        graph: RegionGraph | None = None,
        policy: Any = "mean",
        *,
        segmentation: Any = None,
        tree: MergeTree | None = None,
        gold: Any = None,
        source: str | PathLike[str] | None = None,
        sources: Mapping[str, Any] | None = None,
        progress: ProgressCallback | None = None,
    ) -> Session:
        """Make a session folder and open it.

        Parameters
        ----------
        path : path-like
            ``NAME.agglo``, which must not exist.
        graph : RegionGraph, optional
            The superpixels and their statistics. Without it, the connected pieces of the segments
            of `segmentation` are the superpixels, and their borders the boundary cue.
        policy : Policy, str or callable
            As for `napari_agglo.agglomerate`. A function is stored by its name: `open` takes it.
        segmentation : array of int or Volume, optional
            A label image of another tool to correct, of the same shape: its segments are those of
            the session at the threshold at which it starts, below all merges of the policy. No
            superpixel may cross its borders: see `superpixels.divide_superpixels`.
        tree : MergeTree, optional
            The result of ``agglomerate(graph, policy)``, if it is known. A tree of other
            superpixels, with constraints, or of another policy (by a sample of a hundred merges) is
            refused.
        gold : array of int, optional
            A gold standard of the same shape, to measure errors after each edit.
        source : path-like, optional
            The file of the superpixels. If they take 1 GB or more they are not copied into the
            folder, but read from this file.
        sources : dict, optional
            The inputs by ``"image"``, ``"gold"`` and ``"cue NAME"``, which the plugin shows again
            as layers: the path of a file, an array, which is copied, or a `Source`. Of a file the
            place and a fingerprint are kept.
        progress : callable, optional
            Called with the progress so far; raise `Cancelled` in it to stop, and nothing is made.

        Returns
        -------
        Session
            The session, open for edits.

        Raises
        ------
        InvalidInput
            If there is something at `path`, or an input cannot be used; nothing is made.
        """
        check_path(path, "a new session, NAME.agglo")
        checked = as_policy(policy)
        partition = None
        if segmentation is not None:
            if graph is None:
                graph = segment_graph_of(segmentation, progress)
            if isinstance(graph, RegionGraph):
                partition = partition_of(graph, segmentation)
        elif graph is None:
            raise InvalidInput(
                "A session needs superpixels",
                argument="graph",
                remedy="pass a graph of region_graph(), or a segmentation to correct",
            )
        if isinstance(graph, RegionGraph):
            given = {"segmentation": segmentation, "gold": gold}
            warn_of_places({"superpixels": graph.superpixels, **given})
            checked.check(graph)
            check_storable(checked, graph)
            check_scores(checked, graph)
        if tree is None:
            tree = agglomerate(graph, checked, progress=progress)
        elif isinstance(graph, RegionGraph):  # else it is refused below
            check_tree(tree, graph, checked)
        warn_of_unnamed(checked)
        store = Store.create(
            path, graph, checked, tree=tree, gold=gold, source=source, sources=sources,
            progress=progress,
        )  # fmt: skip
        store.data.use_policy(checked)
        session = cls(Transactions.open(store, progress))
        if partition is not None:
            try:
                session._start_from(partition, progress)
            except BaseException:  # remove the unfinished session
                session.close()
                rmtree(session.path, ignore_errors=True)
                raise
        return session

    def _start_from(
        self, partition: NDArray[Any], progress: ProgressCallback | None = None
    ) -> Change:
        """Merge the superpixels of each segment of a partition, below all merges of the policy."""
        self.threshold = lowest_threshold(self.history.unedited_tree.heights)
        return self._do(plan_start, partition, progress=progress)

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        read_only: bool = False,
        superpixels: Any = None,
        steal_lock: bool = False,
        policy: Any = None,
        progress: ProgressCallback | None = None,
    ) -> Session:
        """Open a session folder, which may have been moved, in its last state.

        Parameters
        ----------
        path : path-like
            The folder.
        read_only : bool
            Change nothing; works beside a writer, and on a read-only disk.
        superpixels : array or path-like, optional
            The label image of the session, if it is neither in the folder nor in its old place.
        steal_lock : bool
            Take over a lock that was left behind, after `SessionLocked` offered it.
        policy : callable or str, optional
            The function, or ``"module:function"``, of a session that was created with one, or a
            policy whose class no entry point names. Without it the session opens read-only,
            because opening a file imports nothing. Another policy is refused.
        progress : callable, optional
            Called with the progress so far; raise `Cancelled` in it to stop.

        Returns
        -------
        Session
            The session, as it was when it was closed or its process ended.

        Raises
        ------
        SessionLocked
            If another process has it open for writing.
        SessionDamaged
            If the folder cannot be read; `recover` says what can be saved.
        """
        with no_garbage_collection():  # a long history is many small objects that all stay
            store = Store.open(
                path, read_only=read_only, superpixels=superpixels, steal_lock=steal_lock,
                progress=progress,
            )  # fmt: skip
            return cls(Transactions.open(store, progress, policy))

    @staticmethod
    def recover(path: str | PathLike[str], *, superpixels: Any = None) -> Report:
        """Repair as much as possible of a damaged session folder; nothing is deleted.

        Parameters
        ----------
        path : path-like
            The session folder; no process may have it open.
        superpixels : array or path-like, optional
            The label image of the session, if that is what was lost.

        Returns
        -------
        Report
            Findings and repairs, in words; ``unmended`` if the folder still cannot be opened.
        """
        return Store.recover(path, superpixels=superpixels)

    @property
    def path(self) -> Path:
        """The session folder."""
        return self._store.path

    @property
    def read_only(self) -> bool:
        """Whether the session cannot change: opened read-only, closed, or after a disk error."""
        return self._store.journal.read_only

    @property
    def graph(self) -> RegionGraph:
        """The superpixels as they are divided now; valid until the next edit."""
        return self._state.graph

    @property
    def policy(self) -> Policy:
        """The policy by which segments are merged."""
        return self._state.policy

    @property
    def tree(self) -> MergeTree:
        """The hierarchy with all edits, at every scale: for plots, films, reports.

        It does not have moves along a branch; a locked segment is whole from 0 on. It is computed
        on first use after an edit; call ``look(progress, threshold=inf)`` before to see progress.
        """
        with self._lock:
            if self._tree is None or self._tree[0] != self._state.version:
                self._tree = self._state.version, edited_tree(self._state)
            return self._tree[1]

    @property
    def segments(self) -> Segments:
        """The segments at the threshold: their ids, superpixels and neighbours."""
        return self._segments

    @property
    def history(self) -> SessionHistory:
        """All actions in words, oldest first; those to redo, examples, damage that was repaired."""
        return self._actions

    @property
    def marks(self) -> Annotations:
        """Names of segments, comments on them, and reviewed segments."""
        return Annotations(self)

    @property
    def queue(self) -> Suggestions:
        """The next probable errors, and the answers to them."""
        return Suggestions(self)

    @property
    def sources(self) -> SessionSources:
        """The inputs: image, cues and gold, as files or copies."""
        return SessionSources(self._store)

    @property
    def errors(self) -> SessionErrors:
        """The errors against a gold standard: ``vi``, ``false_merge``, ``false_split``, in bits."""
        return self._errors

    # The segments at the threshold.

    @property
    def threshold(self) -> float:
        """The scale of the segments, at which edits are made. It is saved, and not undone."""
        return self._view.threshold

    @threshold.setter
    def threshold(self, threshold: float) -> None:
        checked = check_threshold(threshold, self.policy, self.graph)
        with self._lock:
            if checked != self._view.threshold:
                if not can_score(self.policy):
                    self.look(threshold=checked)  # refused here, not at every look that follows
                self._view.threshold = checked
                self.threshold_changed.emit(checked)

    @property
    def ready(self) -> bool:
        """Whether the segments at the threshold are known; if not, call `look`, in a worker."""
        return self._state.tree.horizon >= self._view.threshold

    def look(
        self, progress: ProgressCallback | None = None, *, threshold: float | None = None
    ) -> None:
        """Bring the segments at a threshold up to date, which may take a second after an edit.

        Other methods do so themselves; call this first, in a worker, to show progress or to cancel.

        Parameters
        ----------
        progress : callable, optional
            Called with the progress so far; raise `Cancelled` in it to stop.
        threshold : float, optional
            The highest scale that is needed: by default that of the session, infinity for `tree`.
        """
        self._transactions.look(progress, threshold)

    def labels(self, index: Any = ...) -> NDArray[Any]:
        """Return the segments at the threshold as a label image.

        Parameters
        ----------
        index : index of an array, optional
            The part to return, such as ``np.s_[10:20]``; by default the whole image.

        Returns
        -------
        ndarray of int
            The segment of each pixel, in the type of the superpixels; 0 is no segment.
        """
        with self._lock:
            return self._view.labels(index)

    def lut(self, *, dense: bool = False) -> NDArray[Any]:
        """Return the segment of each superpixel, as a table over dense ids 0..n.

        ``session.lut()[session.graph.superpixels.image]`` is ``session.labels()``.

        Parameters
        ----------
        dense : bool
            Return the segments by dense ids (``session.graph.ids[...]`` are the user's), as a
            read-only view for a screen: without a copy, valid until segments or threshold change.

        Returns
        -------
        ndarray of int, shape (n_regions + 1,)
            The segment of each superpixel, 0 at 0; of uint32 if `dense`.
        """
        with self._lock:
            if dense:
                names = self._view.names().view()
                names.flags.writeable = False
                return names
            return self._view.table().copy()

    def _find(self, segment: Any) -> Segment:
        return find(self._view, segment)

    # The edits: `_edit_verbs` has their texts and parameters.

    merge = verbs.merge
    cut = verbs.cut
    preview = verbs.preview
    cut_children = verbs.cut_children
    detach = verbs.detach
    lock = verbs.lock
    unlock = verbs.unlock
    up = verbs.up
    down = verbs.down
    undo = verbs.undo
    redo = verbs.redo

    def relearn(
        self,
        volumes: Volumes | None = None,
        *,
        strategy: str | None = None,
        weight: Weight = WEIGHT,
        seed: Seed = 0,
        progress: ProgressCallback | None = None,
        **others: Any,
    ) -> Change:
        """Learn from the edits, agglomerate by the learned policy, and transfer the edits to it.

        This is one action, which `undo` takes back. Afterwards, at the threshold, merged segments
        are together and cut ones apart; the notes name edits that newer ones contradict.

        Parameters
        ----------
        volumes : (RegionGraph, gold), or iterable of such pairs, optional
            The training set of the policy, to learn from as well; without it, make hundreds of
            edits first.
        strategy : {"agglo", "flat", "lash", "mixed"}, optional
            The strategy to learn from volumes, as for `napari_agglo.train`; by default as before.
        weight : int
            The number of examples of the volumes that an edit counts for.
        seed : int
            The same edits, volumes and seed give the same policy.
        progress : callable, optional
            Called with the progress so far; raise `Cancelled` in it to stop, and nothing changes.
        **others
            Refused, each by its name.

        Returns
        -------
        Change
            The number of examples in words; ``notes`` on edits that could not be kept.

        Raises
        ------
        InvalidInput
            If there is too little to learn from: edits of both kinds, or volumes, are needed.
        """
        check_options(strategy, weight, seed, others)
        pairs = None if volumes is None else check_volumes(volumes)
        options: dict[str, Any] = {"strategy": strategy, "weight": weight, "seed": seed}
        return self._emit(self._transactions.relearn(pairs, progress=progress, **options))

    def apply(
        self,
        table: Any,
        *,
        other_superpixels: bool = False,
        progress: ProgressCallback | None = None,
    ) -> AppliedTable:
        """Make the edits of a table again: of this session, or of another with these superpixels.

        Each row is made at its own threshold, on the segments that hold its superpixels now, as an
        action that `undo` takes back. Rows that are undone in the table are left out; a row that
        is not possible here is listed with the reason, and the others are made all the same.

        Parameters
        ----------
        table : DataFrame or path-like
            ``session.history.table()``, or a file of ``session.export(path, "edits")``.
        other_superpixels : bool
            Apply a table that was made on other superpixels too. It is refused by default, because
            its ids may be other superpixels here.
        progress : callable, optional
            Called with the progress so far; raise `Cancelled` in it to stop; edits so far stay.

        Returns
        -------
        AppliedTable
            Numbers of rows that were made, that were there already, and ``not_applied``.

        Examples
        --------
        >>> import tempfile, numpy as np, napari_agglo as agglo
        >>> graph = agglo.region_graph(np.array([[5, 6, 7, 8]]), np.array([[0.0, 0.2, 0.9, 1.0]]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Session.create(f"{folder}/one.agglo", graph) as one:
        ...         _ = one.merge(7, 8)
        ...         table = one.history.table()
        ...     with Session.create(f"{folder}/two.agglo", graph) as two:
        ...         print(two.apply(table))
        ...         two.labels()
        1 edit applied
        array([[5, 5, 7, 7]])
        """
        with self._lock:
            self._store.journal.require_writable()
            return apply_table(self, table, progress, other_superpixels=other_superpixels)

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
            ``"labels"``, ``"regions"``, ``"edits"``, ``"tree"``, ``"graphml"``, ``"agglomerate"``,
            or a kind of another package: see docs/exports.md and `export_kinds`.
        overwrite : bool
            Whether a file at `path` may be replaced.
        progress : callable, optional
            Called with the progress so far; it may raise `Cancelled`.
        **options
            Options of the kind: see docs/exports.md.

        Returns
        -------
        Path
            The file or folder that was written.
        """
        with self._lock:
            view = SessionExport(self._view, progress, self._store.manifest.superpixels.text)
            return write_export(
                view, path, kind, overwrite=overwrite, progress=progress, options=options
            )

    def _do(self, planner: Callable[..., Plan], *arguments: Any, **options: Any) -> Change:
        return self._emit(self._transactions.do(planner, *arguments, **options))

    def _emit(self, change: Change) -> Change:
        self.changed.emit(change)
        return change

    def _mark(self, segment: int, **marks: Any) -> Change:
        return self._do(plan_mark, segment, **marks)

    def close(self) -> None:
        """Close the session, so that others may write; all edits are on the disk already."""
        self._transactions.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        mode = ", read-only" if self.read_only else ""
        parts = f"{self.graph.n_regions} superpixels, {len(self._history.done)} actions"
        at = threshold_text(self.threshold)
        return f"Session({str(self.path)!r}, {parts}, threshold {at}{mode})"
