"""From a path to a Volume, whatever the format; nothing is read before it must be."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from napari_agglo.errors import InvalidInput
from napari_agglo.volumes._lazy import reading
from napari_agglo.volumes._volume import Volume

_SUFFIXES = ".tif, .tiff, .h5, .hdf5, .zarr, .npy, .npz, .png, or a folder of images"


def open_volume(source: str | os.PathLike[str]) -> Volume:
    """Open an image file, lazily where its format allows.

    Parameters
    ----------
    source
        PATH or PATH:KEY. TIFF, HDF5 (KEY is the dataset), Zarr and OME-Zarr (KEY is the array),
        npy, npz (KEY is the member), PNG, a folder of PNG or TIFF planes, or a pattern such as
        ``"slices/*.png"``. KEY may also pick an index along a named or numbered axis: ``:c=1``,
        or ``:exported_data,c=1``.

    Returns
    -------
    Volume
        With the spacing that the file states, in µm if it states a unit.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from pathlib import Path
    >>> from napari_agglo.volumes import open_volume, write_labels
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_labels(Path(folder) / "cells.tif", np.eye(3, dtype=np.uint16))
    ...     open_volume(path).load()
    array([[1, 0, 0],
           [0, 1, 0],
           [0, 0, 1]], dtype=uint16)
    """
    path, key = split_source(source)
    with reading(path, "an image"):
        volume = _opener(path)(path, key)
    if volume.dtype.kind not in "biuf":
        raise InvalidInput(f"{source} holds {volume.dtype}, not real numbers; save it as numbers.")
    return volume


def split_source(source: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """Split PATH:KEY at the colon after which the rest is no path; drive letters are left alone."""
    text = os.fspath(source)
    if "://" in text:
        raise InvalidInput(f"{text} is on the network; copy it to this computer and open that.")
    if not text:
        raise InvalidInput("`source` must be a path, not an empty text.")
    if "\0" in text:
        raise InvalidInput(f"`source` must be a path, not {text!r}.")
    if os.path.exists(text):
        return Path(text), None
    drive = 2 if re.match(r"[A-Za-z]:[\\/]", text) else 0
    colons = [drive + found.start() for found in re.finditer(":", text[drive:])]
    for colon in colons:
        if os.path.exists(text[:colon]):
            return Path(text[:colon]), text[colon + 1 :] or None
    if colons and _is_pattern(text[: colons[0]]):
        return Path(text[: colons[0]]), text[colons[0] + 1 :] or None
    if _is_pattern(text):
        return Path(text), None
    missing = text[: colons[0]] if colons else text
    raise InvalidInput(f"{missing} does not exist; check the path (the folder is {os.getcwd()}).")


def _is_pattern(text: str) -> bool:
    return any(mark in text for mark in "*?[")


def _opener(path: Path) -> Callable[[Path, str | None], Volume]:
    """Return the reader for a path; readers are imported late, for a quick start."""
    suffix = path.suffix.lower()
    from napari_agglo.volumes import _images

    if path.is_dir():
        from napari_agglo.volumes import _zarr

        return _zarr.open_zarr if _zarr.is_zarr(path) or suffix == ".zarr" else _images.open_stack
    if not path.exists():
        return _images.open_stack
    if suffix in (".tif", ".tiff"):
        from napari_agglo.volumes._tiff import open_tiff

        return open_tiff
    if suffix in (".h5", ".hdf5", ".hdf", ".ilp"):
        from napari_agglo.volumes._hdf5 import open_hdf5

        return open_hdf5
    if suffix in (".npy", ".npz"):
        from napari_agglo.volumes import _numpy

        return _numpy.open_npy if suffix == ".npy" else _numpy.open_npz
    if suffix in _images.PICTURES:
        return _images.open_picture
    raise InvalidInput(f"{path} is of a kind that is not read here; convert it to {_SUFFIXES}.")
