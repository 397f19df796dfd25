"""History of a session: plans are applied and journalled, undone and redone, or replayed.

All changes of a session go through `Transactions`: a plan is on the disk and in the view when a
method returns, or nothing has changed. `SessionHistory` is `session.history`.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, check_progress
from napari_agglo.agglomeration import Merges, MergeTree, merge_tree
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import division_window
from napari_agglo.policy import Policy, as_policy
from napari_agglo.session._actions import Action, Change, Override, Plan, Refused, Step
from napari_agglo.session._check_tree import first_difference
from napari_agglo.session._hierarchy.hierarchy import Hierarchy
from napari_agglo.session._plan_edits import check_threshold
from napari_agglo.session._relearn.examples import live_examples
from napari_agglo.session._relearn.refit import Volume, learn_from_edits
from napari_agglo.session._state import SNAPSHOT, Applied, State, n_common, resume, state_arrays
from napari_agglo.session._store import PackageMissing, SessionDamaged, Store
from napari_agglo.session._store.stored_policy import must_be_passed
from napari_agglo.session._threshold_view import View

if TYPE_CHECKING:
    import pandas as pd

    from napari_agglo.session._store import Report


@dataclass(frozen=True, eq=False)
class Entry:
    """An action with its number in the journal and its time."""

    number: int
    time: str
    action: Action


@dataclass(frozen=True)
class HistoryItem:
    """One action of a session, in words.

    Attributes
    ----------
    number : int
        Its number in the journal.
    time : str
        Time of the action: ISO 8601, UTC.
    words : str
        The action in words.
    undone : bool
        Whether it has been undone.
    is_edit : bool
        Whether it is about segments; a mark, or an answer that changes none, is no edit.
    """

    number: int
    time: str
    words: str
    undone: bool
    is_edit: bool = True

    def __str__(self) -> str:
        return f"{self.number}. {self.words}{' (undone)' if self.undone else ''}"


class History:
    """The actions in the journal of a session, oldest first.

    Undo and redo are entries of the journal too, so they work on after a session is reopened.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []  # all actions
        self.done: list[Entry] = []  # the live actions
        self.undone: list[Entry] = []  # the actions that can be redone, the next one last

    def read(
        self, number: int, time: str, plain: dict[str, Any], action: Action | None = None
    ) -> None:
        """Add one entry of the journal; `action` is its action, if known."""
        kind = plain.get("action")
        if kind in ("undo", "redo"):
            source = self.done if kind == "undo" else self.undone
            if not source or source[-1].number != plain.get("of"):
                raise InvalidInput(
                    f"Entry {number} of the journal cannot {kind} its action: {plain!r:.200}."
                )
            (self.undone if kind == "undo" else self.done).append(source.pop())
            return
        entry = Entry(number, time, action or Action.from_json(plain))
        self.entries.append(entry)
        self.done.append(entry)
        self.undone.clear()


def _item(entry: Entry, undone: bool) -> HistoryItem:
    return HistoryItem(entry.number, entry.time, entry.action.words, undone, entry.action.is_edit)


class SessionHistory:
    """The actions of a session, `session.history`: a sequence of `HistoryItem`, oldest first."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._history = transactions.history
        self._unedited: MergeTree | None = None

    def __len__(self) -> int:
        return len(self._history.entries)

    def __iter__(self) -> Iterator[HistoryItem]:
        live = {entry.number for entry in self._history.done}
        return iter([_item(entry, entry.number not in live) for entry in self._history.entries])

    @overload
    def __getitem__(self, index: int) -> HistoryItem: ...
    @overload
    def __getitem__(self, index: slice) -> list[HistoryItem]: ...
    def __getitem__(self, index: int | slice) -> HistoryItem | list[HistoryItem]:
        return list(self)[index]

    def __repr__(self) -> str:
        done, undone = len(self._history.done), len(self._history.undone)
        return f"SessionHistory({done} actions, {undone} to redo)"

    @property
    def n_edits(self) -> int:
        """The number of edits that are not undone, without marks and answers."""
        return sum(entry.action.is_edit for entry in self._history.done)

    @property
    def can_undo(self) -> bool:
        """Whether there is an action to undo."""
        return bool(self._history.done)

    @property
    def can_redo(self) -> bool:
        """Whether there is an action to redo."""
        return bool(self._history.undone)

    @property
    def redoable(self) -> list[HistoryItem]:
        """The actions that can be redone, the next one first."""
        return [_item(entry, True) for entry in reversed(self._history.undone)]

    def asleep(self) -> list[str]:
        """Return the edits that a newer edit suspends, in words, until that one is undone.

        Returns
        -------
        list of str
            A sentence for each of these edits.
        """
        with self._transactions.lock:
            return self._transactions.view.asleep()

    def examples(self) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
        """Return the examples of the live edits and the answered suggestions.

        An answer that a later answer or an edit contradicts is left out.

        Returns
        -------
        tuple of ndarray
            Rows of features of two segments at the time of the edit, shape (k, number of features);
            and labels, shape (k,): -1 if the two were merged, +1 if they were cut or kept apart.
        """
        with self._transactions.lock:
            return live_examples(self._transactions.view)

    def table(self) -> pd.DataFrame:
        """Return a row for each edit, oldest first, as ``session.export(path, "edits")`` writes it.

        `Session.apply` makes the edits of a table again.

        Returns
        -------
        DataFrame
            See docs/edit_tables.md for the columns.
        """
        from napari_agglo.session._exports.csv_tables import edit_table
        from napari_agglo.session._exports.session_export import SessionExport

        with self._transactions.lock:
            known = self._transactions.store.manifest.superpixels.text
            return edit_table(SessionExport(self._transactions.view, None, known).edits)

    @property
    def unedited_tree(self) -> MergeTree:
        """The hierarchy before any edit; it is read, or computed, on first use."""
        if self._unedited is None:
            data = self._transactions.store.data
            stored = data.tree
            self._unedited = merge_tree(data.graph, data.policy) if stored is None else stored
        return self._unedited

    @property
    def report(self) -> Report:
        """Damage found when the folder was opened, in words."""
        return self._transactions.store.report

    @property
    def needed_function(self) -> str | None:
        """The function ``module:function`` without which the session is open read-only, or None."""
        return getattr(self._transactions.store.data.policy, "needed_function", None)

    @property
    def policy_to_pass(self) -> Policy | None:
        """The policy that `Session.open` needs for edits, as no file or entry point has it."""
        policy = self._transactions.store.data.policy
        return policy if must_be_passed(policy) else None

    @property
    def to_replay(self) -> int:
        """Number of entries since the last checkpoint, which opening replays."""
        return self._transactions.to_replay

    def checkpoint(self) -> bool:
        """Write a snapshot of the state, so that opening need not replay a long history.

        `Session.close` does so too. The snapshot is a cache of some megabytes; no edit depends on
        it.

        Returns
        -------
        bool
            Whether a snapshot was written: False if nothing is new, or the disk is full.
        """
        return self._transactions.checkpoint()


_SNAPSHOT_FROM = 20  # entries; fewer are replayed in no time
_RESTORE = "restore its journal from a copy of the session"


class Transactions:
    """Changes of a session: its store, state, history and view change together or not at all."""

    def __init__(
        self, store: Store, state: State, history: History, threshold: float, snapshot: int = 0
    ) -> None:
        self.store, self.state, self.history = store, state, history
        self.view = View(state, history, threshold)
        self.lock = threading.RLock()  # held in every change and look, also of a worker thread
        self._snapshot = snapshot  # number of the entry after which there is a snapshot

    @classmethod
    def open(
        cls, store: Store, progress: ProgressCallback | None, policy: Any = None
    ) -> Transactions:
        """Read the journal of a store; the store is closed if that fails.

        `policy` is the function of a session that was created with one.
        """
        try:
            if policy is not None:
                checked = as_policy(policy)
                store.data.check_policy(checked)
                if why := _difference(store, checked, progress):
                    raise InvalidInput(
                        f"`policy` {checked.name} is not that with which {store.path} was made: "
                        f"{why}, so that its code has changed",
                        argument="policy",
                        remedy=("restore the code of then", "make a new session"),
                    )
                store.data.use_policy(checked)
            store.do_without_missing()
            if policy is None:
                store.do_without_changed(lambda own: _difference(store, own, progress))
            state, history, snapshot = _replayed(store, progress)
        except BaseException:
            store.close()
            raise
        return cls(store, state, history, _last_threshold(store), snapshot)

    def look(self, progress: ProgressCallback | None, threshold: float | None) -> None:
        """Bring the segments at a threshold up to date; None is that of the view."""
        check_progress(progress)
        with self.lock:
            if threshold is None:
                self.view.names(progress)
            else:
                own = self.state
                at = check_threshold(threshold, own.policy, own.graph, finite=False)
                own.tree.look(at, progress)

    def do(
        self,
        planner: Callable[..., Plan],
        *arguments: Any,
        progress: ProgressCallback | None = None,
        **options: Any,
    ) -> Change:
        """Plan an action on the view, and commit it."""
        if progress is not None:
            check_progress(progress)
        with self.lock:
            self.store.journal.require_writable()
            return self._commit(planner(self.view, *arguments, **options), progress)

    def _commit(self, plan: Plan, progress: ProgressCallback | None = None) -> Change:
        """Apply a plan: it is on the disk when this returns; if it fails, nothing has changed."""
        plan = self.view.made_real(plan, progress)
        action = plan.action
        applied = self._apply(plan, action.to_json(), action, progress)
        self._show(applied, applied.overrides)
        where = plan.where
        segments = action.ids if where is None else self.view.segments_at(where)
        return Change(action.words, segments, plan.notes)

    def undo(self) -> Change:
        """Take back the last action."""
        with self.lock:
            self.store.journal.require_writable()
            if not self.history.done:
                raise Refused("There is nothing to undo.")
            entry, overrides = self.history.done[-1], self.state.overrides
            self._write(self._line("undo", entry))  # before take_back, which cannot fail
            touched = self._show(self.state.take_back(), overrides)
            return Change(f"undone: {entry.action.words}", self.view.segments_at(touched))

    def redo(self, progress: ProgressCallback | None) -> Change:
        """Do again the action that was undone last."""
        check_progress(progress)
        with self.lock:
            self.store.journal.require_writable()
            if not self.history.undone:
                raise Refused("There is nothing to redo.")
            entry = self.history.undone[-1]
            applied = self._apply(Plan(entry.action), self._line("redo", entry), None, progress)
            touched = self._show(applied, applied.overrides)
            return Change(f"redone: {entry.action.words}", self.view.segments_at(touched))

    def relearn(
        self,
        volumes: list[Volume] | None,
        *,
        strategy: str | None,
        weight: int,
        seed: int,
        progress: ProgressCallback | None,
    ) -> Change:
        """Learn from the edits, and replace the policy and its tree."""
        with self.lock:
            self.store.journal.require_writable()
            learned = learn_from_edits(
                self.view, volumes, strategy=strategy, weight=weight, seed=seed, progress=progress
            )
            reference = self.store.keep_policy(learned.policy)
            try:
                self.state.know_merges(reference, learned.merges)
                action = Action(
                    "relearn", (), self.view.threshold, tuple(map(Step, learned.edits)),
                    dropped=tuple(range(len(self.state.overrides))), policy=reference,
                )  # fmt: skip
                change = self._commit(Plan(action, notes=learned.notes), progress)
            except BaseException:
                self.store.forget_policy(reference)
                raise
            self.store.snapshot(*self.state.merges_snapshot(reference, learned.merges))
            return change

    def _line(self, kind: str, entry: Entry) -> dict[str, object]:
        return {"action": kind, "of": entry.number, "threshold": self.view.threshold}

    def _apply(
        self,
        plan: Plan,
        line: dict[str, object],
        action: Action | None,
        progress: ProgressCallback | None,
    ) -> Applied:
        """Apply the action of a plan and write a line to the journal, or do neither."""
        applied = self.state.apply(plan.action, plan.divisions, progress, trusted=True)
        try:
            self._write(line, action)
        except BaseException:
            self.state.take_back()
            raise
        graph = self.state.graph
        for division in (one for step in applied.divisions for one in step):
            self.store.keep_cutout(graph, division_window(graph, division.box))
        return applied

    def _write(self, line: dict[str, object], action: Action | None = None) -> None:
        record = self.store.journal.append(line)
        self.history.read(record.seq, record.time, record.entry, action)

    def _show(self, applied: Applied, before: tuple[Override, ...]) -> NDArray[np.int32]:
        """Update the view, given the overrides before; return the superpixels that changed."""
        return self.view.update(applied, moved=before != self.state.overrides)

    @property
    def to_replay(self) -> int:
        """Number of entries since the last snapshot."""
        return len(self.store.journal.records) - self._snapshot

    def checkpoint(self) -> bool:
        """Write a snapshot of the state; return whether one was written."""
        with self.lock:
            self.store.journal.require_writable()
            if not self.to_replay:
                return False
            written = self.store.snapshot(SNAPSHOT, state_arrays(self.state))
            if written:
                self._snapshot = len(self.store.journal.records)
            return written

    def close(self) -> None:
        """Save the threshold, and a snapshot after a long history; then close the store."""
        try:
            # No error for the sake of a cache or the threshold: the folder may have been deleted.
            with suppress(InvalidInput, OSError):
                if not self.store.read_only:
                    # Without its code a policy cannot replay a cut: the snapshot stands for it.
                    few = 1 if self.store.needs_code(self.state.policy) else _SNAPSHOT_FROM
                    if self.to_replay >= few:
                        self.checkpoint()
                    entries = len(self.store.journal.records)
                    self.store.save_settings({"threshold": self.view.threshold, "entries": entries})
        finally:
            self.store.close()


def _replayed(store: Store, progress: ProgressCallback | None) -> tuple[State, History, int]:
    """Return the state and history of the journal of a store, and the entry of its snapshot."""
    snapshot = store.load_snapshot(SNAPSHOT)
    # Arrays are unpacked outside of Python, so that the journal is read beside them.
    with ThreadPoolExecutor(1) as beside:
        reading = beside.submit(_read_history, store, 0 if snapshot is None else snapshot.seq)
        graph = store.data.read_graph(progress)
        history, then = reading.result()

    def recall_merges(name: str) -> Mapping[str, NDArray[Any]] | None:
        snapshot = store.load_snapshot(name)
        return None if snapshot is None else snapshot.arrays

    def first_tree() -> Hierarchy:
        tree = store.data.tree
        merges = None if tree is None else Merges(tree.winners, tree.losers, tree.priorities)
        return Hierarchy(graph, store.data.policy, merges, progress)

    def first_state() -> State:
        return State(
            graph, store.data.policy, first_tree, store.recall_or_do_without, recall_merges
        )

    state = first_state()
    if snapshot is not None and not resume(state, (e.action for e in then), snapshot.arrays):
        state, then, snapshot = first_state(), [], None
    same = n_common(then, history.done)
    for _ in then[same:]:
        state.take_back()
    for entry in history.done[same:]:
        try:
            state.apply(entry.action, progress=progress)
        except PackageMissing as error:
            raise PackageMissing(
                f"{store.path} cannot be opened without its policy, by which entry {entry.number} "
                f"of its journal ({entry.action.kind}) is applied: {error.problem}",
                argument="path",
                remedy=error.remedy,
            ) from error
        except InvalidInput as error:
            lost = isinstance(error, SessionDamaged)  # the policy of the entry
            remedy = f"{error.remedy}, or call recover(), which keeps the entries before it"
            raise SessionDamaged(
                f"{store.path} cannot be opened: entry {entry.number} of its journal "
                f"({entry.action.kind}) cannot be applied: {error.problem}",
                argument="path",
                remedy=remedy if lost else error.remedy or _RESTORE,
            ) from error
    state.recall_from(store.recall_policy)  # from now on a policy must be there
    return state, history, 0 if snapshot is None else snapshot.seq


def _read_history(store: Store, seq: int) -> tuple[History, list[Entry]]:
    """Return the history of the journal, and the live actions after entry `seq`."""
    history, then = History(), []
    try:
        for record in store.journal.records:
            history.read(record.seq, record.time, record.entry)
            if record.seq == seq:
                then = list(history.done)
    except InvalidInput as error:
        raise SessionDamaged(
            f"{store.path} cannot be opened: {error.problem}",
            argument="path",
            remedy=error.remedy or _RESTORE,
        ) from error
    return history, then


def _difference(store: Store, policy: Policy, progress: ProgressCallback | None) -> str:
    """Return in words a stored merge that a policy scores otherwise; no text if all are alike."""
    tree = store.data.tree
    if tree is None:
        return ""
    wrong = first_difference(tree, store.data.read_graph(progress), policy)
    if wrong is None:
        return ""
    return (
        f"it gives {wrong.texts[1]} to the merge of {wrong.first} with {wrong.second}, which the "
        f"session has at {wrong.texts[0]}"
    )


def _last_threshold(store: Store) -> float:
    """Return the threshold that was saved, or that of the last entry if it is newer."""
    settings, records = store.settings, store.journal.records
    saved = settings.get("threshold", 0.5)
    if settings.get("entries") != len(records) and records:
        saved = records[-1].entry.get("threshold", saved)
    return float(saved) if isinstance(saved, (int, float)) and np.isfinite(saved) else 0.5


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Pause garbage collection while many long-lived objects are created."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
