"""Read HDF5: plain datasets, gala stacks, ilastik exports, plant-seg volumes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from napari_agglo.errors import InvalidInput
from napari_agglo.volumes._axes import arrange, split_picks
from napari_agglo.volumes._lazy import Index, OnDisk, reading
from napari_agglo.volumes._volume import Volume

DEFAULT_KEY = "stack"


def open_hdf5(path: Path, key: str | None) -> Volume:
    """Open one dataset: `key`, or the only one there is, or ``stack``."""
    with reading(path, "HDF5"), h5py.File(path, "r") as file:
        inner, picks = (key, {}) if key and key in file else split_picks(key)
        dataset_key = _dataset_key(file, inner, path)
        dataset = file[dataset_key]
        shape, dtype, chunks = dataset.shape, dataset.dtype, dataset.chunks
        if shape is None or dtype.hasobject:
            raise InvalidInput(f"{path}:{dataset_key} holds {dtype}, not an array of numbers.")
        axes, resolution = _axistags(dataset.attrs.get("axistags"))
        spacing = dataset.attrs.get("element_size_um", resolution)
        if spacing is not None and len(np.atleast_1d(spacing)) == len(shape) - 1 and "c" in axes:
            spacing = list(np.atleast_1d(spacing))
            spacing.insert(axes.index("c"), 1.0)

    def read(index: Index) -> Any:
        with reading(path, "HDF5"), h5py.File(path, "r") as again:
            return again[dataset_key][index]

    data = OnDisk(shape, dtype, read, chunks)
    name = f"{path.name}:{dataset_key}"
    picked, kept = arrange(data, axes, spacing, picks, name)
    return Volume(picked, kept, name)


def _dataset_key(file: Any, key: str | None, path: Path) -> str:
    keys: list[str] = []

    def note(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            keys.append(name)

    file.visititems(note)
    listed = ", ".join(keys) or "none"
    if key is not None:
        wanted = key.strip("/")
        # only what the file itself holds: a link to another file is not followed
        if wanted in keys:
            return wanted
        raise InvalidInput(f"{path} has no dataset {key!r}; it holds: {listed}.")
    if len(keys) == 1:
        return keys[0]
    if DEFAULT_KEY in keys:
        return DEFAULT_KEY
    raise InvalidInput(f"{path} holds {len(keys)} datasets; name one: {path}:KEY, of {listed}.")


def _axistags(written: Any) -> tuple[str, list[float] | None]:
    """Return the axis letters that ilastik (vigra) writes, and the resolution if it is known."""
    try:
        tags = json.loads(written)["axes"]
        axes = "".join(str(tag["key"]) for tag in tags)
        resolution = [float(tag.get("resolution", 0)) for tag in tags]
    except (TypeError, ValueError, KeyError):
        return "", None
    space = [value for letter, value in zip(axes, resolution, strict=False) if letter in "xyz"]
    if not space or not all(value > 0 for value in space):
        return axes, None
    return axes, [value if value > 0 else 1.0 for value in resolution]
