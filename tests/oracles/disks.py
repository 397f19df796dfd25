"""A disk that fails when told to, and a small session to try it on."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import napari_agglo as agglo
from napari_agglo.volumes import _replace_file as files

SUPERPIXELS = np.array([[5, 5, 9, 9], [5, 7, 7, 9], [2**40, 7, 7, 3]])
BOUNDARY = np.linspace(0, 1, 12).reshape(3, 4)


class Died(BaseException):
    """The program was killed at this call; nothing that comes after it happens."""


class Disk:
    """Stands in for `files.call`: counts calls, and at the k-th fails, or is dead from then on.

    Parameters
    ----------
    at
        The call, from 0, to fail at; None only counts.
    error
        The errno to fail with, or None: the program dies.
    times
        How many calls fail, one after the other.
    torn
        Whether a failing write has written half of its bytes.
    only
        The kind of call that counts and fails, such as "rename"; by default every kind.
    """

    def __init__(self, at=None, error=None, *, times=1, torn=True, only=None):
        self.at, self.error, self.torn, self.only = at, error, torn, only
        self.times = math.inf if error is None else times
        self.calls = 0
        self.failed = 0
        self.synced = {}  # inode: length that is surely on the disk
        self.open = set()

    def __call__(self, what: str, function: Callable, *arguments):
        counts = self.only in (None, what)
        number, self.calls = self.calls, self.calls + counts
        if counts and self.at is not None and self.at <= number < self.at + self.times:
            if what == "write" and self.torn and not self.failed:
                function(arguments[0], arguments[1][: len(arguments[1]) // 2])
            if what == "close" and self.error is not None:
                function(*arguments)  # Linux closes a file even where close() says it failed
                self.open.discard(arguments[0])
            self.failed += 1
            raise Died if self.error is None else OSError(self.error, os.strerror(self.error))
        result = function(*arguments)
        if what == "open":
            self.open.add(result)
        if what == "close":
            self.open.discard(arguments[0])
        if what == "fsync":
            status = os.fstat(arguments[0])
            self.synced[status.st_ino] = status.st_size
        return result

    @contextmanager
    def in_use(self):
        """Be the disk within a ``with`` statement."""
        original, files.call = files.call, self
        try:
            yield self
        finally:
            files.call = original
            if self.error is None and self.failed:  # the system closes the files of the dead
                for descriptor in self.open:
                    os.close(descriptor)


def small_graph(**options):
    """Return a graph of five superpixels with sparse ids."""
    return agglo.region_graph(SUPERPIXELS, {"boundary": BOUNDARY}, **options)


def entries_of(store):
    """Return the entries of a store's journal, oldest first."""
    return [record.entry for record in store.journal.records]


def tree_of(folder):
    """Return every file below a folder with its bytes, to compare before and after."""
    files = (path for path in Path(folder).rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
