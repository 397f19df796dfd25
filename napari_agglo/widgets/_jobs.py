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
from typing import Any

from napari.qt.threading import FunctionWorker
from napari.utils import progress as napari_progress
from psygnal import Signal
from qtpy.QtCore import QTimer

from napari_agglo._data_warnings import keep_warnings
from napari_agglo._progress import Progress, ProgressCallback, WorkClock
from napari_agglo._registry import declared_entry_points
from napari_agglo.errors import AggloError, Cancelled, DataWarning, InvalidInput
from napari_agglo.widgets._napari import setting
from napari_agglo.widgets._progress_row import text_of
from napari_agglo.widgets._qt import error_text, tell_error, tell_warnings

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
