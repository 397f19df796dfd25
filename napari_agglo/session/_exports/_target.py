"""Where an export goes: a new name, or one that the user has said may be replaced."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from napari_agglo.errors import InvalidInput
from napari_agglo.volumes import replacing

_DATASET = re.compile(r"(?P<path>.+?\.(?:h5|hdf5)):.*", re.IGNORECASE | re.DOTALL)


def refuse_existing(path: str | PathLike[str], overwrite: bool) -> Path:
    """Return `path`; refuse it if something is there already, unless that may be replaced."""
    text = os.fspath(path)
    dataset = _DATASET.fullmatch(text)
    target = Path(dataset["path"] if dataset else text)
    if not overwrite and os.path.lexists(target):
        raise InvalidInput(
            f"{target} is there already; choose another name, or say overwrite=True."
        )
    return Path(text)


@contextmanager
def writing(
    path: str | PathLike[str],
    overwrite: bool,
    *,
    may_replace: Callable[[Path], bool] | None = None,
) -> Iterator[Path]:
    """Give a temporary path, and put what is written there in place of `path` once it is whole."""
    with replacing(refuse_existing(path, overwrite), may_replace=may_replace) as temporary:
        yield temporary
