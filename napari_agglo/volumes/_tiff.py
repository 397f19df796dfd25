"""Read TIFF: memory-mapped where it is not compressed, else page by page on demand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import tifffile

from napari_agglo.errors import InvalidInput
from napari_agglo.volumes._axes import arrange, split_picks, to_micrometres
from napari_agglo.volumes._lazy import Index, OnDisk, reading
from napari_agglo.volumes._volume import Volume


def open_tiff(path: Path, key: str | None) -> Volume:
    """Open the first series of a TIFF file; of a pyramid, its full resolution."""
    inner, picks = split_picks(key)
    if inner is not None:
        raise InvalidInput(
            f"{path} holds one image, so it has no key {inner!r}; drop the :{inner}."
        )
    with reading(path, "TIFF"), tifffile.TiffFile(path) as tiff:
        series = tiff.series[0]
        shape, dtype, axes = tuple(series.shape), series.dtype, series.axes
        if dtype is None or 0 in shape:
            raise InvalidInput(f"{path} holds no voxels.")
        page: Any = series.keyframe
        if page.compression not in tifffile.TIFF.DECOMPRESSORS:
            raise ValueError(f"{page.compression.name} requires the 'imagecodecs' package")
        data = _data(path, tiff, series)
        spacing = _spacing(tiff, axes)
        if _is_one_axis(tiff):
            data, axes = (data[0] if isinstance(data, np.ndarray) else _flat(data)), axes[1:]
        level = " (level 0)" if len(series.levels) > 1 else ""
    data, kept = arrange(data, axes, spacing, picks, str(path))
    return Volume(data, kept, path.name + level)


def _data(path: Path, tiff: Any, series: Any) -> Any:
    shape, dtype = tuple(series.shape), series.dtype
    if series.dataoffset is not None and not series.is_multifile:
        stored = dtype.newbyteorder(tiff.byteorder)
        return np.memmap(path, stored, "r", series.dataoffset, shape)
    leading = shape[: len(shape) - len(series.keyframe.shape)]
    by_page = shape == leading + tuple(series.keyframe.shape)
    by_page = by_page and math.prod(leading) == len(series.pages)

    def read(index: Index) -> Any:
        with reading(path, "TIFF"), tifffile.TiffFile(path) as again:
            if by_page:
                return _read_pages(again.series[0], leading, index)
            return again.series[0].asarray()[index]

    chunks = (1,) * len(leading) + shape[len(leading) :] if by_page else shape
    return OnDisk(shape, dtype, read, chunks)


def _read_pages(series: Any, leading: tuple[int, ...], index: Index) -> np.ndarray[Any, Any]:
    """Read only the pages that an index touches."""
    numbers = np.arange(len(series.pages)).reshape(leading)[index[: len(leading)]]
    within = index[len(leading) :]
    blank = np.zeros(series.keyframe.shape, series.dtype)
    out = np.empty((numbers.size, *blank[within].shape), series.dtype)
    for place, number in enumerate(numbers.reshape(-1)):
        page = series.pages[int(number)]
        out[place] = (blank if page is None else page.asarray())[within]  # None: never written
    return out.reshape(numbers.shape + out.shape[1:])


def _flat(data: OnDisk) -> OnDisk:
    return OnDisk(data.shape[1:], data.dtype, lambda index: data[(0, *index)])


def _shaped(tiff: Any) -> dict[str, Any]:
    found = tiff.shaped_metadata
    return dict(found[0]) if found else {}


def _is_one_axis(tiff: Any) -> bool:
    """Whether `write_labels` put a line of voxels into this file, as an image of one row."""
    return _shaped(tiff).get("ndim") == 1


def _spacing(tiff: Any, axes: str) -> list[float] | None:
    if tiff.is_ome:
        sizes = _ome_sizes(tiff.ome_metadata)
    elif tiff.is_imagej:
        sizes = _imagej_sizes(tiff)
    else:
        written = _shaped(tiff).get("spacing")  # one number an axis, as `write_labels` puts it
        return list(written) if isinstance(written, list) else None
    if not any(letter in sizes for letter in axes):
        return None
    return [sizes.get(letter, 1.0) for letter in axes]


def _ome_sizes(xml: str) -> dict[str, float]:
    sizes: dict[str, float] = {}
    # Expat builds no external entities; a document type, which could blow up, is not OME.
    if "<!DOCTYPE" in xml or "<!ENTITY" in xml:
        return sizes
    for element in ElementTree.fromstring(xml).iter():
        if element.tag.rpartition("}")[2] == "Pixels":
            for letter in "XYZ":
                size = element.get(f"PhysicalSize{letter}")
                if size is not None:
                    unit = element.get(f"PhysicalSize{letter}Unit")
                    sizes[letter] = to_micrometres(size, unit)
            break
    return sizes


def _imagej_sizes(tiff: Any) -> dict[str, float]:
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
    return sizes
