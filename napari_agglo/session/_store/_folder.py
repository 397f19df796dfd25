"""Paths that a user gives: which of them are session folders, or lie in one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from napari_agglo.errors import InvalidInput
from napari_agglo.session._store._arrays import ARRAYS
from napari_agglo.session._store._examine import JOURNAL
from napari_agglo.session._store._manifest import FORMAT, MANIFEST


def check_path(path: Any, what: str, argument: str = "path") -> str:
    """Return a path as text; refuse what is none, saying `what` it should be that of.

    Examples
    --------
    >>> check_path(Path("a.agglo"), "a session folder")
    'a.agglo'
    """
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidInput(f"`{argument}` must be that of {what}, got {path!r}; pass its name.")
    return text


def session_folder(path: Any) -> Path:
    """Return the folder that a path leads to; refuse what is none."""
    text = check_path(path, "a session folder")
    folder = Path(os.path.realpath(text))
    if not folder.exists():
        raise InvalidInput(f"There is no session {text}; check the path, or create it first.")
    if not folder.is_dir():
        raise InvalidInput(f"{text} is a file, not a session; choose a NAME.agglo folder.")
    return folder


def holding_session(path: Path) -> Path | None:
    """Return the session folder that a path is, lies in, or leads into by a link; None if none."""
    real = Path(os.path.realpath(path))
    named = Path(os.path.realpath(path.parent)) / path.name
    for place in (named, real):
        for folder in (place, *place.parents):
            if _is_session(folder):
                return folder
    return None


def _is_session(folder: Path) -> bool:
    """Whether a folder says that it is a session, or is the rest of one."""
    try:
        with (folder / MANIFEST).open("rb") as file:
            if FORMAT.encode() in file.read(1000):
                return True
    except OSError:
        pass
    return (folder / JOURNAL).exists() and (folder / ARRAYS).is_dir()
