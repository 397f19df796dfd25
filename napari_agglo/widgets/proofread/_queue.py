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

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput
from napari_agglo.session import Change, Session
from napari_agglo.widgets._scene import Scene
from napari_agglo.widgets.proofread._editor import Editor, Task, dense

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
        self._answer("Mending", lambda session, one: session.accept(one))

    def no(self) -> None:
        """Answer that it is right as it is."""
        self._answer("Noting", lambda session, one: session.reject(one))

    def skip(self) -> None:
        """Do not ask this again."""
        self._answer("Noting", lambda session, one: session.skip(one))

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
            found = session.suggestions(1, kind=wanted.kind, min_size=wanted.min_size, within=box)
            parts = None
            if found and found[0].kind == "false_merge":
                parts = _sides(session, found[0])
            return found[0] if found else None, session.effort(), parts

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
        parts = session.preview_cut(one.segments[0], [[a], [b]], method="tree")
    except InvalidInput:
        return None
    return [np.searchsorted(session.graph.ids, np.asarray(part)) for part in parts]
