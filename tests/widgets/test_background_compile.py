"""Kernels are compiled beside the window: it says so, waits for nothing, and can be closed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from qtpy.QtWidgets import QApplication
from windows import draw, settle

from napari_agglo.widgets import Dock, _background_compile
from napari_agglo.widgets._project import Project

FOREVER = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let nothing be warm nor on disk; return a list of what is then loaded here."""
    loaded: list[str] = []
    monkeypatch.setattr(_background_compile, "is_warm", lambda: bool(loaded))
    monkeypatch.setattr(_background_compile, "stages_to_compile", lambda: ["learn", "edit"])
    monkeypatch.setattr(_background_compile, "warm_up", lambda progress: loaded.append("all"))
    return loaded


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Return the processes that were started to compile; they would go on for ever."""
    started = []

    def popen(*arguments: Any, **keywords: Any) -> Any:
        started.append(real(*arguments, **keywords))
        return started[-1]

    real = subprocess.Popen
    monkeypatch.setattr(_background_compile, "_COMMAND", FOREVER)
    monkeypatch.setattr(_background_compile.subprocess, "Popen", popen)
    return started


def put(viewer: Any) -> Dock:
    dock = Dock(viewer)
    viewer.window.add_dock_widget(dock, name="Agglo", area="right")
    draw()
    assert dock.guide.isVisible()  # complete
    draw()
    return dock


def wait_for(condition: Any) -> None:
    until = time.monotonic() + 20
    while not condition():
        QApplication.processEvents()
        assert time.monotonic() < until
        time.sleep(0.005)


def test_the_dock_says_what_is_compiled_and_is_not_held_up(
    viewer: Any, project: Project, loads: list[str], children: list[Any]
) -> None:
    dock = put(viewer)
    wait_for(lambda: "first use: learn" in dock.guide.warming.text())
    assert dock.guide.warming.text().startswith("Loading kernels, 0%. You can start already (")
    assert dock.guide.warming.isVisible()
    results: list[int] = []
    project.jobs.start("other", "Other", lambda progress: 7, results.append)
    wait_for(lambda: results == [7])
    assert children[0].poll() is None
    children[0].kill()  # it ended, if badly: what is missing is compiled here
    settle(project)
    assert loads == ["all"]
    assert not dock.guide.warming.isVisible()
    viewer.window.remove_dock_widget(dock)
    put(viewer)
    assert len(children) == 1


def test_compilation_ends_with_the_dock(
    viewer: Any, project: Project, loads: list[str], children: list[Any]
) -> None:
    dock = put(viewer)
    wait_for(lambda: children)
    viewer.window.remove_dock_widget(dock)
    settle(project)
    assert children[0].poll() is not None
    assert loads == []


def test_a_sentence_tells_that_kernels_cannot_be_kept(
    viewer: Any,
    project: Project,
    loads: list[str],
    children: list[Any],
    notices: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_background_compile, "cache_folder", lambda: None)
    monkeypatch.setattr(_background_compile, "temporary_cache", lambda: None)
    put(viewer)
    settle(project)
    assert (loads, children) == ([], []), "compiling here would hold up the window"
    assert len([notice for notice in notices if "NUMBA_CACHE_DIR" in notice]) == 1


@pytest.mark.parametrize("ends_well", [True, False])
def test_kernels_that_cannot_be_kept_are_compiled_into_a_temporary_folder(
    ends_well: bool, loads: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the process leaves to compile is not compiled in the window's."""
    to_child = "import os; open(os.environ['NUMBA_CACHE_DIR'] + '/kernels', 'w')"
    missing = ["learn", "edit"]
    monkeypatch.setattr(_background_compile, "cache_folder", lambda: None)
    monkeypatch.setattr(_background_compile, "temporary_cache", lambda: tmp_path)
    monkeypatch.setattr(
        _background_compile,
        "stages_to_compile",
        lambda: [] if ends_well and (tmp_path / "kernels").exists() else missing,
    )
    monkeypatch.setattr(_background_compile, "_COMMAND", [sys.executable, "-c", to_child])
    assert not _background_compile.load_kernels(lambda progress: None)
    assert (tmp_path / "kernels").exists()
    assert loads == (["all"] if ends_well else [])
    assert os.environ.get("NUMBA_CACHE_DIR") != str(tmp_path), "only the process has it"


WITHOUT_CACHE = """
import sys, warnings
import napari.layers  # napari's own kernels need a folder
from numba.core import caching

caching.CompileResultCacheImpl._locator_classes = [caching.UserProvidedCacheLocator]
warnings.simplefilter("ignore")
from napari_agglo._numba import temporary_cache
from napari_agglo.agglomeration._mean import merge_by_mean
from napari_agglo.session import cache_folder, stages_to_compile, warm_up
from napari_agglo.widgets import _background_compile

one = "from napari_agglo.session import warm_up; warm_up(['merge'])"
_background_compile._COMMAND = [sys.executable, "-c", one]
_background_compile.stages_to_compile = lambda: [*{"merge"} & {*stages_to_compile()}]
_background_compile.warm_up = lambda progress: warm_up(["merge"])
assert cache_folder() is None and temporary_cache().is_dir()
assert "merge" in stages_to_compile(), "test invalid"
assert not _background_compile.load_kernels(lambda progress: None)
assert "merge" not in stages_to_compile()
print(sum(merge_by_mean.stats.cache_hits.values()), sum(merge_by_mean.stats.cache_misses.values()))
print(temporary_cache())
"""


@pytest.mark.slow
@pytest.mark.compiled
def test_a_window_without_a_cache_loads_what_the_second_process_has_compiled() -> None:
    environment = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_CACHE], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    counts, folder = done.stdout.splitlines()
    hits, misses = map(int, counts.split())
    assert hits > 0
    assert misses == 0
    assert not Path(folder).exists()


def test_a_process_that_cannot_be_started_is_no_error(
    loads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_background_compile, "_COMMAND", ["/nonexistent"])
    assert _background_compile.load_kernels(lambda progress: None)
    assert loads == ["all"]
