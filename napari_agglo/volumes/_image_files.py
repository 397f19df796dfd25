"""Read .npy and .npz files, single pictures, and stacks of pictures (a folder, ``slices/*.png``).

Nothing is ever unpickled. In its own file as each kind of file has one: `_tiff.py`, `_hdf5.py`.
"""

from __future__ import annotations

import glob
import math
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy_format

from napari_agglo.errors import InvalidInput
from napari_agglo.volumes._on_disk import Index, OnDisk, reading
from napari_agglo.volumes._open import (
    Picks,
    arrange,
    choose_key,
    only_picks,
    split_picks,
    usable_spacing,
)
from napari_agglo.volumes._units import MICROMETRE, convert_all, unit_name
from napari_agglo.volumes._volume import Volume

SPACING_MEMBER, UNIT_MEMBER = "spacing", "unit"


def open_npy(path: Path, key: str | None) -> Volume:
    """Map an .npy file into memory, read-only."""
    picks = only_picks(path, key, "holds one array")
    with reading(path, "npy"), path.open("rb") as file:
        shape, dtype = _header(file, path)
        declared = math.prod(shape) * dtype.itemsize
        stored = path.stat().st_size - file.tell()
        if declared > stored:
            raise ValueError(f"it should hold {declared} bytes, not {stored}")
        # an empty array cannot be mapped
        data = np.load(path, mmap_mode="r" if declared else None, allow_pickle=False)
    picked = arrange(data, "", None, picks, path.name)
    return Volume(picked.data, None, path.name, origin=picked.origin())


def open_npz(path: Path, key: str | None) -> Volume:
    """Open one member of an .npz; it is read, whole, when its voxels are asked for."""
    with reading(path, "npz"), zipfile.ZipFile(path) as archive:
        members = [name.removesuffix(".npy") for name in archive.namelist()]
        whole: tuple[str | None, Picks] = (key, {})
        inner, picks = whole if key in members else split_picks(key)
        arrays = [n for n in members if n not in (SPACING_MEMBER, UNIT_MEMBER)] or members
        member = choose_key(path, members if inner else arrays, inner, "array", "")
        with archive.open(f"{member}.npy") as file:
            shape, dtype = _header(file, path)
            declared = math.prod(shape) * dtype.itemsize + file.tell()
        if declared != archive.getinfo(f"{member}.npy").file_size:
            raise ValueError(f"{member} does not have the size that it declares")
        spacing, unit = _spacing(archive, members, len(shape))

    name = f"{path.name}:{member}"
    # one chunk: a slab-wise reader would otherwise decompress the whole for each slab
    data = OnDisk(shape, dtype, _ReadMember(path, member), shape)
    picked = arrange(data, "", spacing, picks, name)
    return Volume(picked.data, picked.spacing, name, unit=unit, origin=picked.origin())


@dataclass(frozen=True)
class _ReadMember:
    """Read a part of a member of an archive, which is decompressed whole."""

    path: Path
    member: str

    def __call__(self, index: Index) -> Any:
        with (
            reading(self.path, "npz"),
            zipfile.ZipFile(self.path) as archive,
            archive.open(f"{self.member}.npy") as file,
        ):
            return npy_format.read_array(file, allow_pickle=False)[index]


def npy_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, Fortran order or not, and type of an .npy file; nothing more is read."""
    version = npy_format.read_magic(file)
    readers = {
        (1, 0): npy_format.read_array_header_1_0,
        (2, 0): npy_format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"version {version} is not for plain numbers")
    return readers[version](file)


def _header(file: Any, path: Path) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and type of an .npy file; refuse Python objects."""
    shape, _, dtype = npy_header(file)
    if dtype.hasobject:
        raise InvalidInput(
            f"{path} holds Python objects, which can run code when read",
            argument="source",
            remedy="save it as numbers",
        )
    if any(n < 0 for n in shape):
        raise ValueError(f"shape {shape}")
    return shape, dtype


def _spacing(
    archive: zipfile.ZipFile, members: list[str], ndim: int
) -> tuple[tuple[float, ...] | None, str | None]:
    """Return the spacing, in µm if a unit is stated, and that unit."""
    stored = {
        name: _small_array(archive, name)
        for name in (SPACING_MEMBER, UNIT_MEMBER)
        if name in members
    }
    numbers = stored.get(SPACING_MEMBER)
    if numbers is None:
        return None, None
    text = stored.get(UNIT_MEMBER)
    unit = unit_name(text) if text is not None and text.dtype.kind == "U" else None
    spacing = usable_spacing(numbers.reshape(-1).tolist(), ndim)
    if unit is None or spacing is None:
        return spacing, None
    return convert_all(spacing, unit, MICROMETRE), MICROMETRE


def _small_array(archive: zipfile.ZipFile, member: str) -> np.ndarray[Any, Any] | None:
    if archive.getinfo(f"{member}.npy").file_size > 4096:
        return None
    with archive.open(f"{member}.npy") as file:
        return np.asarray(npy_format.read_array(file, allow_pickle=False))


PICTURES = (".png", ".jpg", ".jpeg", ".bmp")
_PLANES = (*PICTURES, ".tif", ".tiff")


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Sort key in which "img2" comes before "img10".

    >>> sorted(["img10", "img2", "img1"], key=natural_key)
    ['img1', 'img2', 'img10']
    """
    parts = re.findall(r"\d+|\D+", name)
    return [(0, int(part), part) if part.isdecimal() else (1, 0, part.lower()) for part in parts]


def open_picture(path: Path, key: str | None) -> Volume:
    """Read one picture."""
    picks = only_picks(path, key, "holds one image")
    picked = arrange(*_read_plane(path), None, picks, str(path))
    return Volume(picked.data, None, path.name, origin=picked.origin())


def open_stack(source: Path, key: str | None) -> Volume:
    """Open a folder of pictures, or those that match a pattern, as planes along axis 0."""
    picks = only_picks(source, key, "is a stack of images")
    paths = source.iterdir() if source.is_dir() else map(Path, glob.glob(str(source)))
    files = [p for p in paths if p.suffix.lower() in _PLANES and not p.name.startswith(".")]
    if not files:
        raise InvalidInput(
            f"{source} holds no images ({', '.join(_PLANES)})",
            argument="source",
            remedy="name a file, or a folder of planes",
        )
    suffixes = {file.suffix.lower() for file in files}
    if len(suffixes) > 1:
        raise InvalidInput(
            f"{source} holds images of several kinds ({', '.join(sorted(suffixes))})",
            argument="source",
            remedy=f"name one kind by a pattern, e.g. {source / ('*' + min(suffixes))}",
        )
    files.sort(key=lambda file: natural_key(file.name))
    first, axes = _read_plane(files[0])

    # a plane of the right shape and type without memory of its own
    like = np.broadcast_to(np.zeros((), first.dtype), first.shape)
    _checked_plane(files[-1], like)
    read = _ReadPlanes(tuple(files), first.shape, first.dtype)
    data = OnDisk((len(files), *first.shape), first.dtype, read, (1, *first.shape))
    # a plane whose own axes are not named leaves them all without names
    axes = ("z" if "z" not in axes.lower() else "n") + axes if len(axes) == first.ndim else ""
    picked = arrange(data, axes, None, picks, str(source))
    return Volume(picked.data, None, source.name, origin=picked.origin())


@dataclass(frozen=True, eq=False)
class _ReadPlanes:
    """Read a part of a stack of planes, all of one shape and type."""

    files: tuple[Path, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __call__(self, index: Index) -> Any:
        like = np.broadcast_to(np.zeros((), self.dtype), self.shape)
        chosen, within = index[0], index[1:]
        if isinstance(chosen, int):
            return _checked_plane(self.files[chosen], like)[within]
        planes = self.files[chosen]
        out = np.empty((len(planes), *like[within].shape), self.dtype)
        for number, file in enumerate(planes):
            out[number] = _checked_plane(file, like)[within]
        return out


def _read_plane(file: Path) -> tuple[np.ndarray[Any, Any], str]:
    """Return a picture and the letters of its axes, "c" for its colours."""
    if file.suffix.lower() in PICTURES:
        import imageio.v3 as iio

        with reading(file, file.suffix[1:].upper()):
            picture = np.asarray(iio.imread(file, plugin="pillow"))
        return picture, {2: "yx", 3: "yxc"}.get(picture.ndim, "")
    from napari_agglo.volumes._tiff import open_series

    series = open_series(file)
    return np.asarray(series.data[...]), series.axes


def _checked_plane(file: Path, first: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    plane, _ = _read_plane(file)
    if plane.shape != first.shape or plane.dtype != first.dtype:
        raise InvalidInput(
            f"{file} (shape {plane.shape}, {plane.dtype}) differs from the first plane of its "
            f"stack (shape {first.shape}, {first.dtype})",
            argument="source",
            remedy=("remove it from the stack", "convert it to the same shape and type"),
        )
    return plane
