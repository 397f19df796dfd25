"""Rows of progress: a button that runs and cancels a job, its text, the reason of a failure."""

from __future__ import annotations

import threading
import time

from qtpy.QtWidgets import QApplication

from napari_agglo import Progress
from napari_agglo._progress import WorkClock
from napari_agglo.errors import InvalidInput
from napari_agglo.widgets._progress_row import RunRow
from napari_agglo.widgets._project import Project


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


def test_a_button_that_is_not_ready_stays_disabled_after_its_job(qapp):
    project = Project()
    run = RunRow(project, "a", "Run", "Runs.", lambda: project.jobs.start("a", "A", forever, print))
    run.button.click()
    project.jobs.changed.connect(lambda _: run.set_ready(False, "No data."))  # as a step does
    assert (run.button.text(), run.button.isEnabled()) == ("Cancel", True)
    run.button.click()
    run.set_text("Run again")  # a step follows its project meanwhile
    assert (run.button.text(), run.button.isEnabled()) == ("Cancelling…", False)
    wait(lambda: not project.jobs.running())
    assert (run.button.text(), run.button.isEnabled()) == ("Run again", False)
    assert run.button.toolTip() == "No data."


def test_a_job_says_that_kernels_are_compiled(qapp):
    project = Project()
    line = RunRow(project, "a", "Run", "", lambda: None)
    height = line.sizeHint().height()
    compiled, goes_on = threading.Event(), threading.Event()

    def work(progress):
        progress(Progress("graph", 99, 100, seconds_left=53.0, detail="part 2 of 3"))
        WorkClock.begin_compiling()
        compiled.wait(10)
        WorkClock.end_compiling()
        goes_on.wait(10)

    project.jobs.start("a", "A", work, lambda _: None)
    wait(lambda: line.progress.text() == "compiling (first run only): graph")
    assert line.beside.isVisibleTo(line)
    assert line.sizeHint().height() <= height + 2, "what is below moves"
    compiled.set()
    wait(lambda: line.progress.text() == "about 53 s left: graph, part 2 of 3")
    goes_on.set()
    wait(lambda: not project.jobs.running())
    project.close()


def test_a_failure_stays_in_the_step_until_the_next_run_or_other_inputs(qapp, monkeypatch):
    monkeypatch.setattr("napari_agglo.widgets._jobs.tell_error", lambda error: None)
    project = Project()
    line = RunRow(project, "a", "Run", "", lambda: None)

    def fails(progress):
        raise InvalidInput("The cue is empty", argument="cue", remedy="choose another")

    def run(work, done=lambda _: None, failed=None):
        project.jobs.start("a", "A", work, done, failed)
        wait(lambda: not project.jobs.running())

    run(fails)
    assert line.failure.text.text() == "The cue is empty; choose another."
    assert line.failure.isVisibleTo(line)
    run(lambda _: 7)
    assert not line.failure.isVisibleTo(line)
    run(lambda _: 7, lambda _: fails(None))  # in the main thread, after the work
    assert line.failure.isVisibleTo(line)
    project.set_dataset(None)
    assert not line.failure.isVisibleTo(line)
    shown = []
    run(fails, failed=shown.append)  # which shows a refused input itself
    assert shown
    assert not line.failure.isVisibleTo(line)
    run(lambda _: 1 / 0, failed=shown.append)
    assert "ZeroDivisionError" in line.failure.text.text()
    project.close()
