"""The active segment: its id, size and marks, and what can be done to it."""

from __future__ import annotations

from collections.abc import Callable

from qtpy.QtWidgets import (
    QCheckBox,
    QFormLayout,
    QGridLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from napari_agglo.errors import AggloError
from napari_agglo.widgets._links import link
from napari_agglo.widgets.proofread._proofreader import Proofreader


class Details(QWidget):
    """What is known of the active segment."""

    def __init__(self, proofreader: Proofreader) -> None:
        super().__init__()
        self.project = proofreader.project
        self.acts = proofreader.acts
        self.title = QLabel()
        self.title.setObjectName("active segment")
        self.title.setWordWrap(True)
        self.name = QLineEdit()
        self.name.setObjectName("segment name")
        self.name.setToolTip("A name for the segment; Enter keeps it")
        self.name.setPlaceholderText("no name")
        self.name.editingFinished.connect(self._renamed)
        self.comment = QLineEdit()
        self.comment.setObjectName("segment comment")
        self.comment.setToolTip("A comment on the segment; Enter keeps it")
        self.comment.setPlaceholderText("no comment")
        self.comment.editingFinished.connect(self._commented)
        self.reviewed = QCheckBox("reviewed")
        self.reviewed.setObjectName("segment reviewed")
        self.reviewed.setToolTip("Say that this segment has been looked at (key U)")
        self.reviewed.clicked.connect(lambda on: self.acts.review(bool(on)))
        form = QFormLayout()
        form.setContentsMargins(0, 0, 0, 0)
        form.addRow("Name", self.name)
        form.addRow("Comment", self.comment)
        form.addRow("", self.reviewed)
        self.buttons = self._grid()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.addWidget(self.title)
        layout.addLayout(form)
        layout.addLayout(self.buttons)
        link(self, self.project.selection_changed, self._follow)
        link(self, self.project.edited, self._follow)
        link(self, self.project.threshold_changed, self._follow)
        link(self, self.project.hierarchy_changed, self._follow)
        self._follow()

    def _grid(self) -> QGridLayout:
        acts = self.acts
        self.up = _button("Up", "Show what it next becomes part of (key .)", acts.up)
        self.down = _button("Down", "Show what it was made of (key ,)", acts.down)
        self.children_ = _button(
            "Cut in two", "Cut it into what it was made of: undo its last merge", acts.cut_children
        )
        self.lock = _button("Lock", "Keep it whole and alone at every scale (key H)", acts.lock)
        self.lock.setObjectName("lock")
        self.merge = _button(
            "Merge selected", "Merge all selected segments into it (key W)", acts.merge_selected
        )
        grid = QGridLayout()
        grid.setContentsMargins(0, 0, 0, 0)
        for k, button in enumerate((self.up, self.down, self.lock, self.children_, self.merge)):
            row, column = divmod(k, 3)
            grid.addWidget(button, row, column, 1, 2 if button is self.merge else 1)
        return grid

    def _follow(self) -> None:
        project, session = self.project, self.project.session
        active = project.active if session is not None else 0
        for part in (self.name, self.comment, self.reviewed, self.up, self.down, self.lock,
                     self.children_):  # fmt: skip
            part.setEnabled(bool(active))
        self.merge.setEnabled(bool(active and project.selected))
        if session is None or not active:
            self.title.setText("Click a segment to make it the active one.")
            for field in (self.name, self.comment):
                field.setText("")
            self.reviewed.setChecked(False)
            return
        if not project.settled:  # a worker has the session: what was shown stays
            return
        segment = project.id_of(active)
        try:
            mark, locked = session.mark(segment), session.is_locked(segment)
        except AggloError:  # it has just gone; what takes its place is selected next
            return
        table, sizes = project.table(), session.graph.sizes
        pixels = int(sizes[table[: len(sizes)] == active].sum())
        more = f", {len(project.selected)} more selected" if project.selected else ""
        badge = " · locked" if locked else ""
        self.title.setText(f"<b>Segment {segment}</b>: {pixels:,} pixels{badge}{more}")
        self.lock.setText("Unlock" if locked else "Lock")
        for field, text in ((self.name, mark.name), (self.comment, mark.comment)):
            if not field.hasFocus() or field.property("of") != active:
                field.setText(text)
            field.setProperty("of", active)
        self.reviewed.setChecked(mark.reviewed)

    def _renamed(self) -> None:
        self._keep(self.name, "name", self.acts.rename)

    def _commented(self) -> None:
        self._keep(self.comment, "comment", self.acts.comment)

    def _keep(self, field: QLineEdit, which: str, act: Callable[[str], object]) -> None:
        project, session = self.project, self.project.session
        if session is None or not project.active or field.property("of") != project.active:
            return
        if project.settled and getattr(session.mark(project.id_of(project.active)), which) == (
            field.text()
        ):
            return
        act(field.text())


def _button(text: str, tooltip: str, action: Callable[[], object]) -> QPushButton:
    button = QPushButton(text)
    button.setObjectName(text)
    button.setToolTip(tooltip)
    button.clicked.connect(lambda: action())
    return button
