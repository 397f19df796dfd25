"""Edits, one after the other: what is quick at once, what is not in a worker, the window free."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from napari.qt.threading import FunctionWorker
from psygnal import Signal
from qtpy.QtCore import QTimer

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import AggloError, Cancelled
from napari_agglo.session import Change, NotSaved, Refused, Session
from napari_agglo.widgets._project import Project
from napari_agglo.widgets._qt import tell_error
from napari_agglo.widgets.proofread._seeds import Seeds

EDIT = "edit"  # the job of an edit that takes long
_MOST = 100  # edits that wait: more is a key held down

Act = Callable[[Session, ProgressCallback | None], Change]


@dataclass(frozen=True)
class Task:
    """An edit that someone wants.

    Attributes
    ----------
    title : str
        What it is, while it runs.
    act : callable
        Does it.
    long : bool
        Whether it may take more than a blink: then a worker does it.
    then : callable, optional
        Told what has changed.
    all_the_same : callable, optional
        Does it though it was refused, if the person says so.
    quiet : bool
        Whether a refusal is only said beside the banner: a key held down would fill the window.
    """

    title: str
    act: Act
    long: bool = False
    then: Callable[[Change], object] | None = None
    all_the_same: Act | None = None
    quiet: bool = False


class Editor:
    """Does what is asked of a project's session, in order, and says what became of it."""

    said = Signal(str)  # a sentence for the status bar
    trouble = Signal(str)  # why the last edit is not on the disk; empty when it is
    doubted = Signal(str, object)  # why an edit was refused, and the task that does it all the same

    def __init__(self, project: Project) -> None:
        self.project = project
        self._waiting: deque[Task] = deque()
        self._doing = False
        self._wake = QTimer()
        self._wake.setSingleShot(True)
        self._wake.setInterval(0)
        self._wake.timeout.connect(self._next)
        project.jobs.changed.connect(self.wake)
        project.released.connect(self.wake)
        project.hierarchy_changed.connect(self._forget)
        project.closing.connect(self._close)

    @property
    def waiting(self) -> int:
        """How many edits wait for their turn."""
        return len(self._waiting)

    def do(self, task: Task) -> None:
        """Do an edit, now or as soon as what runs is done."""
        if self.project.session is None:
            self.said.emit("There is no session yet: start one in step 5, Proofread.")
            return
        if len(self._waiting) >= _MOST:
            self.said.emit("Too much at once: wait until what was asked for is done.")
            return
        self._waiting.append(task)
        self._next()
        if self._waiting:
            self.said.emit(f"{task.title} waits until what runs now is done…")

    def wake(self) -> None:
        """Go on with what waits, if the session is free, once what is being told has been."""
        if self._waiting:
            self._wake.start()

    def _next(self) -> None:
        while self._waiting and not self._doing and self.project.settled:
            session = self.project.session
            if session is None:
                self._waiting.clear()
                return
            task = self._waiting.popleft()
            if task.long:
                self._begin(task, session)
            else:
                self._at_once(task, session)

    def _at_once(self, task: Task, session: Session) -> None:
        try:
            change = task.act(session, None)
        except Exception as error:
            self._failed(task, error)
        else:
            self._done(task, change)

    def _begin(self, task: Task, session: Session) -> None:
        project = self.project
        self._doing = True
        project.hold()
        came: list[Change] = []
        job = project.jobs.start(
            EDIT,
            task.title,
            lambda progress: task.act(session, progress),
            came.append,
            lambda error: self._failed(task, error),
        )
        if job is None:  # the viewer is closing
            self._doing = False
            project.release()
            return

        def ended() -> None:
            self._doing = False
            project.release()
            if session is not project.session or project.jobs.closed:
                return
            if came:
                self._done(task, came[0])
            else:
                # Cancelled too late: it may have been done all the same.
                project.has_edited(None)

        job.ended.connect(ended)

    def _done(self, task: Task, change: Change) -> None:
        self.trouble.emit("")
        self.project.has_edited(change)
        if task.then is not None:
            task.then(change)
        self.said.emit(sentence(str(change)))

    def _failed(self, task: Task, error: Exception) -> None:
        if isinstance(error, Cancelled):
            return
        if isinstance(error, NotSaved):
            self.trouble.emit(str(error))
        if isinstance(error, Refused) and error.forceable and task.all_the_same is not None:
            again = Task(task.title, task.all_the_same, task.long, task.then)
            self.doubted.emit(str(error), again)
        elif not (task.quiet and isinstance(error, Refused)):
            tell_error(error)
        if isinstance(error, AggloError):
            self.said.emit(str(error))

    def _forget(self) -> None:
        self._waiting.clear()

    def _close(self) -> None:
        self._forget()
        self._wake.stop()


def dense(project: Project, segments: tuple[int, ...]) -> tuple[int, ...]:
    """Return the dense names of segments by the user's ids."""
    graph = project.graph
    if graph is None:
        return ()
    return tuple(int(k) for k in np.searchsorted(graph.ids, np.array(segments, np.uint64)))


def sentence(words: str) -> str:
    """Return words as a sentence."""
    return words[:1].upper() + words[1:]


# The newest of many requests, answered in a worker; answers to older ones are dropped.


Request = tuple[Callable[[], Any], Callable[[Any], object], Callable[[Exception], object]]


class Latest:
    """Answers one request at a time; of those that wait, only the newest.

    Parameters
    ----------
    before, after : callable, optional
        Called on the main thread before a worker starts and after it has ended, whatever came of
        it.
    """

    def __init__(
        self,
        before: Callable[[], object] | None = None,
        after: Callable[[], object] | None = None,
    ) -> None:
        self._before = before
        self._after = after
        self._number = 0  # of the newest request: an answer to another one is stale
        self._waiting: Request | None = None
        self._worker: FunctionWorker | None = None
        self._closed = False

    @property
    def busy(self) -> bool:
        """Whether something is being computed."""
        return self._worker is not None

    def ask(
        self,
        work: Callable[[], Any],
        done: Callable[[Any], object],
        failed: Callable[[Exception], object],
    ) -> None:
        """Have `work` done in a worker, and be told the outcome, unless something newer comes."""
        if self._closed:
            return
        self._number += 1
        self._waiting = (work, done, failed)
        if self._worker is None:
            self._start()

    def forget(self) -> None:
        """Drop what is asked for, and what is being answered."""
        self._number += 1
        self._waiting = None

    def close(self) -> None:
        """Answer nothing any more."""
        self._closed = True
        self.forget()

    def _start(self) -> None:
        if self._waiting is None or self._closed:
            return
        (work, done, failed), self._waiting = self._waiting, None
        number = self._number
        if self._before is not None:
            self._before()

        def tell(how: Callable[[Any], object], what: Any) -> None:
            self._worker = None
            if self._after is not None:
                self._after()
            try:
                if number == self._number and not self._closed:
                    how(what)
            finally:
                if self._worker is None:
                    self._start()

        self._worker = FunctionWorker(work)
        self._worker.returned.connect(lambda result: tell(done, result))
        self._worker.errored.connect(lambda error: tell(failed, error))
        self._worker.start()


# While a person rests: what opening the session after a crash would compute is written down.


_LONGEST = 10  # seconds to wait for one that is being written when the session is let go of


class Resting:
    """Writes a checkpoint of the session, in a worker, when nothing has been done for a while.

    It is a cache: if it cannot be written nothing is lost, and nothing is said.

    Attributes
    ----------
    rest : int
        For how many milliseconds nothing must have been done.
    worth : int
        After how many entries of the journal it is worth while.
    """

    rest = 30_000
    worth = 100

    def __init__(self, editor: Editor, seeds: Seeds) -> None:
        self.project = editor.project
        self._editor = editor
        self._written = threading.Event()  # cleared while a worker writes
        self._written.set()
        self._worker = Latest(self.project.hold, self.project.release)
        self._timer = QTimer()
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._on_rest)
        project = self.project
        for signal in (project.edited, project.threshold_changed, project.selection_changed):
            signal.connect(self.stir)
        seeds.changed.connect(self.stir)
        project.hierarchy_changed.connect(self._let_go)
        project.closing.connect(self._close)

    @property
    def busy(self) -> bool:
        """Whether a checkpoint is being written."""
        return not self._written.is_set()

    def stir(self) -> None:
        """Say that the person does something: the rest begins anew."""
        session = self.project.session
        if session is not None and not session.read_only:
            self._timer.start(self.rest)

    def _on_rest(self) -> None:
        project, session = self.project, self.project.session
        if session is None or session.read_only:
            return
        if not project.settled or self._editor.waiting:
            self.stir()  # something is under way, which is no rest
        elif session.to_replay >= self.worth:
            self._written.clear()
            self._worker.ask(lambda: self._write(session), lambda _: None, _failed)

    def _write(self, session: Session) -> None:
        try:
            session.checkpoint()
        finally:
            self._written.set()

    def _let_go(self) -> None:
        """Leave nobody writing in the folder of a session that is closed."""
        self._timer.stop()
        self._written.wait(_LONGEST)

    def _close(self) -> None:
        with suppress(RuntimeError):  # Qt itself may be gone by now
            self._timer.stop()
        self._worker.close()
        self._written.wait(_LONGEST)


def _failed(error: Exception) -> None:
    if not isinstance(error, AggloError):  # such as: the session was closed meanwhile
        tell_error(error)
