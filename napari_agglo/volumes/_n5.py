"""Read N5 datasets, on disk or at a URL: the format of cluster_tools, Paintera and BigDataViewer.

zarr-python reads N5 no longer. A dataset is a folder with ``attributes.json``; a block is a file
``x/y/z`` with a header in big-endian order. N5 lists its axes fastest first, x, y, z; here they
come in the order plane, row, column. In its own file as each kind of file has one.
"""

from __future__ import annotations

import bz2
import itertools
import json
import lzma
import math
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.volumes._on_disk import Index, OnDisk, absent_chunks, chunks_of, reading
from napari_agglo.volumes._open import arrange, split_picks
from napari_agglo.volumes._store_location import Place
from napari_agglo.volumes._units import MICROMETRE, to_micrometres, unit_name
from napari_agglo.volumes._volume import Volume

MARK = "attributes.json"
_TYPES = {
    **{f"int{8 * size}": f">i{size}" for size in (1, 2, 4, 8)},
    **{f"uint{8 * size}": f">u{size}" for size in (1, 2, 4, 8)},
    "float32": ">f4",
    "float64": ">f8",
}  # fmt: skip


def is_n5(path: Path | Place) -> bool:
    """Return whether a folder is an N5 container or dataset, and not a Zarr with such a file."""
    place = path if isinstance(path, Place) else Place(str(path))
    attributes = _attributes(place)
    return attributes is not None and ("n5" in attributes or "dimensions" in attributes)


def open_n5(path: Path | Place, key: str | None) -> Volume:
    """Open one dataset: `key`, or the only one there is, or level ``s0`` of a pyramid."""
    inner, picks = split_picks(key)
    root = path if isinstance(path, Place) else Place(str(path))
    if inner is not None and ".." in inner.split("/"):
        raise InvalidInput(
            f"{path}:{inner} is outside {path.name}",
            argument="source",
            remedy="name a dataset inside it",
        )
    with reading(path, "N5"):
        place, attributes = _dataset(root, root / inner if inner else root, path)
        array = _Blocks.of(place, attributes)
        axes, spacing, unit = _grid(root, place, attributes, len(array.shape))
    name = path.name + (f":{inner}" if inner else "")
    data = OnDisk(array.shape, array.dtype.newbyteorder("="), array, array.block)
    arranged = arrange(data, axes, spacing, picks, name, attributes)
    return Volume(arranged.data, arranged.spacing, name, attributes, unit, arranged.origin())


def _attributes(place: Place) -> dict[str, Any] | None:
    raw = place.read(MARK)
    if raw is None:
        return None
    try:
        attributes = json.loads(raw)
    except ValueError:
        return None
    return attributes if isinstance(attributes, dict) else None


def _dataset(root: Place, place: Place, path: object) -> tuple[Place, dict[str, Any]]:
    """Return the dataset at a place: itself, its level ``s0``, or the only one below it."""
    attributes = _attributes(place)
    if attributes is not None and "dimensions" in attributes:
        return place, attributes
    level = _attributes(place / "s0")
    if level is not None and "dimensions" in level:
        return place / "s0", level
    below = [
        one for one in place.folders((MARK,), 4) if "dimensions" in (_attributes(place / one) or {})
    ]
    if len(below) == 1:
        return place / below[0], _attributes(place / below[0]) or {}
    listed = ", ".join(below) or "none"
    raise InvalidInput(
        f"{place} holds {len(below)} datasets" if below else f"{place} is no N5 dataset",
        argument="source",
        remedy=f"name one: {path}:KEY, of {listed}",
    )


@dataclass(frozen=True)
class _Blocks:
    """Read a part of a dataset, block by block; a block without a file is 0."""

    place: Place
    shape: tuple[int, ...]
    block: tuple[int, ...]
    dtype: np.dtype[Any]
    compression: tuple[str, str]  # type, and the options as JSON

    @classmethod
    def of(cls, place: Place, attributes: dict[str, Any]) -> _Blocks:
        """Return the reader of a dataset; refuse one that cannot be read."""
        kind = str(attributes.get("dataType"))
        if kind not in _TYPES:
            raise InvalidInput(
                f"{place} holds {kind}, not numbers",
                argument="source",
                remedy="name another dataset",
            )
        compression = attributes.get("compression") or {"type": "raw"}
        if "compressionType" in attributes:  # before N5 2.0
            compression = {"type": attributes["compressionType"]}
        name = str(compression.get("type"))
        if name not in _DECODERS:
            raise InvalidInput(
                f"{place} has the compression {name!r}, which is not read",
                argument="source",
                remedy=f"save it with one of {', '.join(_DECODERS)}",
            )
        shape = tuple(int(n) for n in reversed(attributes["dimensions"]))
        block = tuple(int(n) for n in reversed(attributes["blockSize"]))
        if len(block) != len(shape) or min(block, default=1) < 1 or min(shape, default=1) < 0:
            raise ValueError(f"dimensions {shape} and blockSize {block} do not fit")
        return cls(place, shape, block, np.dtype(_TYPES[kind]), (name, json.dumps(compression)))

    def __call__(self, index: Index) -> Any:
        """Return the part at an index of whole numbers and ascending slices."""
        spans = [
            range(n)[part] if isinstance(part, slice) else range(part, part + 1)
            for part, n in zip(index, self.shape, strict=True)
        ]
        out = np.zeros([len(span) for span in spans], self.dtype.newbyteorder("="))
        if out.size:
            with reading(self.place, "N5"):
                self._fill(out, spans)
        return out[tuple(slice(None) if isinstance(part, slice) else 0 for part in index)]

    def absent(self, index: Index, values: Any) -> int:
        """Return the blocks that are not there."""
        suspects = values if self.place.is_remote else None
        with reading(self.place, "N5"):
            return absent_chunks(
                index, self.block, lambda at: self.place.has(_file(at)), suspects, 0
            )

    def files(self, index: Index) -> list[tuple[Place, str]]:
        """Return the files of blocks."""
        return [(self.place, _file(at)) for at in chunks_of(index, self.block)]

    def _fill(self, out: NDArray[Any], spans: list[range]) -> None:
        grids = [
            range(span[0] // size, span[-1] // size + 1)
            for span, size in zip(spans, self.block, strict=True)
        ]
        for at in itertools.product(*grids):
            part = self._read(at)
            if part is None:
                continue
            targets, sources = [], []
            for cell, size, length, span in zip(at, self.block, part.shape, spans, strict=True):
                begin = cell * size
                # indices of the span that lie in this block
                first = max(0, -(-(begin - span.start) // span.step))
                last = max(first, min(len(span), -(-(begin + length - span.start) // span.step)))
                targets.append(slice(first, last))
                start = span.start + first * span.step - begin
                sources.append(slice(start, start + (last - first) * span.step, span.step))
            out[tuple(targets)] = part[tuple(sources)]

    def _read(self, at: tuple[int, ...]) -> NDArray[Any] | None:
        raw = self.place.read(_file(at))
        if raw is None:
            return None
        mode, ndim = struct.unpack_from(">HH", raw)
        sizes = struct.unpack_from(f">{ndim}I", raw, 4)
        start = 4 + 4 * ndim + (4 if mode == 1 else 0)
        if mode > 1 or ndim != len(self.shape):
            raise ValueError(f"block {at} has mode {mode} and {ndim} axes")
        if any(size > most for size, most in zip(reversed(sizes), self.block, strict=True)):
            raise ValueError(f"block {at} has the size {sizes}, more than a block")
        name, options = self.compression
        decoded = _DECODERS[name](raw[start:], json.loads(options))
        needed = math.prod(sizes) * self.dtype.itemsize
        if len(decoded) < needed:
            raise ValueError(f"block {at} has {len(decoded)} bytes, not {needed}")
        return np.frombuffer(decoded, self.dtype, math.prod(sizes)).reshape(sizes[::-1])


def _file(at: tuple[int, ...]) -> str:
    """Return the path of the file of a block."""
    return "/".join(str(one) for one in reversed(at))


def _gzip(data: bytes, options: dict[str, Any]) -> bytes:
    # n5 writes either a gzip or, with useZlib, a zlib header; 32 accepts both
    return zlib.decompress(data, 32 + zlib.MAX_WBITS)


def _lz4(data: bytes, options: dict[str, Any]) -> bytes:
    """Decode the blocks of lz4-java: a magic word, a token, two lengths, a checksum, the data."""
    from numcodecs import lz4

    out, at = [], 0
    while at < len(data):
        magic, token, stored, length = struct.unpack_from("<8sBII", data, at)
        if magic != b"LZ4Block":
            raise ValueError("not a block of LZ4")
        at += 21
        part = data[at : at + stored]
        at += stored
        if length:
            raw = token & 0xF0 == 0x10
            out.append(part if raw else bytes(lz4.decompress(struct.pack("<I", length) + part)))
    return b"".join(out)


def _blosc(data: bytes, options: dict[str, Any]) -> bytes:
    from numcodecs import blosc

    return bytes(blosc.decompress(data))


def _zstd(data: bytes, options: dict[str, Any]) -> bytes:
    from numcodecs.zstd import Zstd

    return bytes(Zstd().decode(data))


_DECODERS = {
    "raw": lambda data, options: data,
    "gzip": _gzip,
    "bzip2": lambda data, options: bz2.decompress(data),
    "xz": lambda data, options: lzma.decompress(data),
    "lz4": _lz4,
    "blosc": _blosc,
    "zstd": _zstd,
}


def _grid(
    root: Place, place: Place, attributes: dict[str, Any], ndim: int
) -> tuple[str, list[float] | None, str | None]:
    """Return axes, spacing and unit, as n5-viewer, Paintera and others note them."""
    own = [attributes]
    around = place.parent
    if place.name.startswith("s") and around is not None:  # a level: the group has the spacing
        own.append(_attributes(around) or {})
    axes: list[Any] = next((one["axes"] for one in own if isinstance(one.get("axes"), list)), [])
    letters = "".join(str(name)[:1] for name in reversed(axes)) if len(axes) == ndim else ""
    for k, one in enumerate(own):
        spacing, unit = _resolution(one)
        if spacing is None or len(spacing) != ndim:
            continue
        factors = attributes.get("downsamplingFactors")
        if k and isinstance(factors, list) and len(factors) == ndim:
            spacing = [value * float(f) for value, f in zip(spacing, factors, strict=True)]
        named = unit_name(unit)
        microns = [to_micrometres(value, named) for value in reversed(spacing)]
        return letters, microns, MICROMETRE if named else None
    return letters, None, None


def _resolution(attributes: dict[str, Any]) -> tuple[list[float] | None, Any]:
    pixel = attributes.get("pixelResolution")
    unit: Any = None
    if isinstance(pixel, dict):
        values, unit = pixel.get("dimensions"), pixel.get("unit")
    else:
        values = pixel or attributes.get("resolution")
    units = attributes.get("units")
    if unit is None and isinstance(units, list) and units:
        unit = units[0]
    try:
        return ([float(value) for value in values], unit) if values else (None, unit)
    except (TypeError, ValueError):
        return None, unit
