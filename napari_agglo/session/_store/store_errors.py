"""What can go wrong with a session directory; each says what to do."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from napari_agglo.errors import InvalidInput

# What was found, mended and lost on opening a session, in words.


@dataclass(frozen=True)
class Report:
    """What opening or recovering a session found.

    Attributes
    ----------
    kept
        Journal entries that are there and can be trusted.
    lost
        Acknowledged entries that are gone, or follow a damaged one and cannot be trusted.
    sentences
        What happened, a sentence each; empty if all is well.
    aside
        Files that hold what was taken out of use; nothing is deleted.
    unmended
        Whether something is left that keeps the session from being opened.
    """

    kept: int
    lost: int = 0
    sentences: tuple[str, ...] = ()
    aside: tuple[Path, ...] = ()
    unmended: bool = False

    def __str__(self) -> str:
        entries = "1 entry" if self.kept == 1 else f"{self.kept} entries"
        return " ".join(self.sentences) or f"All is well: {entries}."


class NotSaved(InvalidInput):
    """Something could not be written; the session is as it was before, on disk and in memory."""


class SessionLocked(InvalidInput):
    """Another program has the session open for writing, or left its lock behind.

    Attributes
    ----------
    stale
        Whether the lock may be taken over with ``steal_lock=True`` once a person has looked.
    """

    def __init__(self, message: str, *, stale: bool) -> None:
        super().__init__(message)
        self.stale = stale


class SessionDamaged(InvalidInput):
    """A session that cannot be opened as it is; `Store.recover` mends what can be mended."""


class SessionDamage(UserWarning):
    """A session was opened with fewer journal entries than were once acknowledged."""


def remedy(error: OSError) -> str:
    """Return what a person can do about an error of the operating system."""
    if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", None)):
        return "free some space on this disk, then repeat it"
    if error.errno == errno.EROFS:
        return "this disk is read-only: open the session with read_only=True, or copy it elsewhere"
    if error.errno in (errno.EACCES, errno.EPERM):
        return "check the permissions of the folder, or open the session with read_only=True"
    if error.errno == errno.ENOENT:
        return "the folder was moved or deleted: close the session and open it where it is now"
    return "check the disk and its connection, then repeat it"


def said(error: OSError) -> str:
    """Return what the operating system calls an error."""
    return error.strerror or str(error)


@contextmanager
def saving(what: str, path: Path) -> Iterator[None]:
    """Turn an error of the operating system into `NotSaved`, in words."""
    try:
        yield
    except OSError as error:
        raise NotSaved(
            f"{what} could not be written to {path} ({said(error)}); nothing has changed: "
            f"{remedy(error)}."
        ) from error
