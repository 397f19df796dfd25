"""Next probable error: what is most worth a look, one after the other, answered by a key.

One for each viewer. Suggestions are found in a worker; each answer is an edit or an entry of the
journal, so it can be undone, and the next suggestion takes it into account.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from psygnal import Signal
from qtpy.QtCore import QTimer
from qtpy.QtWidgets import (
    QCheckBox,
    QComboBox,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput
from napari_agglo.session import Change, Session
from napari_agglo.widgets._qt import link
from napari_agglo.widgets._scene import Scene
from napari_agglo.widgets._session_worker import Editor, Task, dense

SUGGEST = "suggest"  # the name of the job
_LATER = 30  # milliseconds until suggestions are sought after an edit: several become one
_AROUND = 40  # pixels to see on either side of the place


@dataclass(frozen=True)
class Filters:
    """Which suggestions are wanted."""

    kind: Literal["false_split", "false_merge"] | None = None
    min_size: int = 1
    in_view: bool = False


class Queue:
    """What is asked now, and what was answered."""

    changed = Signal()

    def __init__(self, scene: Scene, editor: Editor) -> None:
        self.scene = scene
        self.project = scene.project
        self.editor = editor
        self.filters = Filters()
        self.current: Any = None  # a Suggestion
        self.effort: Any = None  # an Effort
        self.answered = 0
        self.on = False
        self.seeking = False  # a question is being sought
        self._kept: list[tuple[Any, str, Any]] = []
        self._later = QTimer()
        self._later.setSingleShot(True)
        self._later.setInterval(_LATER)
        self._later.timeout.connect(self._seek)
        self.project.edited.connect(self._stale)
        self.project.threshold_changed.connect(self._stale)
        self.project.hierarchy_changed.connect(self.stop)
        self.project.released.connect(self._go_on)
        self.project.closing.connect(lambda: self._later.stop())

    # On and off.

    def start(self) -> None:
        """Ask the first question."""
        if self.project.session is None:
            self.editor.said.emit("There is no session yet: start one in step 5, Proofread.")
            return
        if not self.on:
            self.on = True
            self._bind()
        self._seek_soon()
        self.changed.emit()

    def stop(self) -> None:
        """Ask no more."""
        self._later.stop()
        if not self.on:
            return
        self.on = self.seeking = False
        self.current = None
        for owner, key, before in reversed(self._kept):
            owner.bind_key(key, before, overwrite=True)
        self._kept = []
        if self.project.session is not None:
            self.scene.preview(None)
        self.changed.emit()

    def set_filters(self, filters: Filters) -> None:
        """Ask only about some."""
        self.filters = filters
        self._stale()

    # Answers.

    def yes(self) -> None:
        """Answer that it is wrong, and mend it."""
        self._answer("Mending", lambda session, one: session.queue.accept(one))

    def no(self) -> None:
        """Answer that it is right as it is."""
        self._answer("Noting", lambda session, one: session.queue.reject(one))

    def skip(self) -> None:
        """Do not ask this again."""
        self._answer("Noting", lambda session, one: session.queue.skip(one))

    def _answer(self, title: str, act: Callable[[Session, Any], Change]) -> None:
        one, self.current = self.current, None
        if one is None:
            self.editor.said.emit("There is nothing to answer now.")
            return

        def counted(_: Change) -> None:
            self.answered += 1
            self.changed.emit()

        self.scene.preview(None)
        self.editor.do(Task(title, lambda session, _: act(session, one), then=counted))
        self._seek_soon()

    # Questions.

    def _seek_soon(self) -> None:
        self.seeking = True
        self._later.start()

    def _stale(self) -> None:
        if self.on:
            self._seek_soon()

    def _go_on(self) -> None:
        """Seek what could not be sought while a worker had the session."""
        if self.on and self.seeking:
            self._later.start()

    def _seek(self) -> None:
        project, session = self.project, self.project.session
        if not self.on or session is None:
            return
        if not project.settled or self.editor.waiting:
            return  # `released` comes when it is free
        wanted, box = self.filters, self._view() if self.filters.in_view else None

        def work(_: ProgressCallback) -> tuple[Any, Any, Any]:
            found = session.queue.next(1, kind=wanted.kind, min_size=wanted.min_size, within=box)
            parts = None
            if found and found[0].kind == "false_merge":
                parts = _sides(session, found[0])
            return found[0] if found else None, session.queue.effort(), parts

        project.hold()
        job = project.jobs.start(SUGGEST, "Looking for the next error", work, self._ask)
        if job is None:
            project.release()
        else:
            job.ended.connect(project.release)

    def _ask(self, found: tuple[Any, Any, Any]) -> None:
        self.current, self.effort, parts = found
        self.seeking = False
        if self.on:
            self._show(parts)
        self.changed.emit()

    def _show(self, parts: Any) -> None:
        """Fly there, with both sides outlined."""
        one, scene, graph = self.current, self.scene, self.project.graph
        if one is None or graph is None:
            scene.preview(None)
            return
        names = dense(self.project, one.segments)
        self.project.select(*names)
        at = np.asarray(one.position)
        scene.fly_to(at, (at - _AROUND, at + _AROUND))
        scene.preview(parts)

    def _view(self) -> Any:
        """Return the box of pixels that is on the screen."""
        layer, viewer = self.scene.segmentation, self.scene.viewer
        graph = self.project.graph
        if layer is None or graph is None:
            return None
        shape = np.array(graph.superpixels.image.shape)
        box = np.stack([np.zeros_like(shape), shape])
        corners = np.asarray(layer.corner_pixels)
        for axis in viewer.dims.displayed[-2:]:
            k = axis - (viewer.dims.ndim - len(shape))
            if k >= 0:
                low, high = int(corners[0, k]), int(corners[1, k]) + 1
                box[:, k] = np.clip(low, 0, shape[k]), np.clip(high, 0, shape[k])
        return box

    def _bind(self) -> None:
        keys = {"Y": self.yes, "N": self.no, "S": self.skip}
        for owner in (self.scene.viewer, self.scene.segmentation):
            if owner is None:
                continue
            for key, action in keys.items():
                before = owner.bind_key(key, lambda _, act=action: act(), overwrite=True)
                self._kept.append((owner, key, before))


def _sides(session: Session, one: Any) -> Any:
    """Return both sides of a merge that may be wrong, as sets of dense superpixels."""
    a, b = one.superpixels
    try:
        parts = session.preview(one.segments[0], [[a], [b]], method="tree").parts
    except InvalidInput:
        return None
    return [np.searchsorted(session.graph.ids, np.asarray(part)) for part in parts]


# The tab of the next probable error: the question, three answers, filters, and how far it is.


_KINDS: dict[str, Literal["false_split", "false_merge"] | None] = {
    "false merges and false splits": None,
    "false merges only": "false_merge",
    "false splits only": "false_split",
}


class QueuePanel(QWidget):
    """Where to look next."""

    def __init__(self, queue: Queue) -> None:
        super().__init__()
        self.queue = queue
        self.go = QPushButton("Find the next probable error")
        self.go.setObjectName("next error")
        self.go.setToolTip("Fly to the decision that is most worth a look, and ask about it")
        self.go.clicked.connect(self._on_go)
        self.question = _words("question", bold=True)
        self.reason = _words("reason")
        self.line = _words("queue progress")
        self.yes = _button("yes", "Yes (Y)", "It is wrong: merge, or cut, as asked", queue.yes)
        self.no = _button("no", "No (N)", "It is right as it is, and is not asked again", queue.no)
        self.skip = _button(
            "skip", "Skip (S)", "Do not ask this again, without an answer", queue.skip
        )
        answers = QHBoxLayout()
        for button in (self.yes, self.no, self.skip):
            answers.addWidget(button)
        self.kind = QComboBox()
        self.kind.setObjectName("queue kind")
        self.kind.addItems(list(_KINDS))
        self.kind.setToolTip("Which errors to look for")
        self.kind.activated.connect(self._on_filters)
        self.least = QSpinBox()
        self.least.setObjectName("queue size")
        self.least.setRange(1, 10_000_000)
        self.least.setToolTip("Only where both sides have so many pixels")
        self.least.valueChanged.connect(self._on_filters)
        self.view = QCheckBox("in view only")
        self.view.setObjectName("queue view")
        self.view.setToolTip("Only what is on the screen now")
        self.view.toggled.connect(self._on_filters)
        filters = QGridLayout()
        filters.addWidget(self.kind, 0, 0, 1, 3)
        filters.addWidget(QLabel("at least"), 1, 0)
        filters.addWidget(self.least, 1, 1)
        filters.addWidget(self.view, 1, 2)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.go)
        column.addWidget(self.question)
        column.addWidget(self.reason)
        column.addLayout(answers)
        column.addWidget(self.line)
        column.addLayout(filters)
        link(self, queue.changed, self.follow)
        link(self, queue.project.status_changed, self.follow)
        self.follow()

    def follow(self) -> None:
        """Show what is asked now."""
        queue, one = self.queue, self.queue.current
        self.go.setText("Stop" if queue.on else "Find the next probable error")
        for button in (self.yes, self.no, self.skip):
            button.setEnabled(one is not None)
        if not queue.on:
            self.question.setText("")
            self.reason.setText("Goes to where the policy doubts most what matters most.")
        elif one is not None:
            self.question.setText(one.question)
            self.reason.setText(one.reason)
        elif not queue.seeking:
            self.question.setText("Nothing more to ask")
            self.reason.setText("All doubtful decisions at this threshold were answered.")
        else:
            self.question.setText("Looking…")
            self.reason.setText("")
        self.line.setText(self._progress())

    def _progress(self) -> str:
        queue = self.queue
        if not queue.on or queue.effort is None:
            return ""
        left = queue.effort
        said = f"{queue.answered} answered · about {left.merges + left.cuts:.0f} edits left here"
        said += f" ({left.merges:.0f} merges, {left.cuts:.0f} cuts)"
        return said

    def _on_go(self) -> None:
        if self.queue.on:
            self.queue.stop()
        else:
            self.queue.start()

    def _on_filters(self) -> None:
        kind = _KINDS[self.kind.currentText()]
        self.queue.set_filters(Filters(kind, self.least.value(), self.view.isChecked()))


def _words(name: str, bold: bool = False) -> QLabel:
    label = QLabel()
    label.setObjectName(name)
    label.setWordWrap(True)
    if bold:
        label.setStyleSheet("font-weight: bold;")
    return label


def _button(name: str, text: str, tooltip: str, action: object) -> QPushButton:
    button = QPushButton(text)
    button.setObjectName(name)
    button.setToolTip(tooltip)
    button.clicked.connect(lambda: action())  # type: ignore[operator]
    return button
