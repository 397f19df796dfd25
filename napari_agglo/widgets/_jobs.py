"""Long work in a worker thread, with progress and cancel; the window stays responsive.

A job is a function of one argument, the progress callback, that holds arrays and never layers. Its
result or its error is passed on in the main thread. `Jobs` runs one at a time for each name.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from napari.qt.threading import FunctionWorker
from napari.utils import progress as napari_progress
from psygnal import Signal
from qtpy.QtCore import Qt, QTimer
from qtpy.QtWidgets import QProgressBar, QWidget

from napari_agglo._data_warnings import keep_warnings
from napari_agglo._progress import Progress, ProgressCallback, WorkClock
from napari_agglo._registry import declared_entry_points
from napari_agglo.errors import AggloError, Cancelled, DataWarning, InvalidInput
from napari_agglo.widgets._colours import PROBLEM
from napari_agglo.widgets._fixed_label import fixed_label
from napari_agglo.widgets._napari import setting
from napari_agglo.widgets._qt import (
    button,
    column,
    error_text,
    label,
    link,
    row,
    tell_error,
    tell_warnings,
)

if TYPE_CHECKING:
    from napari_agglo.widgets._project import Project


Work = Callable[[ProgressCallback], Any]

_POLL = 60  # milliseconds between two reads of the progress
_STEPS = 1000  # of the bar in napari's activity dock
# Python code in a worker gives way to the window after this many seconds, not after 5 ms.
_SWITCH = 0.0005


class Worker(FunctionWorker):
    """A worker that may end after its window: Qt has deleted its signals, and nobody waits."""

    def run(self) -> None:
        """Run the work; an error of a deleted signal is dropped, others are raised."""
        try:
            super().run()
        except RuntimeError as error:  # "Signal source has been deleted", or a C++ object
            if "deleted" not in str(error):
                raise


class Job:
    """One run, with signals.

    `done` shows the result. It may be a generator: each part has a turn of the event loop of its
    own, so that the window does not stand still, and the job ends with the last of them. `warned`
    shows what the work warned of, before that.
    """

    progressed = Signal(object)  # a Progress
    ended = Signal()  # in any case, after the call of `done` or `failed`

    def __init__(
        self,
        title: str,
        work: Work,
        done: Callable[[Any], object],
        failed: Callable[[Exception], object] | None = None,
        warned: Callable[[list[DataWarning]], object] = tell_warnings,
    ) -> None:
        self.title = title
        self.began = time.monotonic()
        self.cancelled = False
        self.running = True
        self.error: Exception | None = None  # of a run that failed
        self.latest: Progress | None = None
        self._done = done
        self._failed = failed
        self._warned = warned
        self._warnings: list[DataWarning] = []
        self.compiling = False  # whether it waits for kernels that are compiled
        self._shown: Progress | None = None
        self._bar = napari_progress(total=_STEPS, desc=title)
        self._timer = QTimer()
        self._timer.setInterval(_POLL)
        self._timer.timeout.connect(self._look)
        self._worker = Worker(self._run, work)
        self._worker.returned.connect(self._on_returned)
        self._worker.errored.connect(self._on_errored)

    def start(self) -> None:
        """Start the worker."""
        _Switching.begin()
        self._timer.start()
        self._worker.start()

    def cancel(self) -> None:
        """Stop at the next report of progress, without a result."""
        self.cancelled = True

    def _run(self, work: Work) -> Any:
        # In the worker: the main thread reads the warnings once this has returned.
        with keep_warnings() as self._warnings:
            return work(self._report)

    def _report(self, progress: Progress) -> None:
        # In the worker: only a note, which the timer of the main thread reads.
        self.latest = progress
        if self.cancelled:
            raise Cancelled(f"{self.title} was cancelled.")

    def _look(self) -> None:
        # Drawing napari's bar handles events: the job may end or be cancelled there.
        latest, compiling = self.latest, WorkClock.is_compiling()
        if latest is None or (latest is self._shown and compiling == self.compiling):
            return
        self._shown, self.compiling = latest, compiling
        self._bar.n = round(_STEPS * latest.whole)
        self._bar.refresh()
        if self.running:
            self._bar.set_description(f"{self.title}: {text_of(latest, compiling)}")
        if self.running:
            self.progressed.emit(latest)

    def _on_returned(self, result: Any) -> None:
        if not self.cancelled:
            self._look()
        if self.cancelled:  # too late to stop it; the result is dropped
            self._end()
        else:
            if self._warnings:
                self._warned(self._warnings)
            self._take(lambda: _next_part(self._done(result)))

    def _take(self, part: Callable[[], object]) -> None:
        """Show a part of the result; go on in the next turn of the event loop, or end."""
        parts: object = None
        try:
            parts = part()
        except StopIteration:
            pass
        except AggloError as error:
            self.error = error
            tell_error(error)
        finally:
            if isinstance(parts, Generator):
                QTimer.singleShot(0, partial(self._go_on, parts))
            else:
                self._end()

    def _go_on(self, parts: Generator[None]) -> None:
        if self.cancelled:  # or the window was closed
            parts.close()
            self._end()
        else:
            self._take(lambda: _next_part(parts))

    def _on_errored(self, error: Exception) -> None:
        try:
            if not (self.cancelled or isinstance(error, Cancelled)):
                self.error = error
                (self._failed or tell_error)(error)
        finally:
            self._end()

    def _end(self) -> None:
        if self.running:
            self.running = False
            self._timer.stop()
            self._bar.close()
            _Switching.end()
            self.ended.emit()


def _next_part(shown: object) -> object:
    """Do the next part of a generator, and return it; StopIteration if that was the last."""
    if isinstance(shown, Generator):
        next(shown)
    return shown


def in_thread(
    work: Callable[[], Any], done: Callable[[Any], object], failed: Callable[[Exception], object]
) -> None:
    """Run short work in a thread, without progress; pass the outcome on in the main thread."""
    worker = Worker(work)
    worker.returned.connect(done)
    worker.errored.connect(failed)
    worker.start()


def when_imported(module: str, action: Callable[[], object]) -> None:
    """Import a module in a thread, then call an action in the main thread; at once if it is there.

    numba and the engine take half a second to import, settings and entry points another two tenths
    to read. If that fails, the action meets the error.
    """
    if module in sys.modules:
        action()
        return

    def end(_: object) -> None:
        _Switching.end()
        action()

    def load() -> None:
        import_module(module)
        setting("training", "epochs")  # napari reads the manifests of all plugins for the first one
        declared_entry_points()

    _Switching.begin()
    in_thread(load, end, end)


class Jobs:
    """The jobs of one viewer, at most one at a time for each name."""

    changed = Signal(str)  # the name of a job that began or ended

    def __init__(self) -> None:
        self._running: dict[str, Job] = {}
        # Why the last run failed, by name, until the next run; the step shows it. An input that is
        # refused is shown by the `failed` of a job, if it has one.
        self.failures: dict[str, str] = {}
        self.closed = False

    def __getitem__(self, name: str) -> Job | None:
        return self._running.get(name)

    def running(self) -> list[str]:
        """Return the names of the running jobs."""
        return list(self._running)

    def start(
        self,
        name: str,
        title: str,
        work: Work,
        done: Callable[[Any], object],
        failed: Callable[[Exception], object] | None = None,
        warned: Callable[[list[DataWarning]], object] = tell_warnings,
    ) -> Job | None:
        """Start a job; return None if one of that name is running already."""
        if self.closed or name in self._running:
            return None

        def done_if_open(result: Any) -> object:
            # the viewer may have been closed meanwhile
            return None if self.closed else done(result)

        def warned_if_open(warnings: list[DataWarning]) -> object:
            return None if self.closed else warned(warnings)

        job = Job(title, work, done_if_open, failed, warned_if_open)
        self._running[name] = job
        self.failures.pop(name, None)

        def forget() -> None:
            self._running.pop(name, None)
            error = job.error
            if error is not None and (failed is None or not isinstance(error, InvalidInput)):
                self.failures[name] = error_text(error)
            if not self.closed:
                self.changed.emit(name)

        job.ended.connect(forget)
        job.start()
        self.changed.emit(name)
        return job

    def cancel(self, name: str) -> None:
        """Cancel the job of that name, if there is one."""
        job = self._running.get(name)
        if job is not None:
            job.cancel()

    def close(self) -> None:
        """Cancel all jobs and start no more; called when the viewer closes."""
        self.closed = True
        for job in self._running.values():
            job.cancel()


class _Switching:
    """A short switch interval of the interpreter while any job runs."""

    _jobs = 0
    _before = 0.005

    @classmethod
    def begin(cls) -> None:
        if cls._jobs == 0:
            cls._before = sys.getswitchinterval()
            sys.setswitchinterval(_SWITCH)
        cls._jobs += 1

    @classmethod
    def end(cls) -> None:
        cls._jobs -= 1
        if cls._jobs == 0:
            sys.setswitchinterval(cls._before)


def short_texts(progress: Progress) -> tuple[str, ...]:
    """Return shorter texts of progress, for a narrow window.

    Examples
    --------
    >>> short_texts(Progress("fit", 1, 2, 0.25, 90.0, "epoch 1, 70 examples"))
    ('about 2 min left: fit', 'about 2 min left')
    >>> short_texts(Progress("graph", 1, 2))
    ('50%: graph', '50%')
    """
    left = progress.seconds_left
    start = f"{progress.whole:.0%}" if left is None else f"{duration(left)} left"
    return f"{start}: {progress.stage}", start


def text_of(progress: Progress, compiling: bool = False) -> str:
    """Return progress as text; the time left is first, since a narrow window cuts off the end.

    Examples
    --------
    >>> text_of(Progress("graph", 1, 2))
    '50%: graph'
    >>> text_of(Progress("fit", 1, 2, 0.25, 90.0, "epoch 1, 70 examples"))
    'about 2 min left: fit, epoch 1, 70 examples'
    >>> text_of(Progress("fit", 1, 2), compiling=True)
    'compiling (first run only): fit'
    """
    work = f"{progress.stage}, {progress.detail}" if progress.detail else progress.stage
    left = progress.seconds_left
    if compiling:
        return f"compiling (first run only): {progress.stage}"
    return f"{progress.whole:.0%}: {work}" if left is None else f"{duration(left)} left: {work}"


def duration(seconds: float) -> str:
    """Return an estimated time in words."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    return f"about {round(seconds / 60)} min"


class FailureLine(QWidget):
    """The reason that a job of one of some names failed, until the next run or other inputs."""

    def __init__(self, project: Project, *names: str) -> None:
        super().__init__()
        self._project, self._names = project, names
        self.text = label(f"failure {names[0]}")
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.text.setStyleSheet(f"border-left: 3px solid {PROBLEM}; padding-left: 5px;")
        column(self, self.text)
        link(self._follow, project.status_changed)
        self._follow()

    def _follow(self) -> None:
        failures = self._project.jobs.failures
        text = " ".join(failures[name] for name in self._names if name in failures)
        self.text.setText(text)
        self.setVisible(bool(text))


class RunRow(QWidget):
    """A button that starts a job and, while it runs, cancels it; with its progress."""

    def __init__(
        self, project: Project, job: str, text: str, tooltip: str, start: Callable[[], object]
    ) -> None:
        super().__init__()
        self._project = project
        self._name = job
        self._text = text
        self._tooltip = tooltip
        self._start = start
        self._ready, self._why_not = True, ""
        self._watched: Job | None = None
        self.button = button(text, tooltip, self._clicked, f"run {job}")
        self.bar = QProgressBar()
        self.bar.setRange(0, _STEPS)
        self.bar.setTextVisible(False)
        self.bar.setFixedHeight(6)
        self.progress = fixed_label(f"progress {job}")
        # Beside the button, so that nothing below moves when a job begins or ends.
        self.beside = QWidget()
        column(self.beside, self.progress, self.bar, spacing=1)
        self.row = row(self.button, self.beside, spacing=6)
        self.row.setStretch(0, 1)
        self.row.setStretch(1, 2)
        self.failure = FailureLine(project, job)
        column(self, self.row, self.failure)
        link(self._on_jobs, project.jobs.changed)
        self._follow()

    def set_text(self, text: str) -> None:
        """Change the text of the button."""
        self._text = text
        self._follow()

    def set_ready(self, ready: bool, why_not: str = "") -> None:
        """Enable the button or disable it, with the reason as its tooltip."""
        self._ready, self._why_not = ready, why_not
        self._follow()

    def _clicked(self) -> None:
        if self._project.jobs[self._name] is None:
            self._start()
        else:
            self._project.jobs.cancel(self._name)
            self.button.setEnabled(False)
            self.button.setText("Cancelling…")

    def _on_jobs(self, name: str) -> None:
        if name == self._name:
            self._follow()

    def _follow(self) -> None:
        job = self._project.jobs[self._name]
        running = job is not None
        if job is None or not job.cancelled:
            self.button.setText("Cancel" if running else self._text)
            self.button.setEnabled(running or self._ready)
        tooltip = self._tooltip if self._ready else self._why_not or self._tooltip
        self.button.setToolTip("Cancel; nothing is changed" if running else tooltip)
        self.beside.setVisible(running)
        if job is not None and job is not self._watched:
            self.bar.setValue(0)
            self.progress.setText(f"{job.title}…")
            link(self._show, job.progressed)
        self._watched = job

    def _show(self, progress: Progress) -> None:
        self.bar.setValue(round(_STEPS * progress.whole))
        job = self._watched
        compiling = job is not None and job.compiling
        shorter = ("compiling (first run only)", "compiling") if compiling else ()
        self.progress.show_first(text_of(progress, compiling), *(shorter or short_texts(progress)))
