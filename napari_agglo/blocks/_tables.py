"""Files of partial tables: whole numbers, narrowed, compressed, with checksums, written whole.

A file is a line of JSON (names, types, lengths, checksums), then the pieces of the arrays. A row
of statistics is 64-bit integers in memory, nearly all of which are small: in a file each column of
a piece of rows has the least width that its values need, and the columns of one width are
compressed together. Reading one array, or its rows piece by piece, reads no other.
"""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numcodecs import blosc
from numpy.typing import NDArray

from napari_agglo.volumes import _replace_file as files

_MAGIC = "napari-agglo table 1"
_PIECE = 1 << 20  # numbers in a piece: 8 MB in memory, and a sum has one of each table
_WIDTHS = (1, 2, 4, 8)


class DamagedTable(Exception):
    """A table that is missing, cut short or changed; `path` is its file."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


class Rows(NamedTuple):
    """Rows of 64-bit numbers that are given piece by piece, so that they are never all in memory.

    A piece has `rows_of_a_piece` rows, but for the last.
    """

    shape: tuple[int, int]
    pieces: Iterable[NDArray[np.int64]]


def rows_of_a_piece(width: int) -> int:
    """Return the rows of so many columns that are packed together."""
    return max(1, _PIECE // max(width, 1))


def write_table(path: Path, arrays: Mapping[str, NDArray[Any] | Rows]) -> int:
    """Write arrays of whole numbers of 0 or more, whole or not at all; return the bytes."""
    described: dict[str, Any] = {}
    payload: list[bytes] = []
    for name, array in arrays.items():
        pieces = []
        for rows in array.pieces if isinstance(array, Rows) else _pieces_of(_as_rows(array)):
            widths, buffers = _pack(rows)
            sizes = [[len(buffer), zlib.crc32(buffer)] for buffer in buffers]
            pieces.append([len(rows), widths, sizes])
            payload += buffers
        dtype = np.dtype(np.int64) if isinstance(array, Rows) else array.dtype
        described[name] = {"dtype": dtype.str, "shape": array.shape, "pieces": pieces}
    header = json.dumps({"format": _MAGIC, "arrays": described}).encode()
    line = f"{zlib.crc32(header):08x} ".encode() + header + b"\n"
    data = b"".join([line, *payload])
    files.write_whole(path, data, durable=False)
    return len(data)


def _pieces_of(rows: NDArray[Any]) -> Iterator[NDArray[Any]]:
    step = rows_of_a_piece(rows.shape[1])
    return (rows[start : start + step] for start in range(0, len(rows), step))


def _as_rows(array: NDArray[Any]) -> NDArray[Any]:
    return array.reshape(len(array), math.prod(array.shape[1:]))


def _pack(rows: NDArray[Any]) -> tuple[str, list[bytes]]:
    """Return the width of each column, and the compressed columns of each width."""
    tops = rows.max(axis=0).tolist() if rows.size else [0] * rows.shape[1]
    widths = [next(w for w in _WIDTHS if int(top) < 1 << (8 * w)) for top in tops]
    buffers = []
    for width in _WIDTHS:
        columns = [k for k, w in enumerate(widths) if w == width]
        if columns and rows.size:
            chosen = rows if len(columns) == rows.shape[1] else rows[:, columns]
            # label images are one column of the width that they have: nothing is copied
            narrow = np.ascontiguousarray(chosen.T.astype(f"<u{width}", copy=False))
            shuffle = blosc.SHUFFLE if width > 1 else blosc.NOSHUFFLE
            # label images are one column, and read again soon: quick rather than small
            codec, level = (b"lz4", 5) if rows.shape[1] == 1 else (b"zstd", 1)
            packed = blosc.compress(narrow, codec, level, shuffle=shuffle)
            buffers.append(bytes(packed))
    return "".join(map(str, widths)), buffers


class Table:
    """A table on disk, read array by array; every piece is checked.

    `path` is its file. A file that is not as it was written raises `DamagedTable`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open("rb") as handle:
                line = handle.readline()
                self._offset = handle.tell()
                self._size = os.fstat(handle.fileno()).st_size
        except OSError as error:
            raise DamagedTable(path, error.strerror or "it cannot be read") from error
        try:
            checksum, header = line[:8], line[9:].rstrip(b"\n")
            if int(checksum, 16) != zlib.crc32(header) or not line.endswith(b"\n"):
                raise ValueError("its beginning is damaged")
            self._arrays = json.loads(header)["arrays"]
        except (ValueError, LookupError) as error:
            raise DamagedTable(path, str(error)) from error
        if self._size != self._offset + self._bytes_before(None):
            raise DamagedTable(path, f"it has {self._size} bytes, not as many as were written")

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an array."""
        return tuple(self._arrays[name]["shape"])

    def read(self, name: str) -> NDArray[Any]:
        """Return an array in the type and shape that it was written with."""
        described = self._arrays[name]
        out = np.empty(described["shape"], np.dtype(described["dtype"]))
        for _ in self._unpacked(name, _as_rows(out)):
            pass
        return out

    def pieces(self, name: str) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield the rows of an array, some at a time: the first row and a 2-D array."""
        return self._unpacked(name, None)

    def _unpacked(self, name: str, out: NDArray[Any] | None) -> Iterator[tuple[int, NDArray[Any]]]:
        """Unpack the rows of an array piece by piece, into `out` or into arrays of their own."""
        described = self._arrays[name]
        dtype = np.dtype(described["dtype"])
        first = 0
        with self.path.open("rb") as handle:
            handle.seek(self._offset + self._bytes_before(name))
            for n_rows, widths, sizes in described["pieces"]:
                buffers = []
                for size, checksum in sizes:
                    buffer = handle.read(size)
                    if zlib.crc32(buffer) != checksum:
                        raise DamagedTable(self.path, f"the {name} in it are damaged")
                    buffers.append(buffer)
                rows = (
                    np.empty((n_rows, len(widths)), dtype) if out is None else out[first:][:n_rows]
                )
                _unpack(widths, buffers, rows)
                yield first, rows
                first += n_rows

    def _bytes_before(self, wanted: str | None) -> int:
        total = 0
        for name, described in self._arrays.items():
            if name == wanted:
                break
            total += sum(size for _, _, sizes in described["pieces"] for size, _ in sizes)
        return total


def _unpack(widths: str, buffers: list[bytes], rows: NDArray[Any]) -> None:
    """Write the columns of some rows, from the buffer of each width."""
    rest = iter(buffers)
    for width in _WIDTHS:
        columns = [k for k, w in enumerate(widths) if int(w) == width]
        if not columns or not rows.size:
            continue
        is_whole = len(widths) == 1 and width == rows.itemsize and rows.dtype.str[0] != ">"
        if is_whole and rows.flags.c_contiguous:
            blosc.decompress(next(rest), dest=rows.reshape(-1).view(np.uint8))
            continue
        narrow = np.frombuffer(blosc.decompress(next(rest)), np.dtype(f"<u{width}"))
        chosen = narrow.reshape(len(columns), len(rows)).T
        if len(columns) == rows.shape[1]:
            rows[:] = chosen
        else:
            rows[:, columns] = chosen


# Arrays -------------------------------------------------------------------------------------
# A .npy file, so that it can be memory-mapped, and a checksum behind the numbers, which readers of
# .npy files pass over.

_MARK = b"\ncrc32 "
_TRAILER = len(_MARK) + 8
_CHECKED: dict[tuple[str, int, int], None] = {}  # files that this process has checked, by times


class _Summed:
    """A file to write to, and the checksum of what was written."""

    def __init__(self, handle: BinaryIO) -> None:
        self._handle = handle
        self.checksum = 0

    def write(self, data: Any) -> int:
        self.checksum = zlib.crc32(data, self.checksum)
        return self._handle.write(data)


def write_array(path: Path, array: NDArray[Any] | Rows) -> None:
    """Write an array, or rows piece by piece, to a new .npy file with a checksum."""
    with path.open("xb") as handle:
        file = _Summed(handle)
        if isinstance(array, Rows):
            header = {"descr": "<i8", "fortran_order": False, "shape": array.shape}
            np.lib.format.write_array_header_1_0(file, header)
            for rows in array.pieces:
                file.write(np.ascontiguousarray(rows, "<i8").data)
        else:
            np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
        handle.write(_MARK + f"{file.checksum:08x}".encode())


def check_array(path: Path) -> None:
    """Read a file of `write_array` once in this process, and raise `ValueError` if it is damaged.

    Files of earlier versions have no checksum.
    """
    state = path.stat()
    key = (str(path), state.st_size, state.st_mtime_ns)
    if key in _CHECKED:
        return
    with path.open("rb") as handle:
        left = state.st_size - _TRAILER
        handle.seek(max(left, 0))
        trailer = handle.read()
        if trailer.startswith(_MARK):
            handle.seek(0)
            checksum = 0
            while left > 0 and (piece := handle.read(min(left, 8 * _PIECE))):
                checksum, left = zlib.crc32(piece, checksum), left - len(piece)
            if f"{checksum:08x}".encode() != trailer[len(_MARK) :]:
                raise ValueError("its checksum is not that of its content")
    _CHECKED[key] = None
