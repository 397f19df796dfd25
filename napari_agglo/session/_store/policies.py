"""Policies of a session directory: a reference in JSON, and a file for a learned one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from napari_agglo.errors import AggloError, InvalidInput, SetOption
from napari_agglo.policy import CallablePolicy, LearnedPolicy, Policy, load_policy, policies
from napari_agglo.policy._file import encode_policy
from napari_agglo.session._store.journal import Journal, Record
from napari_agglo.session._store.manifest import digest_bytes
from napari_agglo.session._store.store_errors import SessionDamaged
from napari_agglo.volumes import _atomic as files

FIRST = "policy.npz"
_NAME = re.compile(r"policy(-[0-9a-f]{12})?\.npz")


def keep(folder: Path, policy: Policy, name: str | None = None) -> dict[str, Any]:
    """Write a policy into the folder, and return the reference by which `recall` finds it.

    Without a `name`, a file is called after its content: the same policy is written once.
    """
    if policy.name != LearnedPolicy.name:  # which alone has a file: its arrays are large
        return policy.to_json()
    data = encode_policy(policy)
    checksum = digest_bytes(data)
    file = name or f"policy-{checksum[:12]}.npz"
    try:
        files.write_whole(folder / file, data)
    except BaseException:  # it may be in place already, though not surely on the disk
        forget(folder, file)
        raise
    return {"kind": policy.name, "file": file, "checksum": checksum}


def forget(folder: Path, file: Any) -> None:
    """Remove the file of a policy, unless a journal names it, or a part of one moved aside.

    It is no error if that fails: a file that nothing refers to does no harm.
    """
    if not isinstance(file, str) or file == FIRST or not _NAME.fullmatch(file):
        return
    with suppress(OSError):
        name = file.encode()
        if not any(name in journal.read_bytes() for journal in folder.glob("journal*")):
            files.remove(folder / file)


def recall(folder: Path, reference: Any) -> Policy:
    """Return the policy for which `keep` returned this reference.

    No function is imported because a file names it.
    """
    kind = reference.get("kind") if isinstance(reference, dict) else None
    if needs_function(reference):
        name = reference["function"]
        raise InvalidInput(
            f"The policy of {folder} is the function {name}, and no function is run because a file "
            "names it",
            argument="policy",
            remedy=SetOption("policy", name),
        )
    if isinstance(kind, str) and kind in policies:
        try:
            return policies[kind].from_json(reference)
        except InvalidInput as error:
            raise SessionDamaged(
                f"{folder} names a policy that cannot be made: {error.problem}",
                argument="path",
                remedy=error.remedy,
            ) from error
    name = reference.get("file") if kind == LearnedPolicy.name else None
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SessionDamaged(
            f"{folder} names a policy that is not known: {reference!r}",
            argument="path",
            remedy="install the package that has it, or pass policy=",
        )
    return _loaded(folder / name, reference.get("checksum"))


def needs_function(reference: Any) -> bool:
    """Return whether a user must pass the policy: it is a function of Python."""
    kind = reference.get("kind") if isinstance(reference, dict) else None
    return kind == CallablePolicy.kind and isinstance(reference.get("function"), str)


def _loaded(path: Path, checksum: Any) -> LearnedPolicy:
    try:
        data = path.read_bytes()
        if digest_bytes(data) != checksum:
            raise InvalidInput("its checksum is wrong")
        return load_policy(path)
    except (OSError, InvalidInput) as error:
        raise SessionDamaged(
            f"The policy {path} cannot be used ({error})",
            argument="path",
            remedy="put back the file that was there, from a copy of the session or of the policy "
            "it was made with",
        ) from error


# Entries of the journal name learned policies. An entry that was undone since needs its policy only
# to be redone. Without the policy of a live entry a session cannot be opened: all later entries
# were made on the hierarchy of that policy.


@dataclass(frozen=True)
class LostPolicy:
    """An entry whose policy is missing or damaged, and whether the entry is live."""

    seq: int
    file: str
    live: bool


def do_without_lost(folder: Path, journal: Journal) -> list[str]:
    """Cut a journal off before a live entry whose policy is missing or damaged.

    Undone entries stay, for a session can be opened without them; the sentences returned name them.
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
    """Return the entries, live or redoable, whose policies are lost, oldest first.

    Examples
    --------
    >>> learned = Record(1, "", {"action": "relearn", "policy": {"kind": "learned"}}, "")
    >>> undone = Record(2, "", {"action": "undo", "of": 1}, "")
    >>> [lost.live for lost in lost_policies(Path("a.agglo"), [learned, undone])]
    [False]
    """
    done, undone = _course(records)
    lost = []
    for live, numbers in ((True, done), (False, undone)):
        for number in numbers:
            reference = records[number - 1].entry.get("policy")
            if reference is not None:
                try:
                    recall(folder, reference)
                except AggloError:
                    lost.append(LostPolicy(number, _file_of(reference), live))
    return sorted(lost, key=lambda one: one.seq)


def _course(records: Sequence[Record]) -> tuple[list[int], list[int]]:
    """Return the numbers of the live entries, and of those that can be redone."""
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


def _file_of(reference: Any) -> str:
    return str(reference.get("file", "its policy")) if isinstance(reference, dict) else "its policy"
