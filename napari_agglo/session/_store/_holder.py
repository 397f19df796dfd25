"""Who holds a lock, as its file says."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass
from datetime import UTC, datetime


@dataclass(frozen=True)
class Holder:
    """Who holds a lock."""

    pid: int
    host: str
    since: str

    @classmethod
    def me(cls) -> Holder:
        """Return this process."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(os.getpid(), socket.gethostname(), now)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"

    def encode(self) -> bytes:
        """Return the text of a lock file."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @property
    def is_here(self) -> bool:
        """Whether this is a process of this computer."""
        return self.host == socket.gethostname()

    @property
    def is_gone(self) -> bool:
        """Whether no process here has that number; never said of one elsewhere."""
        if os.name == "nt":  # where signal 0 would not ask, but end it
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except (OSError, OverflowError):
            return False
        return False


def read_holder(descriptor: int) -> Holder | None:
    """Return what the file says; nothing, if it is empty or not one of ours."""
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        said = json.loads(os.read(descriptor, 4096))
        found = Holder(int(said["pid"]), str(said["host"]), str(said["since"]))
    except (OSError, ArithmeticError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return found if found.pid > 0 else None
