"""The lock of a session folder: a file that names its owner, and a lock of the system on it.

The lock of the system ends with its process, also in a crash. It does not always work across
computers that share a disk, and some shared disks have none. There the content of the file decides,
and a lock that may be left over is taken over only if the user asks for it.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from napari_agglo._typed_json import decode
from napari_agglo.errors import Advice, SetOption
from napari_agglo.session._store.store_errors import SessionLocked, saving
from napari_agglo.volumes import _replace_file as files

_BUSY = {errno.EACCES, errno.EAGAIN, errno.EDEADLK}

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)  # beyond the content, which others may read
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def try_lock(descriptor: int) -> bool | None:
    """Return True if the lock was free, None if it is taken, False if there are no locks."""
    try:
        files.call("lock", _lock, descriptor)
    except OSError as error:
        return None if error.errno in _BUSY else False
    return True


@dataclass(frozen=True)
class Owner:
    """The process that holds a lock, as the lock's file names it."""

    pid: int
    host: str
    since: str

    @classmethod
    def me(cls) -> Owner:
        """Return this process."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(os.getpid(), socket.gethostname(), now)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"

    def encode(self) -> bytes:
        """Return the content of a lock file."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @property
    def is_here(self) -> bool:
        """Whether this is a process of this computer."""
        return self.host == socket.gethostname()

    @property
    def is_gone(self) -> bool:
        """Whether no process of this computer has that number; False if it cannot be known."""
        if os.name == "nt":  # where signal 0 would end the process
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except (OSError, OverflowError):
            return False
        return False


def read_owner(descriptor: int) -> Owner | None:
    """Return the owner that a lock file names; None if it is empty or damaged."""
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        owner: Owner = decode(Owner, json.loads(os.read(descriptor, 4096)))
    except (OSError, ValueError, RecursionError):
        return None
    return owner if owner.pid > 0 else None


LOCK = "lock"
_SURE = (
    Advice("if you are sure that nobody writes to it, pass steal_lock=True"),
    SetOption("read_only", True),
)


class Lock:
    """The exclusive right to write to a session folder.

    With `steal`, a lock left by another computer or by a process that ended is taken over, but not
    that of a running process of this computer.
    """

    def __init__(self, folder: Path, *, steal: bool = False) -> None:
        self._path = folder / LOCK
        self._only = folder / f"{LOCK}.only"  # created by the owner where the system has no locks
        with saving("The lock", self._path):
            self._descriptor = self._acquired(steal)

    def release(self) -> None:
        """Release the lock; its file goes too."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0:
            return
        ours = _is_at(descriptor, self._path)  # False if the folder was moved while it was open
        if self._only.exists() and ours:
            with suppress(OSError):
                files.remove(self._only)
        if os.name == "nt":  # which removes no open file
            with suppress(OSError):
                files.close(descriptor)
        if ours:
            with suppress(OSError):
                files.remove(self._path)
        if os.name != "nt":
            with suppress(OSError):
                files.close(descriptor)

    def _acquired(self, steal: bool) -> int:
        while True:
            descriptor = files.open_file(self._path, files.MAKE)
            try:
                certain = try_lock(descriptor)
                if certain is None:
                    raise self._busy(descriptor)
                if not _is_at(descriptor, self._path):  # removed by its owner since it was opened
                    files.close(descriptor)
                    continue
                left = read_owner(descriptor)
                if left is not None and not steal:
                    self._refuse_left(left, certain)
                if not certain:
                    self._make_only(left, steal)
                files.truncate(descriptor, 0)
                os.lseek(descriptor, 0, os.SEEK_SET)
                files.write(descriptor, Owner.me().encode())
            except BaseException:
                with suppress(OSError):
                    files.close(descriptor)
                raise
            return descriptor

    def _make_only(self, left: Owner | None, steal: bool) -> None:
        if steal:
            with suppress(FileNotFoundError):
                files.remove(self._only)
        try:
            files.close(files.open_file(self._only, files.NEW))
        except FileExistsError as error:
            raise SessionLocked(
                f"{self._path.parent} is locked by {left or 'somebody unknown'}",
                stale=True,
                remedy=_SURE,
            ) from error

    def _busy(self, descriptor: int) -> SessionLocked:
        owner = read_owner(descriptor)
        ours = owner is not None and owner.is_here and owner.pid == os.getpid()
        return SessionLocked(
            f"{self._path.parent} is open for writing {'in this program' if ours else 'elsewhere'} "
            f"({owner or 'another process of this computer'})",
            stale=False,
            remedy=("close it there first", SetOption("read_only", True)),
        )

    def _refuse_left(self, left: Owner, certain: bool) -> None:
        here = left.is_here
        if here and certain:
            return  # the process has ended, or the system would have refused the lock
        if here and left.pid != os.getpid() and not left.is_gone:
            raise SessionLocked(
                f"{self._path.parent} is open for writing elsewhere ({left}), unless another "
                "program has the number of that process by now",
                stale=True,
                remedy=(
                    "close it there",
                    SetOption("read_only", True),
                    SetOption("steal_lock", True),
                ),
            )
        why = "that process has ended" if here else "it is unknown whether that process still runs"
        raise SessionLocked(
            f"{self._path.parent} is locked by {left}, and {why}", stale=True, remedy=_SURE
        )


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        there, ours = os.stat(path), os.fstat(descriptor)
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)
