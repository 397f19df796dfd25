"""Metadata of OME-Zarr images (NGFF): made and read as values, apart from any array or store.

`OmeImage` is an image pyramid: axes, and for each level its path, scale and translation. It is made
by `plan_image`, written as attributes of a group by `OmeImage.attributes` (0.4 or 0.5), and read
back by `read_image` (0.1 to 0.6). Who writes arrays, all at once or block by block, takes the
shapes of the levels from `OmeImage.shapes`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from napari_agglo._version import __version__
from napari_agglo.errors import InvalidInput, SetOption
from napari_agglo.volumes._units import check_unit

VERSIONS = ("0.4", "0.5")  # that are written
DEFAULT_VERSION = VERSIONS[-1]
_READ = ("0.1", "0.2", "0.3", "0.4", "0.5", "0.6")
_SMALL = 2**18  # voxels of a level below which no further one is made: 64 x 64 x 64, 512 x 512
METHODS = ("mode", "nearest")


@dataclass(frozen=True)
class OmeAxis:
    """An axis.

    Attributes
    ----------
    name : str
        Its name, such as "z".
    type : str
        "space", "time", "channel" or "".
    unit : str, optional
        Its unit, if known.
    """

    name: str
    type: str = ""
    unit: str | None = None


@dataclass(frozen=True)
class OmeLevel:
    """A level of a pyramid.

    Attributes
    ----------
    path : str
        The array, relative to the group of the image.
    scale, translation : tuple of float
        Distance between voxels, and position of the centre of the first one, along each axis.
    placed : bool
        Whether the file states the translation; else it is 0.
    """

    path: str
    scale: tuple[float, ...]
    translation: tuple[float, ...]
    placed: bool = False


@dataclass(frozen=True)
class OmeImage:
    """An image pyramid as OME-Zarr describes it.

    Attributes
    ----------
    name : str
        Name of the image.
    axes : tuple of OmeAxis
        The axes, in the order of the arrays.
    levels : tuple of OmeLevel
        The levels, the finest first.
    shapes : tuple of tuple of int
        The shape of each level; empty if the metadata were read from a file, which do not have it.
    factors : tuple of tuple of int
        The voxels of the level before that make one of each level, by axis; 1 for level 0.
    method : str
        The way levels were made: "mode" or "nearest" here; other programs write other words.
    version : str
        Version of OME-Zarr.
    """

    name: str
    axes: tuple[OmeAxis, ...]
    levels: tuple[OmeLevel, ...]
    shapes: tuple[tuple[int, ...], ...] = ()
    factors: tuple[tuple[int, ...], ...] = ()
    method: str = ""
    version: str = DEFAULT_VERSION

    @property
    def zarr_format(self) -> int:
        """Version of Zarr that this version of OME-Zarr is stored in."""
        return 2 if self.version <= "0.4" else 3

    @property
    def letters(self) -> list[str]:
        """Names of the axes."""
        return [axis.name for axis in self.axes]

    def attributes(self, *, labels: bool = True, source: str | None = None) -> dict[str, Any]:
        """Return the attributes of the group that has the levels.

        Parameters
        ----------
        labels : bool
            Whether this is a label image.
        source : str, optional
            Path from a label image to its image: ``"../../"`` in the ``labels`` of an image.

        Returns
        -------
        dict
            The attributes as JSON.

        Examples
        --------
        >>> image = plan_image("cells", (4, 4), (2.0, 1.0), unit="nm")
        >>> list(image.attributes()["ome"])
        ['version', 'multiscales', 'image-label']
        """
        multiscale: dict[str, Any] = {
            "name": self.name,
            "axes": [_axis_json(axis) for axis in self.axes],
            "datasets": [
                {"path": level.path, "coordinateTransformations": _transforms(level)}
                for level in self.levels
            ],
        }
        if len(self.levels) > 1:
            multiscale["type"] = self.method
            multiscale["metadata"] = {
                "method": "napari_agglo.volumes.downsample_labels",
                "version": __version__,
                "kwargs": {"method": self.method},
            }
        label: dict[str, Any] = {"source": {"image": source}} if source else {}
        if self.zarr_format == 2:
            multiscale = {"version": self.version, **multiscale}
            flat: dict[str, Any] = {"multiscales": [multiscale]}
            return {**flat, "image-label": {"version": self.version, **label}} if labels else flat
        ome = {"version": self.version, "multiscales": [multiscale]}
        return {"ome": {**ome, "image-label": label} if labels else ome}


def plan_image(
    name: str,
    shape: Sequence[int],
    spacing: Sequence[float] | None = None,
    *,
    unit: str | None = None,
    version: str = DEFAULT_VERSION,
    method: str = "mode",
    levels: int | None = None,
    origin: Sequence[float] | None = None,
) -> OmeImage:
    """Plan the pyramid of a label image: its axes, and the shape, scale and place of each level.

    From level to level the spatial axes are halved whose voxels are less than twice as long as the
    shortest ones, so that voxels become isotropic, until a level has 2**18 voxels or fewer.

    Parameters
    ----------
    name : str
        Name of the image.
    shape : sequence of int
        Shape of level 0; the last three axes are z, y, x.
    spacing : sequence of float, optional
        Distance between voxels; 1 without a unit if it is not known.
    unit : str, optional
        Unit of `spacing`, such as ``"nm"``; by default none is stated.
    version : {"0.5", "0.4"}
        Version of OME-Zarr.
    method : {"mode", "nearest"}
        How levels are made, see `downsample_labels`; it decides where their voxels lie.
    levels : int, optional
        Number of levels; by default as many as it takes.
    origin : sequence of float, optional
        Place of the first voxel in a larger volume, in voxels; by default none is stated.

    Returns
    -------
    OmeImage
        The axes and the levels, for `create_levels`.

    Examples
    --------
    >>> image = plan_image("cells", (100, 1000, 1000), (40, 4, 4), unit="nm")
    >>> [(level.scale, shape) for level, shape in zip(image.levels, image.shapes)][1:3]
    [((40.0, 8.0, 8.0), (100, 500, 500)), ((40.0, 16.0, 16.0), (100, 250, 250))]
    >>> [level.translation for level in image.levels][1]
    (0.0, 2.0, 2.0)
    """
    if version not in VERSIONS:
        raise InvalidInput(
            f"`version` must be one of {', '.join(VERSIONS)}, got {version!r}",
            argument="version",
            remedy=SetOption("version", VERSIONS[-1]),
        )
    ndim = len(shape)
    if ndim > 6:
        raise InvalidInput(
            f"OME-Zarr holds at most 6 axes here, not {ndim}",
            argument="path",
            remedy="write .npy or .h5",
        )
    letters = "uvwzyx"[-ndim:]
    named = None if spacing is None or unit is None else check_unit(unit)
    # Further axes have no type: a "time" or "channel" of length 1 would be dropped on reading.
    axes = tuple(OmeAxis(n, "space", named) if n in "zyx" else OmeAxis(n) for n in letters)
    scale = tuple(float(value) for value in spacing or (1.0,) * ndim)
    shapes = [tuple(int(n) for n in shape)]
    factors, totals = [(1,) * ndim], [(1,) * ndim]
    while len(shapes) < (levels or 64):
        step = next_factors(shapes[-1], [s * f for s, f in zip(scale, totals[-1], strict=True)])
        if max(step) == 1 or (levels is None and math.prod(shapes[-1]) <= _SMALL):
            break
        factors.append(step)
        shapes.append(tuple(-(-n // f) for n, f in zip(shapes[-1], step, strict=True)))
        totals.append(tuple(a * b for a, b in zip(totals[-1], step, strict=True)))
    planned = tuple(_level(str(k), scale, total, method, origin) for k, total in enumerate(totals))
    return OmeImage(name, axes, planned, tuple(shapes), tuple(factors), method, version)


def next_factors(shape: Sequence[int], scale: Sequence[float]) -> tuple[int, ...]:
    """Return the factor, 1 or 2, by which each axis shrinks to the next level."""
    ndim = len(shape)
    can = [axis >= ndim - 3 and n > 1 for axis, n in enumerate(shape)]
    finest = min((s for s, one in zip(scale, can, strict=True) if one), default=0.0)
    return tuple(2 if one and s < 2 * finest else 1 for s, one in zip(scale, can, strict=True))


def _level(
    path: str,
    scale: tuple[float, ...],
    total: tuple[int, ...],
    method: str,
    origin: Sequence[float] | None,
) -> OmeLevel:
    """Return a level whose voxels are `total` times as long as those of level 0.

    A voxel that stands for a window lies at the middle of it; one that is the first of its window
    lies where it was.
    """
    return OmeLevel(
        path,
        tuple(s * f for s, f in zip(scale, total, strict=True)),
        tuple(
            s * (first + (f - 1) / 2 * (method == "mode"))
            for s, f, first in zip(scale, total, origin or (0.0,) * len(scale), strict=True)
        ),
        placed=origin is not None,
    )


def _axis_json(axis: OmeAxis) -> dict[str, str]:
    described = {"name": axis.name}
    if axis.type:
        described["type"] = axis.type
    if axis.unit:
        described["unit"] = axis.unit
    return described


def _transforms(level: OmeLevel) -> list[dict[str, Any]]:
    transforms: list[dict[str, Any]] = [{"type": "scale", "scale": list(level.scale)}]
    if level.placed or any(level.translation):
        transforms.append({"type": "translation", "translation": list(level.translation)})
    return transforms


# Reading ------------------------------------------------------------------------------------


def ome_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the OME attributes, which 0.5 keeps under one key and 0.4 among the others."""
    inner = attributes.get("ome")
    return dict(inner) if isinstance(inner, dict) else dict(attributes)


def has_image(attributes: Mapping[str, Any]) -> bool:
    """Return whether the attributes of a group describe an image, well or badly."""
    return bool(ome_attributes(attributes).get("multiscales"))


def read_image(attributes: Mapping[str, Any], where: object) -> OmeImage:
    """Return the first image that the attributes of a group describe.

    Versions 0.1 to 0.5, and 0.6 (coordinate systems of RFC-5) as far as its levels are scaled and
    shifted only. Anything else is refused in words that name the fault; `where` is the group.

    Examples
    --------
    >>> image = read_image(plan_image("cells", (4, 4), (2.0, 1.0)).attributes(), "cells.zarr")
    >>> image.levels[0].scale, image.letters
    ((2.0, 1.0), ['y', 'x'])
    """
    ome = ome_attributes(attributes)
    images = ome.get("multiscales")
    if not isinstance(images, list) or not images or not isinstance(images[0], dict):
        raise _fault(where, "`multiscales` must be a list with an image")
    image = images[0]
    version = str(ome.get("version") or image.get("version") or "0.4")
    short = ".".join(version.split(".")[:2]).partition("-")[0].partition("dev")[0].rstrip(".")
    if short not in _READ:
        raise _fault(where, f"its version is {version}, and those up to {_READ[-1]} are read")
    datasets = image.get("datasets")
    if not isinstance(datasets, list) or not datasets:
        raise _fault(where, "`datasets` must be a list of levels")
    systems = image.get("coordinateSystems")
    axes = _axes_of(image, systems, where)
    levels = []
    for k, dataset in enumerate(datasets):
        if not isinstance(dataset, dict) or not isinstance(dataset.get("path"), str | int):
            raise _fault(where, f"level {k} has no `path`")
        path = str(dataset["path"])
        if ".." in path.split("/") or path.startswith("/"):
            raise _fault(where, f"level {k} is outside of the image: {path!r}")
        transforms = list(_list_of(dataset, where))
        if systems is None:  # in 0.6 those of the image lead to other systems of coordinates
            transforms += _list_of(image, where)
        levels.append(_level_of(path, transforms, len(axes), where))
    return OmeImage(
        str(image.get("name") or ""), axes, tuple(levels), method=str(image.get("type") or ""),
        version=short,
    )  # fmt: skip


def _axes_of(image: Mapping[str, Any], systems: Any, where: object) -> tuple[OmeAxis, ...]:
    """Return the axes; none if the metadata name none, which before 0.3 were always TCZYX."""
    described = image.get("axes")
    if systems is not None:
        if not isinstance(systems, list) or not all(isinstance(one, dict) for one in systems):
            raise _fault(where, "`coordinateSystems` must be a list")
        outputs = {
            str(one.get("output"))
            for dataset in image.get("datasets") or []
            if isinstance(dataset, dict)
            for one in dataset.get("coordinateTransformations") or []
            if isinstance(one, dict)
        }
        named = [one for one in systems if str(one.get("name")) in outputs] or systems
        if not named:
            raise _fault(where, "`coordinateSystems` is empty")
        described = named[0].get("axes")
    if described is None:
        return ()
    if not isinstance(described, list):
        raise _fault(where, "`axes` must be a list")
    axes = []
    for one in described:
        one = one if isinstance(one, dict) else {"name": one}
        if not isinstance(one.get("name"), str):
            raise _fault(where, "an axis has no `name`")
        unit = one.get("unit")
        axes.append(
            OmeAxis(one["name"], str(one.get("type") or ""), None if unit is None else str(unit))
        )
    return tuple(axes)


def _list_of(owner: Mapping[str, Any], where: object) -> list[Mapping[str, Any]]:
    transforms = owner.get("coordinateTransformations") or []
    if not isinstance(transforms, list) or not all(isinstance(one, dict) for one in transforms):
        raise _fault(where, "`coordinateTransformations` must be a list of transformations")
    return transforms


def _level_of(
    path: str, transforms: Sequence[Mapping[str, Any]], ndim: int, where: object
) -> OmeLevel:
    """Return a level after all its transformations, one after the other."""
    scale: list[float] | None = None
    shift: list[float] | None = None
    for one in _flat(transforms, where):
        kind = one.get("type")
        if kind == "identity":
            continue
        if kind not in ("scale", "translation"):
            raise _fault(where, f"level {path} has a transformation {kind!r}, not only a scale")
        values = _numbers(one, str(kind), ndim, where, path)
        if kind == "scale":
            if not all(value > 0 for value in values):
                raise _fault(where, f"level {path} has the scale {list(values)}, not above 0")
            scale = [a * b for a, b in zip(scale or [1.0] * len(values), values, strict=True)]
            shift = [a * b for a, b in zip(shift, values, strict=True)] if shift else None
        else:
            shift = [a + b for a, b in zip(shift or [0.0] * len(values), values, strict=True)]
    n = ndim or len(scale or shift or ())
    return OmeLevel(path, tuple(scale or ()), tuple(shift or (0.0,) * n), shift is not None)


def _flat(transforms: Sequence[Mapping[str, Any]], where: object) -> list[Mapping[str, Any]]:
    """Return the transformations with those of each `sequence` (0.6) in its place."""
    flat: list[Mapping[str, Any]] = []
    for one in transforms:
        if one.get("type") == "sequence":
            inner = one.get("transformations")
            if not isinstance(inner, list) or not all(isinstance(part, dict) for part in inner):
                raise _fault(where, "a `sequence` has no list of `transformations`")
            flat += _flat(inner, where)
        else:
            flat.append(one)
    return flat


def _numbers(
    transform: Mapping[str, Any], kind: str, ndim: int, where: object, path: str
) -> list[float]:
    """Return the numbers of a scale or translation, one for each axis."""
    values = transform.get(kind)
    if not isinstance(values, list):
        raise _fault(where, f"the {kind} of level {path} is not a list of numbers in its metadata")
    try:
        numbers = [float(value) for value in values]
    except (TypeError, ValueError):
        numbers = [math.nan]
    if not all(map(math.isfinite, numbers)):
        raise _fault(where, f"the {kind} of level {path} is {values}, not a number for each axis")
    if ndim and len(numbers) != ndim:
        raise _fault(
            where, f"the {kind} of level {path} has {len(numbers)} numbers for {ndim} axes"
        )
    return numbers


def _fault(where: object, problem: str) -> InvalidInput:
    return InvalidInput(
        f"{where} is not an OME-Zarr image that can be read: {problem}",
        argument="source",
        remedy="name the array itself, PATH:0, which is read without this metadata, and give the "
        "spacing",
    )
