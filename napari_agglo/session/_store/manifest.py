"""The manifest: what a session was made of, by which it knows its files and its data again."""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._version import __version__
from napari_agglo.errors import InvalidInput, is_number, is_whole
from napari_agglo.session._store import files
from napari_agglo.session._store.store_errors import SessionDamaged, remedy, said, saving
from napari_agglo.volumes import DenseLabels

# Checksums of arrays, and the fingerprint by which a session knows its data again.


# Bytes hashed as one piece: the pieces of a large array are shared out among the cores.
_PIECE = 1 << 24


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
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    flat = little.reshape(-1).view(np.uint8)
    pieces = [flat[at : at + _PIECE] for at in range(0, flat.size, _PIECE)]
    if len(pieces) > 1:
        with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:  # hashing frees the GIL
            sums = list(pool.map(_sum, pieces))
    else:
        sums = [_sum(piece) for piece in pieces]
    return digest_bytes(f"{little.dtype.str} {little.shape}".encode() + b"".join(sums))


def _sum(piece: NDArray[np.uint8]) -> bytes:
    return hashlib.sha256(piece.data).digest()


def digest_all(sums: Iterable[str]) -> str:
    """Return a checksum of checksums."""
    return digest_bytes(" ".join(sums).encode())


@dataclass(frozen=True)
class Fingerprint:
    """What a label image is known by: its shape, how many superpixels, a checksum of it all."""

    shape: tuple[int, ...]
    superpixels: int
    checksum: str

    @classmethod
    def of(cls, labels: DenseLabels) -> Fingerprint:
        """Return the fingerprint of a label image; its integer type does not matter."""
        checksum = digest_all([digest_array(labels.image), digest_array(labels.ids)])
        return cls(tuple(map(int, labels.image.shape)), labels.n_labels, checksum)

    def __str__(self) -> str:
        return f"shape {self.shape}, {self.superpixels} superpixels, checksum {self.checksum[:12]}"


MANIFEST = "manifest.json"
SCHEMA = 1
FORMAT = "napari-agglo session"
_LARGEST = 1 << 24  # bytes; one of ours has a few thousand


@dataclass(frozen=True)
class ArrayNote:
    """What is known of an array on disk before it is read."""

    shape: tuple[int, ...]
    dtype: str
    checksum: str


@dataclass(frozen=True)
class Manifest:
    """All that a session directory says of itself.

    Attributes
    ----------
    superpixels
        Fingerprint of the label image.
    source
        Where the label image is, relative to the directory; None if it was copied in.
    statistics
        Checksum of the graph: its arrays, cues, ranges, spacing.
    graph
        Numbers and names of the graph: type of the user's labels, spacing, cue names and ranges,
        bins, powers.
    arrays
        Shape, type and checksum of each stored array, by name.
    policy
        Which policy the session started with.
    settings
        What the user chose, e.g. the threshold last seen; plain JSON.
    """

    superpixels: Fingerprint
    source: str | None
    statistics: str
    graph: dict[str, Any]
    arrays: dict[str, ArrayNote]
    policy: dict[str, Any]
    settings: dict[str, Any] = field(default_factory=dict)
    id: str = field(default_factory=lambda: secrets.token_hex(16))
    program: str = __version__
    created: str = field(
        default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds")
    )

    def encode(self) -> dict[str, Any]:
        """Return the manifest as plain JSON, its checksum last."""
        plain = {"format": FORMAT, "schema": SCHEMA, **asdict(self)}
        return {**plain, "sum": _manifest_sum(plain)}

    def with_settings(self, settings: Mapping[str, Any]) -> Manifest:
        """Return the same with other settings; refuse what JSON cannot hold."""
        try:
            text = json.dumps(settings, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(
                f"`settings` must consist of finite numbers, text, lists and dicts, but {error}",
                argument="settings",
            ) from error
        if not isinstance(settings, Mapping):
            raise InvalidInput(
                f"`settings` must be a dict, got {type(settings).__name__}", argument="settings"
            )
        return replace(self, settings=json.loads(text))


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
            f"{folder} is not a session: it has no {MANIFEST}. Choose a NAME.agglo folder; if it "
            "is one that lost its manifest, call recover()."
        ) from error
    except OSError as error:
        raise SessionDamaged(f"{path} cannot be read ({said(error)}); {remedy(error)}.") from error
    try:
        return decode(json.loads(data[:_LARGEST]))
    except InvalidInput as error:
        raise type(error)(f"{path} cannot be used: {error}") from error
    except (ValueError, RecursionError) as error:
        raise SessionDamaged(
            f"{path} is damaged ({error}); call recover(), which has another copy."
        ) from error


def decode(plain: Any) -> Manifest:
    """Return the manifest that `plain` says, every part of it checked."""
    if not isinstance(plain, dict) or plain.get("format") != FORMAT:
        raise SessionDamaged("it is not that of a session; choose a NAME.agglo folder.")
    schema = plain.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        raise InvalidInput(
            f"its schema is {schema}, and this version ({__version__}) reads up to {SCHEMA}; "
            "update napari-agglo."
        )
    if schema != SCHEMA or plain.get("sum") != _manifest_sum(
        {k: plain[k] for k in plain if k != "sum"}
    ):
        raise SessionDamaged("its checksum is wrong; call recover(), which has another copy.")
    try:
        made = Manifest(
            superpixels=Fingerprint(
                _shape(plain["superpixels"]["shape"]),
                _whole(plain["superpixels"]["superpixels"]),
                _text(plain["superpixels"]["checksum"]),
            ),
            source=None if plain["source"] is None else _text(plain["source"]),
            statistics=_text(plain["statistics"]),
            graph=_checked_graph(plain["graph"]),
            arrays={_text(k): _checked_note(note) for k, note in plain["arrays"].items()},
            policy=_mapping(plain["policy"]),
            settings=_mapping(plain["settings"]),
            id=_text(plain["id"]),
            program=_text(plain["program"]),
            created=_text(plain["created"]),
        )
        if len(made.id) != 32:
            raise ValueError("an id of 32 digits is expected")
    except Exception as error:  # a file can be wrong in more ways than one can list
        raise SessionDamaged(f"it lacks or garbles something ({error}).") from error
    return made


def _manifest_sum(plain: dict[str, Any]) -> str:
    return digest_bytes(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode())


def _checked_graph(said: Any) -> dict[str, Any]:
    """Check what the statistics' layout is made from; kernels trust it."""
    graph = _mapping(said)
    names, ranges = graph["cue_names"], graph["cue_ranges"]
    ndim = len(graph["spacing"])
    right = (
        np.dtype(_text(graph["labels_dtype"])).kind in "iu"
        and 1 <= ndim <= 32
        and all(is_number(v) and 0 < v < math.inf for v in graph["spacing"])
        and all(isinstance(name, str) and name for name in names)
        and len(set(names)) == len(names) == len(ranges)
        and all(len(r) == 2 and all(is_number(v) and abs(v) < math.inf for v in r) for r in ranges)
        and 0 <= _whole(graph["bins"]) <= 256
        and graph["powers"] in (1, 4)
        and isinstance(graph["dams"], bool)
        and 1 <= _whole(graph.get("face_parts", 1)) <= 2**31
    )
    if not right:
        raise ValueError("`graph` does not describe one")
    return graph


def _checked_note(said: Any) -> ArrayNote:
    dtype = np.dtype(_text(said["dtype"]))
    if dtype.kind not in "iuf" or dtype.byteorder == ">":
        raise ValueError(f"an array of {dtype}")
    return ArrayNote(_shape(said["shape"]), dtype.str, _text(said["checksum"]))


def _shape(said: Any) -> tuple[int, ...]:
    shape = tuple(_whole(n) for n in said)
    if not 1 <= len(shape) <= 32:
        raise ValueError(f"a shape of {len(shape)} axes")
    return shape


def _whole(said: Any) -> int:
    if not (is_whole(said) and 0 <= said < 2**62):
        raise ValueError(f"{said!r} where a whole number is expected")
    return int(said)


def _text(said: Any) -> str:
    if not isinstance(said, str):
        raise ValueError(f"{said!r} where text is expected")
    return said


def _mapping(said: Any) -> dict[str, Any]:
    if not isinstance(said, dict):
        raise ValueError(f"{said!r} where names and values are expected")
    return said
