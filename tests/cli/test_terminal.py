"""Progress on stderr: a line that is kept up to date, or a log; nothing with -q."""

from __future__ import annotations

import io
import re
import shutil
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from napari_agglo import Progress, superpixels
from napari_agglo._progress import WorkClock
from napari_agglo.cli import _terminal, main
from napari_agglo.cli._terminal import _progress_text, one_work


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
    oversegment([Progress("fit", 9, 10, 0.25, 12.4)])
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


def test_a_log_goes_on_while_a_stage_reports_nothing(monkeypatch, oversegment, capsys):
    monkeypatch.setattr(_terminal, "LOG_SECONDS", 0.0)
    monkeypatch.setattr(_terminal, "TICK", 0.002)
    lines, told = [], []
    monkeypatch.setattr(_terminal.Console, "note", lambda _, text: lines.append(text))

    def lines_with(word):
        return sum(word in line for line in lines)

    def wait(word):
        until = time.monotonic() + 30
        while lines_with(word) < 3 and time.monotonic() < until:
            time.sleep(0.002)
        told.append(len(lines))

    def steps():
        wait("starting")
        yield Progress("graph", 1, 4)
        wait("graph")
        WorkClock.begin_compiling()
        wait("compiling")
        WorkClock.end_compiling()

    assert oversegment(steps()) == 0
    assert len(told) == 3
    ended = len(lines)
    time.sleep(0.02)
    assert len(lines) == ended, "the thread is gone"
    for word in ("starting", "graph", "compiling"):
        assert lines_with(word) >= 3, lines[:9]


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


@pytest.fixture
def shares(monkeypatch, capsys):
    """Return a function that runs a command, and the shares of the work that its log states."""
    monkeypatch.setattr(_terminal, "LOG_SECONDS", 0.0)

    def run(*words):
        capsys.readouterr()
        assert main(list(words)) == 0
        lines = [line for line in capsys.readouterr().err.splitlines() if " %" in line]
        return [int(re.search(r"(\d+) %", line)[1]) for line in lines]

    return run


def test_a_command_has_one_progress_for_all_its_stages(files, shares):
    """The share of the whole work never falls, and ends near its end."""
    evidence = ("--superpixels", "superpixels.tif", "--cues", "boundary.tif")
    gold = ("--gold", "gold.tif")
    commands = [
        ("oversegment", "boundary.tif", "-o", "s.ome.zarr", "--min-size", "1"),
        ("segment", *evidence, "-o", "labels.ome.zarr"),
        ("evaluate", "superpixels.tif", *gold, "--breakdown", "errors.csv"),
        ("curve", *evidence, *gold),
        ("movie", *evidence, *gold, "-o", "a.gif", "--frames", "3", "--size", "40"),
        ("report", *evidence, *gold, "-o", "report.html", "--policy", "mean", "random"),
        ("cue", "boundary.tif", "-o", "cue.tif"),
    ]
    for words in commands:
        found = shares(*words)
        assert found == sorted(found), words
        assert found[-1] > 75, words
        assert len(set(found)) > 2, words


def test_the_page_of_a_report_is_a_part_of_its_work(files, monkeypatch):
    """The bar makes no leap, and is below its end until the page is whole."""
    told = []
    monkeypatch.setattr(_terminal.Console, "_log_lines", lambda _: told.append)
    evidence = ("--superpixels", "superpixels.tif", "--cues", "boundary.tif")
    golds = ("--gold", "gold.tif", "superpixels.tif", "--policy", "mean", "random")
    assert main(["report", *evidence, *golds, "-o", "r"]) == 0
    shares = [one.whole for one in told]
    assert shares == sorted(shares)
    steps = [after - before for before, after in pairwise([0.0, *shares])]
    assert max(steps) < 0.12, told[steps.index(max(steps))]
    first = next(k for k, one in enumerate(told) if one.stage == "page")
    assert told[first - 1].stage == "agreement", "people against each other are the last"
    assert shares[first - 1] == pytest.approx(0.8, abs=1e-3)
    assert shares[-1] == 1.0
    assert len(set(shares[first:])) > 4, "it moves while the page is made"


def test_each_of_many_images_has_its_share(files, shares):
    Path("maps").mkdir()
    for name in "abcd":
        shutil.copy("boundary.tif", f"maps/{name}.tif")
    found = shares("oversegment", "maps", "--each", "-o", "out", "--min-size", "1")
    assert found == sorted(found)
    assert {n // 25 for n in found} >= {0, 1, 2, 3}


def test_stages_that_are_not_expected_leave_the_progress_where_it_is():
    states = []
    show = one_work(states.append, [("graph", 1), ("agglomerate", 3), ("agglomerate", 4)])
    for stage, done in (
        ("reading", 1), ("graph", 2), ("more", 1), ("agglomerate", 1), ("agglomerate", 2),
        ("agglomerate", 0), ("agglomerate", 2),
    ):  # fmt: skip
        show(Progress(stage, done, 2))
    assert [state.whole for state in states] == [0.5, 0.125, 0.125, 0.3125, 0.5, 0.5, 1.0]


def test_a_block_wise_run_has_its_rate_and_its_share_of_all():
    states = []
    show = one_work(states.append, [("cut", 3), ("labels", 1)])
    show(Progress("labels", 1, 2, None, 4.0, "1/2, 3.0 Mvoxel/s"))
    assert states[0].share == states[0].whole == 0.875
    assert _progress_text(states[0]) == "labels  88 %, 1/2, 3.0 Mvoxel/s, about 4 s left"
