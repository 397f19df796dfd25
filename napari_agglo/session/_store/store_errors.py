"""Errors of a session folder, each with a remedy, and the report of opening one."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from napari_agglo.errors import Advice, InvalidInput, Remedy


@dataclass(frozen=True)
class Report:
    """The findings of opening or recovering a session.

    Attributes
    ----------
    kept
        Number of journal entries that are intact.
    lost
        Number of acknowledged entries that are missing or damaged, or follow a damaged one.
    sentences
        Findings and repairs, a sentence each; empty if all is well.
    aside
        Files with the damaged parts, which are renamed and not deleted.
    unmended
        Whether the session still cannot be opened.
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
    """A change that could not be written; the session is as before, on disk and in memory."""


class SessionLocked(InvalidInput):
    """Another program has the session open for writing, or left its lock behind.

    Parameters
    ----------
    problem : str
        The reason.
    stale : bool
        Whether ``steal_lock=True`` takes the lock over.
    remedy : Remedy or str
        The action that helps.

    Attributes
    ----------
    stale
        Whether ``steal_lock=True`` takes the lock over; a person must make sure that nobody writes.
    """

    def __init__(
        self, problem: str, *, stale: bool, remedy: Remedy | str | tuple[Remedy | str, ...]
    ) -> None:
        super().__init__(problem, argument="path", remedy=remedy)
        self.stale = stale


class SessionDamaged(InvalidInput):
    """A damaged session; `Session.recover` repairs as much as possible."""


class PackageMissing(SessionDamaged):
    """A policy of a package that is not installed; the session can be read without it."""


RECOVER = Advice("call recover()")
RESTORE = Advice("restore the session from a copy")  # with right checksums there is nothing to mend


class SessionDamage(UserWarning):
    """A session was opened with fewer journal entries than were once acknowledged."""


def advice_on(error: OSError) -> str:
    """Return the remedy for an error of the operating system."""
    if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", None)):
        return "free some space on this disk, then try again"
    if error.errno == errno.EROFS:
        return "this disk is read-only: open the session with read_only=True, or copy it elsewhere"
    if error.errno in (errno.EACCES, errno.EPERM):
        return "check the permissions of the folder, or open the session with read_only=True"
    if error.errno == errno.ENOENT:
        return "the folder was moved or deleted: close the session and open it where it is now"
    return "check the disk and its connection, then try again"


def reason_of(error: OSError) -> str:
    """Return the operating system's name of an error."""
    return error.strerror or str(error)


@contextmanager
def saving(noun: str, path: Path) -> Iterator[None]:
    """Turn an error of the operating system while writing the `noun` into `NotSaved`."""
    try:
        yield
    except OSError as error:
        raise NotSaved(
            f"{noun} could not be written to {path} ({reason_of(error)}); nothing has changed",
            argument="path",
            remedy=advice_on(error),
        ) from error
