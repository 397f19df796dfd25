"""Write label images, whole or not at all, such that `open_volume` gives back the same."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from napari_agglo.errors import InvalidInput
from napari_agglo.volumes._atomic import replacing
from napari_agglo.volumes._checks import check_labels, check_spacing
from napari_agglo.volumes._volume import Volume
from napari_agglo.volumes._zarr import is_own_labels

Spacing = tuple[float, ...] | None
_H5 = re.compile(r"(?P<path>.+?\.(?:h5|hdf5))(?::(?P<key>.*))?", re.IGNORECASE | re.DOTALL)
_SUFFIXES = ".tif, .tiff, .ome.zarr, .zarr, .h5, .hdf5, .npz, .npy or .png"


def write_labels(
    path: str | os.PathLike[str], labels: object, *, spacing: Sequence[float] | None = None
) -> Path:
    """Write a label image in the format that the suffix of `path` names.

    Parameters
    ----------
    path
        ``.tif``/``.tiff`` (compressed), ``.ome.zarr``/``.zarr`` (OME-Zarr 0.5), ``.h5``/``.hdf5``
        (dataset ``stack``; ``file.h5:KEY`` names another and keeps the others of the file),
        ``.npz``, ``.npy``, or ``.png`` (2-D, ids up to 65535). An existing file is
        replaced once the new one is complete; an existing folder only if it is an OME-Zarr with a
        label image and nothing else in it.
    labels
        Label image of any integer type, which is kept (PNG: the values are).
    spacing
        Distance between voxels along each axis; by default that of a `Volume`. The numbers are
        written as micrometres, the unit of `open_volume`. Kept by all formats but ``.npy``
        and ``.png``, which have no place for it.

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
    ...     path = write_labels(Path(folder) / "a.npz", np.array([[1, 2**60]]), spacing=(40, 4))
    ...     open_volume(path).spacing
    (40.0, 4.0)
    """
    if not isinstance(path, str | os.PathLike):
        raise InvalidInput(
            f"`path` must be a path, not a {type(path).__name__}"
            + (", but `labels` is a path" * isinstance(labels, str | os.PathLike)),
            argument="path",
            remedy="call write_labels(path, labels)",
        )
    hdf5 = _H5.fullmatch(os.fspath(path))
    target, key = (Path(hdf5["path"]), hdf5["key"]) if hdf5 else (Path(path), None)
    writer = _writer(target)
    if spacing is None and isinstance(labels, Volume):
        spacing = labels.spacing
    array = check_labels(labels, "labels")
    distances = None if spacing is None else check_spacing(spacing, array.ndim)
    may_replace = is_own_labels if writer is _write_zarr else None
    with replacing(target, may_replace=may_replace) as temporary:
        writer(temporary, array, distances, target, key)
    return target


def _writer(target: Path) -> Callable[[Path, Any, Spacing, Path, str | None], None]:
    writers = {
        ".tif": _write_tiff, ".tiff": _write_tiff, ".zarr": _write_zarr,
        ".h5": _write_hdf5, ".hdf5": _write_hdf5,
        ".npz": _write_npz, ".npy": _write_npy, ".png": _write_png,
    }  # fmt: skip
    suffix = target.suffix.lower()
    if suffix not in writers:
        raise InvalidInput(
            f"the format of {target} cannot be told from its name",
            argument="path",
            remedy=f"end it in {_SUFFIXES}",
        )
    return writers[suffix]


def _write_tiff(file: Path, array: Any, spacing: Spacing, target: Path, key: str | None) -> None:
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
    ome = spacing is not None and array.ndim in (2, 3)
    ome = ome and array.dtype.itemsize <= 4 and min(array.shape) > 1
    if ome and spacing is not None:
        letters = "ZYX"[-array.ndim :]
        options["ome"] = True
        options["metadata"] = {"axes": letters}
        for letter, value in zip(letters, spacing, strict=True):
            options["metadata"][f"PhysicalSize{letter}"] = value
            options["metadata"][f"PhysicalSize{letter}Unit"] = "µm"
    else:
        options["metadata"] = {} if spacing is None else {"spacing": list(spacing)}
        if array.ndim == 1:
            options["metadata"]["ndim"] = 1
            array = array[None]
    with file.open("xb+") as handle:
        tifffile.imwrite(handle, array, **options)


def _write_zarr(folder: Path, array: Any, spacing: Spacing, target: Path, key: str | None) -> None:
    import zarr

    letters = ["x"] if array.ndim == 1 else list("uvwzyx"[-array.ndim :])
    if array.ndim > 6:
        raise InvalidInput(
            f"{target}: OME-Zarr holds at most 6 axes here, not {array.ndim}",
            argument="path",
            remedy="write .npy or .h5",
        )
    # Further axes have no type: a "time" or "channel" of length 1 would be dropped on reading.
    axes = [{"name": n, "type": "space"} if n in "zyx" else {"name": n} for n in letters]
    if spacing is not None:
        axes = [{**axis, "unit": "micrometer"} if "type" in axis else axis for axis in axes]
    level: dict[str, Any] = {
        "path": "0",
        "coordinateTransformations": [
            {"type": "scale", "scale": list(spacing or (1.0,) * array.ndim)}
        ],
    }
    image = {"name": target.name.split(".")[0], "axes": axes, "datasets": [level]}
    described = {"version": "0.5", "multiscales": [image], "image-label": {"version": "0.5"}}
    chunks = (1,) * array.ndim + {1: (2**20,), 2: (1024, 1024)}.get(array.ndim, (64, 128, 128))
    chunks = tuple(
        max(1, min(chunk, n)) for chunk, n in zip(chunks[-array.ndim :], array.shape, strict=True)
    )
    group = zarr.create_group(str(folder), zarr_format=3, attributes={"ome": described})
    group.create_array(
        "0", shape=array.shape, dtype=array.dtype, chunks=chunks, dimension_names=letters,
        fill_value=0,
    )[...] = array  # fmt: skip


def _write_hdf5(file: Path, array: Any, spacing: Spacing, target: Path, key: str | None) -> None:
    from napari_agglo.volumes import _hdf5

    name = (key or _hdf5.DEFAULT_KEY).strip("/")
    others = [one for one in _hdf5.datasets(target) if one != name]
    if others and not key:
        raise InvalidInput(
            f"{target} holds other datasets ({', '.join(others)}), which would be lost",
            argument="path",
            remedy=(f"name a key, and they stay: {target}:labels", "choose another file"),
        )
    image = _hdf5.file_image(name, array, spacing, target)
    if key and target.is_file():
        shutil.copyfile(target, file)
        _hdf5.put_dataset(file, name, image, target)
    else:
        file.write_bytes(image)


def _write_npz(file: Path, array: Any, spacing: Spacing, target: Path, key: str | None) -> None:
    members = {"labels": array}
    if spacing is not None:
        members["spacing"] = np.array(spacing)
    with file.open("xb") as handle:
        np.savez_compressed(handle, **members)


def _write_npy(file: Path, array: Any, spacing: Spacing, target: Path, key: str | None) -> None:
    from numpy.lib import format as npy_format

    with file.open("xb") as handle:
        header = npy_format.header_data_from_array_1_0(array)
        npy_format.write_array_header_1_0(handle, header)
        handle.write(array.reshape(-1).view(np.uint8))  # np.save drops the reason of an OSError


def _write_png(file: Path, array: Any, spacing: Spacing, target: Path, key: str | None) -> None:
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
