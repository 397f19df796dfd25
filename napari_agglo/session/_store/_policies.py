"""Policies within a session directory: a few words of JSON, and a file for a learned one."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from napari_agglo.errors import InvalidInput, is_whole
from napari_agglo.policy import LearnedPolicy, MeanPolicy, Policy, RandomPolicy, load_policy
from napari_agglo.session._store import _disk
from napari_agglo.session._store._digest import digest_bytes
from napari_agglo.session._store._errors import SessionDamaged

FIRST = "policy.npz"
_NAME = re.compile(r"policy(-[0-9a-f]{12})?\.npz")


def keep(folder: Path, policy: Policy, name: str | None = None) -> dict[str, Any]:
    """Write a policy into the folder, and return the words by which `recall` finds it again.

    Without a `name`, a file is called after its content: the same policy is written once.
    """
    if isinstance(policy, MeanPolicy):
        return {"kind": "mean", "cue": policy.cue}
    if isinstance(policy, RandomPolicy):
        return {"kind": "random", "seed": int(policy.seed)}
    temporary = folder / f".policy.{_disk.token()}.partial"
    try:
        policy.save(temporary)
        checksum = digest_bytes(temporary.read_bytes())
        called = name or f"policy-{checksum[:12]}.npz"
        _disk.rename(temporary, folder / called)
        try:
            _disk.sync_folder(folder)
        except BaseException:
            forget(folder, called)
            raise
    finally:
        with suppress(OSError):
            _disk.remove(temporary)
    return {"kind": "learned", "file": called, "checksum": checksum}


def forget(folder: Path, called: Any) -> None:
    """Remove the file of a policy, unless a journal names it, be it in what was moved aside.

    It is no error if that fails: a file that nothing refers to does no harm.
    """
    if not isinstance(called, str) or called == FIRST or not _NAME.fullmatch(called):
        return
    with suppress(OSError):
        name = called.encode()
        if not any(name in journal.read_bytes() for journal in folder.glob("journal*")):
            _disk.remove(folder / called)


def recall(folder: Path, words: Any) -> Policy:
    """Return the policy that `keep` was given."""
    kind = words.get("kind") if isinstance(words, dict) else None
    if kind == "mean" and isinstance(words.get("cue"), str):
        return MeanPolicy(words["cue"])
    if kind == "random" and is_whole(words.get("seed")) and 0 <= words["seed"] < 2**32:
        return RandomPolicy(words["seed"])
    name = words.get("file") if kind == "learned" else None
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
