"""Snapshots: arrays that save replaying the journal.

A cache: a damaged or outdated snapshot is ignored.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.session._store.journal import Tail
from napari_agglo.session._store.manifest import digest_all, digest_array, digest_bytes
from napari_agglo.volumes import _atomic as files

SNAPSHOTS = "snapshots"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_HEADER = "header"


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Arrays as they were after entry `seq` of the journal."""

    seq: int
    arrays: dict[str, NDArray[Any]]


def write_snapshot(folder: Path, name: str, arrays: Mapping[str, NDArray[Any]], last: Tail) -> bool:
    """Write a snapshot that belongs to the entry `last`; return whether there was room for it."""
    path = folder / SNAPSHOTS / f"{_checked(name)}.npz"
    plain = {key: np.ascontiguousarray(array) for key, array in arrays.items()}
    for key, array in plain.items():
        if array.dtype.kind not in "biuf" or not _NAME.fullmatch(key) or key == _HEADER:
            raise InvalidInput(
                f"`arrays[{key!r}]` must hold numbers, got {array.dtype}, and have a name of "
                "letters, digits and _",
                argument=f"arrays[{key!r}]",
            )
    header = {"seq": last.seq, "sum": last.sum, "checksum": _checksum(plain)}
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    members: dict[str, Any] = {_HEADER: text, **plain}
    buffer = io.BytesIO()
    np.savez(buffer, **members)
    try:
        if not path.parent.is_dir():
            files.make_folder(path.parent)
        files.write_whole(path, buffer.getvalue(), durable=False)
    except OSError:  # no room for a cache; the journal holds everything
        return False
    return True


def read_snapshot(folder: Path, name: str, known: Mapping[int, str]) -> Snapshot | None:
    """Return a snapshot if it is whole and belongs to one of the entries `known` (number: sum)."""
    path = folder / SNAPSHOTS / f"{_checked(name)}.npz"
    try:
        data = path.read_bytes()
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            arrays = {info.filename: _member(archive, info, len(data)) for info in archive.filelist}
        header = json.loads(arrays.pop(f"{_HEADER}.npy").tobytes())
        named = {key.removesuffix(".npy"): array for key, array in arrays.items()}
        if known.get(header["seq"]) != header["sum"] or header["checksum"] != _checksum(named):
            return None
        return Snapshot(header["seq"], named)
    except Exception:  # zip, npy and JSON readers raise a dozen kinds of error on damage
        return None


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: int) -> NDArray[Any]:
    if info.compress_type != zipfile.ZIP_STORED or info.file_size > limit:
        raise InvalidInput("it is compressed, which ours are not")
    with archive.open(info) as file:
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        return array


def _checksum(arrays: Mapping[str, NDArray[Any]]) -> str:
    named = sorted(arrays.items())
    return digest_all(digest_bytes(key.encode()) + digest_array(array) for key, array in named)


def _checked(name: str) -> str:
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise InvalidInput(
            f"`name` must be of letters, digits, - and _, got {name!r}", argument="name"
        )
    return name
