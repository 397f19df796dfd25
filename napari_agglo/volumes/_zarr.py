"""Read Zarr v2 and v3 arrays and OME-Zarr groups (0.1 to 0.6; level 0), on disk or at a URL."""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from napari_agglo.errors import InvalidInput
from napari_agglo.volumes._ome_zarr_metadata import OmeImage, has_image, ome_attributes, read_image
from napari_agglo.volumes._on_disk import Index, OnDisk, absent_chunks, chunks_of, reading
from napari_agglo.volumes._open import (
    LEVEL_0,
    arrange,
    origin_of,
    origin_of_attributes,
    split_picks,
    usable_spacing,
)
from napari_agglo.volumes._store_location import Place
from napari_agglo.volumes._units import ELEMENT_UNIT, MICROMETRE, to_micrometres, unit_name
from napari_agglo.volumes._volume import Volume

MARKS = ("zarr.json", ".zarray", ".zgroup")


def _end_reads() -> None:
    """Cancel the reads that zarr has begun and nobody waits for, as after a damaged chunk.

    Zarr stops its event loop at exit with these reads in it, and each is then told as a fault.
    """
    loop = getattr(sys.modules.get("zarr.core.sync"), "loop", [None])[0]
    if not isinstance(loop, asyncio.AbstractEventLoop) or not loop.is_running():
        return

    async def cancel() -> None:
        reads = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in reads:
            task.cancel()
        await asyncio.gather(*reads, return_exceptions=True)

    with suppress(Exception):  # a loop that ends at this moment
        asyncio.run_coroutine_threadsafe(cancel(), loop).result(_PATIENCE)


_PATIENCE = 5.0  # seconds
atexit.register(_end_reads)  # after zarr has registered its own, so that this is done before


def is_own_labels(folder: Path) -> bool:
    """Return whether a folder is an OME-Zarr label image of `write_labels`, and nothing else.

    Only such a folder may be replaced: anything beside the levels (an image, a note, another array)
    would be lost with it.
    """
    try:
        attributes, v3 = group_attributes(folder)
        ome = ome_attributes(attributes)
        paths = [str(level["path"]) for image in ome["multiscales"] for level in image["datasets"]]
        mark = "zarr.json" if v3 else ".zarray"
        arrays = [json.loads((folder / path / mark).read_text("utf-8")) for path in paths]
    except (OSError, ValueError, LookupError, TypeError):
        return False
    if "image-label" not in ome or any("/" in path or ".." in path for path in paths):
        return False
    if not all(re.search("int|^[<>|][ui]", _type_of(array)) for array in arrays):
        return False
    marks = {"zarr.json"} if v3 else {".zgroup", ".zattrs"}
    if {entry.name for entry in folder.iterdir()} != {*marks, *paths}:
        return False
    return all(
        # chunks are called c/0/1/2, or 0/1/2 in Zarr 2
        name in ("zarr.json", ".zarray", ".zattrs") or re.fullmatch(r"c|\d+", name)
        for path in paths
        for _, folders, files in os.walk(folder / path)
        for name in (*folders, *files)
    )


def _type_of(array: dict[str, Any]) -> str:
    return str(array.get("data_type") or array.get("dtype"))


def group_attributes(folder: Path) -> tuple[dict[str, Any], bool]:
    """Return the attributes of a group on disk, and whether it is Zarr v3; may raise anything."""
    if (folder / "zarr.json").is_file():
        described = json.loads((folder / "zarr.json").read_text(encoding="utf-8"))
        return dict(described.get("attributes") or {}), True
    (folder / ".zgroup").read_bytes()  # raises if this is no group
    with suppress(FileNotFoundError):
        return dict(json.loads((folder / ".zattrs").read_text(encoding="utf-8"))), False
    return {}, False


def is_zarr(path: Path | Place) -> bool:
    """Return whether a folder is a Zarr array or group."""
    return (path if isinstance(path, Place) else Place(str(path))).has(*MARKS)


def open_zarr(path: Path | Place, key: str | None) -> Volume:
    """Open an array, or level 0 of an OME-Zarr image, lazily."""
    inner, picks = split_picks(key)
    if inner is not None and ".." in inner.split("/"):
        raise InvalidInput(
            f"{path}:{inner} is outside {path.name}",
            argument="source",
            remedy="name an array inside it",
        )
    root = path if isinstance(path, Place) else Place(str(path))
    with reading(path, "Zarr"):
        place = root / inner if inner else root
        if not is_zarr(place):
            if root.is_remote and not inner:
                raise InvalidInput(
                    f"{root} is not a Zarr array or group, or does not exist",
                    argument="source",
                    remedy="check the address",
                )
            raise InvalidInput(
                f"{path} has no array {inner!r}",
                argument="source",
                remedy=f"it holds: {_member_names(root)}",
            )
        node = zarr.open(str(place), mode="r")
        if isinstance(node, zarr.Group) and "bioformats2raw.layout" in ome_attributes(_of(node)):
            place = place / "0"
            node = zarr.open(str(place), mode="r")
        level = ""
        grid = _Grid()
        if isinstance(node, zarr.Group):
            place, level, grid = _array_of(node, place)
        array = zarr.open_array(str(place), mode="r")
        _refuse_code(array, place)
        if not level and not grid.letters:
            grid = _grid_of_array(place, array)
        if grid.letters and len(grid.letters) != len(array.shape):
            raise InvalidInput(
                f"{place} has {len(array.shape)} axes, and its metadata name {len(grid.letters)}",
                argument="source",
                remedy="correct the metadata: `axes` names each axis of the array",
            )
    name = path.name + (f":{inner}" if inner else "")
    attributes = dict(array.attrs.asdict())
    data = OnDisk(array.shape, array.dtype, _Read(array, str(place)), _chunks(array))
    arranged = arrange(data, grid.letters, grid.spacing, picks, name, attributes)
    stated = origin_of(grid.offset, [1.0] * len(array.shape), grid.letters, arranged.data)
    if stated is None:
        stated = origin_of_attributes(attributes, grid.letters, arranged.data)
    origin = arranged.origin(stated)
    return Volume(arranged.data, arranged.spacing, name + level, attributes, grid.unit, origin)


def level_keys(path: Path | Place, inner: str | None) -> list[str]:
    """Return the keys of the levels of an OME-Zarr image, the finest first."""
    root = path if isinstance(path, Place) else Place(str(path))
    place = root / inner if inner else root
    before = [inner] if inner else []
    node = zarr.open(str(place), mode="r")
    if "bioformats2raw.layout" in ome_attributes(_of(node)):
        before.append("0")
        node = zarr.open(str(place / "0"), mode="r")
    return ["/".join([*before, level.path]) for level in read_image(_of(node), place).levels]


@dataclass(frozen=True)
class _Read:
    """Read a part of an array; it can be sent to another process, which opens the store itself."""

    array: Any
    place: str

    def __call__(self, index: Index) -> Any:
        with reading(self.place, "Zarr"):
            return np.asarray(self.array[index])

    def absent(self, index: Index, values: Any) -> int:
        """Return the chunks that are not there."""
        key = self.array.metadata.encode_chunk_key
        place = Place(self.place)
        suspects = values if place.is_remote else None
        fill = self.array.fill_value

        def has(at: tuple[int, ...]) -> bool:
            return place.has(key(at))

        with reading(self.place, "Zarr"):
            return absent_chunks(
                index, _chunks(self.array), has, suspects, 0 if fill is None else fill
            )

    def files(self, index: Index) -> list[tuple[Place, str]]:
        """Return the files of chunks."""
        key, place = self.array.metadata.encode_chunk_key, Place(self.place)
        return [(place, key(at)) for at in chunks_of(index, _chunks(self.array))]


def _chunks(array: Any) -> tuple[int, ...]:
    return tuple(getattr(array, "shards", None) or array.chunks)


def _of(node: Any) -> dict[str, Any]:
    return dict(node.attrs.asdict())


@dataclass(frozen=True)
class _Grid:
    """Letters of the axes, spacing along them, unit, place; empty and None where not known."""

    letters: str = ""
    spacing: list[float] | None = None
    unit: str | None = None
    offset: list[float] | None = None  # of the first voxel, in voxels


def _array_of(group: Any, place: Place) -> tuple[Place, str, _Grid]:
    """Return the place of the array that a group stands for, a suffix for its name, its grid."""
    attributes = _of(group)
    if has_image(attributes):
        image = read_image(attributes, place)
        level = image.levels[0]
        several = LEVEL_0 if len(image.levels) > 1 else ""
        if not is_zarr(place / level.path):
            raise InvalidInput(
                f"{place} has no array {level.path!r}, which its metadata call level 0",
                argument="source",
                remedy=f"it holds: {_member_names(place)}",
            )
        return place / level.path, several, _grid(image, 0)
    arrays = [name for name, _ in group.arrays()]
    if len(arrays) == 1:
        return place / arrays[0], "", _Grid()
    raise InvalidInput(
        f"{place} is a group of several arrays",
        argument="source",
        remedy=f"name one array: {place}:KEY, of {_member_names(place)}",
    )


def _member_names(place: Place) -> str:
    unknown = "names that a URL does not list" if place.is_remote else "nothing"
    return ", ".join(place.folders(MARKS)) or unknown


def _refuse_code(array: Any, place: Place) -> None:
    """Refuse arrays of objects and any codec that unpickles: reading those can run code."""
    metadata = dict(array.metadata.to_dict())
    metadata.pop("attributes", None)  # notes of users, which are never run
    if np.dtype(array.dtype).hasobject or "pickle" in str(metadata).lower():
        raise InvalidInput(
            f"{place} holds Python objects, which can run code when read",
            argument="source",
            remedy="save it as numbers",
        )


def _grid_of_array(place: Place, array: Any) -> _Grid:
    """Return the grid of an array that was named by itself, from the image it is a level of.

    Metadata that cannot be read are passed over: to name the array is the way past them.
    """
    around = place.parent
    for _ in range(2):  # a level's path may have a folder in it
        if around is None:
            break
        if is_zarr(around):
            group = zarr.open(str(around), mode="r")
            attributes = _of(group) if isinstance(group, zarr.Group) else {}
            if has_image(attributes):
                with suppress(InvalidInput):
                    image = read_image(attributes, around)
                    own = str(place)[len(str(around)) :].strip("/\\").replace("\\", "/")
                    for k, level in enumerate(image.levels):
                        if level.path == own and len(image.axes) in (0, len(array.shape)):
                            return _grid(image, k, len(array.shape))
                return _Grid()
        around = around.parent
    attributes = array.attrs.asdict()
    spacing = attributes.get("element_size_um")
    if spacing is None:
        return _grid_of_resolution(attributes, len(array.shape))
    known = attributes.get(ELEMENT_UNIT) != "unknown"
    if isinstance(spacing, list) and len(spacing) == len(array.shape) - 1:
        spacing = [1.0, *spacing]  # of channels, which are first
    return _Grid("", spacing, MICROMETRE if known else None)


def _grid_of_resolution(attributes: Mapping[str, Any], ndim: int) -> _Grid:
    """Return the grid by the attributes of daisy, funlib and volara: `resolution` in nanometres.

    Newer files call it `voxel_size` and name the unit of each axis in `units`. An axis of channels,
    which is first, has no size.
    """
    sizes = attributes.get("resolution", attributes.get("voxel_size"))
    if not isinstance(sizes, (list, tuple)) or not ndim - 1 <= len(sizes) <= ndim:
        return _Grid()
    stated = attributes.get("units")
    units = list(stated) if isinstance(stated, (list, tuple)) else [stated] * len(sizes)
    names = ["nanometer" if one is None else unit_name(one) for one in units]
    spacing = usable_spacing(sizes, len(sizes))
    if spacing is None or len(names) != len(spacing):
        return _Grid()
    known = all(names)
    if known:
        pairs = zip(spacing, names, strict=True)
        spacing = tuple(to_micrometres(size, name) for size, name in pairs)
    channels = [1.0] * (ndim - len(spacing))
    return _Grid("", [*channels, *spacing], MICROMETRE if known else None)


def _grid(image: OmeImage, k: int, ndim: int = 0) -> _Grid:
    scale = image.levels[k].scale
    if not image.axes:  # before 0.3 all were TCZYX
        return _Grid("tczyx"[-(ndim or 5) :], list(scale) or None)
    letters = "".join(_letter(axis.name, axis.type) for axis in image.axes)
    if not scale:
        return _Grid(letters)
    units = [
        unit_name(axis.unit) if letter not in "tc" else None
        for axis, letter in zip(image.axes, letters, strict=True)
    ]
    spacing = [to_micrometres(value, unit) for value, unit in zip(scale, units, strict=True)]
    level = image.levels[k]
    shifts = zip(level.translation, scale, strict=True)
    offset = [shift / distance for shift, distance in shifts] if level.placed else None
    return _Grid(letters, spacing, MICROMETRE if any(units) else None, offset)


def _letter(name: str, kind: str) -> str:
    """Return a letter for an axis: "c" and "t" only where it is a channel, or time."""
    kinds = {"time": "t", "channel": "c"}
    name = name or "?"
    letter = kinds.get(kind) or kinds.get(name) or name[0]
    return "?" if letter == name[0] in "cst" and len(name) > 1 and name not in kinds else letter
