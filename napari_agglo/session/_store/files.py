"""Every call to the operating system that changes a session goes through here.

One seam, `call`, stands before them all, so that a test can let the k-th of them fail, or the
program die at it, and look at what is left.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")

_BINARY = getattr(os, "O_BINARY", 0)  # Windows would translate line ends
READ_WRITE = os.O_RDWR | _BINARY
APPEND = os.O_RDWR | os.O_APPEND | _BINARY
NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY
MAKE = os.O_RDWR | os.O_CREAT | _BINARY


def call(what: str, function: Callable[..., Result], *arguments: object) -> Result:
    """Do one system call; `what` names its kind for the tests that replace this function."""
    return function(*arguments)


def open_file(path: Path, flags: int) -> int:
    """Open a file and return its descriptor."""
    return call("open", os.open, path, flags, 0o666)


def close(descriptor: int) -> None:
    """Close a descriptor."""
    call("close", os.close, descriptor)


def write(descriptor: int, data: bytes) -> None:
    """Write all of `data`; the system may take it in parts."""
    rest = memoryview(data)
    while rest:
        rest = rest[call("write", os.write, descriptor, rest) :]


def sync(descriptor: int) -> None:
    """Return once what was written is on the disk itself."""
    if sys.platform == "darwin":  # there fsync leaves the data in the drive's own memory
        import fcntl

        call("fsync", fcntl.fcntl, descriptor, fcntl.F_FULLFSYNC)
    else:
        call("fsync", os.fsync, descriptor)


def truncate(descriptor: int, length: int) -> None:
    """Cut a file to `length` bytes."""
    call("truncate", os.ftruncate, descriptor, length)


def rename(source: Path, target: Path) -> None:
    """Move a file or a folder; a file at `target` is replaced."""
    call("rename", os.replace, source, target)


def make_folder(path: Path) -> None:
    """Make one folder, which must not exist."""
    call("mkdir", os.mkdir, path)


def remove(path: Path) -> None:
    """Remove a file."""
    call("unlink", os.unlink, path)


def sync_folder(path: Path) -> None:
    """Make the names in a folder last; Windows neither needs nor allows it."""
    if os.name == "nt":
        return
    descriptor = open_file(path, os.O_RDONLY)
    try:
        call("fsync", os.fsync, descriptor)
    finally:
        close(descriptor)


def write_new(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write a file that must not exist yet."""
    descriptor = open_file(path, NEW)
    try:
        write(descriptor, data)
        if durable:
            sync(descriptor)
    finally:
        close(descriptor)


def write_whole(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Put a file in place whole or not at all, by a temporary name beside it.

    Without `durable` a power cut may leave a file of any content, for caches that check themselves.
    """
    temporary = path.with_name(f".{path.name}.{token()}.partial")
    try:
        write_new(temporary, data, durable=durable)
        rename(temporary, path)
    except BaseException:
        with suppress(OSError):
            remove(temporary)
        raise
    if durable:
        sync_folder(path.parent)


def remove_tree(path: Path) -> None:
    """Remove a folder that was never put in place, as far as that goes."""
    call("rmtree", shutil.rmtree, path, True)


def token() -> str:
    """Return a part of a name that nobody else uses."""
    return f"{os.getpid()}-{secrets.token_hex(4)}"


def free_name(folder: Path, stem: str, suffix: str = "") -> Path:
    """Return ``folder/stem-N suffix`` with the smallest N from 1 that is not taken."""
    number = 1
    while os.path.lexists(folder / f"{stem}-{number}{suffix}"):
        number += 1
    return folder / f"{stem}-{number}{suffix}"
