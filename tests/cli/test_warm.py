"""`napari-agglo warm`: everything is compiled, and it is message where that is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from napari_agglo import InvalidInput
from napari_agglo.cli._commands.demo import expectation
from napari_agglo.errors import Cancelled
from napari_agglo.session import _warm_up, cache_folder, warm_up


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


def test_where_nothing_can_be_kept_it_says_so(run, monkeypatch):
    monkeypatch.setattr(_warm_up, "_done", set(_warm_up.STAGES))
    monkeypatch.setattr("napari_agglo.session.cache_folder", lambda: None)
    status, out, err = run("warm")
    assert (status, err) == (0, "")
    assert "NUMBA_CACHE_DIR" in out


def test_the_demo_says_how_long_it_takes_the_first_time_and_later(monkeypatch):
    missing = ["merge", "evaluate", "learn"]
    monkeypatch.setattr("napari_agglo.session.stages_to_compile", lambda: missing)
    first = _warm_up.seconds_to_compile(["merge", "evaluate"])
    both = _warm_up.seconds_to_compile(missing)
    monkeypatch.setattr("napari_agglo.session.cache_folder", lambda: Path("kept"))
    assert f"{first + 5} s" in expectation(True)
    assert f"{both + 40} s" in expectation(False), "without a window it trains"
    assert "NUMBA_CACHE_DIR" not in expectation(True)
    monkeypatch.setattr("napari_agglo.session.cache_folder", lambda: None)
    assert f"{first + 5} s" in expectation(True)
    assert "NUMBA_CACHE_DIR" in expectation(True)
    missing[:] = ["learn", "edit"]  # which the window does not need
    assert "a few seconds" in expectation(True)
    assert "first" not in expectation(True)
    missing[:] = ["edit"]
    assert expectation(False) == "This takes about 40 s."


def test_an_unknown_stage_is_refused():
    with pytest.raises(InvalidInput) as caught:
        warm_up(["cook"])
    assert caught.value.argument == "stages"


def test_it_can_be_cancelled_before_a_stage(monkeypatch):
    def stop(_):
        raise Cancelled

    monkeypatch.setattr(_warm_up, "_done", set())
    monkeypatch.setitem(_warm_up.STAGES, "merge", lambda: pytest.fail("it was not cancelled"))
    with pytest.raises(Cancelled):
        warm_up(["merge"], progress=stop)
    assert _warm_up._done == set()
