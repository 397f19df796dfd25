"""Panels of the active segment, the scores and the history."""

# In its own file: the panels of the segment and the history, apart from sessions and tabs.

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial

from qtpy.QtCore import Qt
from qtpy.QtGui import QColor, QKeyEvent
from qtpy.QtWidgets import (
    QGridLayout,
    QListWidget,
    QListWidgetItem,
    QWidget,
)
from superqt.utils import qdebounced

from napari_agglo.errors import AggloError
from napari_agglo.evaluate import state_at
from napari_agglo.session import Annotations, Session
from napari_agglo.widgets._colours import GREY
from napari_agglo.widgets._forms import Form
from napari_agglo.widgets._project import Project
from napari_agglo.widgets._qt import button, column, label, link, named, pixel_word, row, when_gone
from napari_agglo.widgets._session_worker import sentence
from napari_agglo.widgets.proofread._proofreader import Proofreader

_SHOWN = 500  # last actions of a long history


class ActionList(QListWidget):
    """A list whose current item is clicked by Enter."""

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        """Click the current item on Enter."""
        enter = event is not None and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enter and self.currentItem() is not None:
            self.itemClicked.emit(self.currentItem())
        else:
            super().keyPressEvent(event)


class HistoryList(QWidget):
    """The list of actions done and undone; a click or Enter goes to one."""

    def __init__(self, proofreader: Proofreader) -> None:
        super().__init__()
        self.proofreader = proofreader
        self.project = proofreader.project
        commands = proofreader.commands
        self.undo = button("Undo", "Undo the last action (Ctrl + Z)", commands.undo, "undo")
        again = "Redo the last undone action (Ctrl + Shift + Z)"
        self.redo = button("Redo", again, commands.redo, "redo")
        tooltip = "Click an action, or press Enter, to go back or forward to it"
        self.list = named(ActionList(), "history", tooltip)
        self.list.setMinimumHeight(220)
        self.list.setWordWrap(True)
        self.list.itemClicked.connect(
            lambda item: commands.go_to(item.data(Qt.ItemDataRole.UserRole))
        )
        column(self, row(self.undo, self.redo), self.list, top=4)
        link(self._follow, self.project.edited, self.project.hierarchy_changed)
        self._follow()

    def showEvent(self, event: object) -> None:
        """Update the list, which is not computed while hidden."""
        super().showEvent(event)  # type: ignore[arg-type]
        self._follow()

    def _follow(self) -> None:
        session = self.project.session
        self.undo.setEnabled(session is not None and session.history.can_undo)
        self.redo.setEnabled(session is not None and session.history.can_redo)
        if not self.isVisible():
            return
        self.list.clear()
        if session is None:
            return
        done = [item for item in session.history if not item.undone]
        undone = session.history.redoable
        first = max(0, len(done) - _SHOWN)
        self._add("Start" if first == 0 else f"… {first} earlier", len(done) - first, False)
        for k, item in enumerate(done[first:], start=first + 1):
            self._add(f"{k}. {sentence(item.words)}", len(done) - k, False)
        for k, item in enumerate(undone, start=1):
            self._add(f"{len(done) + k}. {sentence(item.words)} (undone)", -k, True)
        here = len(done) - first
        self.list.setCurrentRow(here)
        self.list.scrollToItem(self.list.item(here))

    def _add(self, text: str, steps: int, undone: bool) -> None:
        item = QListWidgetItem(text)
        item.setData(Qt.ItemDataRole.UserRole, steps)
        if undone:
            item.setForeground(QColor(GREY))
            font = item.font()
            font.setItalic(True)
            item.setFont(font)
        self.list.addItem(item)


_SOON = 60  # milliseconds after the last change
Result = tuple[float, int, str, tuple[float, float] | None]


class Scores(QWidget):
    """The numbers of edits and reviewed segments, and the errors against gold with their change."""

    def __init__(self, project: Project) -> None:
        super().__init__()
        self.project = project
        self.text = label(
            "scores",
            "Edits; reviewed segments; false merge + false split = VI against gold, in bits, and "
            "its change since the hierarchy without edits",
        )
        column(self, self.text)
        self._start: dict[float, tuple[float, float]] = {}  # errors without edits, by threshold
        self._of: Session | None = None
        self._soon = qdebounced(self._compute, timeout=_SOON)
        link(self._later, project.edited, project.threshold_changed, project.hierarchy_changed)
        self._topic = own_topic(self, "scores", project)
        self._later()

    def _later(self) -> None:
        self._soon()

    def _compute(self) -> None:
        project, session = self.project, self.project.session
        if session is None:
            project.worker.forget(self._topic)
            self.text.setText("")
            self._of = None
            return
        if session is not self._of:
            self._of, self._start = session, {}

        def work() -> Result:
            errors = session.errors.now() if session.errors.has_gold else None
            done = session.history.n_edits
            pair = None if errors is None else (errors.false_merge, errors.false_split)
            return session.threshold, done, str(session.marks.progress), pair

        project.worker.latest(self._topic, work, self._show)

    def _show(self, result: Result) -> None:
        threshold, done, reviewed, pair = result
        lines = [f"{done} {'edit' if done == 1 else 'edits'} · {reviewed}"]
        if pair is not None:
            if done == 0:
                self._start[threshold] = pair
            first = self._unedited(threshold) or self._start.get(threshold)
            change = _change(first, pair) if done and first is not None else ""
            lines.append(f"VI {sum(pair):.4f}{change}")
            lines.append(f"false merge {pair[0]:.4f} · false split {pair[1]:.4f}")
        self.text.setText("<br>".join(lines))

    def _unedited(self, threshold: float) -> tuple[float, float] | None:
        """Return the errors without edits, if the curve of the hierarchy is known."""
        curve = self.project.curve
        if curve is None or not len(curve):
            return None
        errors = state_at(curve, threshold)
        return float(errors["false_merge"]), float(errors["false_split"])


def _change(before: tuple[float, float], now: tuple[float, float]) -> str:
    change = sum(now) - sum(before)
    sign = "±" if abs(change) < 5e-5 else ("+" if change > 0 else "−")
    return f" ({sign}{abs(change):.4f} by the edits)"


_MARKS = {
    "name": {
        "name": "segment name",
        "automatic": "no name",
        "tooltip": "Name of the segment; press Enter to save it",
    },
    "comment": {
        "name": "segment comment",
        "automatic": "no comment",
        "tooltip": "Comment of the segment; press Enter to save it",
    },
    "reviewed": {
        "name": "segment reviewed",
        "tooltip": "Mark this segment as reviewed (key U)",
    },
}


class Details(QWidget):
    """The size, name, comment and marks of the active segment, and buttons for commands."""

    def __init__(self, proofreader: Proofreader) -> None:
        super().__init__()
        self.project = proofreader.project
        self.commands = proofreader.commands
        self.title = label("active segment", lines=2)
        verbs = Annotations.rename, Annotations.comment, Annotations.review
        self.form = Form(*verbs, table=_MARKS, without=("segment",))
        self.name, self.comment, self.reviewed = (self.form[mark].native for mark in _MARKS)
        for mark, keep in (("name", self.commands.rename), ("comment", self.commands.comment)):
            # magicgui emits `changed` at every key, and each change is an edit
            self.form[mark].native.editingFinished.connect(partial(self._keep, mark, keep))
        self.reviewed.clicked.connect(lambda on: self.commands.review(bool(on)))
        self.buttons = self._grid()
        column(self, self.title, self.form, self.buttons, top=4, spacing=6)
        self._topic = own_topic(self, "details", self.project)
        link(
            self._follow,
            self.project.selection_changed,
            self.project.edited,
            self.project.threshold_changed,
            self.project.hierarchy_changed,
        )
        self._follow()

    def _grid(self) -> QGridLayout:
        commands = self.commands
        self.up = button("Up", "Show the next larger segment of the hierarchy (key .)", commands.up)
        self.down = button("Down", "Show the parts of the last merge (key ,)", commands.down)
        self.children_ = button(
            "Cut in two",
            "Cut the segment into the parts of its last merge",
            commands.cut_children,
        )
        self.lock = button(
            "Lock",
            "Protect the segment from merges and cuts at every threshold (key H)",
            commands.lock,
            "lock",
        )
        self.merge = button(
            "Merge selected",
            "Merge all selected segments into this one (key W)",
            commands.merge_selected,
        )
        grid = QGridLayout()
        grid.setContentsMargins(0, 0, 0, 0)
        for k, one in enumerate((self.up, self.down, self.lock, self.children_, self.merge)):
            grid.addWidget(one, k // 3, k % 3, 1, 2 if one is self.merge else 1)
        return grid

    def _follow(self) -> None:
        project, session = self.project, self.project.session
        active = project.active if session is not None else 0
        for part in (self.name, self.comment, self.reviewed, self.up, self.down, self.lock,
                     self.children_):  # fmt: skip
            part.setEnabled(bool(active))
        self.merge.setEnabled(bool(active and project.selected))
        if session is None or not active:
            self.title.setText("Click a segment to activate it.")
            for field in (self.name, self.comment):
                field.setText("")
            self.reviewed.setChecked(False)
            return
        if not project.worker.settled:  # a thread uses the session: update when it is free
            project.worker.latest(self._topic, lambda: None, lambda _: self._follow())
            return
        segment = project.id_of(active)
        try:
            mark, locked = session.marks.of(segment), session.segments.is_locked(segment)
        except AggloError:  # it no longer exists; another is selected next
            return
        table, sizes = project.table(), session.graph.sizes
        size = int(sizes[table[: len(sizes)] == active].sum())
        unit = pixel_word(session.graph.superpixels.image.ndim, size)
        more = f", {len(project.selected)} more selected" if project.selected else ""
        badge = " · locked" if locked else ""
        self.title.setText(f"<b>Segment {segment}</b>: {size:,} {unit}{badge}{more}")
        self.lock.setText("Unlock" if locked else "Lock")
        for field, text in ((self.name, mark.name), (self.comment, mark.comment)):
            if not field.hasFocus() or field.property("of") != active:
                field.setText(text)
            field.setProperty("of", active)
        self.reviewed.setChecked(mark.reviewed)

    def _keep(self, which: str, act: Callable[[str], object]) -> None:
        """Write a text of the active segment, if it is another than before."""
        project, session = self.project, self.project.session
        field = self.form[which].native
        if session is None or not project.active or field.property("of") != project.active:
            return
        marks = session.marks.of(project.id_of(project.active)) if project.worker.settled else None
        if getattr(marks, which, None) != field.text():
            act(field.text())


def own_topic(widget: QWidget, name: str, project: Project) -> Hashable:
    """Return a topic of the worker for one widget, dropped with the widget."""
    topic, worker = (name, id(widget)), project.worker
    when_gone(widget, lambda: worker.forget(topic))
    return topic
