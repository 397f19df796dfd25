"""The segment table: a model over arrays, so that a hundred thousand rows are nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QAbstractTableModel, QModelIndex, Qt

from napari_agglo.widgets.proofread._columns import Columns

ID, SIZE, NAME, REVIEWED, ERROR = range(5)
_TITLES = ("id", "pixels", "name", "reviewed", "VI")
_MEANS = (
    "The id of the segment",
    "How many pixels it has",
    "Its name: double-click to change it",
    "Whether it has been reviewed: click the box",
    "What it adds to the false merges, in bits: large is bad",
)
_ROLE = Qt.ItemDataRole
Marks = dict[int, tuple[str, bool]]  # by the user's id: name, reviewed


class SegmentModel(QAbstractTableModel):
    """Segments by row, sorted and filtered.

    Parameters
    ----------
    rename, review : callable
        Called with a dense name and the text, or the state, that the person has entered.
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
        """Show only what has this text in its id or its name."""
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
        found = np.flatnonzero(self._order == at)
        return int(found[0]) if found.size else -1

    def rowCount(self, parent: QModelIndex | None = None) -> int:
        """Return how many segments are shown."""
        return 0 if parent is not None and parent.isValid() else len(self._order)

    def columnCount(self, parent: QModelIndex | None = None) -> int:
        """Return how many columns there are: the last only with gold."""
        return 4 if self._columns.errors is None else 5

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = _ROLE.DisplayRole
    ) -> Any:
        """Return the title of a column."""
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == _ROLE.DisplayRole:
            return _TITLES[section]
        return _MEANS[section] if role == _ROLE.ToolTipRole else None

    def data(self, index: QModelIndex, role: int = _ROLE.DisplayRole) -> Any:
        """Return what a cell says."""
        at, column = int(self._order[index.row()]), index.column()
        columns = self._columns
        if role == _ROLE.CheckStateRole and column == REVIEWED:
            reviewed = self._mark(at)[1]
            return Qt.CheckState.Checked if reviewed else Qt.CheckState.Unchecked
        if role == _ROLE.TextAlignmentRole and column in (ID, SIZE, ERROR):
            return int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        if role == _ROLE.ToolTipRole:
            return _MEANS[column]
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
        """Take what the person has entered: the edit follows, and the table with it."""
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
        """Return what can be done with a cell."""
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
            found = np.isin(columns.ids, np.array(sorted(named), np.uint64))
            if self._filter.isdigit():
                found |= np.char.find(columns.ids.astype(str), self._filter) >= 0
            kept = kept[found]
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
