"""The segmentation as a label image."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph
from napari_agglo.session._segments import check_lut
from napari_agglo.session._store import check_path, holding_session
from napari_agglo.volumes import replacing, write_labels
from napari_agglo.volumes._hdf5 import datasets

# Where an export goes: a new name, or one that the user has said may be replaced; no session.


_DATASET = re.compile(r"(?P<path>.+?\.(?:h5|hdf5)):(?P<key>.*)", re.IGNORECASE | re.DOTALL)


def check_target(
    path: str | PathLike[str], overwrite: bool, argument: str = "path", *, with_key: bool = False
) -> Path:
    """Return `path` if something may be written there.

    What is there already is refused, unless it may be replaced; `with_key`, the path may name a
    dataset of an HDF5 file, whose others stay. What lies in a session folder is refused always: it
    holds all that a person did.
    """
    target, key = _parted(path, argument, with_key)
    session = holding_session(target)
    if session is not None:
        raise InvalidInput(
            f"`{argument}` must not be in a session folder, got {target}, and {session} is one, "
            "whose edits might be lost; choose another folder."
        )
    if not overwrite and os.path.lexists(target) and not (key and _is_new(target, key)):
        there = f"{target}:{key}" if key and datasets(target) else f"{target}"
        raise InvalidInput(f"{there} is there already; choose another name, or say overwrite=True.")
    return Path(os.fspath(path))


def refuse_overlap(path: str | PathLike[str], superpixels: str | PathLike[str]) -> None:
    """Refuse two targets of which one would be written over the other."""
    layer, _ = _parted(superpixels, "superpixels", True)
    ours, theirs = (
        Path(os.path.normcase(os.path.realpath(one))) for one in (os.fspath(path), layer)
    )
    if ours == theirs or ours in theirs.parents or theirs in ours.parents:
        raise InvalidInput(
            f"`superpixels` must be another place than `path`, got {os.fspath(superpixels)} and "
            f"{os.fspath(path)}, one of which would be lost; choose a name beside it."
        )


@contextmanager
def writing(
    path: str | PathLike[str],
    overwrite: bool,
    *,
    may_replace: Callable[[Path], bool] | None = None,
) -> Iterator[Path]:
    """Give a temporary path, and put what is written there in place of `path` once it is whole."""
    with replacing(check_target(path, overwrite), may_replace=may_replace) as temporary:
        yield temporary


def _parted(path: str | PathLike[str], argument: str, with_key: bool) -> tuple[Path, str]:
    """Return the file, and the key of a dataset in it, if one is named."""
    text = check_path(path, "a file or folder to write", argument)
    found = _DATASET.fullmatch(text) if with_key else None
    if found is None:
        return Path(text), ""
    parts = [part for part in found["key"].split("/") if part not in ("", ".")]
    return Path(found["path"]), "/".join(parts)


def _is_new(target: Path, key: str) -> bool:
    """Whether an HDF5 file lacks a dataset, so that nothing is lost by adding it."""
    there = datasets(target)
    return bool(there) and key not in there


def export_labels(
    path: str | PathLike[str], graph: RegionGraph, lut: ArrayLike, *, overwrite: bool = False
) -> Path:
    """Write the label image, in the format that the suffix names, with the graph's spacing.

    Parameters
    ----------
    path
        As for `write_labels`.
    graph : RegionGraph
        The superpixels.
    lut : array of int, shape (n + 1,)
        The id of the segment of each superpixel, as it shall stand in the image.
    overwrite : bool
        Whether what is at `path` may be replaced.

    Returns
    -------
    Path
        The file or folder written. Its type is the user's own if that holds every id.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from pathlib import Path
    >>> from napari_agglo.graph import region_graph
    >>> from napari_agglo.volumes import open_volume
    >>> graph = region_graph(np.array([[1, 2, 3]], np.uint8), np.zeros((1, 3)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = export_labels(Path(folder) / "a.tif", graph, [0, 1, 1, 3])
    ...     open_volume(path).load()
    array([[1, 1, 3]], dtype=uint8)
    """
    table = check_lut(graph, lut)
    target = check_target(path, overwrite, with_key=True)
    highest = int(table.max())
    own = graph.superpixels.dtype.newbyteorder("=")
    dtype = own if highest <= int(np.iinfo(own).max) else np.min_scalar_type(highest)
    return write_labels(target, table.astype(dtype)[graph.superpixels.image], spacing=graph.spacing)
