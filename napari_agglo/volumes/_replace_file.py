"""Files written whole or not at all: a temporary name in the same folder, fsync, then a rename.

Every system call that changes a file goes through `call`, so that a test can let the k-th of them
fail, or the program die at it, and look at what is left.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from napari_agglo.errors import Advice, InvalidInput

Result = TypeVar("Result")

_BINARY = getattr(os, "O_BINARY", 0)  # Windows would translate line ends
READ_WRITE = os.O_RDWR | _BINARY
APPEND = os.O_RDWR | os.O_APPEND | _BINARY
NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY
MAKE = os.O_RDWR | os.O_CREAT | _BINARY


def call(kind: str, function: Callable[..., Result], *arguments: object) -> Result:
    """Do one system call of a kind such as "write"; tests replace this function."""
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
    """Wait until the written data are on the disk itself."""
    if sys.platform == "darwin":  # fsync leaves the data in the drive's own memory there
        import fcntl

        call("fsync", fcntl.fcntl, descriptor, fcntl.F_FULLFSYNC)
    else:
        call("fsync", os.fsync, descriptor)


def sync_data(descriptor: int) -> None:
    """Wait for data and size alone, where the system can: not for the time of the change."""
    if sys.platform == "linux":
        call("fsync", os.fdatasync, descriptor)
    else:
        sync(descriptor)


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


def remove_tree(path: Path) -> None:
    """Remove a folder as far as possible; errors are ignored."""
    call("rmtree", shutil.rmtree, path, True)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk; Windows neither needs nor allows it."""
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


def token() -> str:
    """Return a unique part of a file name."""
    return f"{os.getpid()}-{secrets.token_hex(4)}"


def free_name(folder: Path, stem: str, suffix: str = "") -> Path:
    """Return the path ``folder/stem-N{suffix}`` with the smallest unused N from 1."""
    number = 1
    while os.path.lexists(folder / f"{stem}-{number}{suffix}"):
        number += 1
    return folder / f"{stem}-{number}{suffix}"


def write_whole(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write a file whole or not at all; an `OSError` passes through.

    Without `durable` a power cut may leave a file of any content: for caches with a checksum.
    """
    temporary = path.with_name(f".{path.name}.{token()}.partial")
    try:
        write_new(temporary, data, durable=durable)
        rename(temporary, path)
    except BaseException:
        _discard(temporary)
        raise
    if durable:
        sync_folder(path.parent)


@contextmanager
def replacing(target: Path, *, may_replace: Callable[[Path], bool] | None = None) -> Iterator[Path]:
    """Yield a temporary path to write to, and rename the result to `target`.

    If anything fails before the rename, the temporary file is removed and `target` is as it was.
    An `OSError` (disk full, no permission) is raised as `InvalidInput`.

    Parameters
    ----------
    target
        The path of a file. A folder is refused, and so is a device. A link stays, and the file that
        it leads to is replaced.
    may_replace
        For formats that are folders: whether an existing folder may be replaced. An empty one may.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from napari_agglo.volumes import replacing
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "a.txt") as temporary:
    ...         _ = temporary.write_text("all of it")
    ...     (Path(folder) / "a.txt").read_text()
    'all of it'
    """
    place = refuse_occupied(target, may_replace)
    temporary = place.with_name(f".{place.name}.{token()}.partial")
    is_in_place = False
    try:
        yield temporary
        _sync_all(temporary)
        _put_in_place(temporary, place)
        is_in_place = True
        sync_folder(place.parent)
    except InvalidInput as error:
        if temporary.name not in str(error):
            raise
        remedy = error.remedy
        if isinstance(remedy, Advice):
            remedy = Advice(_renamed(remedy.text, temporary, target))
        raise InvalidInput(
            _renamed(error.problem, temporary, target), argument=error.argument, remedy=remedy
        ) from error
    except OSError as error:
        reason = _renamed(error.strerror or str(error), temporary, target)
        if is_in_place:  # renamed, but the folder could not be synchronised
            raise InvalidInput(
                f"{target} is written, but may be lost in a power failure ({reason})",
                argument="path",
                remedy="check the disk, and write it again",
            ) from error
        is_full = error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", None))
        advice = "free some space" if is_full else "check the permissions"
        raise InvalidInput(
            f"{target} cannot be written ({reason}); an existing file is unchanged",
            argument="path",
            remedy=f"{advice}, or choose another folder",
        ) from error
    finally:
        _discard(temporary)


@contextmanager
def filling(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder, and move its entries to `folder` if no error is raised.

    Entries of the same name are replaced; others in `folder` stay.
    """
    place = Path(os.path.realpath(folder))
    temporary = place.with_name(f".{place.name}.{token()}.partial")
    make_folder(temporary)
    try:
        yield temporary
        _sync_all(temporary)
        if not place.is_dir():
            make_folder(place)
        for item in sorted(temporary.iterdir()):
            _put_in_place(item, place / item.name)
        sync_folder(place)
    finally:
        remove_tree(temporary)


def refuse_occupied(target: Path, may_replace: Callable[[Path], bool] | None) -> Path:
    """Refuse a place that cannot be replaced, as `replacing` does; return where links lead to."""
    place = Path(os.path.realpath(target)) if target.is_symlink() else target
    if not place.parent.is_dir():
        raise InvalidInput(
            f"{target} cannot be written: there is no folder {place.parent}",
            argument="path",
            remedy=f"make the folder {place.parent} first",
        )
    if place.is_dir():
        if may_replace is None:
            raise InvalidInput(
                f"{target} is a folder",
                argument="path",
                remedy=f"name a file to write, e.g. {target / 'NAME'}",
            )
        if any(place.iterdir()) and not may_replace(place):
            raise InvalidInput(
                f"{target} is a folder with more than a label image in it, which would be lost",
                argument="path",
                remedy="choose another name, or remove it first",
            )
    elif place.exists() and (may_replace is not None or not place.is_file()):
        kind = "a file" if place.is_file() else "not a plain file"
        raise InvalidInput(f"{target} is {kind}", argument="path", remedy="choose another name")
    return place


def _renamed(text: str, temporary: Path, target: Path) -> str:
    """Return a message in terms of the file that the user named."""
    return text.replace(str(temporary), str(target)).replace(temporary.name, target.name)


def _put_in_place(temporary: Path, place: Path) -> None:
    """Rename a file or folder over another one.

    A folder cannot be replaced in one step: the old one is renamed first, and back on failure.
    """
    backup = place.with_name(f".{place.name}.{token()}.old")
    is_folder = place.is_dir()
    if is_folder:
        rename(place, backup)
    try:
        rename(temporary, place)
    except BaseException:
        if is_folder:
            rename(backup, place)
        raise
    if is_folder:
        with suppress(OSError):
            remove_tree(backup)


def _sync_all(path: Path) -> None:
    """Wait until a file, or every file in a folder, is on the disk itself."""
    if not path.is_dir():
        _sync_file(path)
        return
    for folder, _, names in os.walk(path):
        for name in names:
            _sync_file(Path(folder) / name)
        sync_folder(Path(folder))


def _sync_file(path: Path) -> None:
    descriptor = open_file(path, READ_WRITE)
    try:
        sync(descriptor)
    finally:
        close(descriptor)


def _discard(path: Path) -> None:
    """Remove a temporary file or folder, if it is still there."""
    if path.is_dir():
        remove_tree(path)
    elif os.path.lexists(path):
        with suppress(OSError):
            remove(path)
