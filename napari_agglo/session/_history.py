"""The journal read as a history: which actions count, which are undone, and what comes next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from napari_agglo.errors import InvalidInput
from napari_agglo.session._actions import Action


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
    """All actions, of which `done` count and `undone` can be done again.

    Undoing and redoing are entries of the journal too, and so a session that is opened again goes
    on where it was, with all that can be undone and redone.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.done: list[Entry] = []  # oldest first
        self.undone: list[Entry] = []  # what to redo next is last

    @classmethod
    def of(cls, records: Iterable[Any]) -> History:
        """Read the records of a journal."""
        history = cls()
        for record in records:
            history.read(record.seq, record.time, record.entry)
        return history

    def read(
        self, number: int, time: str, plain: dict[str, Any], action: Action | None = None
    ) -> None:
        """Take over one entry of the journal, and the action that it is, if that is known."""
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

    def items(self) -> list[HistoryItem]:
        """Return all actions in words, oldest first."""
        live = {entry.number for entry in self.done}
        return [
            HistoryItem(entry.number, entry.time, entry.action.words, entry.number not in live)
            for entry in self.entries
        ]

    def redoable(self) -> list[HistoryItem]:
        """Return what can be redone, the next first."""
        return [
            HistoryItem(entry.number, entry.time, entry.action.words, True)
            for entry in reversed(self.undone)
        ]
