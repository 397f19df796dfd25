"""Where the superpixels of a session come from: its own copy, the file it names, or the user."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput
from napari_agglo.session._store._arrays import ARRAYS, read_array
from napari_agglo.session._store._digest import Fingerprint, digest_all
from napari_agglo.session._store._errors import SessionDamaged
from napari_agglo.session._store._graph import labels_from
from napari_agglo.session._store._manifest import Manifest
from napari_agglo.volumes import DenseLabels, dense_labels, open_volume

COPY_BELOW = 10**9  # bytes of the image in memory


def read_superpixels(
    folder: Path, manifest: Manifest, progress: ProgressCallback | None = None
) -> DenseLabels:
    """Return the superpixels that a session was made on, from where its manifest says."""
    dtype = manifest.graph["labels_dtype"]
    if manifest.source is None:
        notes = manifest.arrays
        if not {"superpixels", "ids"} <= notes.keys():
            raise SessionDamaged(f"{folder} neither holds its superpixels nor says where they are.")
        image, ids = (
            read_array(folder / ARRAYS, name, notes[name]) for name in ("superpixels", "ids")
        )
        labels = labels_from(image, ids, dtype)
        checksum = digest_all(notes[name].checksum for name in ("superpixels", "ids"))
        if Fingerprint(image.shape, labels.n_labels, checksum) != manifest.superpixels:
            raise SessionDamaged(f"The superpixels in {folder} are not those of its manifest.")
        return labels
    where = os.path.normpath(folder / manifest.source)
    try:
        return given_superpixels(where, manifest, progress)
    except InvalidInput as error:
        raise InvalidInput(
            f"The superpixels of {folder} are not at {where}, where they were: {error} Say where "
            "they are now: superpixels=PATH."
        ) from error


def given_superpixels(
    superpixels: Any, manifest: Manifest, progress: ProgressCallback | None = None
) -> DenseLabels:
    """Return what the user says are the superpixels, an array or a path, if they are indeed."""
    if isinstance(superpixels, DenseLabels):
        labels = superpixels
    else:
        is_path = isinstance(superpixels, (str, os.PathLike))
        source = open_volume(superpixels) if is_path else superpixels
        labels = dense_labels(source, "superpixels", progress=progress)
    found = Fingerprint.of(labels)
    if found != manifest.superpixels:
        raise InvalidInput(
            f"`superpixels` are not those that the session was made on: these have {found}, the "
            f"session's had {manifest.superpixels}. Pass the same label image."
        )
    return DenseLabels(labels.image, labels.ids, np.dtype(manifest.graph["labels_dtype"]))


def relative_to(folder: Path, source: Any) -> str:
    """Return PATH or PATH:KEY as seen from the folder; absolute where there is no way."""
    text = os.path.abspath(os.fspath(source))
    try:
        return Path(os.path.relpath(text, folder)).as_posix()
    except ValueError:  # another drive
        return Path(text).as_posix()
