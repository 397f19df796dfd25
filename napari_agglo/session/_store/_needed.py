"""Which learned policies the entries of a journal need, and which of them can be had.

An entry that was undone since needs its policy only to be redone. Without the policy of one that
counts a session cannot be opened: what was done after it was done on what it learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from napari_agglo.errors import AggloError
from napari_agglo.session._store import _policies
from napari_agglo.session._store._journal import Journal
from napari_agglo.session._store._lines import Record


@dataclass(frozen=True)
class LostPolicy:
    """An entry whose policy cannot be had, and whether the entry counts."""

    seq: int
    file: str
    live: bool


def do_without_lost(folder: Path, journal: Journal) -> list[str]:
    """Cut a journal off before an entry that counts and whose policy cannot be had.

    What is undone stays, for a session can be opened without it; that is said in what is returned.
    """
    while live := [lost for lost in lost_policies(folder, journal.records) if lost.live]:
        first, n = live[0], len(journal.records) - live[0].seq + 1
        journal.cut_off(
            first.seq,
            f"Entry {first.seq} of the journal learned the policy {first.file}, which is missing "
            f"or damaged: entries before it are there ({first.seq - 1}), those from it on cannot "
            f"be used and are lost ({n}). Should a whole {first.file} be found, put it back and "
            "append what was moved aside to the journal before anything else is done.",
        )
    return [
        f"Entry {lost.seq}, which learned the policy {lost.file}, was undone and cannot be redone, "
        "for that file is missing or damaged; all else is there."
        for lost in lost_policies(folder, journal.records)
    ]


def lost_policies(folder: Path, records: Sequence[Record]) -> list[LostPolicy]:
    """Return the entries whose policies cannot be had, oldest first, that count or can be redone.

    Examples
    --------
    >>> learned = Record(1, "", {"action": "relearn", "policy": {"kind": "learned"}}, "")
    >>> undone = Record(2, "", {"action": "undo", "of": 1}, "")
    >>> [lost.live for lost in lost_policies(Path("a.agglo"), [learned, undone])]
    [False]
    """
    done, undone = _course(records)
    found = []
    for live, numbers in ((True, done), (False, undone)):
        for number in numbers:
            words = records[number - 1].entry.get("policy")
            if words is not None:
                try:
                    _policies.recall(folder, words)
                except AggloError:
                    found.append(LostPolicy(number, _file_of(words), live))
    return sorted(found, key=lambda lost: lost.seq)


def _course(records: Sequence[Record]) -> tuple[list[int], list[int]]:
    """Return the numbers of the entries that count, and of those that can be redone."""
    done: list[int] = []
    undone: list[int] = []
    for record in records:
        kind = record.entry.get("action")
        if kind in ("undo", "redo"):
            source, target = (done, undone) if kind == "undo" else (undone, done)
            if source:
                target.append(source.pop())
        else:
            done.append(record.seq)
            undone.clear()
    return done, undone


def _file_of(words: Any) -> str:
    return str(words.get("file", "its policy")) if isinstance(words, dict) else "its policy"
