"""The journal: one line for each action, on the disk before the action is acknowledged."""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from napari_agglo.errors import Remedy
from napari_agglo.session._store.store_errors import (
    NotSaved,
    Report,
    SessionDamaged,
    advice_on,
    reason_of,
    saving,
)
from napari_agglo.volumes import _replace_file as files

# A line is one JSON object that begins with its checksum::
#
#     {"sum":"<32 digits>","seq":7,"time":"2031-05-04T13:02:01.250+00:00","entry":{...}}
#
# The checksum covers all later bytes of the line and the checksum of the line before; that of the
# first line covers the id of the session instead. So a line that is altered, lost, repeated, out of
# order or from another session breaks the chain, and no line after it is trusted either.

_HEAD = b'{"sum":"'
_AFTER = len(_HEAD) + 32
_to_text = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


@dataclass(frozen=True)
class Record:
    """An entry of the journal with its number, from 1, its time, and its link of the chain."""

    seq: int
    time: str
    entry: dict[str, Any]
    sum: str


@dataclass(frozen=True)
class Scan:
    """A journal as read: the trusted records, the bytes they take, and the bytes after them."""

    records: list[Record]
    length: int
    rest: bytes

    @property
    def complete_lines_after(self) -> int:
        """Number of whole lines that cannot be trusted."""
        return self.rest.count(b"\n")


def encode(entry: Mapping[str, Any], seq: int, previous: str) -> tuple[bytes, Record]:
    """Return the line of an entry, which is plain JSON, and its record as it will be read again."""
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    text = _to_text(entry)
    body = f',"seq":{seq},"time":"{time}","entry":{text}}}'.encode("ascii")
    own = _chained(previous, b'"' + body)
    return _HEAD + own.encode() + b'"' + body + b"\n", Record(seq, time, dict(entry), own)


def scan(data: bytes, start: str) -> Scan:
    """Read lines up to the first wrong one; `start` is the id of the session. Never fails."""
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
        plain = json.loads(line.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):  # the checksum is right, so a person wrote this line
        return None
    if not (
        isinstance(plain, dict)
        and plain.get("seq") == seq
        and isinstance(plain.get("time"), str)
        and isinstance(plain.get("entry"), dict)
    ):
        return None
    return Record(seq, plain["time"], plain["entry"], own)


def _chained(previous: str, rest: bytes) -> str:
    return hashlib.blake2b(previous.encode() + rest, digest_size=16).hexdigest()


# The tail is a file beside the journal with the number of the last entry, so that a journal cut off
# between two lines is noticed. It is rewritten in place after each entry and not synchronised: it
# may be behind the journal, never ahead of it, and has a checksum of its own. Only a warning
# depends on it.

_LINE = re.compile(rb"(\d{20} [0-9a-f]{32}) ([0-9a-f]{8})\n")


@dataclass(frozen=True)
class Tail:
    """Number and checksum of the last entry; 0 and the session's id if there is none."""

    seq: int
    sum: str

    def encode(self) -> bytes:
        """Return the content of the tail file, always of one length."""
        text = f"{self.seq:020d} {self.sum}".encode()
        return text + f" {zlib.crc32(text):08x}\n".encode()


def read_tail(path: Path) -> Tail | None:
    """Return the content of a tail file; None if it is absent or its checksum is wrong."""
    try:
        match = _LINE.fullmatch(path.read_bytes()[:100])
    except OSError:
        return None
    if match is None or f"{zlib.crc32(match[1]):08x}".encode() != match[2]:
        return None
    seq, own = match[1].decode().split()
    return Tail(int(seq), own)


class TailFile:
    """The tail file, kept open by the writer of the journal."""

    def __init__(self, path: Path) -> None:
        self._descriptor: int | None = None
        with suppress(OSError):  # only a warning depends on it
            self._descriptor = files.open_file(path, files.MAKE)

    def write(self, tail: Tail) -> None:
        """Replace the content; a failure leaves the old one, or one of a wrong checksum."""
        for _ in range(2):  # once more if it fails
            try:
                if self._descriptor is not None:
                    os.lseek(self._descriptor, 0, os.SEEK_SET)
                    files.write(self._descriptor, tail.encode())
                return
            except OSError:
                continue

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            with suppress(OSError):
                files.close(descriptor)


_REPAIR = "repair the disk, and open the session again to see whether the edit was saved"
JOURNAL = "journal.jsonl"
TAIL = "journal.tail"


def examine(folder: Path, start: str) -> tuple[Scan, Report]:
    """Read a journal without changing it, and report its damage."""
    path = folder / JOURNAL
    tail = read_tail(folder / TAIL)  # first: a writer beside us may append in between
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise SessionDamaged(
            f"{folder} has no {JOURNAL}",
            argument="path",
            remedy="copy the file from a backup, or call recover() to continue without the edits",
        ) from error
    except OSError as error:
        raise SessionDamaged(
            f"{path} cannot be read ({reason_of(error)})", argument="path", remedy=advice_on(error)
        ) from error
    lines = scan(data, start)
    return lines, _report(lines, tail)


def _report(lines: Scan, tail: Tail | None) -> Report:
    kept = len(lines.records)
    expected = tail.seq if tail is not None else 0
    # The tail is more reliable than a count of lines: damage may add or remove a line end.
    lost = expected - kept if expected > kept else lines.complete_lines_after
    sentences = []
    if lines.rest and not lost:
        sentences.append(
            f"The journal ends in an incomplete line ({len(lines.rest)} bytes) of an edit that is "
            "being written, or was when the program stopped; it was never acknowledged. "
            f"The {_entries(kept)} before it {_are(kept)} intact."
        )
    elif lines.rest:
        sentences.append(
            f"The journal is damaged after {_entries(kept)}, which {_are(kept)} intact; "
            f"{_entries(lost)} from line {kept + 1} on cannot be trusted and {_are(lost)} lost "
            f"({len(lines.rest)} bytes)."
        )
    elif lost:
        sentences.append(
            f"The journal ends after {_entries(kept)}, but {expected} were written: "
            f"{_entries(lost)} {_are(lost)} lost, since the file was cut off."
        )
    if tail is None:
        sentences.append(
            f"{TAIL} is missing or damaged, so it is not known whether more entries followed."
        )
    return Report(kept, lost, tuple(sentences))


def _entries(number: int) -> str:
    return f"{number} {'entry' if number == 1 else 'entries'}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


class Journal:
    """The entries of a session, and the file that they are appended to.

    The first line is chained on `start`, the id of the session. Unless `read_only`, untrusted bytes
    are moved to ``journal.damaged-N`` first.
    """

    def __init__(self, folder: Path, start: str, *, read_only: bool) -> None:
        self.path = folder / JOURNAL
        self._start = Tail(0, start)
        self._lock = threading.Lock()
        self._refused: tuple[str, Remedy | str] | None = None  # why nothing is written any more
        self._descriptor: int | None = None
        self._tail: TailFile | None = None
        lines, self.report = examine(folder, start)
        self.records = lines.records
        self._length = lines.length
        if not read_only:
            self._open_for_writing(folder, lines.rest)

    @property
    def read_only(self) -> bool:
        """Whether nothing can be appended (any more)."""
        return self._descriptor is None or self._refused is not None

    def require_writable(self) -> None:
        """Refuse to change a session that is closed, read-only, or given up after an error."""
        if self._refused is not None:
            problem, remedy = self._refused
            raise NotSaved(problem, argument="path", remedy=remedy)
        if self._descriptor is None:
            raise NotSaved(
                f"{self.path.parent} is closed, or open read-only",
                argument="path",
                remedy="open it for writing",
            )

    def refuse(self, problem: str, remedy: Remedy | str) -> None:
        """Close the files, and refuse every change from now on for this reason."""
        self.close()
        self._refused = problem, remedy

    @property
    def last(self) -> Tail:
        """Number and checksum of the last entry."""
        return Tail(self.records[-1].seq, self.records[-1].sum) if self.records else self._start

    def append(self, entry: Mapping[str, Any]) -> Record:
        """Add an entry; it is on the disk when this returns its record.

        If it cannot be written, `NotSaved` is raised and the journal is as before; if the disk does
        not allow that either, the journal becomes read-only.
        """
        with self._lock:
            self.require_writable()
            assert self._descriptor is not None
            line, record = encode(entry, len(self.records) + 1, self.last.sum)
            try:
                self._require_unchanged(self._descriptor)
            except OSError as error:
                raise self._not_saved(error) from error
            good = self._length
            try:
                files.write(self._descriptor, line)
                files.sync_data(self._descriptor)
                self._length = good + len(line)
                self.records.append(record)
            except BaseException as error:  # a key press too: the entry is not acknowledged
                self._length = good
                del self.records[record.seq - 1 :]
                self._take_back(error)
                if isinstance(error, OSError):
                    raise self._not_saved(error) from error
                raise
            if self._tail is not None:
                self._tail.write(self.last)
            return record

    def cut_off(self, seq: int, why: str) -> None:
        """Move entry `seq` and all later ones to another file, and report `why`."""
        lines = self.path.read_bytes()[: self._length].splitlines(keepends=True)
        rest, lost = b"".join(lines[seq - 1 :]), len(self.records) - seq + 1
        assert self._descriptor is not None
        aside = files.free_name(self.path.parent, "journal.damaged")
        with saving("The rest of the journal", aside):
            files.write_whole(aside, rest)
            files.truncate(self._descriptor, self._length - len(rest))
            files.sync(self._descriptor)
        self._length -= len(rest)
        del self.records[seq - 1 :]
        if self._tail is not None:
            self._tail.write(self.last)
        sentences = (*self.report.sentences, why)
        cut = replace(self.report, kept=seq - 1, lost=self.report.lost + lost, sentences=sentences)
        self.report = _with_aside(cut, aside)

    def close(self) -> None:
        """Close the files; all entries are on the disk already."""
        with self._lock:
            if self._tail is not None:
                self._tail.close()
            descriptor, self._descriptor = self._descriptor, None
            if descriptor is not None:
                with suppress(OSError):
                    files.close(descriptor)

    def _open_for_writing(self, folder: Path, rest: bytes) -> None:
        with saving("The journal", self.path):
            descriptor = files.open_file(self.path, files.APPEND)
        try:
            if rest:
                aside = files.free_name(folder, "journal.damaged")
                with saving("The damaged part of the journal", aside):
                    files.write_whole(aside, rest)
                    files.truncate(descriptor, self._length)
                self.report = _with_aside(self.report, aside)
            with saving("The journal", self.path):
                # The last line of a killed program, which is trusted, may not be on the disk yet.
                files.sync(descriptor)
        except BaseException:
            files.close(descriptor)
            raise
        self._descriptor = descriptor
        self._tail = TailFile(folder / TAIL)
        self._tail.write(self.last)

    def _require_unchanged(self, descriptor: int) -> None:
        """Refuse to write to a file that was deleted, or that another program has written to.

        Writing to a deleted file succeeds, and the entry would be lost.
        """
        there, ours = os.stat(self.path), os.fstat(descriptor)
        if (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino) or (
            ours.st_size != self._length
        ):
            raise NotSaved(
                f"{self.path} was replaced or changed by another program since it was opened, and "
                "nothing was written",
                argument="path",
                remedy="close the session and open it again",
            )

    def _take_back(self, cause: BaseException) -> None:
        """Cut off the bytes of a failed append; become read-only if that fails too."""
        for attempt in ("as it is", "reopened"):
            try:
                if attempt == "reopened":
                    if self._descriptor is not None:
                        descriptor, self._descriptor = self._descriptor, None
                        files.close(descriptor)
                    self._descriptor = files.open_file(self.path, files.APPEND)
                assert self._descriptor is not None
                files.truncate(self._descriptor, self._length)
                files.sync(self._descriptor)
                return
            except OSError as error:
                reason = reason_of(error)
        kept = len(self.records)
        problem = (
            f"{self.path} could not be written, nor be reset to entry {kept} ({reason}); the "
            f"session is read-only from now on. The {kept} entries before are safe"
        )
        self._refused = problem, _REPAIR
        raise NotSaved(problem, argument="path", remedy=_REPAIR) from cause

    def _not_saved(self, error: OSError) -> NotSaved:
        return NotSaved(
            f"The edit could not be written to {self.path} ({reason_of(error)}); nothing has "
            f"changed, and the {len(self.records)} entries before are safe",
            argument="path",
            remedy=advice_on(error),
        )


def _with_aside(report: Report, aside: Path) -> Report:
    sentences = (*report.sentences, f"The rest was moved to {aside.name}.")
    return replace(report, sentences=sentences, aside=(*report.aside, aside))
