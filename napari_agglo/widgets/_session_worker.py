"""The queue of all work on a session, so that the window never waits for it.

A session allows one call at a time. This module alone calls it from a thread, but for
`session.errors.count`, which takes no lock: it reads a large volume, and edits may go on meanwhile.

- `edit`: first in, first out; a short one at once, if the session is free, a long one in a job;
- `run`: any other work on the session, in a job of its own name, in the same order;
- `latest`: the newest request of each topic, in a thread, after all edits;
- after a while without activity, a checkpoint is written, which makes opening the session after a
  crash faster. An error there is not shown, as no data are lost.

The worker moves the session to the threshold of the project; where that needs a repair of the
hierarchy above edits, it runs in a job that can be cancelled, and that shows the segments of lower
thresholds on the way if it takes longer than `PATIENCE`.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from psygnal import Signal

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import AggloError, Cancelled
from napari_agglo.session import Change, NotSaved, Refused, Session
from napari_agglo.widgets._jobs import Job, in_thread
from napari_agglo.widgets._qt import error_text, single_shot, tell_error

if TYPE_CHECKING:
    from napari_agglo.widgets._project import Project

PATIENCE = 1.0  # seconds of a repair after which the segments so far are shown
_STAGES = 8  # of a repair, in equal steps of the threshold
LOOK = "look"  # the job that repairs the hierarchy above edits
EDIT = "edit"  # the job of a long edit
_MOST = 100  # waiting edits: more come from a key held down
CHECKPOINT_AFTER = 30  # seconds without activity until a checkpoint is written
CHECKPOINT_WORTH = 100  # least entries of the journal for a checkpoint
_LONGEST = 10  # seconds to wait for idle work when the session is closed

Act = Callable[[Session, ProgressCallback | None], Change]
Done = Callable[[Any], object]
Failed = Callable[[Exception], object]


@dataclass(frozen=True)
class Edit:
    """An edit, which may wait for its turn."""

    title: str
    act: Act
    then: Callable[[Change], object] | None = None  # after all listeners
    long: bool = False  # too long for the main thread: it runs in a job
    force: Act | None = None  # makes a refused edit, after a question to the user
    quiet: bool = False  # a refusal is a message only: a key held down would fill the window


@dataclass(frozen=True)
class Run:
    """Other work on the session, which may wait for its turn, with the name of its job."""

    name: str
    title: str
    work: Callable[[ProgressCallback], Any]
    done: Done
    failed: Failed | None = None


class SessionWorker:
    """The queue of one project. All methods are for the main thread."""

    message = Signal(str)  # a sentence for the status bar
    trouble = Signal(str)  # why the last edit is not on the disk; empty when it is
    doubted = Signal(str, object)  # why an edit was refused, and the forced edit

    def __init__(self, project: Project) -> None:
        self.project = project
        self._tasks: deque[Edit | Run] = deque()
        self._topics: dict[Hashable, tuple[Callable[[], Any], Done, Failed]] = {}
        self._running: object = None  # the token of the thread that uses the session
        self._droppable: object = None  # the token of the last thread that worked on a topic
        self._answered: Hashable = None  # the topic of that thread, unless it was dropped
        self._stages: list[float] = []  # of the repair that runs, up to the threshold asked for
        self._in_trouble = False  # whether the last edit is not on the disk
        self._idle_done = threading.Event()  # cleared while a thread does the idle work
        self._idle_done.set()
        self._wake = single_shot(self._next)
        self._rest = single_shot(self._on_rest)
        self._idle_after = 1000 * CHECKPOINT_AFTER  # milliseconds
        for signal in (project.edited, project.threshold_changed, project.selection_changed):
            signal.connect(self.stir)

    @property
    def busy(self) -> bool:
        """Whether a thread uses the session, or edits wait: no other part may call it."""
        return self._running is not None or bool(self._tasks)

    @property
    def occupied(self) -> bool:
        """Whether edits or other tasks run or wait, which have to be finished first."""
        return bool(self._tasks) or self._running not in (None, self._droppable)

    @property
    def pending(self) -> bool:
        """Whether any work runs or waits."""
        return self.busy or bool(self._topics)

    @property
    def waiting(self) -> int:
        """The number of waiting edits."""
        return len(self._tasks)

    @property
    def settled(self) -> bool:
        """Whether the session is free and at the threshold of the project."""
        session = self.project.session
        if session is None:
            return True
        return self._running is None and _shows(session, self.project.threshold)

    # Requests.

    def edit(self, edit: Edit) -> None:
        """Make an edit: now, or as soon as the session is free."""
        if self.project.session is None:
            self.message.emit("No session is open; start one in step 5, Proofread.")
        elif len(self._tasks) >= _MOST:
            self.message.emit("Too many edits are waiting; wait until they are done.")
        else:
            self._tasks.append(edit)
            self._work_off_tasks()
            if self._tasks:
                self.message.emit(f"{edit.title} waits for the running task…")

    def run(
        self,
        name: str,
        title: str,
        work: Callable[[ProgressCallback], Any],
        done: Done,
        failed: Failed | None = None,
    ) -> Job | None:
        """Run other work on the session in a job; without a session, start the job at once.

        Return None if the work waits for its turn, or runs already.
        """
        jobs = self.project.jobs
        if self.project.session is None:
            return jobs.start(name, title, work, done, failed)
        if jobs[name] is None and not any(isinstance(one, Run) and one.name == name
                                          for one in self._tasks):  # fmt: skip
            self._tasks.append(Run(name, title, work, done, failed))
            self._work_off_tasks()
        return jobs[name]

    def latest(
        self,
        topic: Hashable,
        work: Callable[[], Any],
        done: Done,
        failed: Failed = tell_error,
    ) -> None:
        """Run `work` in a thread; of several requests of a topic only the newest gets a result."""
        self.forget(topic)
        self._topics[topic] = (work, done, failed)
        self._wake.start()

    def forget(self, topic: Hashable) -> None:
        """Drop the request of a topic, and the result of a running one."""
        self._topics.pop(topic, None)
        if self._answered == topic:
            self._answered = None

    def stir(self) -> None:
        """Restart the time without activity."""
        session = self.project.session
        if session is not None and not session.read_only:
            self._rest.start(self._idle_after)

    def look(self) -> None:
        """Move the session to the threshold of the project, now or when it is free."""
        session = self.project.session
        if session is not None and self._running is None:
            self._go_to_threshold(session)

    def clear(self) -> None:
        """Drop all requests and wait for idle work, before the session is closed."""
        self._tasks.clear()
        self._topics.clear()
        self._running = self._answered = None
        with suppress(RuntimeError):  # Qt itself may be gone by now
            self._rest.stop()
            self._wake.stop()
        self._idle_done.wait(_LONGEST)

    # The queue.

    def _next(self) -> None:
        """Start the next work: the threshold first, then edits in order, then topics."""
        self._work_off_tasks()
        if self._running is None and self._topics and self.project.session is not None:
            topic = next(iter(self._topics))
            work, done, failed = self._topics.pop(topic)
            self._answered = topic
            token = self._running = self._droppable = object()
            in_thread(work, lambda result: self._answer(token, topic, done, result),
                            lambda error: self._answer(token, topic, failed, error))  # fmt: skip

    def _work_off_tasks(self) -> None:
        while self._running is None:
            session = self.project.session
            if session is None:
                self._tasks.clear()
                return
            moved = session.threshold != self.project.threshold
            if not self._go_to_threshold(session):
                return
            if moved:
                self.project.has_edited(None)
            elif not self._tasks:
                return
            else:
                self._start(self._tasks.popleft(), session)

    def _start(self, task: Edit | Run, session: Session) -> None:
        if isinstance(task, Run):
            self._in_job(task, session, lambda: None)
        elif task.long:
            changes: list[Change] = []
            run = Run(EDIT, task.title, lambda progress: task.act(session, progress),
                      changes.append, lambda error: self._refuse(task, error))  # fmt: skip
            # Cancelled too late, the edit may be made: listeners update in any case.
            self._in_job(run, session, lambda: self._finish(task, changes[0] if changes else None))
        else:
            try:
                change = task.act(session, None)
            except Exception as error:
                self._refuse(task, error)
            else:
                self._finish(task, change)

    def _in_job(self, run: Run, session: Session, finish: Callable[[], object]) -> None:
        token = self._running = object()
        job = self.project.jobs.start(run.name, run.title, run.work, run.done, run.failed)
        if job is None:  # the viewer is closing
            self._running = None
            return

        def ended() -> None:
            if self._running is token and session is self.project.session:
                self._running = None
                if not self.project.jobs.closed:
                    finish()
                    self._wake.start()

        job.ended.connect(ended)

    def _answer(self, token: object, topic: Hashable, tell: Done, outcome: Any) -> None:
        if self._running is not token:  # the session was closed meanwhile
            return
        self._running = None
        wanted, self._answered = self._answered == topic, None
        self._wake.start()
        if wanted:
            tell(outcome)

    def _finish(self, edit: Edit, change: Change | None) -> None:
        if change is not None and self._in_trouble:
            self._in_trouble = False
            self.trouble.emit("")
        self.project.has_edited(change)
        if change is not None:
            if edit.then is not None:
                edit.then(change)
            self.message.emit(sentence(str(change)))

    def _refuse(self, edit: Edit, error: Exception) -> None:
        if isinstance(error, Cancelled):
            return
        if isinstance(error, NotSaved):
            self._in_trouble = True
            self.trouble.emit(str(error))
        if isinstance(error, Refused) and error.forceable and edit.force is not None:
            self.doubted.emit(
                error_text(error), replace(edit, act=edit.force, force=None, quiet=False)
            )
        elif not (edit.quiet and isinstance(error, Refused)):
            tell_error(error)
        if isinstance(error, AggloError):
            self.message.emit(error_text(error))

    # The threshold.

    def _go_to_threshold(self, session: Session) -> bool:
        """Return whether the session is at the threshold; if not, start a job that moves it."""
        wanted = self.project.threshold
        if _shows(session, wanted):
            return True
        before = session.threshold if session.ready else None
        session.threshold = wanted
        if session.ready:
            return True

        reached: list[float] = []
        if before is not None and self._stages[-1:] != [wanted]:
            finite = np.isfinite([before, wanted]).all()
            between = np.linspace(before, wanted, _STAGES + 1)[1:-1].tolist() if finite else []
            self._stages = [*between, wanted]
        stages = [stage for stage in self._stages[:-1] if before is not None and stage > before]

        def work(progress: ProgressCallback) -> None:
            began = time.monotonic()
            for stage in stages:
                session.look(progress, threshold=stage)
                if time.monotonic() - began > PATIENCE:
                    reached.append(stage)
                    return
            session.look(progress)

        def looked() -> None:
            if reached and session.threshold == self.project.threshold:
                session.threshold = reached[0]
                self.project.show_meanwhile()
            cancelled = not session.ready and session.threshold == self.project.threshold
            if cancelled and before is not None:
                self.project.threshold = before
            self.look()  # the slider may have moved meanwhile
            if self.settled:
                self.project.has_edited(None)

        self._in_job(Run(LOOK, "Repairing the hierarchy", work, lambda _: None), session, looked)
        return False

    # Idle work.

    def _on_rest(self) -> None:
        session = self.project.session
        if session is None or session.read_only:
            return
        if self.pending or not self.settled:
            self.stir()  # some work runs or waits
            return
        self._idle_done.clear()
        token = self._running = object()

        def work() -> None:
            try:
                if session.history.to_replay >= CHECKPOINT_WORTH:
                    session.history.checkpoint()
            finally:
                self._idle_done.set()

        in_thread(
            work,
            lambda _: self._answer(token, None, lambda _: None, None),
            lambda error: self._answer(token, None, _show_unexpected, error),
        )


def _shows(session: Session, threshold: float) -> bool:
    return session.threshold == threshold and session.ready


def _show_unexpected(error: Exception) -> None:
    if not isinstance(error, AggloError):  # such as a session closed meanwhile
        tell_error(error)


def sentence(text: str) -> str:
    """Return a text with a capital first letter."""
    return text[:1].upper() + text[1:]
