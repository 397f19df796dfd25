"""The list of segments: sort, find, select, fly to, merge many."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import QItemSelection, QItemSelectionModel, Qt, QTimer
from qtpy.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QPushButton,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from napari_agglo.volumes import Contingency, contingency
from napari_agglo.widgets._links import link, when_gone
from napari_agglo.widgets._notices import tell_error
from napari_agglo.widgets.proofread._columns import Columns, box_of, columns_of, middle_of
from napari_agglo.widgets.proofread._latest import Latest
from napari_agglo.widgets.proofread._proofreader import Proofreader
from napari_agglo.widgets.proofread._table import NAME, SIZE, Marks, SegmentModel

_WIDTHS = (62, 70, 60, 70, 56)  # of the columns, in pixels; the name has the rest
_SOON = 150  # milliseconds after the last change


class SegmentList(QWidget):
    """The table, with what can be done in it."""

    def __init__(self, proofreader: Proofreader) -> None:
        super().__init__()
        self.proofreader = proofreader
        self.project = proofreader.project
        acts = proofreader.acts
        self.model = SegmentModel(
            lambda name, text: acts.rename(text, name), lambda name, state: acts.review(state, name)
        )
        self.search = QLineEdit()
        self.search.setObjectName("find segment")
        self.search.setPlaceholderText("Find by id or name")
        self.search.setClearButtonEnabled(True)
        self.search.setToolTip("Show only segments with this in their id or name")
        self.search.textChanged.connect(self.model.set_filter)
        self.view = self._view()
        self.merge = QPushButton("Merge selected")
        self.merge.setObjectName("merge selected")
        self.merge.setToolTip("Merge all selected segments into the active one (key W)")
        self.merge.clicked.connect(acts.merge_selected)
        row = QHBoxLayout()
        row.addWidget(self.search)
        row.addWidget(self.merge)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.addLayout(row)
        layout.addWidget(self.view)
        self._overlaps: Contingency | None = None
        self._overlaps_of: Any = None  # the superpixels and the gold
        self._following = False
        self._latest = Latest()
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(_SOON)
        self._soon.timeout.connect(self._compute)
        project = self.project
        link(self, project.edited, self._later)
        link(self, project.threshold_changed, self._later)
        link(self, project.hierarchy_changed, self._later)
        link(self, project.selection_changed, self._on_selection)
        when_gone(self, self._latest.close)
        self._later()

    def showEvent(self, event: Any) -> None:
        """Compute what was put off while nobody looked."""
        super().showEvent(event)
        self._later()

    def _view(self) -> QTableView:
        view = QTableView()
        view.setObjectName("segments")
        view.setModel(self.model)
        view.setSortingEnabled(True)
        view.sortByColumn(SIZE, Qt.SortOrder.DescendingOrder)
        view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        view.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        view.setEditTriggers(QAbstractItemView.EditTrigger.DoubleClicked)
        view.setToolTip("Click a segment to fly to it; Ctrl or Shift + click selects several")
        view.setMinimumHeight(220)
        view.setWordWrap(False)
        rows = view.verticalHeader()
        rows.setVisible(False)
        rows.setDefaultSectionSize(22)
        columns = view.horizontalHeader()
        columns.setMinimumSectionSize(36)
        view.selectionModel().selectionChanged.connect(self._on_rows)
        return view

    def _later(self) -> None:
        if self.isVisible():
            self._soon.start()

    def _compute(self) -> None:
        project, session = self.project, self.project.session
        graph = project.graph
        if session is None or graph is None:
            self._latest.forget()
            self.model.show(Columns.empty(), {})
            return
        if project.held:
            self._soon.start()
            return
        table = project.table().copy()
        marks = {one: (mark.name, mark.reviewed) for one, mark in session.marks().items()}
        key = (graph.superpixels, graph.n_regions, project.gold)
        known = self._overlaps if _same(key, self._overlaps_of) else None
        self._latest.ask(
            lambda: columns_of(graph, table, known),
            lambda columns: self._show(columns, marks, key, known),
            tell_error,
        )

    def _show(self, columns: Columns, marks: Marks, key: Any, known: Contingency | None) -> None:
        self.model.show(columns, marks)
        self._lay_out()
        self._on_selection()
        labels, _, gold = key
        if known is None and gold is not None:  # which takes long, so the rest is shown first
            self._latest.ask(
                lambda: contingency(labels, gold), lambda found: self._keep(key, found), tell_error
            )

    def _keep(self, key: Any, overlaps: Contingency) -> None:
        self._overlaps, self._overlaps_of = overlaps, key
        self._later()

    def _lay_out(self) -> None:
        """Give the name what the other columns leave."""
        columns = self.view.horizontalHeader()
        for column in range(self.model.columnCount()):
            if column == NAME:
                columns.setSectionResizeMode(column, QHeaderView.ResizeMode.Stretch)
            elif columns.sectionSize(column) != _WIDTHS[column]:
                columns.resizeSection(column, _WIDTHS[column])

    # The selection, both ways.

    def _on_rows(self, *_: object) -> None:
        if self._following:
            return
        rows = [index.row() for index in self.view.selectionModel().selectedRows()]
        if not rows:
            return
        current = self.view.currentIndex().row()
        names = [self.model.name_at(row) for row in rows]
        project = self.project
        if len(rows) == 1:
            project.select(names[0])
            self.fly_to(names[0])
            return
        active = project.active if project.active in names else self.model.name_at(current)
        project.select(active, *(name for name in names if name != active))

    def _on_selection(self) -> None:
        """Select in the table what is selected on the canvas."""
        if not self.isVisible():
            return
        self._following = True
        try:
            chosen = QItemSelection()
            names = [name for name in (self.project.active, *self.project.selected) if name]
            rows = [row for name in names if (row := self.model.row_of(name)) >= 0]
            last = self.model.columnCount() - 1
            for row in rows:
                chosen.select(self.model.index(row, 0), self.model.index(row, last))
            how = QItemSelectionModel.SelectionFlag
            self.view.selectionModel().select(chosen, how.ClearAndSelect)
            if rows:
                self.view.scrollTo(self.model.index(rows[0], 0))
        finally:
            self._following = False

    def fly_to(self, name: int) -> None:
        """Look at a segment."""
        graph, table = self.project.graph, self.project.table()
        if graph is None or not (table == name).any():
            return
        box = box_of(graph, table, name)
        self.proofreader.scene.fly_to(middle_of(graph, table, name), box)


def _same(a: Any, b: Any) -> bool:
    return b is not None and a[0] is b[0] and a[1] == b[1] and a[2] is b[2]
