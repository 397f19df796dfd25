"""Write label images, whole or not at all, such that `open_volume` gives back the same."""

from __future__ import annotations

import math
import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from napari_agglo._progress import ProgressCallback, check_progress
from napari_agglo.errors import InvalidInput, check_choice, is_number
from napari_agglo.volumes._checks import check_labels, check_spacing
from napari_agglo.volumes._label_pyramid import create_levels, write_levels
from napari_agglo.volumes._labels_group import (
    SOURCE,
    check_labels_place,
    list_label,
    make_labels_folder,
    plan_in_group,
    split_labels_key,
)
from napari_agglo.volumes._labels_on_disk import is_on_disk
from napari_agglo.volumes._named_axes import voxel_size_of
from napari_agglo.volumes._ome_zarr_metadata import DEFAULT_VERSION, METHODS, plan_image
from napari_agglo.volumes._precomputed import SUFFIX, is_own_segmentation, write_precomputed
from napari_agglo.volumes._replace_file import refuse_occupied, replacing
from napari_agglo.volumes._store_location import is_url
from napari_agglo.volumes._units import NO_UNIT, VoxelSize, unit_symbol
from napari_agglo.volumes._volume import Volume, available_memory
from napari_agglo.volumes._zarr import is_own_labels

_KEYED = re.compile(r"(?P<path>.+?\.(?:h5|hdf5|zarr))(?::(?P<key>.*))?", re.IGNORECASE | re.DOTALL)
_SUFFIXES = ".tif, .tiff, .ome.zarr, .zarr, .precomputed, .h5, .hdf5, .npz, .npy or .png"


def write_labels(
    path: str | os.PathLike[str],
    labels: object,
    *,
    spacing: Sequence[float] | None = None,
    unit: str | None = None,
    origin: Sequence[float] | None = None,
    version: str | None = None,
    levels: int | None = None,
    downsample: str = "mode",
    chunks: Sequence[int] | None = None,
    shards: Sequence[int] | None = None,
    progress: ProgressCallback | None = None,
) -> Path:
    """Write a label image in the format that the suffix of `path` names.

    Parameters
    ----------
    path
        ``.tif``/``.tiff`` (compressed), ``.ome.zarr``/``.zarr`` (OME-Zarr with a pyramid),
        ``.precomputed`` (a segmentation for Neuroglancer, of type uint64, up to 3 axes),
        ``.h5``/``.hdf5`` (dataset ``stack``; ``file.h5:KEY`` names another and keeps the others of
        the file), ``.npz``, ``.npy``, or ``.png`` (2-D, ids up to 65535). An existing file is
        replaced once the new one is complete; an existing folder only if it is a label image of
        the same format with nothing else in it. ``IMAGE.ome.zarr:labels/NAME`` adds the labels to
        an image that exists, with its version, axes and levels.
    labels
        Label image of any integer type, which is kept (PNG: the values are). Labels on disk
        (`DiskLabels`, `MappedLabels`) are read block by block for OME-Zarr and precomputed volumes.
    spacing
        Distance between voxels along each axis; by default that of a `Volume`. Kept by all formats
        but ``.npy`` and ``.png``, which have no place for it.
    unit
        Unit of `spacing`, such as ``"nm"`` or ``"µm"``. The spacing of a `Volume` is converted to
        it from its own unit, which is the default. Without one no unit is stated.
    origin
        Place of the first voxel in the volume that this is a crop of, in voxels along each axis;
        by default that of a `Volume`. Kept by OME-Zarr, HDF5, and, in whole voxels, precomputed
        volumes.
    version
        Version of OME-Zarr: ``"0.5"``, the default, or ``"0.4"``.
    levels
        Number of levels of an OME-Zarr; by default enough that the last has 2**18 voxels or fewer.
    downsample
        How coarser levels are made: ``"mode"``, the commonest id, or ``"nearest"``; see
        `downsample_labels`.
    chunks, shards
        Shape of a chunk, and of a shard, of an OME-Zarr; by default there are no shards.
    progress
        Called with a `Progress` while the levels of an OME-Zarr are written.

    Returns
    -------
    Path
        The file or folder written.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from pathlib import Path
    >>> from napari_agglo.volumes import open_volume, write_labels
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_labels(
    ...         Path(folder) / "a.ome.zarr", np.array([[1, 2**60]]), spacing=(40, 4), unit="nm"
    ...     )
    ...     open_volume(path).spacing  # in µm, as all files that state a unit
    (0.04, 0.004)
    """
    if not isinstance(path, str | os.PathLike):
        raise InvalidInput(
            f"`path` must be a path, not a {type(path).__name__}"
            + (", but `labels` is a path" * isinstance(labels, str | os.PathLike)),
            argument="path",
            remedy="call write_labels(path, labels)",
        )
    check_choice("downsample", downsample, METHODS)
    check_progress(progress)
    _refuse_url(path)
    target, key = split_target(path)
    zarr = Pyramid(version, levels, downsample, chunks, shards, progress)
    writer = _writer(target)
    if writer not in (_write_zarr, _write_precomputed) and zarr.is_special:
        raise InvalidInput(
            f"{target}: version, levels, downsample, chunks and shards are options of OME-Zarr",
            argument="path",
            remedy="end it in .ome.zarr, or leave them out",
        )
    in_levels = writer in (_write_zarr, _write_precomputed)
    array = _checked(labels, target, in_levels)
    own = voxel_size_of(labels, "labels") if spacing is None else VoxelSize(tuple(spacing))
    if own.spacing is not None:
        own = own._replace(spacing=check_spacing(own.spacing, array.ndim))
    voxel = own.in_unit(unit)
    if writer is _write_zarr and key is not None:
        return _write_into_group(target, key, array, voxel, zarr)
    place = _checked_origin(origin, labels, array.ndim)
    if writer in (_write_zarr, _write_precomputed, _write_hdf5):
        writer = partial(writer, origin=place)
    with replacing(target, may_replace=_REPLACES.get(target.suffix.lower())) as temporary:
        writer(temporary, array, voxel, target, zarr if in_levels else key)
    return target


def check_target(path: str | os.PathLike[str]) -> None:
    """Refuse a file or folder that `write_labels` would refuse to replace, before the work.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     check_target(Path(folder) / "new.ome.zarr")
    """
    _refuse_url(path)
    target, key = split_target(path)
    writer = _writer(target)
    if writer is _write_hdf5:
        _refuse_datasets(target, key)
    elif key is None:
        refuse_occupied(target, _REPLACES.get(target.suffix.lower()))


def _refuse_url(path: str | os.PathLike[str]) -> None:
    """Refuse a URL, which would be taken for a folder called s3:."""
    if is_url(os.fspath(path)):
        raise InvalidInput(
            f"{os.fspath(path)} is a URL, and labels are written to a file",
            argument="path",
            remedy=(
                "write a file, and copy it there",
                "segment block by block: napari-agglo blocks plan FOLDER --copy-to URL",
            ),
        )


def _checked_origin(origin: Any, labels: Any, ndim: int) -> tuple[float, ...] | None:
    """Return the place of the first voxel, of a `Volume` by default."""
    if origin is None:
        return labels.origin if isinstance(labels, Volume) else None
    if len(origin) != ndim or not all(is_number(one) and math.isfinite(one) for one in origin):
        raise InvalidInput(
            f"`origin` must be {ndim} numbers, one per axis, got {origin!r}",
            argument="origin",
            remedy="pass the index of the first voxel along each axis",
        )
    return tuple(float(one) for one in origin)


def _checked(labels: Any, target: Path, in_levels: bool) -> Any:
    """Return the array to write: labels on disk as they are where they are written in blocks."""
    if not is_on_disk(labels):
        return check_labels(labels, "labels")
    if in_levels:
        return labels
    free, needed = available_memory(), labels.size * (labels.dtype.itemsize + 8)
    if free is not None and needed > free:
        raise InvalidInput(
            f"{target} is written as a whole, which needs about {needed / 1e9:.1f} GB of memory, "
            f"and {free / 1e9:.1f} GB are free",
            argument="path",
            remedy="write .ome.zarr, which is written block by block",
        )
    return np.ascontiguousarray(labels[...])


@dataclass(frozen=True)
class Pyramid:
    """Options of an OME-Zarr; see `write_labels`."""

    version: str | None = None
    levels: int | None = None
    downsample: str = "mode"
    chunks: Sequence[int] | None = None
    shards: Sequence[int] | None = None
    progress: ProgressCallback | None = None

    @property
    def is_special(self) -> bool:
        """Whether an option is set that other formats have not."""
        return (self.version, self.levels, self.chunks, self.shards) != (None,) * 4


def split_target(path: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """Split FILE.h5:KEY, or IMAGE.zarr:labels/NAME; other paths have no key.

    Examples
    --------
    >>> split_target("image.ome.zarr:labels/cells")[1]
    'labels/cells'
    """
    matched = _KEYED.fullmatch(os.fspath(path))
    return (Path(matched["path"]), matched["key"]) if matched else (Path(path), None)


def _writer(target: Path) -> Callable[..., None]:
    writers: dict[str, Callable[..., None]] = {
        ".tif": _write_tiff, ".tiff": _write_tiff, ".zarr": _write_zarr,
        ".h5": _write_hdf5, ".hdf5": _write_hdf5,
        SUFFIX: _write_precomputed, ".npz": _write_npz, ".npy": _write_npy, ".png": _write_png,
    }  # fmt: skip
    suffix = target.suffix.lower()
    if suffix not in writers:
        raise InvalidInput(
            f"the name of {target} does not show its format",
            argument="path",
            remedy=f"end it in {_SUFFIXES}",
        )
    return writers[suffix]


def _write_tiff(file: Path, array: Any, voxel: VoxelSize, target: Path, key: str | None) -> None:
    import tifffile

    if array.size == 0:
        raise InvalidInput(
            f"{target}: TIFF cannot hold an empty image",
            argument="path",
            remedy="write .npz or .zarr",
        )
    options: dict[str, Any] = {"photometric": "minisblack", "compression": "zlib"}
    # Other programs read the spacing from OME-TIFF. That has no 64-bit integers and drops axes of
    # length 1: those images, and images without 2 or 3 axes, have the spacing in our own metadata.
    spacing = voxel.spacing
    ome = spacing is not None and array.ndim in (2, 3)
    ome = ome and array.dtype.itemsize <= 4 and min(array.shape) > 1
    if ome and spacing is not None:
        symbol = unit_symbol(voxel.unit) if voxel.unit else NO_UNIT
        letters = "ZYX"[-array.ndim :]
        options["ome"] = True
        options["metadata"] = {"axes": letters}
        for letter, value in zip(letters, spacing, strict=True):
            options["metadata"][f"PhysicalSize{letter}"] = value
            options["metadata"][f"PhysicalSize{letter}Unit"] = symbol
    else:
        options["metadata"] = {} if spacing is None else {"spacing": list(spacing)}
        if voxel.unit:
            options["metadata"]["unit"] = voxel.unit
        if array.ndim == 1:
            options["metadata"]["ndim"] = 1
            array = array[None]
    with file.open("xb+") as handle:
        tifffile.imwrite(handle, array, **options)


def _write_zarr(
    folder: Path,
    array: Any,
    voxel: VoxelSize,
    target: Path,
    options: Pyramid,
    *,
    origin: tuple[float, ...] | None,
) -> None:
    if array.ndim > 6:
        raise InvalidInput(
            f"{target}: OME-Zarr holds at most 6 axes here, not {array.ndim}",
            argument="path",
            remedy="write .npy or .h5",
        )
    image = plan_image(
        target.name.split(".")[0], array.shape, voxel.spacing, unit=voxel.unit,
        version=options.version or DEFAULT_VERSION, method=options.downsample,
        levels=options.levels, origin=origin,
    )  # fmt: skip
    arrays = create_levels(folder, image, array.dtype, chunks=options.chunks, shards=options.shards)
    write_levels(arrays, image, array, options.progress)


def _write_precomputed(
    folder: Path,
    array: Any,
    voxel: VoxelSize,
    target: Path,
    options: Pyramid,
    *,
    origin: tuple[float, ...] | None,
) -> None:
    if (options.version, options.chunks, options.shards) != (None, None, None):
        raise InvalidInput(
            f"{target}: version, chunks and shards are options of OME-Zarr",
            argument="path",
            remedy="end it in .ome.zarr, or leave them out",
        )
    write_precomputed(
        folder, array, voxel.spacing, voxel.unit, method=options.downsample, levels=options.levels,
        origin=origin, progress=options.progress,
    )  # fmt: skip


# the folders that may be replaced, by suffix
_REPLACES = {".zarr": is_own_labels, SUFFIX: is_own_segmentation}


def _write_into_group(root: Path, key: str, array: Any, voxel: VoxelSize, options: Pyramid) -> Path:
    """Write the labels of an image that exists, then list them; return their folder."""
    if options.version is not None or options.levels is not None:
        raise InvalidInput(
            f"{root}:{key}: labels in an image have its version and its levels",
            argument="version" if options.version is not None else "levels",
            remedy="leave the option out",
        )
    check_labels_place(root)
    name = split_labels_key(root, key)
    image = plan_in_group(root, name, array.shape, voxel.spacing, voxel.unit, options.downsample)
    v3 = image.zarr_format == 3
    target = make_labels_folder(root) / name
    with replacing(target, may_replace=is_own_labels) as temporary:
        arrays = create_levels(
            temporary, image, array.dtype, chunks=options.chunks, shards=options.shards,
            source=SOURCE,
        )  # fmt: skip
        write_levels(arrays, image, array, options.progress)
    try:
        list_label(root, name, v3)
    except OSError as error:
        raise InvalidInput(
            f"{target} is written, but not listed in {root / 'labels'} ({error})",
            argument="path",
            remedy="check the permissions and the disk, and write it again",
        ) from error
    return target


def _write_hdf5(
    file: Path,
    array: Any,
    voxel: VoxelSize,
    target: Path,
    key: str | None,
    *,
    origin: tuple[float, ...] | None,
) -> None:
    from napari_agglo.volumes import _hdf5

    name = (key or _hdf5.DEFAULT_KEY).strip("/")
    _refuse_datasets(target, key)
    spacing, unit = voxel.in_micrometres()
    image = _hdf5.file_image(name, array, spacing, target, unit is not None, origin)
    if key and target.is_file():
        shutil.copyfile(target, file)
        _hdf5.put_dataset(file, name, image, target)
    else:
        file.write_bytes(image)


def _refuse_datasets(target: Path, key: str | None) -> None:
    """Refuse to replace a file that holds other datasets."""
    from napari_agglo.volumes import _hdf5

    others = [one for one in _hdf5.datasets(target) if one != _hdf5.DEFAULT_KEY]
    if others and not key:
        raise InvalidInput(
            f"{target} holds other datasets ({', '.join(others)}), which would be lost",
            argument="path",
            remedy=(f"name a key to keep them: {target}:labels", "choose another file"),
        )


def _write_npz(file: Path, array: Any, voxel: VoxelSize, target: Path, key: str | None) -> None:
    members = {"labels": array}
    if voxel.spacing is not None:
        members["spacing"] = np.array(voxel.spacing)
        if voxel.unit:
            members["unit"] = np.array(voxel.unit)
    with file.open("xb") as handle:
        np.savez_compressed(handle, **members)


def _write_npy(file: Path, array: Any, voxel: VoxelSize, target: Path, key: str | None) -> None:
    from numpy.lib import format as npy_format

    with file.open("xb") as handle:
        header = npy_format.header_data_from_array_1_0(array)
        npy_format.write_array_header_1_0(handle, header)
        handle.write(array.reshape(-1).view(np.uint8))  # np.save drops the reason of an OSError


def _write_png(file: Path, array: Any, voxel: VoxelSize, target: Path, key: str | None) -> None:
    import imageio.v3 as iio

    if array.ndim != 2 or array.size == 0:
        raise InvalidInput(
            f"{target}: PNG holds a 2-D image, not one of shape {array.shape}",
            argument="path",
            remedy="write .tif",
        )
    highest = int(array.max())
    if highest > 65535:
        raise InvalidInput(
            f"{target}: PNG holds ids up to 65535, not {highest}",
            argument="path",
            remedy="write .tif",
        )
    small = array.astype(np.uint8 if highest < 256 else np.uint16)
    file.write_bytes(iio.imwrite("<bytes>", small, extension=".png", plugin="pillow"))
