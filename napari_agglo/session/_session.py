"""A proofreading session: what is seen at a scale, edits, undo, all of it on disk."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from numpy.typing import NDArray

from napari_agglo._collecting import not_collecting
from napari_agglo._progress import ProgressCallback
from napari_agglo.agglomeration import Merges, MergeTree, agglomerate
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import as_policy
from napari_agglo.session._core import last_threshold
from napari_agglo.session._hierarchy.hierarchy import Hierarchy
from napari_agglo.session._history import Entry, History
from napari_agglo.session._learning_from import LearningFrom
from napari_agglo.session._resuming import NAME as SNAPSHOT
from napari_agglo.session._resuming import resume
from napari_agglo.session._state import State
from napari_agglo.session._store import Report, SessionDamaged, Store, check_path
from napari_agglo.session._tree_check import check_tree


class Session(LearningFrom):
    """Proofread a segmentation at any scale; use `Session.create` or `Session.open`.

    Every edit is on the disk when its method returns, and can be undone, without limit, also after
    the session was closed and opened again. All ids are the user's. What an edit means at, below
    and above the threshold is said in docs/proofreading.md.

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

    _unedited: MergeTree | None = None

    @classmethod
    def create(
        cls,
        path: str | PathLike[str],
        graph: RegionGraph,
        policy: Any = "mean",
        *,
        tree: MergeTree | None = None,
        gold: Any = None,
        source: str | PathLike[str] | None = None,
        progress: ProgressCallback | None = None,
    ) -> Session:
        """Make a session folder and open it.

        Parameters
        ----------
        path : path-like
            ``NAME.agglo``; nothing may be there yet.
        graph : RegionGraph
            The superpixels and their statistics.
        policy : Policy, str or callable
            As for `napari_agglo.agglomerate`. The session stores a function by its name alone: who
            opens it again passes the function.
        tree : MergeTree, optional
            ``agglomerate(graph, policy)``, if it is at hand; otherwise it is made. Another is
            refused: it must be of these superpixels, merge all that touches, and a hundred of its
            merges, or all if there are no more, must have the priorities that the policy says.
        gold : array of int, optional
            A gold standard of the same shape: errors are then measured after each edit.
        source : path-like, optional
            The file that the superpixels came from. If they take 1 GB or more they are then not
            copied into the folder, but looked for there.
        progress : callable, optional
            Told how far it is; raise `Cancelled` in it, and nothing is made.
        """
        check_path(path, "a new session, NAME.agglo")
        checked = as_policy(policy)
        if tree is None:
            tree = agglomerate(graph, checked, progress=progress)
        elif isinstance(graph, RegionGraph):  # else it is refused below
            checked.check(graph)
            check_tree(tree, graph, checked)
        store = Store.create(
            path, graph, checked, tree=tree, gold=gold, source=source, progress=progress
        )
        store.data.use_policy(checked)
        return cls._opened(store, progress)

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
        """Open a session folder, wherever it is now; it is as it was when it was last used.

        Parameters
        ----------
        path : path-like
            The folder.
        read_only : bool
            Change nothing; works beside a writer, and on a read-only disk.
        superpixels : array or path-like, optional
            The label image, if it is not in the folder and no longer where it was. Other data than
            the session was made on are refused.
        steal_lock : bool
            Take over a lock that was left behind, after `SessionLocked` offered it.
        policy : callable or str, optional
            The function, or ``"module:function"``, of a session that was created with a function:
            no function is run because a file names it. Another policy is refused.
        progress : callable, optional
            Told how far it is; raise `Cancelled` in it to stop.
        """
        with not_collecting():  # a long history is many small objects, and all of them stay
            store = Store.open(
                path,
                read_only=read_only,
                superpixels=superpixels,
                steal_lock=steal_lock,
                progress=progress,
            )
            return cls._opened(store, progress, policy)

    @staticmethod
    def recover(path: str | PathLike[str], *, superpixels: Any = None) -> Report:
        """Mend what can be mended of a damaged session folder; nothing is deleted.

        Returns
        -------
        Report
            What was found and done, in words; ``unmended`` if it still cannot be opened.
        """
        return Store.recover(path, superpixels=superpixels)

    @classmethod
    def _opened(
        cls, store: Store, progress: ProgressCallback | None, policy: Any = None
    ) -> Session:
        try:
            if policy is not None:
                checked = as_policy(policy)
                store.data.check_policy(checked)
                if store.data.tree is not None:  # a function may have changed since
                    check_tree(store.data.tree, store.data.read_graph(progress), checked)
                store.data.use_policy(checked)
            state, history, kept = _replayed(store, progress)
        except BaseException:
            store.close()
            raise
        threshold = last_threshold(store.settings, store.journal.records)
        return cls(store, state, history, threshold, kept)

    @property
    def unedited_tree(self) -> MergeTree:
        """The hierarchy before any edit; it is read, or computed, on first use."""
        if self._unedited is None:
            data = self._store.data
            stored = data.tree
            self._unedited = agglomerate(data.graph, data.policy) if stored is None else stored
        return self._unedited

    @property
    def gold(self) -> NDArray[Any] | None:
        """The gold standard that the session was created with, if there is one."""
        return self._store.data.gold

    def __repr__(self) -> str:
        mode = ", read-only" if self.read_only else ""
        return (
            f"Session({str(self.path)!r}, {self._state.graph.n_regions} superpixels, "
            f"{len(self._history.done)} actions, threshold {self.threshold:.6g}{mode})"
        )


def _replayed(store: Store, progress: ProgressCallback | None) -> tuple[State, History, int]:
    """Return what the journal of a store amounts to, and after which entry there is a snapshot."""
    graph = store.data.read_graph(progress)

    def recall_merges(name: str) -> Mapping[str, NDArray[Any]] | None:
        snapshot = store.load_snapshot(name)
        return None if snapshot is None else snapshot.arrays

    def first_tree() -> Hierarchy:
        tree = store.data.tree
        merges = None if tree is None else Merges(tree.winners, tree.losers, tree.priorities)
        return Hierarchy(graph, store.data.policy, merges, progress)

    def begun() -> State:
        return State(graph, store.data.policy, first_tree, store.recall_policy, recall_merges)

    snapshot = store.load_snapshot(SNAPSHOT)
    then: list[Entry] = []  # the actions that counted when the snapshot was made
    history = History()
    try:
        for record in store.journal.records:
            history.read(record.seq, record.time, record.entry)
            if snapshot is not None and record.seq == snapshot.seq:
                then = list(history.done)
    except InvalidInput as error:
        raise SessionDamaged(f"{store.path} cannot be opened. {error}") from error
    state = begun()
    if snapshot is not None and not resume(state, (e.action for e in then), snapshot.arrays):
        state, then, snapshot = begun(), [], None
    same = 0
    for ours, theirs in zip(then, history.done, strict=False):
        if ours is not theirs:
            break
        same += 1
    for _ in then[same:]:
        state.take_back()
    for entry in history.done[same:]:
        try:
            state.apply(entry.action, progress=progress)
        except InvalidInput as error:
            way = " Or call recover(), which keeps what was done before it."
            raise SessionDamaged(
                f"{store.path} cannot be opened: entry {entry.number} of its journal "
                f"({entry.action.kind}) does not fit what is there. {error}"
                f"{way if isinstance(error, SessionDamaged) else ''}"
            ) from error
    return state, history, 0 if snapshot is None else snapshot.seq
