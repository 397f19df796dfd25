from __future__ import annotations

import io
import sys

import pytest

from napari_agglo._progress import Progress, TrainingProgress
from napari_agglo.cli import _terminal
from napari_agglo.cli._terminal import Console


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_line_that_is_kept_up_to_date_and_then_removed(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with Console().progress() as progress:
        progress(Progress("graph", 1, 4))
        progress(Progress("graph", 1, 4))  # nothing new, nothing written
        progress(Progress("graph", 4, 4))
    assert sys.stderr.getvalue() == "\r\x1b[Kgraph  25 %\r\x1b[Kgraph 100 %\r\x1b[K"


def test_the_line_is_removed_before_an_error_is_told(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(KeyboardInterrupt), Console().progress():
        raise KeyboardInterrupt
    assert sys.stderr.getvalue() == "\r\x1b[K"


def test_a_training_is_one_bar(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with Console().progress() as progress:
        progress(TrainingProgress("fit", 9, 10, 1, 100, 0.25, 12.4))
    assert "fit  25 %, about 12 s left" in sys.stderr.getvalue()


@pytest.fixture
def log(monkeypatch):
    """Return a clock to turn; stderr is no terminal."""
    now = [0.0]
    monkeypatch.setattr(_terminal.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(_terminal, "LOG_SECONDS", 10.0)
    return now


def test_a_log_has_a_line_now_and_then(log, capsys):
    with Console().progress() as progress:
        for second in range(25):
            log[0] = float(second)
            progress(Progress("graph", second, 50))
    assert capsys.readouterr().err == (
        "napari-agglo: graph 20 %, 10 s\nnapari-agglo: graph 40 %, 20 s\n"
    )


def test_verbose_has_a_line_for_each_stage(log, capsys):
    with Console(verbosity=1).progress() as progress:
        for stage in ("graph", "merges"):
            for step in range(3):
                progress(Progress(stage, step, 4))
    assert capsys.readouterr().err == (
        "napari-agglo: graph 0 %, 0 s\nnapari-agglo: merges 0 %, 0 s\n"
    )


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_quiet_shows_nothing(monkeypatch, capsys, stream):
    monkeypatch.setattr(sys, "stderr", stream())
    console = Console(verbosity=-1)
    with console.progress() as progress:
        assert progress is None
    console.result("done", {})
    console.result("42", {}, asked_for=True)
    assert capsys.readouterr().out == "42\n"
    assert sys.stderr.getvalue() == ""
