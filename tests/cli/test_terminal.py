from __future__ import annotations

import io
import sys

import pytest

from napari_agglo._progress import Progress
from napari_agglo.cli._terminal import progress_line


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_line_that_is_kept_up_to_date_and_then_removed(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress_line() as progress:
        progress(Progress("graph", 1, 4))
        progress(Progress("graph", 1, 4))  # nothing new, nothing written
        progress(Progress("graph", 4, 4))
    assert sys.stderr.getvalue() == "\r\x1b[Kgraph  25 %\r\x1b[Kgraph 100 %\r\x1b[K"


def test_the_line_is_removed_before_an_error_is_told(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(KeyboardInterrupt), progress_line():
        raise KeyboardInterrupt
    assert sys.stderr.getvalue() == "\r\x1b[K"


def test_nobody_watches(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress_line() as progress:
        assert progress is None
