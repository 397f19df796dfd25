"""Arrays of a session folder: Zarr v3, one folder each, and snapshots in NumPy files.

The description of an array is checked before the array is read, and its values before they are
used: kernels do not check bounds.
"""

from __future__ import annotations

import io
import json
import math
import mmap
import os
import re
import zipfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zarr
from numcodecs import blosc
from numpy.typing import NDArray
from zarr.codecs import BloscCodec, Crc32cCodec
from zarr.storage import MemoryStore

from napari_agglo.errors import InvalidInput
from napari_agglo.graph import Layout, RegionGraph
from napari_agglo.session._store.journal import Tail
from napari_agglo.session._store.manifest import (
    ArrayNote,
    DigestWhileFilled,
    GraphNote,
    digest_all,
    digest_array,
    digest_bytes,
)
from napari_agglo.session._store.store_errors import RECOVER, RESTORE, SessionDamaged
from napari_agglo.volumes import DenseLabels, are_on_disk, require_memory
from napari_agglo.volumes import _replace_file as files

Arrays = Mapping[str, NDArray[Any]]
Extent = tuple[Any, Any]  # the lowest and the highest value of an array
STATISTICS = ("edges", "regions", "boundaries", "boxes")
_TYPES = {"edges": "<i8", "regions": "<i8", "boundaries": "<i8", "boxes": "<i4", "cues": "|u1"}


def described(graph: RegionGraph) -> GraphNote:
    """Return the numbers and names of a graph, without its arrays."""
    cues: Any = graph.cues
    faces = cues.faces if are_on_disk(cues) else None
    return GraphNote(
        labels_dtype=graph.superpixels.dtype.str,
        spacing=tuple(float(v) for v in graph.spacing),
        cue_names=tuple(graph.cue_names),
        cue_ranges=tuple((float(low), float(high)) for low, high in graph.cue_ranges),
        bins=graph.layout.bins,
        powers=graph.layout.powers,
        dams=graph.dams,
        face_parts=graph.face_parts,
        planes=tuple(tuple(at + 1 for at in row) for row in graph.layout.sources),
        words=dict(zip(graph.word_names, graph.layout.words, strict=True)),
        unit=graph.unit,
        offsets="" if faces is None else json.dumps(faces.offsets),
    )


def packed(graph: RegionGraph) -> dict[str, NDArray[Any]]:
    """Return the arrays of a graph by name; the cues in the shape of the image, if it has them."""
    arrays: dict[str, NDArray[Any]] = {name: getattr(graph, name) for name in STATISTICS}
    if graph.cues is not None and not are_on_disk(graph.cues):
        arrays["cues"] = graph.cues.reshape(graph.layout.n_planes, *graph.superpixels.image.shape)
    return arrays


def statistics_checksum(graph: GraphNote, notes: Mapping[str, ArrayNote]) -> str:
    """Return one checksum of all statistics, without the type of the user's labels."""
    others = ("labels_dtype", "offsets")  # the place of cues is no part of the statistics
    plain = {key: value for key, value in graph.to_json().items() if key not in others}
    sums = [notes[name].checksum for name in STATISTICS]
    return digest_all([*sums, digest_bytes(json.dumps(plain, sort_keys=True).encode())])


def unpacked(
    superpixels: DenseLabels,
    graph: GraphNote,
    arrays: Arrays,
    extents: Mapping[str, Extent] | None = None,
) -> RegionGraph:
    """Return the graph that `packed` and `described` were made from; refuse damaged arrays.

    The extents of values that were found while arrays were read need not be found again.
    """
    layout = Layout(
        len(graph.spacing), len(graph.cue_names), graph.bins, graph.powers, graph.sources,
        tuple(graph.words.values()),
    )  # fmt: skip
    _check(superpixels, layout, arrays, extents or {})
    cues = arrays.get("cues")
    if cues is not None:
        cues = cues.reshape(layout.n_planes, -1)
        cues.flags.writeable = False
    statistics: dict[str, Any] = {name: arrays[name] for name in STATISTICS}
    return RegionGraph(
        superpixels=superpixels,
        spacing=graph.spacing,
        cue_names=graph.cue_names,
        cue_ranges=graph.cue_ranges,
        layout=layout,
        **statistics,
        dams=graph.dams,
        face_parts=graph.face_parts,
        word_names=tuple(graph.words),
        cues=cues,
        unit=graph.unit,
    )


def labels_from(
    image: NDArray[Any], ids: NDArray[Any], dtype: str, extent: Extent | None = None
) -> DenseLabels:
    """Return a label image on dense ids; refuse damaged arrays. `extent` is that of the image."""
    kind = np.dtype(dtype)
    _require(image.dtype == np.uint32, "superpixels", f"are {image.dtype}, not uint32")
    _require(ids.dtype == np.uint64 and ids.ndim == 1 and len(ids) > 0, "ids", "are not a list")
    _require(int(ids[0]) == 0 and bool((ids[1:] > ids[:-1]).all()), "ids", "do not ascend from 0")
    _require(int(ids[-1]) <= np.iinfo(kind).max, "ids", f"do not fit in {kind}")
    _, highest = extent or extent_of(image)
    _require(highest < len(ids), "superpixels", "have unknown ids")
    image.flags.writeable = False
    ids.flags.writeable = False
    return DenseLabels(image, ids, kind)


def extent_of(array: NDArray[Any]) -> Extent:
    """Return the lowest and the highest value, 0 and 0 if there is none."""
    return (array.min().item(), array.max().item()) if array.size else (0, 0)


def _check(
    superpixels: DenseLabels, layout: Layout, arrays: Arrays, extents: Mapping[str, Extent]
) -> None:
    shape = superpixels.image.shape
    n = superpixels.n_labels
    m = len(arrays["edges"])
    shapes = {
        "edges": (m, 2),
        "regions": (n + 1, layout.region_width),
        "boundaries": (m, layout.boundary_width),
        "boxes": (n + 1, 2, layout.ndim),
        "cues": (layout.n_planes, *shape),
    }
    _require(len(shape) == layout.ndim, "superpixels", f"have {len(shape)} axes")
    for name, expected in shapes.items():
        if name in arrays or name != "cues":
            array = arrays[name]
            right = array.shape == expected and array.dtype == np.dtype(_TYPES[name])
            _require(right, name, f"are {array.dtype} of shape {array.shape}, not {expected}")
    edges, boxes = arrays["edges"], arrays["boxes"]
    inside = (edges[:, 0] >= 1) & (edges[:, 0] < edges[:, 1]) & (edges[:, 1] <= n)
    _require(bool(inside.all()), "edges", "name regions that are not there")
    key = edges[:, 0] * (n + 1) + edges[:, 1]  # both below 2**32 / 2, or no image could hold them
    _require(bool((key[1:] > key[:-1]).all()), "edges", "are not in order")
    for name in ("regions", "boundaries"):
        lowest, _ = extents.get(name) or extent_of(arrays[name])
        _require(lowest >= 0, name, "have negative sums")
    right_boxes = (boxes[:, 0] >= 0) & (boxes[:, 0] <= boxes[:, 1]) & (boxes[:, 1] <= shape)
    _require(bool(right_boxes.all()), "boxes", "reach out of the image")


def _require(condition: bool, name: str, otherwise: str) -> None:
    if not condition:
        raise SessionDamaged(
            f"The array {name!r} cannot be used: its values {otherwise}",
            argument="path",
            remedy=RESTORE,
        )


ARRAYS = "arrays.zarr"
_CHUNK_BYTES = 1 << 22
_CODECS = {"bytes", "blosc", "crc32c"}  # those that we write; a file may name no other


def write_group(folder: Path, attributes: dict[str, Any]) -> None:
    """Write the description of the folder of arrays; `attributes` is a copy of the manifest."""
    plain = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
    files.write_whole(folder / "zarr.json", json.dumps(plain, indent=1).encode())


def read_attributes(folder: Path) -> Any:
    """Return the attributes that `write_group` wrote; any value or error if they are damaged."""
    return json.loads((folder / "zarr.json").read_bytes())["attributes"]


def write_array(folder: Path, name: str, array: NDArray[Any]) -> ArrayNote:
    """Write an array to ``folder/name``, which must not exist, and return its note."""
    plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    chunks: dict[str, Any] = {}
    # Chunks of zeros are written too, so that a missing file is damage. Chunks are compressed fast,
    # and with a checksum: lz4 with shuffled bytes reduces label images to a hundredth, and is read
    # three times as fast as zstd.
    packers: list[Any] = [BloscCodec(cname="lz4", clevel=5, shuffle="shuffle"), Crc32cCodec()]
    zarr.create_array(
        MemoryStore(chunks), shape=plain.shape, dtype=plain.dtype, chunks=chunks_of(plain),
        compressors=packers, fill_value=0, zarr_format=3,
        config={"write_empty_chunks": True},
    )[...] = plain  # fmt: skip
    root = folder / name
    files.make_folder(root)
    folders = [root]
    for key, buffer in sorted(chunks.items()):
        *parents, last = key.split("/")
        at = root
        for parent in parents:
            at = at / parent
            if at not in folders:
                files.make_folder(at)
                folders.append(at)
        files.write_new(at / last, buffer.to_bytes())
    for at in reversed(folders):
        files.sync_folder(at)
    return ArrayNote(tuple(map(int, plain.shape)), plain.dtype.str, digest_array(plain))


def chunks_of(array: NDArray[Any]) -> tuple[int, ...]:
    """Return the shape of chunks of about 4 MB that are contiguous in memory.

    Examples
    --------
    >>> import numpy as np
    >>> chunks_of(np.broadcast_to(np.uint32(0), (256, 512, 512)))
    (4, 512, 512)
    """
    chunks = [max(1, n) for n in array.shape]
    for axis in range(len(chunks)):
        rest = array.itemsize * math.prod(chunks[axis + 1 :])
        chunks[axis] = max(1, min(chunks[axis], _CHUNK_BYTES // rest))
        if rest <= _CHUNK_BYTES:
            break
    return tuple(chunks)


class Contents(NamedTuple):
    """An array with what was found while it was read: its checksum and the extent of its values."""

    array: NDArray[Any]
    checksum: str
    extent: Extent


def read_array(folder: Path, name: str, note: ArrayNote) -> NDArray[Any]:
    """Read an array whose description and checksum are those of the manifest."""
    return read_contents(folder, name, note).array


def read_contents(folder: Path, name: str, note: ArrayNote) -> Contents:
    """Read such an array, and the extent of its values in the same pass."""
    path = folder / name
    try:
        plain = json.loads((path / "zarr.json").read_bytes())
        _check_description(plain, note)
        require_memory(note, name)
        contents = _read_rows(path, plain, note)
        if contents is None:
            stored = zarr.open_array(str(path), mode="r")
            array = np.array(stored[...], np.dtype(note.dtype), copy=None)
            contents = Contents(array, digest_array(array), extent_of(array))
    except InvalidInput as error:
        raise SessionDamaged(
            f"{path} cannot be used: {error.problem}", argument="path", remedy=error.remedy
        ) from error
    except Exception as error:  # a damaged file raises nearly anything
        raise SessionDamaged(
            f"{path} cannot be read ({type(error).__name__}: {error})",
            argument="path",
            remedy=RECOVER,
        ) from error
    if contents.checksum != note.checksum:
        raise SessionDamaged(
            f"{path} is damaged: its checksum is wrong",
            argument="path",
            remedy=RECOVER,
        )
    return contents


def _read_rows(path: Path, plain: Any, note: ArrayNote) -> Contents | None:
    """Unpack chunks that are contiguous in the array, as written here, to their place.

    Return None for others. Zarr reads them in a third of the speed, by way of two copies. The
    checksum of a chunk is not read: the caller checks that of the array. A chunk is hashed, and its
    extent found, by the thread that has unpacked it: memory is passed once.
    """
    shape, codecs = note.shape, [codec["name"] for codec in plain["codecs"]]
    chunk = plain["chunk_grid"]["configuration"]["chunk_shape"]
    if codecs != ["bytes", "blosc", "crc32c"] or not shape or 0 in shape:
        return None
    axis = next((k for k, length in enumerate(chunk) if length > 1), len(shape) - 1)
    rows, rest = chunk[axis], shape[axis + 1 :]
    if tuple(chunk[axis + 1 :]) != rest:
        return None
    array = _in_small_pages(shape, np.dtype(note.dtype))
    digest = DigestWhileFilled(array)
    strides = array.strides

    def read(place: tuple[tuple[int, ...], int]) -> Extent:
        before, first = place
        key = "/".join(["c", *map(str, [*before, first // rows, *[0] * len(rest)])])
        packed = memoryview((path / key).read_bytes())[:-4]  # without its checksum
        part = array[before][first : first + rows]
        # The last chunk is as long as the others.
        whole = part if len(part) == rows else np.empty((rows, *rest), array.dtype)
        blosc.decompress(packed, whole)
        if whole is not part:
            part[...] = whole[: len(part)]
        extent = extent_of(part)
        start = sum(k * stride for k, stride in zip((*before, first), strides, strict=False))
        digest.filled(start, start + part.nbytes)
        return extent

    places = list(product(np.ndindex(*shape[:axis]), range(0, shape[axis], rows)))
    if len(places) == 1:  # starting a thread takes longer
        extents = [read(places[0])]
    else:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            extents = list(pool.map(read, places))
    lowest, highest = zip(*extents, strict=True)
    return Contents(array, digest.checksum(), (min(lowest), max(highest)))


def _in_small_pages(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an array of zeros, in memory that is not in huge pages.

    NumPy asks for huge pages. Virtual machines that give free memory back get these from the host
    one by one, which takes four times as long as the first use of small ones, and longer than
    everything else that opening a large session does.
    """
    names = ("MAP_PRIVATE", "MAP_ANONYMOUS", "MAP_POPULATE")  # all pages in one turn, on Linux
    flags = sum(getattr(mmap, name, 0) for name in names)
    n_bytes = math.prod(shape) * dtype.itemsize
    memory = mmap.mmap(-1, n_bytes, flags=flags) if os.name == "posix" else mmap.mmap(-1, n_bytes)
    return np.frombuffer(memory, dtype).reshape(shape)


def _check_description(plain: Any, note: ArrayNote) -> None:
    dtype = np.dtype(note.dtype)
    grid = plain["chunk_grid"]
    chunks = grid["configuration"]["chunk_shape"]
    right = (
        plain["zarr_format"] == 3
        and plain["node_type"] == "array"
        and tuple(plain["shape"]) == note.shape
        and plain["data_type"] == dtype.name
        and grid["name"] == "regular"
        and len(chunks) == len(note.shape)
        and all(1 <= c <= max(1, n) for c, n in zip(chunks, note.shape, strict=True))
        and {codec["name"] for codec in plain["codecs"]} <= _CODECS
        and plain["chunk_key_encoding"]["name"] == "default"
        and not plain.get("storage_transformers")
    )
    if not right:
        raise InvalidInput(
            f"its description is not that of an array of shape {note.shape} and type {dtype.name}",
            remedy=RECOVER,
        )


# Snapshots are a cache that saves replaying the journal: a damaged or outdated one is ignored.

SNAPSHOTS = "snapshots"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_HEADER = "header"


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Arrays as they were after entry `seq` of the journal."""

    seq: int
    arrays: dict[str, NDArray[Any]]


def write_snapshot(folder: Path, name: str, arrays: Mapping[str, NDArray[Any]], last: Tail) -> bool:
    """Write numeric arrays as they are after the entry `last`; return whether there was room."""
    path = _snapshot_path(folder, name)
    plain = {key: np.ascontiguousarray(array) for key, array in arrays.items()}
    header = {"seq": last.seq, "sum": last.sum, "checksum": _checksum(plain)}
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    members: dict[str, Any] = {_HEADER: text, **plain}
    buffer = io.BytesIO()
    np.savez(buffer, **members)
    try:
        if not path.parent.is_dir():
            files.make_folder(path.parent)
        files.write_whole(path, buffer.getvalue(), durable=False)
    except OSError:  # no room for a cache; the journal has everything
        return False
    return True


def read_snapshot(folder: Path, name: str, known: Mapping[int, str]) -> Snapshot | None:
    """Return a snapshot if it is intact and of one of the entries `known` (number: checksum)."""
    path = _snapshot_path(folder, name)
    try:
        data = path.read_bytes()
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            arrays = {info.filename: _member(archive, info, len(data)) for info in archive.filelist}
        header = json.loads(arrays.pop(f"{_HEADER}.npy").tobytes())
        named = {key.removesuffix(".npy"): array for key, array in arrays.items()}
        if known.get(header["seq"]) != header["sum"] or header["checksum"] != _checksum(named):
            return None
        return Snapshot(header["seq"], named)
    except Exception:  # a damaged file raises nearly anything
        return None


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: int) -> NDArray[Any]:
    if info.compress_type != zipfile.ZIP_STORED or info.file_size > limit:
        raise InvalidInput("it is compressed, or larger than the file")
    with archive.open(info) as file:
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        return array


def _checksum(arrays: Mapping[str, NDArray[Any]]) -> str:
    named = sorted(arrays.items())
    return digest_all(digest_bytes(key.encode()) + digest_array(array) for key, array in named)


def _snapshot_path(folder: Path, name: str) -> Path:
    if not _NAME.fullmatch(name):  # which may come from the journal
        raise InvalidInput(
            f"A snapshot must have a name of letters, digits, - and _, got {name!r}",
            argument="name",
            remedy="call recover()",
        )
    return folder / SNAPSHOTS / f"{name}.npz"
