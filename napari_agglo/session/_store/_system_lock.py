"""The operating system's own lock on an open file; it ends with the process that holds it."""

from __future__ import annotations

import errno
import os
import sys

from napari_agglo.session._store import _disk

_BUSY = {errno.EACCES, errno.EAGAIN, errno.EDEADLK}

if sys.platform == "win32":
    import msvcrt

    def try_lock(descriptor: int) -> bool | None:
        """Whether the system gave the lock: None if it is taken, False if there are no locks."""
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)  # beyond the text, which others may then read
        try:
            _disk.call("lock", msvcrt.locking, descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            return None if error.errno in _BUSY else False
        return True

else:
    import fcntl

    def try_lock(descriptor: int) -> bool | None:
        """Whether the system gave the lock: None if it is taken, False if there are no locks."""
        try:
            _disk.call("lock", fcntl.flock, descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return None if error.errno in _BUSY else False
        return True
