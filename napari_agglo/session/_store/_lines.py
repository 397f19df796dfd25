"""The lines of a journal: how an entry becomes bytes, and which bytes can be trusted.

A line is one JSON object that begins with its checksum::

    {"sum":"<32 digits>","seq":7,"time":"2031-05-04T13:02:01.250+00:00","entry":{...}}

The checksum covers every byte of the line after it and the checksum of the line before; that of
the first line, the session's own id. So a line that is altered, lost, repeated, out of order or
from another session is noticed, and with it everything that follows, which was said on top of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from napari_agglo.errors import InvalidInput

_HEAD = b'{"sum":"'
_AFTER = len(_HEAD) + 32


@dataclass(frozen=True)
class Record:
    """An entry of the journal with its number, from 1, its time, and its link of the chain."""

    seq: int
    time: str
    entry: dict[str, Any]
    sum: str


@dataclass(frozen=True)
class Scan:
    """What a journal holds: the records that can be trusted, the bytes they take, what follows."""

    records: list[Record]
    length: int
    rest: bytes

    @property
    def complete_lines_after(self) -> int:
        """Number of whole lines that cannot be trusted."""
        return self.rest.count(b"\n")


def encode(entry: Mapping[str, Any], seq: int, previous: str) -> tuple[bytes, Record]:
    """Return the line of an entry, and its record as it will be read again."""
    if not isinstance(entry, Mapping):
        raise InvalidInput(f"`entry` must be a dict, got {type(entry).__name__}; wrap it in one.")
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    try:
        text = json.dumps(entry, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"`entry` must consist of finite numbers, text, lists and dicts, but {error}; convert "
            "arrays with .tolist()."
        ) from error
    body = f',"seq":{seq},"time":"{time}","entry":{text}}}'.encode("ascii")
    own = _chained(previous, b'"' + body)
    return _HEAD + own.encode() + b'"' + body + b"\n", Record(seq, time, json.loads(text), own)


def scan(data: bytes, start: str) -> Scan:
    """Read lines until one is wrong; `start` is the session's id. Never fails."""
    records: list[Record] = []
    previous, at = start, 0
    while (end := data.find(b"\n", at)) >= 0:
        record = _decode(data[at:end], len(records) + 1, previous)
        if record is None:
            break
        records.append(record)
        previous, at = record.sum, end + 1
    return Scan(records, at, data[at:])


def _decode(line: bytes, seq: int, previous: str) -> Record | None:
    own = _chained(previous, line[_AFTER:])
    if line[:_AFTER] != _HEAD + own.encode():
        return None
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):  # never of our making: someone computed the checksum
        return None
    if not (
        isinstance(said, dict)
        and said.get("seq") == seq
        and isinstance(said.get("time"), str)
        and isinstance(said.get("entry"), dict)
    ):
        return None
    return Record(seq, said["time"], said["entry"], own)


def _chained(previous: str, rest: bytes) -> str:
    return hashlib.blake2b(previous.encode() + rest, digest_size=16).hexdigest()
