"""The queue of probable errors: one suggestion after the other, answered by a key.

Suggestions are computed in a worker. Each answer is an edit or an entry of the journal, so it can
be undone, and the next suggestion takes it into account.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtGui import QImage, QPixmap
from qtpy.QtWidgets import QLabel, QWidget
from superqt.utils import qdebounced

from napari_agglo.errors import InvalidInput
from napari_agglo.session import Change, Session
from napari_agglo.widgets._fixed_label import fixed_label
from napari_agglo.widgets._forms import Form
from napari_agglo.widgets._key_bindings import KeyBindings, answer_button
from napari_agglo.widgets._qt import STILL, button, column, link, named, pixel_word, row
from napari_agglo.widgets._scene import Scene
from napari_agglo.widgets._session_worker import Edit
from napari_agglo.widgets.proofread._mode import COMPARING

_SUGGEST = "suggest"  # the topic of the worker
_SIDE = 180  # pixels of the picture of a question
_LATER = 30  # milliseconds from an edit to the next search: one for several edits


@dataclass(frozen=True)
class Filters:
    """Conditions on suggestions."""

    kind: Literal["false_split", "false_merge"] | None = None
    min_size: int = 1
    in_view: bool = False


class ErrorQueue:
    """The current question, and a count of the answers; one object per viewer."""

    changed = Signal()

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.project = scene.project
        self.worker = scene.project.worker
        self.filters = Filters()
        self.current: Any = None  # a Suggestion
        self.picture: Any = None  # of the question, RGB
        self.effort: Any = None  # an Effort
        self.answered = 0
        self.on = False
        self.seeking = False  # a search runs
        self._parts: Any = None  # both sides of the current question
        self._unseen = False  # whether it came during a comparison, which has the canvas
        self._keys = KeyBindings()
        self._later = qdebounced(self._seek, timeout=_LATER)
        self.project.hierarchy_changed.connect(self.stop)
        self.project.closing.connect(self._later.cancel)
        scene.suspended_changed.connect(self._on_suspended)

    # Start and stop.

    def start(self) -> None:
        """Start asking questions."""
        if self.project.session is None:
            self.worker.message.emit("No session is open; start one in step 5, Proofread.")
            return
        if not self.on:
            self.on = True
            actions = {"yes": self.yes, "no": self.no, "skip": self.skip}
            for owner in (self.scene.viewer, self.scene.segmentation):
                self._keys.bind(owner, actions)
            for signal in (self.project.edited, self.project.threshold_changed):
                signal.connect(self._seek_soon)
        self._seek_soon()
        self.changed.emit()

    def stop(self) -> None:
        """Stop asking questions."""
        self._later.cancel()
        if not self.on:
            return
        self.on = self.seeking = False
        self.current = None
        self.worker.forget(_SUGGEST)
        for signal in (self.project.edited, self.project.threshold_changed):
            signal.disconnect(self._seek_soon, missing_ok=True)
        self._keys.release()
        if self.project.session is not None:
            self.scene.preview(None)
        self.changed.emit()

    def set_filters(self, filters: Filters) -> None:
        """Restrict the questions."""
        self.filters = filters
        if self.on:
            self._seek_soon()

    # Answers.

    def yes(self) -> None:
        """Answer that the suggestion is an error, and correct it."""
        self._answer("Correcting", lambda session, one: session.queue.accept(one))

    def no(self) -> None:
        """Answer that there is no error."""
        self._answer("Noting", lambda session, one: session.queue.reject(one))

    def skip(self) -> None:
        """Skip the question for good."""
        self._answer("Noting", lambda session, one: session.queue.skip(one))

    def _answer(self, title: str, act: Callable[[Session, Any], Change]) -> None:
        if self.scene.suspended:
            self.worker.message.emit(f"{COMPARING}.")
            return
        one, self.current = self.current, None
        if one is None:
            self.worker.message.emit("There is no question to answer.")
            return

        def count(_: Change) -> None:
            self.answered += 1
            self.changed.emit()

        self.scene.preview(None)
        self.worker.edit(Edit(title, lambda session, _: act(session, one), count))
        self._seek_soon()

    # Questions.

    def _seek_soon(self) -> None:
        self.seeking = True
        self._later()

    def _seek(self) -> None:
        session = self.project.session
        if not self.on or session is None:
            return
        filters, box = self.filters, self._view() if self.filters.in_view else None
        regions = self.project.shown_regions
        image = None if regions is None else regions.dataset.image

        def work() -> tuple[Any, Any, Any, Any]:
            following = session.queue.next(
                1, kind=filters.kind, min_size=filters.min_size, within=box
            )
            one = following[0] if following else None
            parts = _sides(session, one) if one is not None and one.kind == "false_merge" else None
            return one, session.queue.effort(), parts, _picture(session, one, image)

        self.worker.latest(_SUGGEST, work, self._ask)

    def _ask(self, result: tuple[Any, Any, Any, Any]) -> None:
        self.current, self.effort, self._parts, self.picture = result
        self.seeking, self._unseen = False, self.scene.suspended
        if self.on and not self._unseen:
            self._show()
        self.changed.emit()

    def _on_suspended(self) -> None:
        """Show a question that came during a comparison, after that; answers wait until then."""
        if self._unseen and self.on and not self.scene.suspended:
            self._unseen = False
            self._show()
        self.changed.emit()

    def _show(self) -> None:
        """Centre the view on the question, with both sides outlined."""
        one, parts, scene, graph = self.current, self._parts, self.scene, self.project.graph
        if one is None or graph is None:
            scene.preview(None)
            return
        self.project.select(*self.project.names_of(one.segments))
        scene.fly_to_question(one.position, self.project.placement)
        scene.preview(parts)

    def _view(self) -> Any:
        """Return the box of visible pixels."""
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


def _sides(session: Session, one: Any) -> Any:
    """Return both sides of a doubtful merge, as sets of dense superpixels."""
    a, b = one.superpixels
    try:
        parts = session.preview(one.segments[0], [[a], [b]], method="tree").parts
    except InvalidInput:
        return None
    return [np.searchsorted(session.graph.ids, np.asarray(part)) for part in parts]


def _picture(session: Session, one: Any, image: Any) -> Any:
    """Return the picture of a question; without the image, if that is of another shape."""
    if one is None:
        return None
    try:
        return session.queue.picture(one, image, side=_SIDE)
    except InvalidInput:
        return session.queue.picture(one, side=_SIDE)


class QueuePanel(QWidget):
    """The tab of probable errors: the question, answers, progress and filters."""

    def __init__(self, queue: ErrorQueue) -> None:
        super().__init__()
        self.queue = queue
        fly = "Go to the most probable error, and ask about it"
        self.go = button("Find the next probable error", fly, self._on_go, "next error")
        self.question = fixed_label("question", lines=2)
        self.question.setStyleSheet(f"font-weight: bold; {STILL}")
        tip = "Both sides in orange and blue, and the boundary between them in white"
        self.picture = named(QLabel(), "picture of the question", tip)
        self.picture.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.reason = fixed_label("reason", lines=4)
        self.line = fixed_label("queue progress", lines=2)
        self.yes = answer_button("yes", "Correct the error: merge or cut", queue.yes)
        self.no = answer_button("no", "There is no error; do not ask again", queue.no)
        self.skip = answer_button("skip", "Skip this question, and do not ask again", queue.skip)
        self.answers = (self.yes, self.no, self.skip)
        self.filters = Form(
            Filters,
            table={
                "kind": {
                    "label": "Look for",
                    "tooltip": "Kind of errors",
                    "automatic": "all errors",
                    "names": {"false_merge": "false merges", "false_split": "false splits"},
                },
                "min_size": {
                    "label": "At least",
                    "tooltip": "Least size of both sides",
                    "suffix": " pixels",
                    "min": 1,
                    "max": 10**7,
                },
                "in_view": {"label": "in view only", "tooltip": "Only errors in the visible area"},
            },
        )
        self.filters.changed.connect(lambda: queue.set_filters(Filters(**self.filters.values())))
        # The answers above the picture, so that they are in view in a low window too.
        parts = (self.go, self.question, row(*self.answers), self.picture, self.reason, self.line,
                 self.filters)  # fmt: skip
        column(self, *parts, spacing=6)
        link(self.follow, queue.changed, queue.project.status_changed)
        self.follow()

    def follow(self) -> None:
        """Show the current question."""
        queue, one = self.queue, self.queue.current
        ndim = 3 if queue.project.is_volume else 2
        least, one_only = self.filters["min_size"].native, f"1 {pixel_word(ndim, 1)}"
        if least.specialValueText() != one_only:  # somebody may type in the text, which is new then
            least.setSpecialValueText(one_only)  # of the minimum
            least.setSuffix(f" {pixel_word(ndim)}")
        self.go.setText("Stop" if queue.on else "Find the next probable error")
        for answer in self.answers:
            answer.setEnabled(one is not None and not queue.scene.suspended)
        if not queue.on:
            self.question.setText("")
            self.reason.setText("Questions about uncertain decisions, the largest effect first.")
        elif one is not None:
            self.question.setText(one.question)
            self.reason.setText(one.reason)
        elif not queue.seeking:
            self.question.setText("No more questions")
            self.reason.setText("All uncertain decisions at this threshold are answered.")
        else:
            self.question.setText("Searching…")
            self.reason.setText("")
        self._draw()
        self.line.setText(self._progress())

    def _draw(self) -> None:
        """Show the picture of the question, if there is one."""
        rgb = self.queue.picture if self.queue.on and self.queue.current is not None else None
        self.picture.setVisible(rgb is not None)
        if rgb is not None:
            height, width, _ = rgb.shape
            data = np.ascontiguousarray(rgb).tobytes()
            image = QImage(data, width, height, 3 * width, QImage.Format.Format_RGB888)
            self.picture.setPixmap(QPixmap.fromImage(image))  # which copies the pixels
            self.picture.setMinimumHeight(height)

    def _progress(self) -> str:
        queue = self.queue
        if not queue.on or queue.effort is None:
            return ""
        left = queue.effort
        text = f"{queue.answered} answered · about {left.merges + left.cuts:.0f} edits left here"
        text += f" ({left.merges:.0f} merges, {left.cuts:.0f} cuts)"
        return text

    def _on_go(self) -> None:
        if self.queue.on:
            self.queue.stop()
        else:
            self.queue.start()
