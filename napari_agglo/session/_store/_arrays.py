"""Arrays as Zarr v3, one folder each; nothing is read before its description has been checked."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import BloscCodec, Crc32cCodec
from zarr.storage import MemoryStore

from napari_agglo.errors import InvalidInput
from napari_agglo.session._store import _disk
from napari_agglo.session._store._digest import digest_array
from napari_agglo.session._store._errors import SessionDamaged
from napari_agglo.session._store._manifest import ArrayNote
from napari_agglo.volumes import require_memory

ARRAYS = "arrays.zarr"
_CHUNK_BYTES = 1 << 22
_CODECS = {
    "bytes",
    "blosc",
    "crc32c",
}  # what we write; a file cannot name another that does who knows what


def write_group(folder: Path, attributes: dict[str, Any]) -> None:
    """Describe the folder of arrays itself; `attributes` is a second copy of the manifest."""
    plain = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
    _disk.write_whole(folder / "zarr.json", json.dumps(plain, indent=1).encode())


def read_attributes(folder: Path) -> Any:
    """Return what `write_group` was given; anything, or an error, if the file is damaged."""
    return json.loads((folder / "zarr.json").read_bytes())["attributes"]


def write_array(folder: Path, name: str, array: NDArray[Any]) -> ArrayNote:
    """Write an array to ``folder/name``, which must not exist, and return what to know of it."""
    plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    files: dict[str, Any] = {}
    # Chunks of zeros are written too, so that a missing file is no chunk.
    zarr.create_array(
        MemoryStore(files), shape=plain.shape, dtype=plain.dtype, chunks=chunks_of(plain),
        compressors=_packers(), fill_value=0, zarr_format=3,
        config={"write_empty_chunks": True},
    )[...] = plain  # fmt: skip
    made = folder / name
    _disk.make_folder(made)
    folders = [made]
    for key, buffer in sorted(files.items()):
        *parents, last = key.split("/")
        at = made
        for parent in parents:
            at = at / parent
            if at not in folders:
                _disk.make_folder(at)
                folders.append(at)
        _disk.write_new(at / last, buffer.to_bytes())
    for at in reversed(folders):
        _disk.sync_folder(at)
    return ArrayNote(tuple(map(int, plain.shape)), plain.dtype.str, digest_array(plain))


def _packers() -> list[Any]:
    """Return how chunks are packed: fast, and so that damage is noticed before they are unpacked.

    Of label images, lz4 with shuffled bytes makes a hundredth, and unpacks thrice as fast as zstd.
    """
    return [BloscCodec(cname="lz4", clevel=5, shuffle="shuffle"), Crc32cCodec()]


def chunks_of(array: NDArray[Any]) -> tuple[int, ...]:
    """Return chunks of about 4 MB that are pieces of the array in memory, so reading is copying.

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


def read_array(folder: Path, name: str, note: ArrayNote) -> NDArray[Any]:
    """Read an array, having compared its description, then its checksum, with the manifest's."""
    path = folder / name
    try:
        _check_description(json.loads((path / "zarr.json").read_bytes()), note)
        stored = zarr.open_array(str(path), mode="r")
        require_memory(stored, name)
        array = np.array(stored[...], np.dtype(note.dtype), copy=None)
    except InvalidInput as error:
        raise SessionDamaged(f"{path} cannot be used: {error}") from error
    except Exception as error:  # readers raise nearly anything on a damaged file
        raise SessionDamaged(
            f"{path} cannot be read ({type(error).__name__}: {error}); call recover()."
        ) from error
    if digest_array(array) != note.checksum:
        raise SessionDamaged(
            f"{path} is not what was written: its checksum is wrong; call recover()."
        )
    return array


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
            f"its description is not that of an array of shape {note.shape} and type {dtype.name} "
            "as it was written; call recover()."
        )
