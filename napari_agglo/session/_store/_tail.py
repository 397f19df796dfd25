"""A note of how far the journal went, beside it, so that a journal cut off between two lines shows.

It is rewritten in place after each entry and not synchronised: it may lag behind the journal, never
run ahead of it, and it carries a checksum of its own. Losing it costs nothing but the warning.
"""

from __future__ import annotations

import os
import re
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from napari_agglo.session._store import _disk

_LINE = re.compile(rb"(\d{20} [0-9a-f]{32}) ([0-9a-f]{8})\n")


@dataclass(frozen=True)
class Tail:
    """Number and checksum of the last entry; 0 and the session's id if there is none."""

    seq: int
    sum: str

    def encode(self) -> bytes:
        """Return the note, always of one length."""
        text = f"{self.seq:020d} {self.sum}".encode()
        return text + f" {zlib.crc32(text):08x}\n".encode()


def read_tail(path: Path) -> Tail | None:
    """Return what the note says, or None if there is none that can be trusted."""
    try:
        found = _LINE.fullmatch(path.read_bytes()[:100])
    except OSError:
        return None
    if found is None or f"{zlib.crc32(found[1]):08x}".encode() != found[2]:
        return None
    seq, own = found[1].decode().split()
    return Tail(int(seq), own)


class TailFile:
    """The note, kept open by the one who writes the journal."""

    def __init__(self, path: Path) -> None:
        self._descriptor: int | None = None
        with suppress(OSError):  # only a warning depends on it
            self._descriptor = _disk.open_file(path, _disk.MAKE)

    def write(self, tail: Tail) -> None:
        """Replace the note; a failure leaves an older one, or one that its checksum gives away."""
        for _ in range(2):  # once more if it fails: half a note says nothing
            try:
                if self._descriptor is not None:
                    os.lseek(self._descriptor, 0, os.SEEK_SET)
                    _disk.write(self._descriptor, tail.encode())
                return
            except OSError:
                continue

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            with suppress(OSError):
                _disk.close(descriptor)
