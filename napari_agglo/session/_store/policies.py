"""Policies within a session directory: a few words of JSON, and a file for a learned one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from napari_agglo.errors import AggloError, InvalidInput
from napari_agglo.policy import LearnedPolicy, Policy, load_policy, policies, save_policy
from napari_agglo.session._store import files
from napari_agglo.session._store.journal import Journal, Record
from napari_agglo.session._store.manifest import digest_bytes
from napari_agglo.session._store.store_errors import SessionDamaged

FIRST = "policy.npz"
_NAME = re.compile(r"policy(-[0-9a-f]{12})?\.npz")


def keep(folder: Path, policy: Policy, name: str | None = None) -> dict[str, Any]:
    """Write a policy into the folder, and return the words by which `recall` finds it again.

    Without a `name`, a file is called after its content: the same policy is written once.
    """
    if policy.name != LearnedPolicy.name:  # which alone has a file: its arrays are large
        return policy.to_json()
    temporary = folder / f".policy.{files.token()}.partial"
    try:
        save_policy(policy, temporary)
        checksum = digest_bytes(temporary.read_bytes())
        called = name or f"policy-{checksum[:12]}.npz"
        files.rename(temporary, folder / called)
        try:
            files.sync_folder(folder)
        except BaseException:
            forget(folder, called)
            raise
    finally:
        with suppress(OSError):
            files.remove(temporary)
    return {"kind": policy.name, "file": called, "checksum": checksum}


def forget(folder: Path, called: Any) -> None:
    """Remove the file of a policy, unless a journal names it, be it in what was moved aside.

    It is no error if that fails: a file that nothing refers to does no harm.
    """
    if not isinstance(called, str) or called == FIRST or not _NAME.fullmatch(called):
        return
    with suppress(OSError):
        name = called.encode()
        if not any(name in journal.read_bytes() for journal in folder.glob("journal*")):
            files.remove(folder / called)


def recall(folder: Path, words: Any) -> Policy:
    """Return the policy that `keep` was given."""
    kind = words.get("kind") if isinstance(words, dict) else None
    if isinstance(kind, str) and kind in policies:
        try:
            return policies[kind].from_json(words)
        except InvalidInput as error:
            raise SessionDamaged(f"{folder} names a policy that cannot be made: {error}") from error
    name = words.get("file") if kind == LearnedPolicy.name else None
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SessionDamaged(f"{folder} names a policy that is not known: {words!r}.")
    return _loaded(folder / name, words.get("checksum"))


def _loaded(path: Path, checksum: Any) -> LearnedPolicy:
    try:
        data = path.read_bytes()
        if digest_bytes(data) != checksum:
            raise InvalidInput("its checksum is wrong")
        return load_policy(path)
    except (OSError, InvalidInput) as error:
        raise SessionDamaged(
            f"The policy {path} cannot be used ({error}); put back the file that was there, from a "
            "copy of the session or of the policy it was made with."
        ) from error


# Which learned policies the entries of a journal need, and which of them can be had.
#
# An entry that was undone since needs its policy only to be redone. Without the policy of one that
# counts a session cannot be opened: what was done after it was done on what it learned.


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
                    recall(folder, words)
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
