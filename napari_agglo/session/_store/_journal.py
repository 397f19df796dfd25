"""The journal: what was done, line after line, each on the disk before it counts as done."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from napari_agglo.session._store import _disk
from napari_agglo.session._store._errors import NotSaved, remedy, said, saving
from napari_agglo.session._store._examine import JOURNAL, TAIL, examine
from napari_agglo.session._store._lines import Record, encode
from napari_agglo.session._store._report import Report
from napari_agglo.session._store._tail import Tail, TailFile


class Journal:
    """The entries of a session, and the file that they are appended to.

    Parameters
    ----------
    folder : Path
        The session directory, which has a journal.
    start : str
        The session's id, on which the first line is chained.
    read_only : bool
        Change nothing; otherwise what cannot be trusted is moved to ``journal.damaged-N`` first.
    """

    def __init__(self, folder: Path, start: str, *, read_only: bool) -> None:
        self.path = folder / JOURNAL
        self._start = start
        self._lock = threading.Lock()
        self._broken: str | None = None
        self._descriptor: int | None = None
        self._tail: TailFile | None = None
        found, self.report = examine(folder, start)
        self.records = found.records
        self._length = found.length
        if not read_only:
            self._open_for_writing(folder, found.rest)

    @property
    def read_only(self) -> bool:
        """Whether nothing can be appended (any more)."""
        return self._descriptor is None or self._broken is not None

    @property
    def last(self) -> Tail:
        """Number and checksum of the last entry."""
        return _last(self.records, self._start)

    def append(self, entry: Mapping[str, Any]) -> int:
        """Add an entry; it is on the disk when this returns its number.

        If it cannot be written, the journal is as before and `NotSaved` says why. Should the disk
        not even allow that, the journal becomes read-only, and says so.
        """
        with self._lock:
            if self._broken is not None:
                raise NotSaved(self._broken)
            if self._descriptor is None:
                raise NotSaved(
                    f"{self.path.parent} is closed, or open read-only; open it for writing to edit."
                )
            line, record = encode(entry, len(self.records) + 1, self.last.sum)
            try:
                self._require_unchanged(self._descriptor)
            except OSError as error:
                raise self._not_saved(error) from error
            good = self._length
            try:
                _disk.write(self._descriptor, line)
                _disk.sync(self._descriptor)
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
            return record.seq

    def cut_off(self, seq: int, why: str) -> None:
        """Move entry `seq`, which cannot be used, and all that follow it aside; say `why`."""
        lines = self.path.read_bytes()[: self._length].splitlines(keepends=True)
        rest, lost = b"".join(lines[seq - 1 :]), len(self.records) - seq + 1
        assert self._descriptor is not None
        aside = _disk.free_name(self.path.parent, "journal.damaged")
        with saving("What follows in the journal", aside):
            _disk.write_whole(aside, rest)
            _disk.truncate(self._descriptor, self._length - len(rest))
            _disk.sync(self._descriptor)
        self._length -= len(rest)
        del self.records[seq - 1 :]
        if self._tail is not None:
            self._tail.write(self.last)
        before = self.report
        said = replace(
            before, kept=seq - 1, lost=before.lost + lost, sentences=(*before.sentences, why)
        )
        self.report = _with_aside(said, aside)

    def close(self) -> None:
        """Close the files; what was appended is on the disk already."""
        with self._lock:
            if self._tail is not None:
                self._tail.close()
            descriptor, self._descriptor = self._descriptor, None
            if descriptor is not None:
                with suppress(OSError):
                    _disk.close(descriptor)

    def _open_for_writing(self, folder: Path, rest: bytes) -> None:
        with saving("The journal", self.path):
            descriptor = _disk.open_file(self.path, _disk.APPEND)
        try:
            if rest:
                aside = _disk.free_name(folder, "journal.damaged")
                with saving("The damaged part of the journal", aside):
                    _disk.write_whole(aside, rest)
                    _disk.truncate(descriptor, self._length)
                self.report = _with_aside(self.report, aside)
            with saving("The journal", self.path):
                # What a killed program wrote last may not be on the disk yet, and is now believed.
                _disk.sync(descriptor)
        except BaseException:
            _disk.close(descriptor)
            raise
        self._descriptor = descriptor
        self._tail = TailFile(folder / TAIL)
        self._tail.write(self.last)

    def _require_unchanged(self, descriptor: int) -> None:
        """Refuse to write to a file that was deleted, or that somebody else has written to.

        A system call that succeeds on a deleted file would acknowledge an entry that is nowhere.
        """
        there, ours = os.stat(self.path), os.fstat(descriptor)
        if (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino) or (
            ours.st_size != self._length
        ):
            raise NotSaved(
                f"{self.path} was replaced or changed by another program since it was opened; "
                "nothing was written. Close the session and open it again."
            )

    def _take_back(self, cause: BaseException) -> None:
        """Cut off what a failed append may have left; give up writing if that fails too."""
        for attempt in ("as it is", "reopened"):
            try:
                if attempt == "reopened":
                    if self._descriptor is not None:
                        descriptor, self._descriptor = self._descriptor, None
                        _disk.close(descriptor)
                    self._descriptor = _disk.open_file(self.path, _disk.APPEND)
                assert self._descriptor is not None
                _disk.truncate(self._descriptor, self._length)
                _disk.sync(self._descriptor)
                return
            except OSError as error:
                reason = said(error)
        kept = len(self.records)
        self._broken = (
            f"{self.path} could not be written, nor be set back to entry {kept} ({reason}); the "
            f"session is read-only from now on. The {kept} entries before are safe; whether the "
            "last one was kept shows when the session is opened again, once the disk is well."
        )
        raise NotSaved(self._broken) from cause

    def _not_saved(self, error: OSError) -> NotSaved:
        return NotSaved(
            f"The edit could not be written to {self.path} ({said(error)}); nothing has changed, "
            f"and the {len(self.records)} entries before are safe: {remedy(error)}."
        )


def _with_aside(report: Report, aside: Path) -> Report:
    sentence = f"What follows was moved to {aside.name}."
    return Report(report.kept, report.lost, (*report.sentences, sentence), (*report.aside, aside))


def _last(records: list[Record], start: str) -> Tail:
    return Tail(records[-1].seq, records[-1].sum) if records else Tail(0, start)
