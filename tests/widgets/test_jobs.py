"""Work in threads: told on the main thread, one at a time, and always able to stop."""

from __future__ import annotations

import sys
import threading
import time

import numpy as np
import pytest
import qtpy
from napari.qt.threading import FunctionWorker
from qtpy.QtWidgets import QApplication

import napari_agglo as agglo
from napari_agglo import Progress
from napari_agglo._data_warnings import warn_caller
from napari_agglo._progress import WorkClock
from napari_agglo.errors import Cancelled, DataWarning, InvalidInput, SetOption
from napari_agglo.partition import build_tree
from napari_agglo.widgets._jobs import Jobs, Worker, when_imported


@pytest.fixture
def jobs(qapp):
    made = Jobs()
    yield made
    made.close()
    wait(lambda: not made.running())


def wait(until, seconds=10):
    end = time.monotonic() + seconds
    while not until():
        QApplication.processEvents()
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.002)
    QApplication.processEvents()


def forever(progress):
    done = 0
    while True:
        progress(Progress("waiting", done, 100))
        done = min(done + 1, 99)
        time.sleep(0.002)


def test_the_result_comes_on_the_main_thread(jobs):
    seen = []
    main = threading.get_ident()

    def work(progress):
        return threading.get_ident()

    jobs.start("a", "A", work, lambda worker: seen.append((worker, threading.get_ident())))
    wait(lambda: seen)
    assert seen[0][0] != main
    assert seen[0][1] == main
    assert jobs.running() == []


def test_a_warning_of_data_is_told_in_terms_of_the_window(jobs, notices):
    remedy = SetOption("value_range", (1, 0), when="if it is")
    doubt = DataWarning("`boundary` is high", argument="boundary", remedy=remedy)
    seen = []

    def work(progress):
        warn_caller(doubt)

    jobs.start("a", "A", work, lambda _: seen.append(list(notices)))
    wait(lambda: seen)
    assert all(words in seen[0][0] for words in ("“boundary”", "range to 1:0", "step 1"))
    jobs.start("b", "B", work, lambda _: seen.append("done"), warned=seen.append)
    wait(lambda: len(seen) == 3)
    assert seen[1:] == [[doubt], "done"]
    assert len(notices) == 1


def test_a_second_start_while_one_runs_starts_nothing(jobs):
    started = []
    assert jobs.start("a", "A", lambda p: (started.append(1), forever(p)), lambda _: None)
    assert jobs.start("a", "A", lambda p: started.append(2), lambda _: None) is None
    assert jobs.start("b", "B", lambda p: started.append(3), lambda _: None)
    wait(lambda: 3 in started)
    jobs.cancel("a")
    wait(lambda: not jobs.running())
    assert sorted(started) == [1, 3]


def test_cancel_stops_it_and_gives_no_result(jobs):
    results, changed, steps = [], [], []
    jobs.changed.connect(changed.append)
    job = jobs.start("a", "A", forever, results.append)
    job.progressed.connect(steps.append)
    wait(lambda: len(steps) > 2)
    jobs.cancel("a")
    wait(lambda: not jobs.running())
    assert results == []
    assert changed == ["a", "a"]


def test_a_result_that_comes_after_the_cancel_is_dropped(jobs):
    results, goes_on = [], threading.Event()
    jobs.start("a", "A", lambda p: goes_on.wait(10), results.append)
    jobs.cancel("a")
    goes_on.set()
    wait(lambda: not jobs.running())
    assert results == []


def test_a_cancel_clicked_while_napari_draws_its_bar_is_not_lost(jobs):
    # The bar handles events when it is drawn, also just before the result is given.
    results, goes_on = [], threading.Event()

    def work(progress):
        goes_on.wait(10)
        progress(Progress("last", 99, 100))

    job = jobs.start("a", "A", work, results.append)
    drawn = job._bar.set_description

    def draw(words):
        drawn(words)
        job.cancel()

    job._bar.set_description = draw
    job._timer.stop()  # so that it is drawn first when the result is there
    goes_on.set()
    wait(lambda: not jobs.running())
    assert job.cancelled, "test invalid: it was never drawn"
    assert results == []


def test_a_job_that_ended_while_napari_drew_its_bar_reports_no_more(jobs):
    steps = []
    job = jobs.start("a", "A", forever, lambda _: None)
    job.progressed.connect(steps.append)
    job._bar.refresh = job._end
    wait(lambda: not job.running)
    assert steps == []
    job.cancel()


def test_a_failure_is_told_and_the_next_run_works(jobs, monkeypatch):
    told = []
    monkeypatch.setattr("napari_agglo.widgets._jobs.tell_error", told.append)
    results = []

    def fails(progress):
        raise InvalidInput("`x` is wrong; give another.")

    jobs.start("a", "A", fails, results.append)
    wait(lambda: not jobs.running())
    jobs.start("a", "A", lambda p: 7, results.append)
    wait(lambda: not jobs.running())
    assert [str(error) for error in told] == ["`x` is wrong; give another."]
    assert results == [7]


def test_an_error_of_the_code_of_others_names_it_and_asks_for_no_report(jobs, monkeypatch):
    told = []
    monkeypatch.setattr("napari_agglo.widgets._qt.show_error", told.append)

    def boom(graph):
        raise RuntimeError("my bug")

    boom.__qualname__ = "boom"
    graph = agglo.region_graph(np.array([[1, 2, 3]]), np.array([[0.0, 0.5, 1.0]]))
    for work in (lambda _: build_tree(graph, boom), lambda _: 1 / 0):
        jobs.start("a", "A", work, told.append)
        wait(lambda: not jobs.running())
    own, ours = told
    assert all(words in own for words in ("RuntimeError", f"'{__name__}:boom'", "my bug"))
    assert "report" not in own
    assert "report" in ours


def test_a_job_that_cancels_itself_has_not_failed(jobs, monkeypatch):
    told = []
    monkeypatch.setattr("napari_agglo.widgets._jobs.tell_error", told.append)

    def gives_up(progress):
        raise Cancelled("enough")

    jobs.start("a", "A", gives_up, told.append)
    wait(lambda: not jobs.running())
    assert told == []


def test_after_the_viewer_has_gone_no_result_arrives(jobs):
    results, goes_on = [], threading.Event()
    job = jobs.start("a", "A", lambda p: goes_on.wait(10), results.append)
    jobs.close()
    goes_on.set()
    wait(lambda: not job.running)
    assert results == []
    assert jobs.start("b", "B", lambda p: 1, results.append) is None


def test_python_in_a_worker_gives_way_only_while_it_runs(jobs):
    before = sys.getswitchinterval()
    jobs.start("a", "A", forever, lambda _: None)
    jobs.start("b", "B", forever, lambda _: None)
    assert sys.getswitchinterval() < before
    jobs.cancel("a")
    wait(lambda: jobs.running() == ["b"])
    assert sys.getswitchinterval() < before
    jobs.cancel("b")
    wait(lambda: not jobs.running())
    assert sys.getswitchinterval() == pytest.approx(before)


@pytest.mark.parametrize("source", ["", "raise RuntimeError"])
def test_a_module_is_imported_in_a_thread(source, qapp, tmp_path, monkeypatch):
    name = f"imported_late_{len(source)}"
    (tmp_path / f"{name}.py").write_text(
        f"import threading\nthread = threading.get_ident()\n{source}"
    )
    monkeypatch.syspath_prepend(tmp_path)
    calls = []
    when_imported(name, lambda: calls.append(threading.get_ident()))
    assert calls == [], "the window waited for the import"
    wait(lambda: calls, 20)
    assert calls == [threading.get_ident()], "the action runs in the main thread"
    assert (name in sys.modules) == (not source), "an import that fails is left to the action"
    if not source:
        assert sys.modules.pop(name).thread != threading.get_ident()


def test_an_imported_module_is_not_waited_for(qapp):
    calls = []
    when_imported(__name__, lambda: calls.append(1))
    assert calls == [1]


def test_the_outcome_of_a_worker_is_dropped_when_its_signals_are_gone(qapp):
    """PySide6 says "Signal source has been deleted", PyQt6 that an object was deleted."""
    if qtpy.PYSIDE6:
        from shiboken6 import delete
    else:
        from PyQt6.sip import delete
    done = []
    for kind in (FunctionWorker, Worker):
        worker = kind(lambda kind=kind: done.append(kind))
        delete(worker.signals)
        if kind is FunctionWorker:
            with pytest.raises(RuntimeError, match="deleted"):
                worker.run()
        else:
            worker.run()


def test_the_clock_leaves_compilation_out(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("napari_agglo._progress.time.perf_counter", lambda: now[0])
    WorkClock.begin_compiling()
    now[0] += 50
    clock = WorkClock()
    WorkClock.begin_compiling()  # a kernel that another one calls
    now[0] += 7
    WorkClock.end_compiling()
    assert clock.seconds() == 0
    WorkClock.end_compiling()
    now[0] += 3
    assert clock.seconds() == 3
