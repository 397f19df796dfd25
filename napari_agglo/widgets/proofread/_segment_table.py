"""The table of segments, to sort, find, select and merge them."""

# In its own file: the table of segments with its model, apart from the other panels.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QAbstractTableModel, QItemSelection, QItemSelectionModel, QModelIndex, Qt
from qtpy.QtWidgets import QAbstractItemView, QHeaderView, QLineEdit, QTableView, QWidget
from superqt.utils import qdebounced

from napari_agglo.graph import RegionGraph
from napari_agglo.volumes import Contingency, contingency, is_on_disk
from napari_agglo.widgets._jobs import in_thread
from napari_agglo.widgets._qt import (
    button,
    column,
    link,
    named,
    pixel_word,
    row,
    style_table,
    tell_error,
    when_gone,
)
from napari_agglo.widgets._scene import Scene
from napari_agglo.widgets.proofread._proofreader import Proofreader


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of the segment table, computed in a worker from arrays."""

    names: NDArray[np.int64]  # dense names, ascending
    ids: NDArray[np.uint64]  # the user's
    sizes: NDArray[np.int64]  # pixels
    errors: NDArray[np.float64] | None = None  # bits added to the false merges; None without gold
    unit: str = "pixels"  # of the sizes

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def empty(cls) -> Columns:
        """Return the columns of no segments."""
        none = np.zeros(0, np.int64)
        return cls(none, none.astype(np.uint64), none)


def columns_of(
    graph: RegionGraph, table: NDArray[np.uint32], overlaps: Contingency | None
) -> Columns:
    """Return the columns of the segments of a table over superpixels.

    Examples
    --------
    >>> import napari_agglo as agglo
    >>> graph = agglo.region_graph(np.array([[5, 6, 7, 7]]), np.array([[0.0, 0.2, 0.6, 0.8]]))
    >>> columns = columns_of(graph, np.array([0, 1, 1, 3], np.uint32), None)
    >>> columns.ids, columns.sizes
    (array([5, 7], dtype=uint64), array([2, 2]))
    """
    n = graph.n_regions + 1
    names_of = table[:n]
    pixels = np.zeros(n, np.int64)
    np.add.at(pixels, names_of, graph.sizes)
    pixels[0] = 0
    names = np.flatnonzero(pixels)
    errors = None
    if overlaps is not None:
        errors = _errors(names_of, overlaps, n)[names]
    unit = pixel_word(graph.superpixels.image.ndim)
    return Columns(names, graph.ids[names], pixels[names], errors, unit)


def _errors(names_of: NDArray[np.uint32], overlaps: Contingency, n: int) -> NDArray[np.float64]:
    """Return the part of each segment in H(gold | segments): P(s) H(U | S=s)."""
    known = overlaps.rows < len(names_of)
    segment = names_of[overlaps.rows[known]].astype(np.int64)
    width = len(overlaps.column_ids)
    keys, which = np.unique(segment * width + overlaps.columns[known], return_inverse=True)
    shared = np.bincount(which, overlaps.counts[known], len(keys))
    owner = keys // width
    whole = np.bincount(owner, shared, n)
    lost = shared * np.log2(whole[owner] / shared)
    return np.bincount(owner, lost, n) / max(overlaps.total, 1)


def box_of(graph: RegionGraph, table: NDArray[np.uint32], name: int) -> NDArray[np.int64]:
    """Return the box of a segment, (first, past the last), from those of its superpixels."""
    members = np.flatnonzero(table[: graph.n_regions + 1] == name)
    boxes = graph.boxes[members]
    return np.stack([boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)])


def middle_of(graph: RegionGraph, table: NDArray[np.uint32], name: int) -> tuple[int, ...]:
    """Return the centroid of the superpixel nearest to the centroid of a segment."""
    members = np.flatnonzero(table[: graph.n_regions + 1] == name)
    sums = graph.regions[members][:, graph.layout.coordinates].astype(float)
    sizes = graph.sizes[members].astype(float)
    centre = sums.sum(axis=0) / sizes.sum()
    own = sums / sizes[:, None]
    nearest = own[int(np.argmin(((own - centre) ** 2).sum(axis=1)))]
    return tuple(round(float(x)) for x in nearest)


ID, SIZE, NAME, REVIEWED, ERROR = range(5)
_TITLES = ("id", "size", "name", "reviewed", "VI")
_TIPS = (
    "The id of the segment",
    "The size of the segment",
    "The name; double-click or press F2 to change it",
    "The mark as reviewed; click the box to change it",
    "The contribution to the false merges, in bits",
)
_ROLE = Qt.ItemDataRole
Marks = dict[int, tuple[str, bool]]  # by the user's id: name, reviewed


class SegmentModel(QAbstractTableModel):
    """A model of segments by row over arrays, sorted and filtered.

    `rename` and `review` are called with a dense name and the text or state entered by the user.
    """

    def __init__(
        self, rename: Callable[[int, str], object], review: Callable[[int, bool], object]
    ) -> None:
        super().__init__()
        self._rename = rename
        self._review = review
        self._columns = Columns.empty()
        self._marks: Marks = {}
        self._order: NDArray[np.int64] = np.zeros(0, np.int64)
        self._by, self._descending = SIZE, True
        self._filter = ""

    def show(self, columns: Columns, marks: Marks) -> None:
        """Show other segments, sorted and filtered as before."""
        self.beginResetModel()
        self._columns, self._marks = columns, marks
        self._arrange()
        self.endResetModel()

    def set_filter(self, text: str) -> None:
        """Show only segments with this text in the id or the name."""
        self.beginResetModel()
        self._filter = text.strip().lower()
        self._arrange()
        self.endResetModel()

    def name_at(self, row: int) -> int:
        """Return the dense name of the segment in a row."""
        return int(self._columns.names[self._order[row]])

    def row_of(self, name: int) -> int:
        """Return the row of a segment by its dense name; -1 if it is not shown."""
        at = int(np.searchsorted(self._columns.names, name))
        if at == len(self._columns) or self._columns.names[at] != name:
            return -1
        rows = np.flatnonzero(self._order == at)
        return int(rows[0]) if rows.size else -1

    def rowCount(self, parent: QModelIndex | None = None) -> int:
        """Return the number of rows."""
        return 0 if parent is not None and parent.isValid() else len(self._order)

    def columnCount(self, parent: QModelIndex | None = None) -> int:
        """Return the number of columns; the last needs gold."""
        return 4 if self._columns.errors is None else 5

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = _ROLE.DisplayRole
    ) -> Any:
        """Return the title of a column."""
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == _ROLE.DisplayRole:
            return self._columns.unit if section == SIZE else _TITLES[section]
        return _TIPS[section] if role == _ROLE.ToolTipRole else None

    def data(self, index: QModelIndex, role: int = _ROLE.DisplayRole) -> Any:
        """Return the data of a cell."""
        at, column = int(self._order[index.row()]), index.column()
        columns = self._columns
        if role == _ROLE.CheckStateRole and column == REVIEWED:
            reviewed = self._mark(at)[1]
            return Qt.CheckState.Checked if reviewed else Qt.CheckState.Unchecked
        if role == _ROLE.TextAlignmentRole and column in (ID, SIZE, ERROR):
            return int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        if role == _ROLE.ToolTipRole:
            return _TIPS[column]
        if role not in (_ROLE.DisplayRole, _ROLE.EditRole):
            return None
        if column == ID:
            return str(columns.ids[at])
        if column == SIZE:
            return f"{columns.sizes[at]:,}"
        if column == NAME:
            return self._mark(at)[0]
        if column == ERROR and columns.errors is not None:
            return f"{columns.errors[at]:.4f}"
        return None

    def setData(self, index: QModelIndex, value: Any, role: int = _ROLE.EditRole) -> bool:
        """Pass the entry of the user on as an edit, which updates the table."""
        name = self.name_at(index.row())
        if index.column() == NAME and role == _ROLE.EditRole:
            if str(value) != self._mark(int(self._order[index.row()]))[0]:
                self._rename(name, str(value))
            return True
        if index.column() == REVIEWED and role == _ROLE.CheckStateRole:
            self._review(name, Qt.CheckState(value) == Qt.CheckState.Checked)
            return True
        return False

    def flags(self, index: QModelIndex) -> Qt.ItemFlag:
        """Return the flags of a cell."""
        flags = super().flags(index)
        if index.column() == NAME:
            flags |= Qt.ItemFlag.ItemIsEditable
        if index.column() == REVIEWED:
            flags |= Qt.ItemFlag.ItemIsUserCheckable
        return flags

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column."""
        self.layoutAboutToBeChanged.emit()
        self._by, self._descending = column, order == Qt.SortOrder.DescendingOrder
        self._arrange()
        self.layoutChanged.emit()

    def _mark(self, at: int) -> tuple[str, bool]:
        return self._marks.get(int(self._columns.ids[at]), ("", False))

    def _arrange(self) -> None:
        columns = self._columns
        kept = np.arange(len(columns))
        if self._filter:
            named = {one for one, (name, _) in self._marks.items() if self._filter in name.lower()}
            matching = np.isin(columns.ids, np.array(sorted(named), np.uint64))
            if self._filter.isdigit():
                matching |= np.char.find(columns.ids.astype(str), self._filter) >= 0
            kept = kept[matching]
        keys = self._keys()[kept]
        order = np.argsort(-keys if self._descending and keys.dtype.kind in "if" else keys,
                           kind="stable")  # fmt: skip
        if self._descending and keys.dtype.kind not in "if":
            order = order[::-1]
        self._order = kept[order]

    def _keys(self) -> NDArray[Any]:
        columns = self._columns
        if self._by == SIZE:
            return columns.sizes
        if self._by == ERROR and columns.errors is not None:
            return columns.errors
        if self._by in (NAME, REVIEWED):
            which = self._by - NAME
            marked = {one: mark[which] for one, mark in self._marks.items()}
            return np.array([marked.get(one, "" if not which else False)
                             for one in columns.ids.tolist()])  # fmt: skip
        return columns.ids


_WIDTHS = (50, 58, 60, 66, 54)  # pixels of the columns; the name takes the rest
_SOON = 150  # milliseconds after the last change


def bring_in_view(scene: Scene, name: int) -> None:
    """Centre the view on a segment, at the same zoom, unless some of it is visible."""
    project, viewer = scene.project, scene.viewer
    graph, table, placed = project.graph, project.table(), project.placement
    if graph is None or placed is None or not (table == name).any():
        return
    box = box_of(graph, table, name)
    low, high = placed.to_world(box[0]), placed.to_world(box[1] - 1)
    offset = viewer.dims.ndim - len(low)
    hidden = [axis for axis in range(offset, viewer.dims.ndim) if axis not in viewer.dims.displayed]
    here = [
        abs(viewer.dims.point[axis] - (low[k] + high[k]) / 2)
        <= abs(high[k] - low[k]) / 2 + abs(placed.scale[k]) / 2
        for axis in hidden
        for k in [axis - offset]
    ]
    layer = scene.segmentation
    if layer is not None:
        corners = np.asarray(layer.corner_pixels)
        shown = [axis - offset for axis in viewer.dims.displayed if axis >= offset]
        here += [corners[0, k] < box[1][k] and box[0][k] <= corners[1, k] for k in shown]
    if not all(here):
        scene.fly_to(middle_of(graph, table, name))


class SegmentList(QWidget):
    """The table of segments, with a search field and a button to merge."""

    def __init__(self, proofreader: Proofreader) -> None:
        super().__init__()
        self.proofreader = proofreader
        self.project = proofreader.project
        commands = proofreader.commands
        self.model = SegmentModel(
            lambda name, text: commands.rename(text, name),
            lambda name, state: commands.review(state, name),
        )
        only = "Show only segments with this text in the id or name"
        self.search = named(QLineEdit(), "find segment", only)
        self.search.setPlaceholderText("Find by id or name")
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self.model.set_filter)
        self.view = self._view()
        into = "Merge all selected segments into the active one (key W)"
        self.merge = button("Merge selected", into, commands.merge_selected, "merge selected")
        column(self, row(self.search, self.merge), self.view, top=4)
        self._overlaps: Contingency | None = None
        self._overlaps_of: Any = None  # the superpixels and the gold
        self._following = False
        self._here = [True]  # until Qt destroys the widget
        when_gone(self, self._here.clear)
        self._computing = self._again = False
        self._soon = qdebounced(self._compute, timeout=_SOON)
        link(self._show_part, commands.parted)
        project = self.project
        link(self._later, project.edited, project.threshold_changed, project.hierarchy_changed)
        link(self._on_selection, project.selection_changed)
        self._later()

    def showEvent(self, event: Any) -> None:
        """Update the table, which is not computed while hidden."""
        super().showEvent(event)
        self._later()

    def _view(self) -> QTableView:
        view = QTableView()
        tooltip = "Select a segment to go to it; Ctrl or Shift + click selects several"
        style_table(view, "segments", tooltip)
        view.setModel(self.model)
        view.setSortingEnabled(True)
        view.sortByColumn(SIZE, Qt.SortOrder.DescendingOrder)
        view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        view.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        triggers = QAbstractItemView.EditTrigger
        view.setEditTriggers(triggers.DoubleClicked | triggers.EditKeyPressed)
        view.setMinimumHeight(220)
        view.horizontalHeader().setMinimumSectionSize(36)
        view.selectionModel().selectionChanged.connect(self._on_rows)
        return view

    def _later(self) -> None:
        if self.isVisible():
            self._soon()

    def _compute(self) -> None:
        project, session = self.project, self.project.session
        graph = project.graph
        if session is None or graph is None:
            self.model.show(Columns.empty(), {})
            return
        if not project.worker.settled:
            self._soon()
            return
        if self._computing:
            self._again = True
            return
        table = project.table().copy()
        marks = {one: (mark.name, mark.reviewed) for one, mark in session.marks.all().items()}
        key = (graph.superpixels, graph.n_regions, project.gold)
        known = self._overlaps if _same(key, self._overlaps_of) else None
        self._in_thread(
            lambda: columns_of(graph, table, known),
            lambda columns: self._show(columns, marks, key, known),
        )

    def _in_thread(self, work: Callable[[], Any], done: Callable[[Any], object]) -> None:
        """Compute from arrays in a thread; requests in the meantime are merged."""
        here = self._here
        self._computing = True

        def end(tell: Callable[[Any], object], outcome: Any) -> None:
            if here:
                self._computing = False
                tell(outcome)
                if self._again and not self._computing:
                    self._again = False
                    self._later()

        in_thread(work, lambda result: end(done, result), lambda error: end(tell_error, error))

    def _show(self, columns: Columns, marks: Marks, key: Any, known: Contingency | None) -> None:
        self.model.show(columns, marks)
        self._lay_out()
        self._on_selection()
        labels, _, gold = key
        if known is not None or gold is None:
            return
        if is_on_disk(labels.image):  # of a large volume, once overlaps are counted by Evaluate
            session = self.project.session
            if session is not None and session.errors.has_gold and session.errors.are_counted:
                work, keep = session.errors.overlaps, partial(self._keep, key)
                self.project.worker.latest("overlaps of the table", work, keep)
            return
        # slow, so after the other columns
        self._in_thread(lambda: contingency(labels, gold), partial(self._keep, key))

    def _keep(self, key: Any, overlaps: Contingency) -> None:
        if self._here:
            self._overlaps, self._overlaps_of = overlaps, key
            self._later()

    def _lay_out(self) -> None:
        """Set the widths of the columns; the name takes the rest."""
        columns = self.view.horizontalHeader()
        for k in range(self.model.columnCount()):
            if k == NAME:
                columns.setSectionResizeMode(k, QHeaderView.ResizeMode.Stretch)
            elif columns.sectionSize(k) != _WIDTHS[k]:
                columns.resizeSection(k, _WIDTHS[k])

    # The selection, in both directions.

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
        """Select the segments of the canvas in the table."""
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

    def _show_part(self, name: int) -> None:
        bring_in_view(self.proofreader.scene, name)

    def fly_to(self, name: int) -> None:
        """Centre the view on a segment."""
        graph, table = self.project.graph, self.project.table()
        if graph is None or not (table == name).any():
            return
        box = box_of(graph, table, name)
        self.proofreader.scene.fly_to(middle_of(graph, table, name), box)


def _same(a: Any, b: Any) -> bool:
    return b is not None and a[0] is b[0] and a[1] == b[1] and a[2] is b[2]
