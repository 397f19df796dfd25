"""Label images in the ``labels`` of an OME-Zarr image that exists: ``IMAGE.ome.zarr:labels/NAME``.

The label image gets the version, the axes and the levels of its image. It is written under a
temporary name and renamed, and then added to the list of the group ``labels`` in one step: a
program that reads at any time sees the old list or the new one. In its own file as it changes a
store that others own.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from napari_agglo.errors import InvalidInput, SetOption
from napari_agglo.volumes._ome_zarr_metadata import (
    VERSIONS,
    OmeAxis,
    OmeImage,
    OmeLevel,
    has_image,
    ome_attributes,
    read_image,
)
from napari_agglo.volumes._replace_file import make_folder, write_whole
from napari_agglo.volumes._units import MICROMETRE, convert_all, unit_name
from napari_agglo.volumes._zarr import group_attributes

SOURCE = "../../"  # from labels/NAME to its image


def split_labels_key(target: Path, key: str) -> str:
    """Return NAME of the key ``labels/NAME``; refuse other keys."""
    matched = re.fullmatch(r"/?labels/([^/]+)/?", key)
    if matched is None or matched[1] in (".", "..") or matched[1].startswith("."):
        raise InvalidInput(
            f"{target}:{key}: labels of an image are called labels/NAME",
            argument="path",
            remedy=f"write {target}:labels/segments, or a file of its own",
        )
    return matched[1]


def check_labels_place(root: Path) -> None:
    """Refuse a Zarr folder that is no OME-Zarr image, so that it cannot have labels."""
    _image_of(root)


def _image_of(root: Path) -> tuple[OmeImage, bool]:
    """Return the image that labels are added to, and whether it is Zarr v3."""
    try:
        attributes, v3 = group_attributes(root)
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"{root} is not a Zarr group, so it has no labels",
            argument="path",
            remedy="write a file of its own: NAME.ome.zarr",
        ) from error
    if not has_image(attributes):
        raise InvalidInput(
            f"{root} has no OME-Zarr image to which labels could belong",
            argument="path",
            remedy="write a file of its own: NAME.ome.zarr",
        )
    image = read_image(attributes, root)
    if image.version not in VERSIONS:
        raise InvalidInput(
            f"{root} is OME-Zarr {image.version}, and labels are added to 0.4 and 0.5",
            argument="path",
            remedy="write a file of its own: NAME.ome.zarr",
        )
    return image, v3


def plan_in_group(
    root: Path,
    name: str,
    shape: tuple[int, ...],
    spacing: tuple[float, ...] | None,
    unit: str | None,
    method: str,
) -> OmeImage:
    """Plan a label image on the grid of the image in `root`: its axes, levels, scales and unit."""
    image, v3 = _image_of(root)
    shapes = _shapes(root, image, v3)
    if not image.axes or any(len(one) != len(image.axes) for one in shapes):
        raise InvalidInput(
            f"{root} names {len(image.axes)} axes, and its arrays have {len(shapes[0])}",
            argument="path",
            remedy="write a file of its own: NAME.ome.zarr",
        )
    kept = _kept_axes(image.axes, shapes[0], shape, root)
    levels = tuple(
        OmeLevel(
            str(k),
            tuple(level.scale[a] for a in kept) if level.scale else (1.0,) * len(kept),
            tuple(level.translation[a] for a in kept),
        )
        for k, level in enumerate(image.levels)
    )
    own_shapes = tuple(tuple(one[a] for a in kept) for one in shapes)
    axes = tuple(image.axes[a] for a in kept)
    _check_spacing(levels[0].scale, axes, spacing, unit, root)
    factors = _factors(own_shapes, root)
    return replace(
        image, name=name, axes=axes, levels=levels, shapes=own_shapes, factors=factors,
        method=method,
    )  # fmt: skip


def _shapes(root: Path, image: OmeImage, v3: bool) -> list[tuple[int, ...]]:
    """Return the shape of each level."""
    shapes = []
    for level in image.levels:
        place = root / level.path / ("zarr.json" if v3 else ".zarray")
        try:
            shapes.append(tuple(int(n) for n in json.loads(place.read_text("utf-8"))["shape"]))
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise InvalidInput(
                f"{root} has no array {level.path!r}, which its metadata name as a level",
                argument="path",
                remedy="write a file of its own: NAME.ome.zarr",
            ) from error
    return shapes


def _kept_axes(
    axes: tuple[OmeAxis, ...], shape: tuple[int, ...], labels: tuple[int, ...], root: Path
) -> list[int]:
    """Return the axes of the image that the labels have: all but channels, and times of 1."""
    for dropped in (("channel",), ("channel", "time")):
        kept = [
            a
            for a, axis in enumerate(axes)
            if not (_kind(axis) in dropped and (_kind(axis) == "channel" or shape[a] == 1))
        ]
        if tuple(shape[a] for a in kept) == labels:
            return kept
    whole = dict(zip((axis.name for axis in axes), shape, strict=True))
    raise InvalidInput(
        f"`labels` (shape {labels}) must cover the image in {root} ({whole})",
        argument="labels",
        remedy="write a crop to a file of its own: NAME.ome.zarr",
    )


def _kind(axis: OmeAxis) -> str:
    return axis.type or {"c": "channel", "t": "time"}.get(axis.name, "space")


def _check_spacing(
    scale: tuple[float, ...],
    axes: tuple[OmeAxis, ...],
    spacing: tuple[float, ...] | None,
    unit: str | None,
    root: Path,
) -> None:
    """Refuse labels whose spacing is not that of the image."""
    if spacing is None:
        return
    theirs, ours = scale, spacing
    units = {unit_name(axis.unit) for axis in axes if _kind(axis) == "space"}
    stated = next(iter(units)) if len(units) == 1 else None
    if stated is not None and unit is not None:
        theirs, ours = (
            convert_all(scale, stated, MICROMETRE),
            convert_all(spacing, unit, MICROMETRE),
        )
    elif set(ours) == {1.0} and unit is None:  # not known
        return
    elif stated is not None and np.allclose(convert_all(scale, stated, MICROMETRE), ours, 1e-4, 0):
        return  # the numbers that were read from this image
    if not np.allclose(theirs, ours, rtol=1e-4, atol=0):
        raise InvalidInput(
            f"`spacing` is {spacing} {unit or ''} and that of the image in {root} is {scale} "
            f"{stated or ''}",
            argument="spacing",
            remedy=(SetOption("spacing", scale), "write a file of its own: NAME.ome.zarr"),
        )


def _factors(shapes: tuple[tuple[int, ...], ...], root: Path) -> tuple[tuple[int, ...], ...]:
    """Return the whole factors from level to level; the last window may be incomplete or cut."""
    factors = [(1,) * len(shapes[0])]
    for finer, coarser in pairwise(shapes):
        steps = []
        for n, m in zip(finer, coarser, strict=True):
            step = max(1, round(n / m)) if m else 1
            if not (m == -(-n // step) or m == n // step):
                raise InvalidInput(
                    f"{root} has levels of {n} and {m} pixels along an axis, which is no whole "
                    "factor",
                    argument="path",
                    remedy="write a file of its own: NAME.ome.zarr",
                )
            steps.append(step)
        factors.append(tuple(steps))
    return tuple(factors)


# Writing ------------------------------------------------------------------------------------


def make_labels_folder(root: Path) -> Path:
    """Return the folder of the labels, which is made if there is none."""
    folder = root / "labels"
    if not folder.is_dir():
        with suppress(FileExistsError):
            make_folder(folder)
    return folder


def list_label(root: Path, name: str, v3: bool) -> None:
    """Add `name` to the list of the labels of an image, and to consolidated metadata, if any."""
    folder = root / "labels"
    with _locked(folder):
        try:
            attributes, _ = group_attributes(folder)
        except FileNotFoundError:
            attributes = {}
        listed = ome_attributes(attributes).get("labels")
        names = [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []
        if name not in names:
            names.append(name)
        if v3:
            ome = {"version": "0.5", **ome_attributes(attributes), "labels": names}
            described = {
                "zarr_format": 3, "node_type": "group", "attributes": {**attributes, "ome": ome}
            }  # fmt: skip
            _write_json(folder / "zarr.json", described)
        else:
            if not (folder / ".zgroup").is_file():
                _write_json(folder / ".zgroup", {"zarr_format": 2})
            _write_json(folder / ".zattrs", {**attributes, "labels": names})
        _consolidate(root, name, v3)


def _consolidate(root: Path, name: str, v3: bool) -> None:
    """Bring consolidated metadata up to date, which readers prefer to the files themselves."""
    file = root / ("zarr.json" if v3 else ".zmetadata")
    if not file.is_file():
        return
    described = json.loads(file.read_text(encoding="utf-8"))
    inner = described.get("consolidated_metadata") if v3 else described
    if not isinstance(inner, dict) or not isinstance(inner.get("metadata"), dict):
        return
    marks = ("zarr.json",) if v3 else (".zgroup", ".zattrs", ".zarray")
    metadata: dict[str, Any] = {
        path: value
        for path, value in inner["metadata"].items()
        if not path.startswith(f"labels/{name}/") and path != f"labels/{name}"
    }
    folder = root / "labels"
    for place in (folder, folder / name, *sorted((folder / name).iterdir())):
        for mark in marks:
            if (place / mark).is_file():
                path = place.relative_to(root).as_posix()
                own = json.loads((place / mark).read_text(encoding="utf-8"))
                metadata[path if v3 else f"{path}/{mark}"] = own
    inner["metadata"] = metadata
    _write_json(file, described)


def _write_json(file: Path, value: dict[str, Any]) -> None:
    write_whole(file, (json.dumps(value, indent=2) + "\n").encode())


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other programs of this kind from changing the list at the same time."""
    if os.name == "nt":
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some shared disks have no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
