"""Policies of a session folder: a reference in JSON, and a file for a learned policy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from napari_agglo.errors import AggloError, InvalidInput, SetOption
from napari_agglo.policy import CallablePolicy, LearnedPolicy, Policy, load_policy, policies
from napari_agglo.policy._file import INSTALL_PACKAGE, encode_policy
from napari_agglo.session._store.journal import Journal, Record
from napari_agglo.session._store.manifest import digest_bytes
from napari_agglo.session._store.store_errors import SessionDamaged
from napari_agglo.volumes import _atomic as files

FIRST = "policy.npz"
_NAME = re.compile(r"policy(-[0-9a-f]{12})?\.npz")


def keep(folder: Path, policy: Policy, name: str | None = None) -> dict[str, Any]:
    """Write a policy to the folder, and return the reference that `recall` takes.

    Without a `name`, the file is named after its content: the same policy is written once.
    """
    if policy.name != LearnedPolicy.name:  # only a learned policy has a file
        return policy.to_json()
    data = encode_policy(policy)
    checksum = digest_bytes(data)
    file = name or f"policy-{checksum[:12]}.npz"
    try:
        files.write_whole(folder / file, data)
    except BaseException:  # the file may be in place, but not on the disk for certain
        forget(folder, file)
        raise
    return {"kind": policy.name, "file": file, "checksum": checksum}


def forget(folder: Path, file: Any) -> None:
    """Remove the file of a policy, unless a journal, or a damaged part of one, names it.

    A failure is ignored: an unused file does no harm.
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
            f"The policy of {folder} is the Python function {name}, which is imported only if you "
            "pass it, because a file must not run code",
            argument="policy",
            remedy=SetOption("policy", name),
        )
    if isinstance(kind, str) and kind in policies:
        try:
            return policies[kind].from_json(reference)
        except InvalidInput as error:
            raise SessionDamaged(
                f"{folder} names a policy that cannot be used: {error.problem}",
                argument="path",
                remedy=error.remedy,
            ) from error
    name = reference.get("file") if kind == LearnedPolicy.name else None
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SessionDamaged(
            f"{folder} names an unknown policy: {reference!r}",
            argument="path",
            remedy=INSTALL_PACKAGE,
        )
    return _loaded(folder / name, reference.get("checksum"))


def how_to_have(reference: Any) -> str:
    """Return the advice to someone who passes a policy to a session that has another."""
    known = reference["kind"] == LearnedPolicy.name or reference["kind"] in policies
    return "leave it out" if known else f"leave it out, and {INSTALL_PACKAGE}"


def needs_function(reference: Any) -> bool:
    """Return whether the user must pass the policy, because it is a Python function."""
    kind = reference.get("kind") if isinstance(reference, dict) else None
    return kind == CallablePolicy.kind and isinstance(reference.get("function"), str)


def _loaded(path: Path, checksum: Any) -> LearnedPolicy:
    try:
        data = path.read_bytes()
        if digest_bytes(data) != checksum:
            raise InvalidInput(f"{path} has a wrong checksum")
        return load_policy(path)
    except (OSError, InvalidInput) as error:
        problem = error.problem if isinstance(error, InvalidInput) else str(error)
        missing = isinstance(error, InvalidInput) and error.remedy == INSTALL_PACKAGE
        raise SessionDamaged(
            f"The policy of the session cannot be used: {problem}",
            argument="path",
            remedy=INSTALL_PACKAGE
            if missing
            else "restore the file from a copy of the session or of the policy",
        ) from error


@dataclass(frozen=True)
class LostPolicy:
    """An entry whose policy is missing or damaged, and whether the entry is live."""

    seq: int
    file: str
    live: bool


def do_without_lost(folder: Path, journal: Journal) -> list[str]:
    """Cut a journal off before the first live entry whose policy is missing or damaged.

    All later entries were made on the hierarchy of that policy. An undone entry stays, since it
    needs its policy only to be redone; the sentences returned name it.
    """
    while live := [lost for lost in lost_policies(folder, journal.records) if lost.live]:
        first, n = live[0], len(journal.records) - live[0].seq + 1
        journal.cut_off(
            first.seq,
            f"Entry {first.seq} of the journal learned the policy {first.file}, which is missing "
            f"or damaged: the entries before it ({first.seq - 1}) are intact, those from it on "
            f"cannot be used and are lost ({n}). To restore them from a copy of {first.file}, put "
            "it back and append the file named below to the journal before any other change.",
        )
    return [
        f"Entry {lost.seq}, which learned the policy {lost.file}, was undone and cannot be redone, "
        "since that file is missing or damaged; all other entries are intact."
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
    lost = []
    for live, numbers in zip((True, False), _done_and_undone(records), strict=True):
        for number in numbers:
            reference = records[number - 1].entry.get("policy")
            if reference is not None:
                try:
                    recall(folder, reference)
                except AggloError as error:
                    if getattr(error.__cause__, "remedy", None) == INSTALL_PACKAGE:
                        continue  # not lost: only the package of its features is missing
                    file = reference.get("file") if isinstance(reference, dict) else None
                    lost.append(LostPolicy(number, str(file or "of unknown name"), live))
    return sorted(lost, key=lambda one: one.seq)


def _done_and_undone(records: Sequence[Record]) -> tuple[list[int], list[int]]:
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
