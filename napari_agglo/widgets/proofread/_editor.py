"""Edits, one after the other: what is quick at once, what is not in a worker, the window free."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from psygnal import Signal
from qtpy.QtCore import QTimer

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import AggloError, Cancelled
from napari_agglo.session import Change, NotSaved, Refused, Session
from napari_agglo.widgets._notices import tell_error
from napari_agglo.widgets._project import Project

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
