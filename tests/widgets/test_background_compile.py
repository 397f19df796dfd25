"""Kernels are compiled beside the window: it says so, waits for nothing, and can be closed."""

from __future__ import annotations

import subprocess
import sys
import time
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
    put(viewer)
    settle(project)
    assert (loads, children) == (["all"], [])
    assert [notice for notice in notices if "NUMBA_CACHE_DIR" in notice]


def test_a_process_that_cannot_be_started_is_no_error(
    loads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_background_compile, "_COMMAND", ["/nonexistent"])
    assert _background_compile.load_kernels(lambda progress: None)
    assert loads == ["all"]
