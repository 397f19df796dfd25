"""Read Zarr v2 and v3 arrays and OME-Zarr groups (0.4 and 0.5; level 0)."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from napari_agglo.errors import InvalidInput
from napari_agglo.volumes._on_disk import Index, OnDisk, reading
from napari_agglo.volumes._open import arrange, split_picks, to_micrometres
from napari_agglo.volumes._volume import Volume


def is_own_labels(folder: Path) -> bool:
    """Whether a folder is an OME-Zarr label image as `write_labels` makes it, and nothing else.

    Only such a folder may be replaced: anything beside the levels (an image, a note, another array)
    would be lost with it.
    """
    try:
        described = json.loads((folder / "zarr.json").read_text(encoding="utf-8"))
        ome = described["attributes"]["ome"]
        paths = [str(level["path"]) for image in ome["multiscales"] for level in image["datasets"]]
        arrays = [json.loads((folder / path / "zarr.json").read_text("utf-8")) for path in paths]
    except (OSError, ValueError, LookupError, TypeError):
        return False
    if "image-label" not in ome or any("/" in path or ".." in path for path in paths):
        return False
    if not all("int" in str(array.get("data_type")) for array in arrays):
        return False
    if {entry.name for entry in folder.iterdir()} != {"zarr.json", *paths}:
        return False
    return all(
        name == "zarr.json" or re.fullmatch(r"c|\d+", name)  # chunks are called c/0/1/2
        for path in paths
        for _, folders, files in os.walk(folder / path)
        for name in (*folders, *files)
    )


def is_zarr(path: Path) -> bool:
    """Whether a folder is a Zarr array or group."""
    return any((path / name).is_file() for name in ("zarr.json", ".zarray", ".zgroup"))


def open_zarr(path: Path, key: str | None) -> Volume:
    """Open an array, or level 0 of an OME-Zarr image, lazily."""
    inner, picks = split_picks(key)
    if inner is not None and ".." in inner.split("/"):
        raise InvalidInput(
            f"{path}:{inner} is outside {path.name}",
            argument="source",
            remedy="name an array inside it",
        )
    with reading(path, "Zarr"):
        location = path / inner if inner else path
        if not is_zarr(location):
            raise InvalidInput(
                f"{path} has no array {inner!r}",
                argument="source",
                remedy=f"it holds: {_member_names(path)}",
            )
        node = zarr.open(str(location), mode="r")
        level = ""
        if isinstance(node, zarr.Group) and "bioformats2raw.layout" in _ome(node):
            location = location / "0"
            node = zarr.open(str(location), mode="r")
        if isinstance(node, zarr.Group):
            location, level = _array_of(node, location)
        array = zarr.open_array(str(location), mode="r")
        _refuse_code(array, location)
        axes, spacing = _axes_of_array(location, array)
    name = path.name + (f":{inner}" if inner else "")
    attributes = dict(array.attrs.asdict())
    data, kept = arrange(_lazy(array, location), axes, spacing, picks, name, attributes)
    return Volume(data, kept, name + level, attributes)


def _lazy(array: Any, location: Path) -> OnDisk:
    def read(index: Index) -> Any:
        with reading(location, "Zarr"):
            return np.asarray(array[index])

    chunks = tuple(getattr(array, "shards", None) or array.chunks)
    return OnDisk(array.shape, array.dtype, read, chunks, array)


def _ome(group: Any) -> dict[str, Any]:
    """Return the OME attributes, which 0.5 keeps under one key and 0.4 among the others."""
    attributes = group.attrs.asdict()
    inner = attributes.get("ome")
    return dict(inner) if isinstance(inner, dict) else dict(attributes)


def _multiscale(group: Any) -> dict[str, Any] | None:
    images = _ome(group).get("multiscales")
    if isinstance(images, list) and images and images[0].get("datasets"):
        return dict(images[0])
    return None


def _array_of(group: Any, location: Path) -> tuple[Path, str]:
    """Return the path of the array that a group stands for, and a suffix for its name."""
    image = _multiscale(group)
    if image is not None:
        inner = str(image["datasets"][0]["path"])
        if ".." in inner.split("/"):
            raise InvalidInput(
                f"{location} names a level outside itself: {inner!r}",
                argument="source",
                remedy="name the array inside it, PATH:KEY",
            )
        return location / inner, " (level 0)" if len(image["datasets"]) > 1 else ""
    arrays = [name for name, _ in group.arrays()]
    if len(arrays) == 1:
        return location / arrays[0], ""
    raise InvalidInput(
        f"{location} is a group of several arrays",
        argument="source",
        remedy=f"name one array: {location}:KEY, of {_member_names(location)}",
    )


def _member_names(root: Path) -> str:
    names = sorted(
        file.parent.relative_to(root).as_posix()
        for pattern in ("zarr.json", ".zarray", ".zgroup")
        for depth in ("*/", "*/*/", "*/*/*/")
        for file in root.glob(depth + pattern)
    )
    return ", ".join(names) or "nothing"


def _refuse_code(array: Any, location: Path) -> None:
    """Refuse arrays of objects and any codec that unpickles: reading those can run code."""
    metadata = dict(array.metadata.to_dict())
    metadata.pop("attributes", None)  # notes of users, which are never run
    if np.dtype(array.dtype).hasobject or "pickle" in str(metadata).lower():
        raise InvalidInput(
            f"{location} holds Python objects, which can run code when read",
            argument="source",
            remedy="save it as numbers",
        )


def _axes_of_array(location: Path, array: Any) -> tuple[str, list[float] | None]:
    """Return axis letters and spacing, from the OME-Zarr image that the array is a level of."""
    ndim = len(array.shape)
    for group_path in list(location.parents)[:2]:  # a level's path may have a folder in it
        if not is_zarr(group_path):
            continue
        group = zarr.open(str(group_path), mode="r")
        image = _multiscale(group) if isinstance(group, zarr.Group) else None
        level = location.relative_to(group_path).as_posix()
        for dataset in (image or {}).get("datasets", []):
            if image is not None and str(dataset["path"]) == level:
                return _axes_and_spacing(image, dataset, ndim)
    return "", array.attrs.asdict().get("element_size_um")


def _axes_and_spacing(
    image: dict[str, Any], dataset: dict[str, Any], ndim: int
) -> tuple[str, list[float] | None]:
    axes = image.get("axes") or ["t", "c", "z", "y", "x"][-ndim:]  # before 0.3 all were TCZYX
    described = [axis if isinstance(axis, dict) else {"name": axis} for axis in axes]
    letters = "".join(_letter(axis) for axis in described)
    scale: list[float] | None = None
    for transforms in (dataset, image):  # the level's own, then those of all levels
        for transform in transforms.get("coordinateTransformations") or []:
            if transform.get("type") == "scale" and len(transform.get("scale", ())) == ndim:
                factors = [float(value) for value in transform["scale"]]
                scale = [a * b for a, b in zip(scale or [1.0] * ndim, factors, strict=True)]
    if scale is not None and len(described) == ndim:
        scale = [
            to_micrometres(value, axis.get("unit") if letter not in "tc" else None)
            for value, axis, letter in zip(scale, described, letters, strict=True)
        ]
    return letters, scale


def _letter(axis: dict[str, Any]) -> str:
    """Return a letter for an axis: "c" and "t" only where it is a channel, or time."""
    kinds = {"time": "t", "channel": "c"}
    name = str(axis.get("name") or "?")
    letter = kinds.get(str(axis.get("type"))) or kinds.get(name) or name[0]
    return "?" if letter == name[0] in "cst" and len(name) > 1 and name not in kinds else letter
