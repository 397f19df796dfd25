"""History of a session: the actions in its journal, those undone, and those that can be redone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from napari_agglo.agglomeration import MergeTree, agglomerate
from napari_agglo.errors import InvalidInput
from napari_agglo.session._actions import Action

if TYPE_CHECKING:
    from napari_agglo.session._store import Report
    from napari_agglo.session._transactions import Transactions


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
        When it was done: ISO 8601, UTC.
    words : str
        What was done.
    undone : bool
        Whether it has been undone, so that it does not count.
    """

    number: int
    time: str
    words: str
    undone: bool

    def __str__(self) -> str:
        return f"{self.number}. {self.words}{' (undone)' if self.undone else ''}"


class History:
    """The actions in the journal of a session, oldest first, with those that are undone.

    Undo and redo are entries of the journal too, so a reopened session continues where it was, with
    everything that can be undone and redone.

    Attributes
    ----------
    entries : list of Entry
        All actions, oldest first.
    done : list of Entry
        The live actions, oldest first.
    undone : list of Entry
        The actions that can be redone; the next one is last.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.done: list[Entry] = []
        self.undone: list[Entry] = []

    def read(
        self, number: int, time: str, plain: dict[str, Any], action: Action | None = None
    ) -> None:
        """Add one entry of the journal; `action` is its action, if known."""
        kind = plain.get("action")
        if kind in ("undo", "redo"):
            source = self.done if kind == "undo" else self.undone
            if not source or source[-1].number != plain.get("of"):
                raise InvalidInput(
                    f"Entry {number} of the journal would {kind} what it cannot: {plain!r:.200}."
                )
            (self.undone if kind == "undo" else self.done).append(source.pop())
            return
        entry = Entry(number, time, action or Action.from_json(plain))
        self.entries.append(entry)
        self.done.append(entry)
        self.undone.clear()


def _item(entry: Entry, undone: bool) -> HistoryItem:
    return HistoryItem(entry.number, entry.time, entry.action.words, undone)


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
        """Return the edits that a newer one prevents, in words; they wake when that is undone."""
        with self._transactions.lock:
            return self._transactions.view.asleep()

    def examples(self) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
        """Return the examples of the live edits and the answered suggestions.

        Rows of features of two segments, shape (k, number of features), as they were at the edit;
        and labels, shape (k,): -1 for what was merged, +1 for what was cut or kept apart. An answer
        that a later one or an edit contradicts is left out.
        """
        return self._transactions.examples()

    @property
    def unedited_tree(self) -> MergeTree:
        """The hierarchy before any edit; it is read, or computed, on first use."""
        if self._unedited is None:
            data = self._transactions.store.data
            stored = data.tree
            self._unedited = agglomerate(data.graph, data.policy) if stored is None else stored
        return self._unedited

    @property
    def report(self) -> Report:
        """Damage that was found in the folder when it was opened, in words."""
        return self._transactions.store.report

    @property
    def to_replay(self) -> int:
        """Number of entries since the last checkpoint, which opening would have to replay."""
        return self._transactions.to_replay

    def checkpoint(self) -> bool:
        """Write a snapshot of the state, so that opening need not replay a long history.

        Closing does so, too. It is a cache, of a few megabytes and more for a large volume; no edit
        depends on it. Return whether it was written: False if nothing was new, or no room.
        """
        return self._transactions.checkpoint()
