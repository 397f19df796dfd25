"""Neuroglancer's precomputed volumes: read on disk or at a URL, and written as a segmentation.

A volume is a folder with ``info`` (JSON) and a folder for each scale; a chunk is a file
``x0-x1_y0-y1_z0-z1``. Axes are listed x, y, z there, and sizes are nanometres. Segmentations are
written as uint64 in the encoding ``compressed_segmentation``, which Neuroglancer decodes on the
graphics card; chunks of all scales are plain files, no shards.
"""

from __future__ import annotations

import gzip
import itertools
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import InvalidInput
from napari_agglo.volumes._label_pyramid import coarse_part, downsample_labels
from napari_agglo.volumes._labels_on_disk import is_on_disk
from napari_agglo.volumes._ome_zarr_metadata import OmeImage, plan_image
from napari_agglo.volumes._on_disk import Index, OnDisk, absent_chunks, chunks_of, pick, reading
from napari_agglo.volumes._open import LEVEL_0, arrange, origin_of, split_picks
from napari_agglo.volumes._store_location import Place
from napari_agglo.volumes._units import MICROMETRE, convert, convert_all
from napari_agglo.volumes._volume import Volume

MARK = "info"
SUFFIX = ".precomputed"
CHUNK = 64  # voxels along each axis of a chunk that is written
BLOCK = 8  # of a block of compressed_segmentation
PROPERTIES = "segment_properties"
_NO_UNIT = "spacing_unit"  # "unknown" in `info` if the numbers of `resolution` are no nanometres
_AXES = "axes"  # in `info`, the number of axes of an image that is not a volume


def is_precomputed(path: Path | Place) -> bool:
    """Return whether a folder is a precomputed volume."""
    place = path if isinstance(path, Place) else Place(str(path))
    info = _info(place)
    return info is not None and "scales" in info


def _info(place: Place) -> dict[str, Any] | None:
    raw = place.read(MARK)
    try:
        info = None if raw is None else json.loads(raw)
    except ValueError:
        return None
    return info if isinstance(info, dict) else None


def open_precomputed(path: Path | Place, key: str | None) -> Volume:
    """Open one scale, the finest unless `key` names another one by its key or number."""
    inner, picks = split_picks(key)
    place = path if isinstance(path, Place) else Place(str(path))
    with reading(path, "a precomputed volume"):
        info = _info(place)
        if info is None:
            raise InvalidInput(
                f"{path} has no readable info", argument="source", remedy="check the folder"
            )
        scale = _scale(info, inner, path)
        array = _Chunks.of(place, info, scale)
        nanometres = [float(value) for value in scale["resolution"]][::-1]
        known = info.get(_NO_UNIT) != "unknown"
        spacing = [convert(v, "nanometer", MICROMETRE) for v in nanometres] if known else nanometres
        ndim = min(3, int(info.get(_AXES) or 3))
    name = path.name + (f":{inner}" if inner else "")
    chunks = (array.channels, *array.chunk)
    data = OnDisk((array.channels, *array.shape), array.dtype, array, chunks)
    letters, spacing = "czyx", [1.0, *spacing]
    if array.channels == 1:  # numbers of axes then count from z; planes have no z
        data = pick(data, {axis: 0 for axis in range(4 - ndim)})
        letters, spacing = letters[-ndim:], spacing[-ndim:]
    attributes: dict[str, Any] = {}
    arranged = arrange(data, letters, spacing, picks, name, attributes)
    level = LEVEL_0 if len(info["scales"]) > 1 and inner is None else ""
    # 0 is the default of the format, and says nothing
    offset = [0, *array.offset] if any(array.offset) else None
    origin = arranged.origin(origin_of(offset, [1.0] * 4, letters, arranged.data))
    unit = MICROMETRE if known else None
    return Volume(arranged.data, arranged.spacing, name + level, attributes, unit, origin)


def level_keys(path: Path | Place, inner: str | None) -> list[str]:
    """Return the keys of the scales of a volume, the finest first."""
    info = _info(path if isinstance(path, Place) else Place(str(path))) or {}
    return [str(k) for k in range(len(info.get("scales", ())))]


def _scale(info: dict[str, Any], key: str | None, path: object) -> dict[str, Any]:
    scales = info["scales"]
    if not isinstance(scales, list) or not all(isinstance(one, dict) for one in scales):
        raise ValueError("`scales` in its info is not a list")
    keys = [str(one.get("key")) for one in scales]
    if key is None:
        return dict(scales[0])
    if key in keys or (key.isdigit() and int(key) < len(keys)):
        return dict(scales[keys.index(key) if key in keys else int(key)])
    raise InvalidInput(
        f"{path} has no scale {key!r}", argument="source", remedy=f"it holds: {', '.join(keys)}"
    )


@dataclass(frozen=True)
class _Chunks:
    """Read a part of a scale, with an axis of channels first; a chunk without a file is 0."""

    place: Place
    shape: tuple[int, ...]  # z, y, x
    channels: int
    chunk: tuple[int, ...]
    offset: tuple[int, ...]
    dtype: np.dtype[Any]
    encoding: str
    block: tuple[int, ...]

    @classmethod
    def of(cls, place: Place, info: dict[str, Any], scale: dict[str, Any]) -> _Chunks:
        """Return the reader of a scale; refuse one that cannot be read."""
        key, encoding = str(scale["key"]), str(scale.get("encoding"))
        if ".." in key.split("/") or key.startswith("/"):
            raise ValueError(f"the scale {key!r} is outside of the volume")
        if scale.get("sharding") is not None:
            raise InvalidInput(
                f"{place} is sharded, which is not read",
                argument="source",
                remedy="convert it to Zarr or to plain chunks, e.g. with tensorstore or igneous",
            )
        if encoding not in ("raw", "compressed_segmentation"):
            raise InvalidInput(
                f"{place} has chunks in the encoding {encoding!r}, which is not read",
                argument="source",
                remedy="convert it to raw or compressed_segmentation, or to Zarr",
            )
        block = scale.get("compressed_segmentation_block_size") or (BLOCK,) * 3
        return cls(
            place / key, _reversed(scale["size"]), int(info.get("num_channels", 1)),
            _reversed(scale["chunk_sizes"][0]), _reversed(scale.get("voxel_offset") or (0, 0, 0)),
            np.dtype(str(info["data_type"])), encoding, _reversed(block),
        )  # fmt: skip

    def __call__(self, index: Index) -> Any:
        """Return the part at an index of whole numbers and ascending slices."""
        spans = [
            range(n)[part] if isinstance(part, slice) else range(part, part + 1)
            for part, n in zip(index, (self.channels, *self.shape), strict=True)
        ]
        out = np.zeros([len(span) for span in spans], self.dtype)
        if out.size:
            with reading(self.place, "a precomputed volume"):
                box = np.zeros(
                    (self.channels, *(span[-1] + 1 - span[0] for span in spans[1:])), self.dtype
                )
                corner = [span[0] for span in spans[1:]]
                self._fill(box, corner)
                steps = tuple(slice(None, None, span.step) for span in spans[1:])
                channels = slice(spans[0].start, spans[0].stop, spans[0].step)
                out[...] = box[(channels, *steps)]
        return out[tuple(slice(None) if isinstance(part, slice) else 0 for part in index)]

    def absent(self, index: Index, values: Any) -> int:
        """Return the chunks that are not there."""
        suspects = values if self.place.is_remote else None

        def has(at: tuple[int, ...]) -> bool:
            name = self._file(at)
            return self.place.has(name, *(() if self.place.is_remote else (f"{name}.gz",)))

        with reading(self.place, "a precomputed volume"):
            return absent_chunks(index, (self.channels, *self.chunk), has, suspects, 0)

    def files(self, index: Index) -> list[tuple[Place, str]]:
        """Return the files of chunks; those on disk may have the suffix ``.gz``."""
        places = chunks_of(index, (self.channels, *self.chunk))
        return [(self.place, self._file(at)) for at in places]

    def _file(self, at: tuple[int, ...]) -> str:
        begin = [k * c for k, c in zip(at[1:], self.chunk, strict=True)]
        end = [min(b + c, n) for b, c, n in zip(begin, self.chunk, self.shape, strict=True)]
        return self._name(begin, end)

    def _name(self, begin: list[int], end: list[int]) -> str:
        return chunk_name(
            [b + o for b, o in zip(begin, self.offset, strict=True)],
            [e + o for e, o in zip(end, self.offset, strict=True)],
        )

    def _fill(self, box: NDArray[Any], corner: list[int]) -> None:
        grids = [
            range(a // c, (a + n - 1) // c + 1)
            for a, n, c in zip(corner, box.shape[1:], self.chunk, strict=True)
        ]
        for at in itertools.product(*grids):
            begin = [k * c for k, c in zip(at, self.chunk, strict=True)]
            end = [min(b + c, n) for b, c, n in zip(begin, self.chunk, self.shape, strict=True)]
            part = self._read(begin, end)
            if part is None:
                continue
            low = [max(a, b) for a, b in zip(corner, begin, strict=True)]
            high = [min(a + n, e) for a, n, e in zip(corner, box.shape[1:], end, strict=True)]
            target = tuple(slice(b - a, e - a) for a, b, e in zip(corner, low, high, strict=True))
            source = tuple(slice(a - b, e - b) for b, a, e in zip(begin, low, high, strict=True))
            box[(slice(None), *target)] = part[(slice(None), *source)]

    def _read(self, begin: list[int], end: list[int]) -> NDArray[Any] | None:
        name = self._name(begin, end)
        raw = self.place.read(name)
        if raw is None and not self.place.is_remote:
            packed = self.place.read(f"{name}.gz")  # as cloud-volume writes to disk
            raw = None if packed is None else packed
        if raw is None:
            return None
        if raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
        size = (self.channels, *(e - b for b, e in zip(begin, end, strict=True)))
        if self.encoding == "raw":
            return np.frombuffer(raw, self.dtype.newbyteorder("<")).reshape(size)
        return decode_segmentation(raw, size, self.dtype, self.block)


def _reversed(values: Any) -> tuple[int, ...]:
    return tuple(int(value) for value in reversed(values))


def chunk_name(begin: list[int], end: list[int]) -> str:
    """Return the file of a chunk between two corners (z, y, x)."""
    return "_".join(f"{b}-{e}" for b, e in zip(reversed(begin), reversed(end), strict=True))


# Compressed segmentation --------------------------------------------------------------------
# A channel is a list of 32-bit words: two for each block (24 bits for the place of its table of
# ids, 8 for the bits of a voxel, 32 for the place of its voxels), then the voxels and tables.


def encode_segmentation(chunk: NDArray[np.uint64], block: int = BLOCK) -> bytes:
    """Return one channel (z, y, x) in the encoding compressed_segmentation.

    Examples
    --------
    >>> import numpy as np
    >>> chunk = np.arange(8, dtype=np.uint64).reshape(2, 2, 2)
    >>> data = encode_segmentation(chunk)
    >>> (decode_segmentation(data, (1, 2, 2, 2), chunk.dtype, (8, 8, 8))[0] == chunk).all()
    np.True_
    """
    padding = [(0, -n % block) for n in chunk.shape]
    padded = np.pad(chunk, padding, mode="edge") if any(p for _, p in padding) else chunk
    grid = [n // block for n in padded.shape]
    cells = padded.reshape(grid[0], block, grid[1], block, grid[2], block)
    cells = cells.transpose(0, 2, 4, 1, 3, 5).reshape(-1, block**3)
    header = np.zeros((len(cells), 2), np.uint32)
    words: list[NDArray[np.uint32]] = []
    at = header.size
    tables: dict[bytes, int] = {}
    for k, cell in enumerate(cells):
        ids, inverse = np.unique(cell, return_inverse=True)
        bits = next(b for b in (0, 1, 2, 4, 8, 16, 32) if len(ids) <= 1 << b)
        values_at = at
        if bits:
            per_word = 32 // bits
            shifts = np.arange(per_word, dtype=np.uint32) * np.uint32(bits)
            packed = inverse.astype(np.uint32).reshape(-1, per_word) << shifts
            words.append(np.bitwise_or.reduce(packed, axis=1))
            at += len(words[-1])
        key = ids.tobytes()
        if key not in tables:
            tables[key] = at
            words.append(ids.astype("<u8").view("<u4"))
            at += len(words[-1])
        header[k] = tables[key] | bits << 24, values_at
    start = np.array([1], "<u4")  # the only channel begins after this word
    return b"".join(part.astype("<u4").tobytes() for part in (start, header, *words))


def decode_segmentation(
    data: bytes, size: tuple[int, ...], dtype: np.dtype[Any], block: tuple[int, ...]
) -> NDArray[Any]:
    """Return the channels (c, z, y, x) of a chunk in the encoding compressed_segmentation."""
    words = np.frombuffer(data, "<u4")
    out = np.empty(size, dtype)
    grid = [-(-n // b) for n, b in zip(size[1:], block, strict=True)]
    wide = dtype.itemsize // 4
    for channel in range(size[0]):
        start = int(words[channel])
        header = words[start : start + 2 * math.prod(grid)].reshape(*grid, 2)
        for at in itertools.product(*map(range, grid)):
            first, values_at = (int(word) for word in header[at])
            bits, table_at = first >> 24, start + (first & 0xFFFFFF)
            if bits:
                count = math.prod(block) * bits // 32
                packed = words[start + values_at : start + values_at + count]
                shifts = np.arange(32 // bits, dtype=np.uint32) * np.uint32(bits)
                mask = np.uint32((1 << bits) - 1)
                index = ((packed[:, None] >> shifts) & mask).reshape(block)
            else:
                index = np.zeros(block, np.uint32)
            corner = [k * b for k, b in zip(at, block, strict=True)]
            box = tuple(
                slice(a, min(a + b, n)) for a, b, n in zip(corner, block, size[1:], strict=True)
            )
            part = index[tuple(slice(0, one.stop - one.start) for one in box)]
            length = (int(part.max(initial=0)) + 1) * wide
            table = words[table_at : table_at + length].view(f"<u{4 * wide}")
            out[channel][box] = table[part]
    return out


# Writing ------------------------------------------------------------------------------------


def write_precomputed(
    folder: Path,
    labels: Any,
    spacing: tuple[float, ...] | None,
    unit: str | None,
    *,
    encoding: str = "compressed_segmentation",
    method: str = "mode",
    levels: int | None = None,
    properties: bool = False,
    origin: Sequence[float] | None = None,
    progress: ProgressCallback | None = None,
) -> None:
    """Write a segmentation with its scales into a folder that does not exist.

    `origin` is the place of the first voxel, which the format has in whole voxels of each scale.
    `properties` states in the info that there is a folder of segment properties, too. Labels on
    disk are read chunk by chunk, and each scale from the files of the one before.
    """
    info, plan = plan_segmentation(
        folder, labels.shape, spacing, unit, encoding=encoding, method=method, levels=levels,
        properties=properties, origin=origin,
    )  # fmt: skip
    lazy = is_on_disk(labels)
    volume = labels if lazy else labels.reshape(plan.shapes[0])
    folder.mkdir()
    total, done = sum(math.prod(shape) for shape in plan.shapes), 0
    for scale, step, size in zip(info["scales"], plan.factors, plan.shapes, strict=True):
        if max(step) > 1 and not lazy:
            volume = downsample_labels(volume, step, method=method)
        (folder / str(scale["key"])).mkdir()
        for box in chunk_boxes(size):
            report(progress, "writing", done, total)
            sides = [s.stop - s.start for s in box]
            if lazy and max(step) > 1:
                part = coarse_part(volume, step, box, method)
            else:
                part = volume[box[-len(volume.shape) :]].reshape(sides)
            write_chunk(folder, scale, part, [s.start for s in box])
            done += math.prod(sides)
        if lazy:  # the next scale is made of the files of this one
            read = _Chunks.of(Place(str(folder)), info, scale)
            volume = pick(OnDisk((1, *size), np.uint64, read, None), {0: 0})
    (folder / MARK).write_text(json.dumps(info, indent=2) + "\n", encoding="utf-8")
    report(progress, "writing", total, total)


def plan_segmentation(
    folder: Path,
    labels_shape: tuple[int, ...],
    spacing: tuple[float, ...] | None,
    unit: str | None,
    *,
    encoding: str = "compressed_segmentation",
    method: str = "mode",
    levels: int | None = None,
    properties: bool = False,
    origin: Sequence[float] | None = None,
) -> tuple[dict[str, Any], OmeImage]:
    """Return the info of a segmentation, and the shapes of its scales, with three axes each."""
    if len(labels_shape) > 3 or math.prod(labels_shape) == 0:
        raise InvalidInput(
            f"{folder}: a precomputed volume has up to 3 axes and some voxels, not the shape "
            f"{labels_shape}",
            argument="path",
            remedy="write .ome.zarr or .h5",
        )
    ndim = len(labels_shape)
    whole = (1,) * (3 - ndim) + tuple(labels_shape)
    distances = (1.0,) * (3 - ndim) + (spacing or (1.0,) * ndim)
    if unit is not None:
        distances = convert_all(distances, unit, "nanometer")
    plan = plan_image("segmentation", whole, distances, method=method, levels=levels)
    corner = [0.0] * (3 - ndim) + list(origin or (0.0,) * ndim)
    scales = []
    for level, step, shape in zip(plan.levels, plan.factors, plan.shapes, strict=True):
        resolution = list(level.scale[::-1])
        scales.append(
            {
                "key": "_".join(f"{value:.12g}" for value in resolution),
                "size": list(shape[::-1]),
                "resolution": resolution,
                "voxel_offset": [round(a / n) for a, n in zip(corner, step, strict=True)][::-1],
                "chunk_sizes": [[CHUNK] * 3],
                "encoding": encoding,
            }
        )
        if encoding == "compressed_segmentation":
            scales[-1]["compressed_segmentation_block_size"] = [BLOCK] * 3
    info: dict[str, Any] = {
        "@type": "neuroglancer_multiscale_volume",
        "type": "segmentation",
        "data_type": "uint64",
        "num_channels": 1,
        "scales": scales,
    }
    if properties:
        info[PROPERTIES] = PROPERTIES
    if spacing is None or unit is None:
        info[_NO_UNIT] = "unknown"
    if ndim < 3:
        info[_AXES] = ndim
    return info, plan


def write_chunk(
    folder: Path, scale: dict[str, Any], part: NDArray[Any], begin: Sequence[int]
) -> None:
    """Write the file of one chunk (z, y, x) of a scale of an info.

    `begin` is its first voxel in the array; its name has the place in the whole, as the format has.
    """
    chunk = np.ascontiguousarray(part, np.uint64)
    is_raw = scale["encoding"] == "raw"
    raw = chunk.astype("<u8").tobytes() if is_raw else encode_segmentation(chunk)
    first = [a + o for a, o in zip(begin, reversed(scale["voxel_offset"]), strict=True)]
    end = [a + n for a, n in zip(first, chunk.shape, strict=True)]
    (folder / str(scale["key"]) / chunk_name(first, end)).write_bytes(raw)


def chunk_boxes(shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Yield the boxes of all chunks of a volume."""
    for corner in itertools.product(*(range(0, n, CHUNK) for n in shape)):
        yield tuple(slice(a, min(a + CHUNK, n)) for a, n in zip(corner, shape, strict=True))


def is_own_segmentation(folder: Path, also: tuple[str, ...] = ()) -> bool:
    """Return whether a folder is a precomputed segmentation, with files `also`, and nothing else.

    Only such a folder may be replaced.
    """
    info = _info(Place(str(folder)))
    if info is None or info.get("type") != "segmentation" or "scales" not in info:
        return False
    try:
        keys = {str(scale["key"]) for scale in info["scales"]}
    except (LookupError, TypeError):
        return False
    return {entry.name for entry in folder.iterdir()} <= {MARK, PROPERTIES, *keys, *also}
