"""Write whole or not at all: a temporary name in the same folder, fsync, then a rename."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from napari_agglo.errors import InvalidInput


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Give a temporary path to write a file or a folder to, and put it in place of `target`.

    If anything fails, the temporary is removed and what was at `target` is as it was. `OSError`
    (disk full, no permission) comes out as `InvalidInput`.
    """
    if not target.parent.is_dir():
        raise InvalidInput(f"{target} cannot be written: make the folder {target.parent} first.")
    token = f"{os.getpid()}-{secrets.token_hex(4)}"
    temporary = target.with_name(f".{target.name}.{token}.partial")
    try:
        yield temporary
        _sync(temporary)
        _put_in_place(temporary, target, target.with_name(f".{target.name}.{token}.old"))
    except OSError as error:
        said = error.strerror or str(error)
        raise InvalidInput(
            f"{target} cannot be written ({said}); what was there is untouched: free some space, "
            "or choose another folder."
        ) from error
    finally:
        _remove(temporary)


def _put_in_place(temporary: Path, target: Path, aside: Path) -> None:
    if not (temporary.is_dir() or target.is_dir()):
        os.replace(temporary, target)
    else:  # a folder cannot be replaced in one step: the old one steps aside, and back on failure
        stepped_aside = target.exists()
        if stepped_aside:
            os.rename(target, aside)
        try:
            os.rename(temporary, target)
        except BaseException:
            if stepped_aside:
                os.rename(aside, target)
            raise
        _remove(aside)
    _sync_folder(target.parent)


def _sync(written: Path) -> None:
    if not written.is_dir():
        _sync_file(written)
        return
    for folder, _, files in os.walk(written):
        for name in files:
            _sync_file(Path(folder) / name)
        _sync_folder(Path(folder))


def _sync_file(path: Path) -> None:
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_folder(path: Path) -> None:
    """Make a rename last; Windows neither needs nor allows it."""
    if os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
