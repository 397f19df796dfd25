"""History of a session: the actions in its journal, those undone, and those that can be redone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, overload

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
    """The actions of a session as a sequence, oldest first, with those that are undone.

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

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[HistoryItem]:
        live = {entry.number for entry in self.done}
        return iter([_item(entry, entry.number not in live) for entry in self.entries])

    @overload
    def __getitem__(self, index: int) -> HistoryItem: ...
    @overload
    def __getitem__(self, index: slice) -> list[HistoryItem]: ...
    def __getitem__(self, index: int | slice) -> HistoryItem | list[HistoryItem]:
        return list(self)[index]

    @property
    def can_undo(self) -> bool:
        """Whether there is an action to undo."""
        return bool(self.done)

    @property
    def can_redo(self) -> bool:
        """Whether there is an action to redo."""
        return bool(self.undone)

    @property
    def redoable(self) -> list[HistoryItem]:
        """The actions that can be redone, the next one first."""
        return [_item(entry, True) for entry in reversed(self.undone)]

    def __repr__(self) -> str:
        return f"History({len(self.done)} actions, {len(self.undone)} to redo)"

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
