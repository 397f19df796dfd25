"""`napari-agglo warm`: everything is compiled, and it is message where that is kept."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path

import pytest
from numba.core import caching

from napari_agglo import InvalidInput, _numba
from napari_agglo.cli import _terminal
from napari_agglo.cli._commands import warm
from napari_agglo.errors import Cancelled
from napari_agglo.session import (
    _warm_up,
    cache_folder,
    seconds_to_compile,
    stages_to_compile,
    warm_up,
)


@pytest.mark.compiled
def test_all_stages_are_run_once(run, monkeypatch):
    counts = {stage: 0 for stage in _warm_up.STAGES}

    def count(stage):
        counts[stage] += 1

    for stage in counts:
        monkeypatch.setitem(_warm_up.STAGES, stage, lambda stage=stage: count(stage))
    monkeypatch.setattr(_warm_up, "_done", set())
    status, out, err = run("warm", "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["folder"] == str(cache_folder())
    assert str(Path(cache_folder())) in run("warm")[1]
    assert set(counts.values()) == {1}


def test_stages_are_run_in_the_order_in_which_a_person_needs_them(run, monkeypatch):
    """A click waits for the stages before its own: a tree, its errors, a policy, an edit."""
    begun = []
    for stage in _warm_up.STAGES:
        monkeypatch.setitem(_warm_up.STAGES, stage, lambda stage=stage: begun.append(stage))
    monkeypatch.setattr(_warm_up, "_done", set())
    assert run("warm")[0] == 0
    assert begun[:4] == ["merge", "evaluate", "learn", "edit"]
    assert list(_warm_up._KERNELS) == begun, "the stage that is left to compile is the next"
    assert list(_warm_up._SECONDS) == begun


def test_a_group_that_takes_long_is_told_with_the_time(run, monkeypatch):
    """While the compiler reports nothing, a line still comes every few seconds."""
    lines = []

    def during():
        return [line for line in lines if line.startswith("kernels that learn")]

    def wait():
        deadline = time.monotonic() + 30
        while len(during()) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)

    monkeypatch.setattr(_terminal, "LOG_SECONDS", 0.0)
    monkeypatch.setattr(warm, "_TICK", 0.01)
    monkeypatch.setattr(_terminal.Console, "note", lambda _, text: lines.append(text))
    monkeypatch.setattr(_warm_up, "_done", set())
    for stage in _warm_up.STAGES:
        monkeypatch.setitem(_warm_up.STAGES, stage, wait if stage == "learn" else lambda: None)
    monkeypatch.setitem(_warm_up._SECONDS, "learn", 10**6)
    assert run("warm")[0] == 0
    assert len(during()) >= 3
    assert all(line.endswith(" s") for line in lines)
    assert run("warm", "-q")[0] == 0


@pytest.mark.compiled
def test_nothing_is_left_to_compile_when_all_stages_have_run():
    warm_up()
    if cache_folder() is not None:
        assert stages_to_compile() == []  # otherwise each window would compile again


def test_a_cache_that_cannot_be_written_is_named(run, monkeypatch):
    monkeypatch.setattr(_warm_up, "_done", set(_warm_up.STAGES))
    monkeypatch.setattr("napari_agglo.session.cache_folder", lambda: None)
    status, out, err = run("warm")
    assert (status, err) == (0, "")
    assert "NUMBA_CACHE_DIR" in out


@pytest.mark.compiled
def test_any_command_says_once_that_its_kernels_cannot_be_kept(run, monkeypatch):
    def define():
        return _numba.kernel(lambda: 1), _numba.kernel(lambda: 2)

    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])
    monkeypatch.setattr(_numba, "_temporary", [])
    monkeypatch.setattr(_warm_up, "_done", set())
    for stage in _warm_up.STAGES:
        monkeypatch.setitem(_warm_up.STAGES, stage, define)
    _numba._warn_not_kept.cache_clear()
    status, _, err = run("warm")
    assert status == 0
    assert err.startswith("napari-agglo: warning: ")
    assert err.count("NUMBA_CACHE_DIR") == err.count("\n") == 1


@pytest.fixture
def expectation(run, monkeypatch, tmp_path):
    """Return the sentence that the demo begins with, in a window or without one; no demo runs."""

    def refuse(*arguments, **options):
        raise InvalidInput("not now")

    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("napari_agglo.cli._commands.demo.find_spec", lambda name: name)
    monkeypatch.setattr("napari_agglo.samples.sample", refuse)
    done = subprocess.CompletedProcess([], 0)
    monkeypatch.setattr(subprocess, "run", lambda *arguments, **options: done)

    def say(window):
        status, out, _ = run("demo", "-o", tmp_path / "o", *([] if window else ["--headless"]))
        assert status == (0 if window else 2)
        return out.splitlines()[0]

    return say


def test_the_demo_says_how_long_it_takes_the_first_time_and_later(monkeypatch, expectation):
    missing = ["merge", "evaluate", "learn"]
    monkeypatch.setattr("napari_agglo.session.stages_to_compile", lambda: missing)
    first = seconds_to_compile(["merge", "evaluate"])
    both = seconds_to_compile(missing)
    monkeypatch.setattr("napari_agglo.session.cache_folder", lambda: Path("kept"))
    assert f"{first + 5} s" in expectation(True)
    assert f"{both + 60} s" in expectation(False), "without a window it trains"
    assert "NUMBA_CACHE_DIR" not in expectation(True)
    monkeypatch.setattr("napari_agglo.session.cache_folder", lambda: None)
    assert f"{first + 5} s" in expectation(True)
    assert "NUMBA_CACHE_DIR" in expectation(True)
    missing[:] = ["learn", "edit"]  # which the window does not need
    assert "a few seconds" in expectation(True)
    assert "first" not in expectation(True)
    missing[:] = ["edit"]
    assert re.findall(r"\d+ \w+", expectation(False)) == ["60 s"]


def test_an_unknown_stage_is_refused():
    with pytest.raises(InvalidInput) as caught:
        warm_up(["cook"])
    assert caught.value.argument == "stages"


def test_warm_can_be_cancelled_before_a_stage(monkeypatch):
    def stop(_):
        raise Cancelled

    monkeypatch.setattr(_warm_up, "_done", set())
    monkeypatch.setitem(_warm_up.STAGES, "merge", lambda: pytest.fail("it was not cancelled"))
    with pytest.raises(Cancelled):
        warm_up(["merge"], progress=stop)
    assert _warm_up._done == set()
