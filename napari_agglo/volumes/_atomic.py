"""Write whole or not at all: a temporary name in the same folder, fsync, then a rename."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from napari_agglo.errors import InvalidInput


@contextmanager
def replacing(target: Path, *, may_replace: Callable[[Path], bool] | None = None) -> Iterator[Path]:
    """Give a temporary path to write to, and put what is written there in place of `target`.

    If anything fails, the temporary is removed and what was at `target` is as it was. `OSError`
    (disk full, no permission) comes out as `InvalidInput`.

    Parameters
    ----------
    target
        A file. A folder is refused, whatever it holds; so is a device. A link stays, and what it
        leads to is replaced.
    may_replace
        For formats that are folders: whether the existing folder may go. An empty one may.

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
    place = Path(os.path.realpath(target)) if target.is_symlink() else target
    _refuse_occupied(place, target, may_replace)
    token = f"{os.getpid()}-{secrets.token_hex(4)}"
    temporary = place.with_name(f".{place.name}.{token}.partial")
    try:
        yield temporary
        _sync(temporary)
        _put_in_place(temporary, place, place.with_name(f".{place.name}.{token}.old"))
    except InvalidInput as error:
        if temporary.name not in str(error):
            raise
        problem = _renamed(error.problem, temporary, target)
        raise InvalidInput(problem, argument=error.argument, remedy=error.remedy) from error
    except OSError as error:
        reason = _renamed(error.strerror or str(error), temporary, target)
        raise InvalidInput(
            f"{target} cannot be written ({reason}); what was there is untouched",
            argument="path",
            remedy=_remedy(error),
        ) from error
    finally:
        _remove(temporary)


def _refuse_occupied(place: Path, target: Path, may_replace: Callable[[Path], bool] | None) -> None:
    if not place.parent.is_dir():
        raise InvalidInput(
            f"{target} cannot be written",
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
                f"{target} is a folder that holds other things than a label image, and it "
                "would be lost",
                argument="path",
                remedy="choose another name, or remove it first",
            )
    elif place.exists() and (may_replace is not None or not place.is_file()):
        kind = "a file" if place.is_file() else "not a plain file"
        raise InvalidInput(f"{target} is {kind}", argument="path", remedy="choose another name")


def _renamed(said: str, temporary: Path, target: Path) -> str:
    """Return a message in terms of the file that the user named."""
    return said.replace(str(temporary), str(target)).replace(temporary.name, target.name)


def _remedy(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", None)):
        return "free some space, or choose another folder"
    return "check the permissions, or choose another folder"


def _put_in_place(temporary: Path, target: Path, aside: Path) -> None:
    if not temporary.is_dir():
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
