"""Progress on stderr: a line that is kept up to date, or a log; nothing with -q."""

from __future__ import annotations

import io
import sys
import time

import numpy as np
import pytest

from napari_agglo import Progress, TrainingProgress, superpixels
from napari_agglo.cli import main


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def no_progress():
    """Show progress, in place of the fixture of the folder."""


@pytest.fixture
def oversegment(monkeypatch, files):
    """Return a function that runs a command whose work does nothing but report some steps."""

    def run(steps, *options):
        def work(boundary, *, progress, **others):
            for step in steps:
                if isinstance(step, BaseException):
                    raise step
                if progress is not None:
                    progress(step)
            return np.ones((4, 6), np.uint32)

        monkeypatch.setattr(superpixels, "oversegment", work)
        return main(["oversegment", "boundary.tif", "-o", "out.tif", *options])

    return run


def test_a_line_that_is_kept_up_to_date_and_then_removed(monkeypatch, oversegment):
    monkeypatch.setattr(sys, "stderr", Terminal())
    again = Progress("graph", 1, 4)  # nothing new, nothing written
    oversegment([Progress("graph", 1, 4), again, Progress("graph", 4, 4)])
    assert sys.stderr.getvalue() == "\r\x1b[Kgraph  25 %\r\x1b[Kgraph 100 %\r\x1b[K"


def test_the_line_is_removed_before_an_error_is_told(monkeypatch, oversegment):
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert oversegment([KeyboardInterrupt()]) == 130
    assert sys.stderr.getvalue().startswith("\r\x1b[Knapari-agglo: interrupted")


def test_a_training_is_one_bar(monkeypatch, oversegment):
    monkeypatch.setattr(sys, "stderr", Terminal())
    oversegment([TrainingProgress("fit", 9, 10, 1, 100, 0.25, 12.4)])
    assert "fit  25 %, about 12 s left" in sys.stderr.getvalue()


@pytest.fixture
def clock(monkeypatch):
    """Return a clock to turn."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_a_log_has_a_line_now_and_then(clock, oversegment, capsys):
    def steps():
        for second in range(25):
            clock[0] = float(second)
            yield Progress("graph", second, 50)

    oversegment(steps())
    assert capsys.readouterr().err == (
        "napari-agglo: graph 10 %, 5 s\nnapari-agglo: graph 20 %, 10 s\n"
        "napari-agglo: graph 30 %, 15 s\nnapari-agglo: graph 40 %, 20 s\n"
    )


def test_verbose_has_a_line_for_each_stage(clock, oversegment, capsys):
    oversegment([Progress(s, step, 4) for s in ("graph", "merges") for step in range(3)], "-v")
    assert capsys.readouterr().err == (
        "napari-agglo: graph 0 %, 0 s\nnapari-agglo: merges 0 %, 0 s\n"
    )


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_quiet_shows_nothing(monkeypatch, oversegment, capsys, stream):
    monkeypatch.setattr(sys, "stderr", stream())
    oversegment([Progress("graph", 1, 4)], "-q")
    assert capsys.readouterr().out == ""
    main(["evaluate", "gold.tif", "--gold", "gold.tif", "-q"])  # numbers that were asked for
    assert "vi" in capsys.readouterr().out
    assert sys.stderr.getvalue() == ""
