"""Read .npy (memory-mapped) and .npz; nothing is ever unpickled."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy_format

from napari_agglo.errors import InvalidInput
from napari_agglo.volumes._axes import arrange, split_picks, usable_spacing
from napari_agglo.volumes._lazy import Index, OnDisk, reading
from napari_agglo.volumes._volume import Volume

SPACING_MEMBER = "spacing"


def open_npy(path: Path, key: str | None) -> Volume:
    """Map an .npy file into memory, read-only."""
    inner, picks = split_picks(key)
    if inner is not None:
        raise InvalidInput(
            f"{path} holds one array, so it has no key {inner!r}; drop the :{inner}."
        )
    with reading(path, "npy"), path.open("rb") as file:
        shape, _, dtype = _header(file, path)
        stored = path.stat().st_size - file.tell()
        if math.prod(shape) * dtype.itemsize > stored:
            raise ValueError(
                f"it should hold {math.prod(shape) * dtype.itemsize} bytes, not {stored}"
            )
        if math.prod(shape) == 0:
            data: Any = np.empty(shape, dtype)  # nothing to map
        else:
            data = np.load(path, mmap_mode="r", allow_pickle=False)
    picked, _ = arrange(data, "", None, picks, path.name)
    return Volume(picked, None, path.name)


def open_npz(path: Path, key: str | None) -> Volume:
    """Open one member of an .npz; it is read, whole, when its voxels are asked for."""
    with reading(path, "npz"), zipfile.ZipFile(path) as archive:
        members = [name.removesuffix(".npy") for name in archive.namelist()]
        inner, picks = (key, {}) if key in members else split_picks(key)
        member = _member(members, inner, path)
        with archive.open(f"{member}.npy") as file:
            shape, _, dtype = _header(file, path)
            declared = math.prod(shape) * dtype.itemsize + file.tell()
        if declared != archive.getinfo(f"{member}.npy").file_size:
            raise ValueError(f"{member} has not the size that it declares")
        spacing = _spacing(archive, members, len(shape))

    def read(index: Index) -> Any:
        with reading(path, "npz"), zipfile.ZipFile(path) as again, again.open(f"{member}.npy") as f:
            return npy_format.read_array(f, allow_pickle=False)[index]

    name = f"{path.name}:{member}"
    # one chunk: a slab-wise reader would otherwise decompress the whole for each slab
    data = OnDisk(shape, dtype, read, shape)
    picked, kept = arrange(data, "", spacing, picks, name)
    return Volume(picked, kept, name)


def _header(file: Any, path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = npy_format.read_magic(file)
    readers = {
        (1, 0): npy_format.read_array_header_1_0,
        (2, 0): npy_format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"version {version} holds no plain numbers")
    shape, fortran, dtype = readers[version](file)
    if dtype.hasobject:
        raise InvalidInput(
            f"{path} holds Python objects, which can run code when read; save it as numbers."
        )
    if any(n < 0 for n in shape):
        raise ValueError(f"shape {shape}")
    return shape, fortran, dtype


def _member(members: list[str], key: str | None, path: Path) -> str:
    arrays = [name for name in members if name != SPACING_MEMBER] or members
    if key is not None and key in members:
        return key
    listed = ", ".join(members) or "none"
    if key is not None:
        raise InvalidInput(f"{path} has no member {key!r}; it holds: {listed}.")
    if len(arrays) == 1:
        return arrays[0]
    raise InvalidInput(f"{path} holds {len(arrays)} arrays; name one: {path}:KEY, of {listed}.")


def _spacing(archive: zipfile.ZipFile, members: list[str], ndim: int) -> tuple[float, ...] | None:
    if SPACING_MEMBER not in members:
        return None
    with archive.open(f"{SPACING_MEMBER}.npy") as file:
        if archive.getinfo(f"{SPACING_MEMBER}.npy").file_size > 4096:
            return None
        stored = npy_format.read_array(file, allow_pickle=False)
    return usable_spacing(stored.reshape(-1).tolist(), ndim)
