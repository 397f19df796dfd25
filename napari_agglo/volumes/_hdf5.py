"""Read and write HDF5: plain datasets, gala stacks, ilastik exports, plant-seg volumes."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from napari_agglo.errors import InvalidInput
from napari_agglo.volumes._on_disk import Index, OnDisk, reading
from napari_agglo.volumes._open import (
    ALL,
    Picks,
    arrange,
    choose_key,
    origin_of_attributes,
    split_picks,
)
from napari_agglo.volumes._units import ELEMENT_UNIT, MICROMETRE
from napari_agglo.volumes._volume import Volume

DEFAULT_KEY = "stack"
_MARGIN = 1 << 16  # bytes that a new dataset adds to the tables of its group


def open_hdf5(path: Path, key: str | None) -> Volume:
    """Open one dataset: `key`, or the only one there is, or ``stack``."""
    with reading(path, "HDF5"), h5py.File(path, "r") as file:
        whole: tuple[str | None, Picks] = (key, {})
        inner, picks = whole if key and key in file else split_picks(key)
        # Only a key of the file itself: a link to another file is not followed.
        dataset_key = choose_key(path, _keys(file), inner, "dataset", DEFAULT_KEY)
        dataset = file[dataset_key]
        shape, dtype, chunks = dataset.shape, dataset.dtype, dataset.chunks
        if shape is None or dtype.hasobject:
            raise InvalidInput(
                f"{path}:{dataset_key} holds {dtype}, not an array of numbers",
                argument="source",
                remedy="name another dataset",
            )
        attributes = dict(dataset.attrs)
        axes, resolution = _axistags(attributes.get("axistags"))
        spacing = attributes.get("element_size_um", resolution)
        # Affinities have channels first, by convention, where the file does not name its axes.
        named = axes or ("c" * (picks.get("c") == ALL))
        if spacing is not None and len(np.atleast_1d(spacing)) == len(shape) - 1 and "c" in named:
            spacing = list(np.atleast_1d(spacing))
            spacing.insert(named.index("c"), 1.0)

        # `write_labels` marks numbers whose unit was not known; ilastik's resolution has none
        known = "element_size_um" in attributes and attributes.get(ELEMENT_UNIT) != "unknown"

    data = OnDisk(shape, dtype, _Read(path, dataset_key), chunks)
    name = f"{path.name}:{dataset_key}"
    picked = arrange(data, axes, spacing, picks, name, attributes)
    origin = picked.origin(origin_of_attributes(attributes, axes, picked.data))
    unit = MICROMETRE if known else None
    return Volume(picked.data, picked.spacing, name, attributes, unit, origin)


@dataclass(frozen=True)
class _Read:
    """Read a part of a dataset; the file is closed between reads."""

    path: Path
    key: str

    def __call__(self, index: Index) -> Any:
        with reading(self.path, "HDF5"), h5py.File(self.path, "r") as file:
            return file[self.key][index]


def _keys(file: Any) -> list[str]:
    keys: list[str] = []

    def collect(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            keys.append(name)

    file.visititems(collect)
    return keys


def _axistags(text: Any) -> tuple[str, list[float] | None]:
    """Return the axis letters that ilastik (vigra) writes, and the resolution if it is known."""
    try:
        tags = json.loads(text)["axes"]
        axes = "".join(str(tag["key"]) for tag in tags)
        resolution = [float(tag.get("resolution", 0)) for tag in tags]
    except (TypeError, ValueError, KeyError):
        return "", None
    space = [value for letter, value in zip(axes, resolution, strict=False) if letter in "xyz"]
    if not space or not all(value > 0 for value in space):
        return axes, None
    return axes, [value if value > 0 else 1.0 for value in resolution]


def datasets(path: Path) -> list[str]:
    """Return the keys of all datasets in a file; none if it does not exist or is not HDF5."""
    if not path.is_file() or not h5py.is_hdf5(path):
        return []
    with reading(path, "HDF5"), h5py.File(path, "r") as file:
        return _keys(file)


def file_image(
    key: str,
    array: Any,
    spacing: Any,
    target: Path,
    has_unit: bool = False,
    origin: tuple[float, ...] | None = None,
) -> bytes:
    """Return the bytes of a file with one dataset; `spacing` is in µm if it `has_unit`.

    The file is made in memory: when the disk is full, HDF5 cannot close its file, tries again at
    the end of the program, and crashes it.
    """
    options = {"compression": "gzip", "compression_opts": 4, "chunks": True} if array.size else {}
    with (
        _key_errors(target, key),
        h5py.File("labels", "w", driver="core", backing_store=False) as file,
    ):
        dataset = file.create_dataset(key, data=array, **options)
        if spacing is not None:
            dataset.attrs["element_size_um"] = spacing
            if not has_unit:
                dataset.attrs[ELEMENT_UNIT] = "unknown"
        if origin is not None:  # as `origin_of_attributes` reads it
            distances = np.array(spacing or (1.0,) * array.ndim)
            dataset.attrs["resolution"] = distances
            dataset.attrs["offset"] = distances * origin
        file.flush()
        return bytes(file.id.get_file_image())


def put_dataset(file: Path, key: str, image: bytes, target: Path) -> None:
    """Copy the dataset of a `file_image` into `file`, in place of one that has its key.

    The space is allocated first, by a plain write, so that a full disk raises where it does no
    harm. HDF5 releases unused space at the end.
    """
    if not h5py.is_hdf5(file):
        raise InvalidInput(
            f"{target} exists and is not an HDF5 file",
            argument="path",
            remedy="choose another name",
        )
    with file.open("ab") as handle:
        handle.write(bytes(len(image) + _MARGIN))
        handle.flush()
        os.fsync(handle.fileno())
    with (
        _key_errors(target, key),
        h5py.File(file, "r+") as destination,
        h5py.File(io.BytesIO(image), "r") as origin,
    ):
        if key in destination:
            if not isinstance(destination[key], h5py.Dataset):
                raise InvalidInput(
                    f"{target}:{key} is a group", argument="path", remedy="choose another key"
                )
            del destination[key]
        origin.copy(key, destination, name=key)


@contextmanager
def _key_errors(target: Path, key: str) -> Iterator[None]:
    """Raise the errors of HDF5 about a key as `InvalidInput`."""
    try:
        yield
    except InvalidInput:
        raise
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        reason = str(error).strip("'\"")
        raise InvalidInput(
            f"{target} cannot have a dataset {key!r} ({reason})",
            argument="path",
            remedy="choose another key",
        ) from error
