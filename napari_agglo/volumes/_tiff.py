"""Read TIFF: memory-mapped where it is not compressed, else page by page on demand."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import tifffile

from napari_agglo.errors import InvalidInput
from napari_agglo.volumes._on_disk import Index, OnDisk, pick, reading
from napari_agglo.volumes._open import arrange, only_picks
from napari_agglo.volumes._units import MICROMETRE, to_micrometres, unit_name
from napari_agglo.volumes._volume import Volume


def open_tiff(path: Path, key: str | None) -> Volume:
    """Open the first series of a TIFF file; of a pyramid, its full resolution."""
    picks = only_picks(path, key, "holds one image")
    series = open_series(path)
    attributes: dict[str, Any] = {}
    image = arrange(series.data, series.axes, series.spacing, picks, str(path), attributes)
    name = path.name + (" (level 0)" if series.levels > 1 else "")
    return Volume(image.data, image.spacing, name, attributes, series.unit, image.origin())


@dataclass(frozen=True, eq=False)
class Series:
    """The first series of a file as it is stored; `spacing` is in µm if it has a `unit`.

    Colours are an axis like other channels: "c", unless the file has that as well.
    """

    data: Any
    axes: str
    spacing: list[float] | None
    unit: str | None
    levels: int


def open_series(path: Path) -> Series:
    """Return the first series of a file."""
    with _opened(path) as tiff:
        series = tiff.series[0]
        shape, dtype, axes = tuple(series.shape), series.dtype, series.axes
        if dtype is None or 0 in shape:
            raise InvalidInput(
                f"{path} holds no voxels", argument="source", remedy="write it again"
            )
        page: Any = series.keyframe
        if page.compression not in tifffile.TIFF.DECOMPRESSORS:
            raise ValueError(f"{page.compression.name} requires the 'imagecodecs' package")
        _refuse_incomplete(series, path)
        data = _data(path, tiff, series)
        spacing, unit = _spacing(tiff, axes)
        if _shaped_metadata(tiff).get("ndim") == 1:  # `write_labels` put a line of voxels in a row
            data, axes = pick(data, {0: 0}), axes[1:]
        if "C" not in axes:
            axes = axes.replace("S", "C")
        return Series(data, axes, spacing, unit, len(series.levels))


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a file; raise the errors that tifffile would only log, for the file is damaged."""
    errors: list[str] = []
    token = _LOGGED.set(errors)
    try:
        with reading(path, "TIFF"), tifffile.TiffFile(path) as tiff:
            yield tiff
            if errors:
                raise ValueError(errors[0])
    finally:
        _LOGGED.reset(token)


def _collect(record: logging.LogRecord) -> bool:
    """Keep errors that are logged within `_opened`; let those of other users of tifffile pass."""
    errors = _LOGGED.get()
    if errors is None:
        return True
    if record.levelno >= logging.ERROR:
        errors.append(record.getMessage())
    return False


_LOGGED: ContextVar[list[str] | None] = ContextVar("logged while reading a TIFF", default=None)
logging.getLogger("tifffile").addFilter(_collect)


def _refuse_incomplete(series: Any, path: Path) -> None:
    """Refuse a series with missing planes, or with planes that end beyond the end of the file."""
    pages = list(series.pages)
    missing = sum(page is None for page in pages)
    if missing:
        raise ValueError(f"{missing} of its {len(pages)} planes are missing")
    if series.is_multifile:
        return
    ends = [
        offset + count
        for page in (pages[0], pages[-1])
        for offset, count in zip(page.dataoffsets, page.databytecounts, strict=False)
    ]
    size = path.stat().st_size
    if max(ends, default=0) > size:
        raise ValueError(f"its voxels end at byte {max(ends)}, but it has {size}")


def _data(path: Path, tiff: Any, series: Any) -> Any:
    shape, dtype = tuple(series.shape), series.dtype
    if series.dataoffset is not None and not series.is_multifile:
        stored = dtype.newbyteorder(tiff.byteorder)
        return np.memmap(path, stored, "r", series.dataoffset, shape)
    leading = shape[: len(shape) - len(series.keyframe.shape)]
    by_page = shape == leading + tuple(series.keyframe.shape)
    by_page = by_page and math.prod(leading) == len(series.pages)

    chunks = (1,) * len(leading) + shape[len(leading) :] if by_page else shape
    return OnDisk(shape, dtype, _Read(path, leading if by_page else None), chunks)


@dataclass(frozen=True)
class _Read:
    """Read a part of the first series: the pages that it touches, or all if they do not fit."""

    path: Path
    leading: tuple[int, ...] | None

    def __call__(self, index: Index) -> Any:
        with _opened(self.path) as tiff:
            if self.leading is not None:
                return _read_pages(tiff.series[0], self.leading, index)
            return tiff.series[0].asarray()[index]


def _read_pages(series: Any, leading: tuple[int, ...], index: Index) -> np.ndarray[Any, Any]:
    """Read only the pages that an index touches."""
    numbers = np.arange(len(series.pages)).reshape(leading)[index[: len(leading)]]
    within = index[len(leading) :]
    blank = np.broadcast_to(np.zeros((), series.dtype), series.keyframe.shape)
    out = np.empty((numbers.size, *blank[within].shape), series.dtype)
    for place, number in enumerate(numbers.reshape(-1)):
        out[place] = series.pages[int(number)].asarray()[within]
    return out.reshape(numbers.shape + out.shape[1:])


def _shaped_metadata(tiff: Any) -> dict[str, Any]:
    series = tiff.shaped_metadata
    return dict(series[0]) if series else {}


def _spacing(tiff: Any, axes: str) -> tuple[list[float] | None, str | None]:
    """Return the spacing, in µm if a unit is stated, and that unit."""
    if tiff.is_ome:
        sizes, units = _ome_sizes(tiff.ome_metadata)
    elif tiff.is_imagej:
        sizes, units = _imagej_sizes(tiff)
    else:
        own = _shaped_metadata(tiff)  # one number per axis, by `write_labels`
        spacing, unit = own.get("spacing"), unit_name(own.get("unit"))
        if not isinstance(spacing, list):
            return None, None
        return [to_micrometres(one, unit) for one in spacing], MICROMETRE if unit else None
    if not any(letter in sizes for letter in axes):
        return None, None
    return [sizes.get(letter, 1.0) for letter in axes], MICROMETRE if any(units) else None


def _ome_sizes(xml: str) -> tuple[dict[str, float], list[str | None]]:
    sizes: dict[str, float] = {}
    units: list[str | None] = []
    # Expat builds no external entities; a document type, which could blow up, is not OME.
    if "<!DOCTYPE" in xml or "<!ENTITY" in xml:
        return sizes, units
    for element in ElementTree.fromstring(xml).iter():
        if element.tag.rpartition("}")[2] == "Pixels":
            for letter in "XYZ":
                size = element.get(f"PhysicalSize{letter}")
                if size is not None:
                    unit = element.get(f"PhysicalSize{letter}Unit", "µm")  # the default of OME
                    units.append(unit_name(unit))
                    sizes[letter] = to_micrometres(size, unit)
            break
    return sizes, units


def _imagej_sizes(tiff: Any) -> tuple[dict[str, float], list[str | None]]:
    metadata = tiff.imagej_metadata or {}
    unit = metadata.get("unit")
    sizes: dict[str, float] = {}
    for letter, tag in (("X", "XResolution"), ("Y", "YResolution")):
        if tag in tiff.pages[0].tags:
            top, bottom = tiff.pages[0].tags[tag].value
            if top > 0 and bottom > 0 and (unit or top != bottom):
                sizes[letter] = to_micrometres(float(f"{bottom / top:.9g}"), unit)
    if "spacing" in metadata and float(metadata["spacing"]) > 0:
        sizes["Z"] = to_micrometres(metadata["spacing"], unit)
    return sizes, [unit_name(unit)]
