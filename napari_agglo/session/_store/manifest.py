"""The manifest: description of a session folder, with checksums of its data."""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._typed_json import decode
from napari_agglo._version import __version__
from napari_agglo.errors import InvalidInput
from napari_agglo.session._store.store_errors import SessionDamaged, advice_on, reason_of, saving
from napari_agglo.volumes import DenseLabels, check_offsets, is_on_disk, read_offsets, unit_name
from napari_agglo.volumes import _replace_file as files

_PIECE = 1 << 24  # bytes of an array that are hashed at once, on one core
_SLAB = 1 << 28  # bytes of an image on disk that are read at once


def digest_bytes(data: bytes) -> str:
    """Return a checksum of `data`, 32 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()[:32]


def digest_array(array: NDArray[Any]) -> str:
    """Return a checksum of type, shape and values; byte order and memory layout do not matter.

    Examples
    --------
    >>> import numpy as np
    >>> digest_array(np.arange(6)) == digest_array(np.arange(12)[::2] // 2)
    True
    >>> digest_array(np.arange(6)) == digest_array(np.arange(6).reshape(2, 3))
    False
    """
    if is_on_disk(array):
        return _digest_on_disk(array)
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    flat = little.reshape(-1).view(np.uint8)
    pieces = [flat[at : at + _PIECE] for at in range(0, flat.size, _PIECE)]
    if len(pieces) > 1:
        with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:  # hashing frees the GIL
            sums = list(pool.map(_sum, pieces))
    else:
        sums = [_sum(piece) for piece in pieces]
    return _digest_of_pieces(little, sums)


def _digest_of_pieces(little: NDArray[Any], sums: Iterable[bytes]) -> str:
    return digest_bytes(f"{little.dtype.str} {little.shape}".encode() + b"".join(sums))


class DigestWhileFilled:
    """Checksum of a contiguous little-endian array that threads are filling, in any order.

    A piece is hashed by the thread that fills the last of it, while it is still in the cache of the
    processor: the checksum costs no pass over memory of its own.

    Examples
    --------
    >>> import numpy as np
    >>> array = np.arange(6)
    >>> digest = DigestWhileFilled(array)
    >>> digest.filled(16, 48)
    >>> digest.filled(0, 16)
    >>> digest.checksum() == digest_array(array)
    True
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        self._bytes = array.reshape(-1).view(np.uint8)
        starts = range(0, self._bytes.size, _PIECE)
        self._missing = [min(_PIECE, self._bytes.size - start) for start in starts]  # of each piece
        self._sums = [b""] * len(self._missing)
        self._lock = threading.Lock()

    def filled(self, start: int, stop: int) -> None:
        """Hash the pieces that are whole now that the bytes `start` to `stop` - 1 have come.

        No byte may be reported twice.
        """
        whole = []
        with self._lock:
            for k in range(start // _PIECE, -(-stop // _PIECE)):
                self._missing[k] -= min(stop, (k + 1) * _PIECE) - max(start, k * _PIECE)
                if not self._missing[k]:
                    whole.append(k)
        for k in whole:
            self._sums[k] = _sum(self._bytes[k * _PIECE : (k + 1) * _PIECE])

    def checksum(self) -> str:
        """Return the checksum, as `digest_array` does, when all bytes have come."""
        return _digest_of_pieces(self._array, self._sums)


def _digest_on_disk(image: Any) -> str:
    """Return the same checksum of an image on disk, which is read in slabs of planes."""
    sums, rest = [], b""
    step = max(1, _SLAB // max(1, image.nbytes // max(1, len(image))))
    for start in range(0, len(image), step):
        rest += image[start : start + step].astype("<u4", copy=False).tobytes()
        whole = len(rest) // _PIECE * _PIECE
        sums += [
            _sum(np.frombuffer(rest[at : at + _PIECE], np.uint8)) for at in range(0, whole, _PIECE)
        ]
        rest = rest[whole:]
    if rest:
        sums.append(_sum(np.frombuffer(rest, np.uint8)))
    return digest_bytes(f"<u4 {image.shape}".encode() + b"".join(sums))


_SAMPLED = "s-"  # the beginning of a checksum of a sample
_LARGE = 1 << 30  # bytes of an array on disk from which on only a sample of it is read
_BOXES, _SIDE = 32, 64  # number of boxes of a sample, and the side of one, which divides chunks


def is_large(data: Any) -> bool:
    """Return whether a lazy array is known by a sample of its values, and not by all of them."""
    large = math.prod(data.shape) * np.dtype(data.dtype).itemsize >= _LARGE
    return large and not isinstance(data, np.ndarray)


def is_sample(checksum: str) -> bool:
    """Return whether a checksum is one of `digest_sample`."""
    return checksum.startswith(_SAMPLED)


def digest_sample(data: Any) -> str:
    """Return a checksum of type, shape and the values in some boxes; chunks do not matter.

    Examples
    --------
    >>> import numpy as np
    >>> one, other = np.zeros((9, 99)), np.zeros((9, 99))
    >>> other[3, 50] = 1
    >>> digest_sample(one) == digest_sample(other)
    False
    """
    shape = tuple(int(n) for n in data.shape)
    grid = [-(-n // _SIDE) for n in shape]
    every = math.prod(grid)
    dtype = np.dtype(data.dtype).newbyteorder("<")
    sums = [digest_bytes(f"{dtype.str} {shape}".encode())]
    for k in np.unique(np.linspace(0, max(0, every - 1), min(_BOXES, every)).astype(np.int64)):
        corner = [int(i) * _SIDE for i in np.unravel_index(k, grid)]
        box = tuple(slice(a, min(a + _SIDE, n)) for a, n in zip(corner, shape, strict=True))
        sums.append(digest_array(np.asarray(data[box]).astype(dtype, copy=False)))
    return _SAMPLED + digest_all(sums)


def _sum(piece: NDArray[np.uint8]) -> bytes:
    return hashlib.sha256(piece.data).digest()


def digest_all(sums: Iterable[str]) -> str:
    """Return a checksum of checksums."""
    return digest_bytes(" ".join(sums).encode())


@dataclass(frozen=True)
class Fingerprint:
    """The identity of a label image: shape, number of superpixels, checksum."""

    shape: tuple[int, ...]
    superpixels: int
    checksum: str

    @classmethod
    def of(cls, labels: DenseLabels, *, whole: bool = False) -> Fingerprint:
        """Return the fingerprint of a label image; its integer type does not matter.

        Of a large image on disk a sample is read, unless `whole`.
        """
        if is_large(labels.image) and not whole:
            checksum = digest_sample(labels.image)
            checksum = _SAMPLED + digest_all([checksum, digest_array(labels.ids)])
        else:
            checksum = digest_all([digest_array(labels.image), digest_array(labels.ids)])
        return cls(tuple(map(int, labels.image.shape)), labels.n_labels, checksum)

    @property
    def text(self) -> str:
        """The fingerprint as one word of a table: shape, superpixels and 12 digits."""
        marked = len(_SAMPLED) if is_sample(self.checksum) else 0
        shape = "x".join(map(str, self.shape))
        return f"{shape}:{self.superpixels}:{self.checksum[: marked + 12]}"

    def matches(self, text: str) -> bool:
        """Return whether a text may be of this image; a sum of a sample is not compared to another.

        Examples
        --------
        >>> one = Fingerprint((2, 3), 4, "0123456789abcdef")
        >>> one.text
        '2x3:4:0123456789ab'
        >>> [one.matches(text) for text in (one.text, "2x3:4:ffff", "2x3:4:s-ffff", "2x4:4:s-ff")]
        [True, False, True, False]
        """
        own, other = self.text.rpartition(":"), text.rpartition(":")
        comparable = is_sample(own[2]) == is_sample(other[2])
        return own == other if comparable else own[0] == other[0]

    def __str__(self) -> str:
        return f"shape {self.shape}, {self.superpixels} superpixels, checksum {self.checksum[:12]}"


MANIFEST = "manifest.json"
SCHEMA = 1
FORMAT = "napari-agglo session"
_LARGEST = 1 << 24  # bytes; a manifest has a few thousand
_RECOVER = "call recover(), which restores it from a copy"


@dataclass(frozen=True)
class ArrayNote:
    """Shape, type and checksum of an array on disk, known before it is read."""

    shape: tuple[int, ...]
    dtype: str
    checksum: str


@dataclass(frozen=True)
class GraphNote:
    """Numbers and names of a region graph, without its arrays."""

    labels_dtype: str  # type of the user's labels
    spacing: tuple[float, ...]
    cue_names: tuple[str, ...]
    cue_ranges: tuple[tuple[float, float], ...]
    bins: int
    powers: int
    dams: bool
    face_parts: int = 1
    planes: tuple[tuple[int, ...], ...] = ()  # of each cue, from 1, if any is oriented; 0: none
    words: dict[str, int] = field(default_factory=dict)  # numbers of words of cues of words
    unit: str | None = None  # of the spacing; not known in older manifests
    offsets: str = ""  # of affinities that stay in their file, as JSON

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON; without the defaults, which older manifests do not have."""
        plain = asdict(self)
        if self.face_parts == 1:
            del plain["face_parts"]
        if not self.planes:
            del plain["planes"]
        if not self.words:
            del plain["words"]
        if self.unit is None:
            del plain["unit"]
        if not self.offsets:
            del plain["offsets"]
        return plain

    @property
    def sources(self) -> tuple[tuple[int, ...], ...]:
        """The planes of each cue as in a `Layout`, from 0."""
        return tuple(tuple(at - 1 for at in row) for row in self.planes)

    @property
    def channel_offsets(self) -> tuple[tuple[int, ...], ...]:
        """The offset of each channel of affinities that stay in their file."""
        channels = read_offsets(self.offsets)
        return check_offsets(channels, (len(channels), *(1 for _ in self.spacing)))


@dataclass(frozen=True)
class SourceNote:
    """An input of a session, such as its image: its name, fingerprint and place."""

    name: str  # on the screen
    shape: tuple[int, ...]
    dtype: str
    checksum: str  # of some planes
    path: str | None = None  # absolute; None if it was not in a file
    relative: str | None = None  # to the folder, which may be moved together with the file
    reader: str | None = None  # the plugin that read the file
    array: str | None = None  # its copy in the folder
    channel: str | None = None  # AXIS:INDEX of a cue in a file of several


@dataclass(frozen=True)
class Manifest:
    """The description of a session folder."""

    superpixels: Fingerprint
    source: str | None  # path of the label image, relative to the folder; None if it was copied in
    statistics: str  # checksum of the graph: its arrays, cues, ranges, spacing
    graph: GraphNote
    arrays: dict[str, ArrayNote]  # by name
    policy: dict[str, Any]  # reference to the policy that the session was created with
    settings: dict[str, Any] = field(default_factory=dict)  # plain JSON, e.g. the last threshold
    sources: dict[str, SourceNote] = field(default_factory=dict)  # inputs, to show them again
    id: str = field(default_factory=lambda: secrets.token_hex(16))
    program: str = __version__
    created: str = field(
        default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds")
    )

    def encode(self) -> dict[str, Any]:
        """Return the manifest as plain JSON, its checksum last."""
        plain = {"format": FORMAT, "schema": SCHEMA, **asdict(self), "graph": self.graph.to_json()}
        if not self.sources:  # as in older manifests
            del plain["sources"]
        return {**plain, "sum": _manifest_sum(plain)}


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Put the manifest in place, whole or not at all."""
    text = json.dumps(manifest.encode(), indent=1) + "\n"
    with saving("The manifest", folder / MANIFEST):
        files.write_whole(folder / MANIFEST, text.encode())


def read_manifest(folder: Path) -> Manifest:
    """Read and check the manifest of a session directory."""
    path = folder / MANIFEST
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except FileNotFoundError as error:
        raise SessionDamaged(
            f"{folder} is not a session: it has no {MANIFEST}",
            argument="path",
            remedy="choose a NAME.agglo folder; or call recover() if this one lost its manifest",
        ) from error
    except OSError as error:
        raise SessionDamaged(
            f"{path} cannot be read ({reason_of(error)})", argument="path", remedy=advice_on(error)
        ) from error
    try:
        return decode_manifest(json.loads(data[:_LARGEST]))
    except InvalidInput as error:
        raise type(error)(
            f"{path} cannot be used: {error.problem}", argument="path", remedy=error.remedy
        ) from error
    except (ValueError, RecursionError) as error:
        raise SessionDamaged(
            f"{path} is damaged ({error})", argument="path", remedy=_RECOVER
        ) from error


def decode_manifest(plain: Any) -> Manifest:
    """Return the manifest of plain JSON; refuse a damaged one."""
    if not isinstance(plain, dict) or plain.get("format") != FORMAT:
        raise SessionDamaged(
            "it is not a session manifest", argument="path", remedy="choose a NAME.agglo folder"
        )
    schema = plain.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        raise InvalidInput(
            f"its schema is {schema}, and this version ({__version__}) reads up to {SCHEMA}",
            argument="path",
            remedy="update napari-agglo",
        )
    if schema != SCHEMA or plain.get("sum") != _manifest_sum(
        {k: plain[k] for k in plain if k != "sum"}
    ):
        raise SessionDamaged("its checksum is wrong", argument="path", remedy=_RECOVER)
    fields = {k: v for k, v in plain.items() if k not in ("format", "schema", "sum")}
    try:
        manifest: Manifest = decode(Manifest, fields, "the manifest")
        _check_graph(manifest.graph)
        for name, note in manifest.arrays.items():
            dtype = np.dtype(note.dtype)
            _require(dtype.kind in "iuf" and dtype.byteorder != ">", f"arrays.{name}.dtype")
            _check_shape(note.shape, f"arrays.{name}.shape")
        _check_shape(manifest.superpixels.shape, "superpixels.shape")
        for key, source in manifest.sources.items():
            _check_shape(source.shape, f"sources.{key}.shape")
        _require(len(manifest.id) == 32, "id")
    except Exception as error:  # a damaged file raises nearly anything
        raise SessionDamaged(f"a part is missing or garbled ({error})", argument="path") from error
    return manifest


def _manifest_sum(plain: dict[str, Any]) -> str:
    return digest_bytes(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode())


def _check_graph(graph: GraphNote) -> None:
    """Check the numbers of the layout of the statistics; kernels rely on it."""
    names = graph.cue_names
    _require(np.dtype(graph.labels_dtype).kind in "iu", "graph.labels_dtype")
    _require(1 <= len(graph.spacing) <= 32 and min(graph.spacing) > 0, "graph.spacing")
    _require(all(names) and len(set(names)) == len(names), "graph.cue_names")
    _require(len(graph.cue_ranges) == len(names), "graph.cue_ranges")
    _require(graph.bins <= 256 and graph.powers in (1, 4), "graph.bins or graph.powers")
    _require(1 <= graph.face_parts <= 2**31, "graph.face_parts")
    _require(graph.unit == unit_name(graph.unit), "graph.unit")
    rows, ndim = graph.planes, len(graph.spacing)
    whole = all(len(row) in (1, 1 + ndim) and row[0] >= 1 and max(row) < 2**31 for row in rows)
    _require(len(rows) in (0, len(names)) and whole, "graph.planes")
    _require(not graph.offsets or bool(rows and graph.channel_offsets), "graph.offsets")
    counts = graph.words.values()
    _require(
        all(2 <= n <= 256 for n in counts) and not set(names) & set(graph.words), "graph.words"
    )


def _check_shape(shape: tuple[int, ...], at: str) -> None:
    _require(1 <= len(shape) <= 32 and all(n < 2**62 for n in shape), at)


def _require(condition: bool, at: str) -> None:
    if not condition:
        raise InvalidInput(f"{at} cannot be used", argument=at)
