"""The list of cues: which are used, what they are called, and their range."""

from __future__ import annotations

from qtpy.QtCore import QSize, Qt
from qtpy.QtWidgets import QAbstractItemView, QHeaderView, QTableWidget, QTableWidgetItem

from napari_agglo.widgets.data._cue_row import AUTOMATIC, CueRow
from napari_agglo.widgets.data._selection import Selection

USED, LAYER, RANGE = range(3)
_TITLES = ("Cue", "Layer", "Range")
_TIPS = (
    "Tick the cues to use. “boundary” is high on boundaries: superpixels and the mean policy go "
    "by it. Double-click to rename; a trained policy looks for its cues by these names.",
    "The layer that the cue comes from.",
    "The values that mean “no boundary” and “boundary”, such as 0:255; 255:0 if dark is boundary. "
    "Automatic: 0:255 for bytes, 0:1 for floats, the range of the values for other whole numbers.",
)
_MOST_ROWS = 5  # that are seen without scrolling


class CueTable(QTableWidget):
    """Shows the rows of a selection, and lets them be changed."""

    def __init__(self, selection: Selection) -> None:
        super().__init__(0, len(_TITLES))
        self.setObjectName("cues")
        self.setAccessibleName("cues")
        self._selection = selection
        self._rows: list[CueRow] = []
        self.setHorizontalHeaderLabels(list(_TITLES))
        for column, tip in enumerate(_TIPS):
            header_item = self.horizontalHeaderItem(column)
            if header_item is not None:
                header_item.setToolTip(tip)
        header, side = self.horizontalHeader(), self.verticalHeader()
        assert header is not None
        assert side is not None
        header.setSectionResizeMode(USED, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(LAYER, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(RANGE, QHeaderView.ResizeMode.Interactive)
        header.resizeSection(RANGE, 66)
        header.setHighlightSections(False)
        side.setVisible(False)
        side.setDefaultSectionSize(24)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setShowGrid(False)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.itemChanged.connect(self._on_changed)

    def sizeHint(self) -> QSize:
        """Be as high as the rows, up to a few."""
        header = self.horizontalHeader()
        top = 26 if header is None else header.sizeHint().height()
        rows = min(max(1, self.rowCount()), _MOST_ROWS)
        return QSize(300, top + 24 * rows + 4)

    def follow(self) -> None:
        """Show what the selection holds."""
        if self.state() == QAbstractItemView.State.EditingState:
            return  # somebody is typing; it comes when that is done
        self._rows = list(self._selection.rows)
        self.blockSignals(True)
        try:
            self.setRowCount(len(self._rows))
            for number, row in enumerate(self._rows):
                self._show(number, row)
        finally:
            self.blockSignals(False)
        self.setFixedHeight(self.sizeHint().height())

    def _show(self, number: int, row: CueRow) -> None:
        flags = Qt.ItemFlag.ItemIsEnabled
        texts = (row.name, row.source, row.range_text.strip() or AUTOMATIC)
        for column, text in enumerate(texts):
            item = self.item(number, column)
            if item is None:
                item = QTableWidgetItem()
                self.setItem(number, column, item)
            item.setText(text)
            item.setToolTip(_TIPS[column] if column != LAYER else row.source)
            item.setFlags(flags if column == LAYER else flags | Qt.ItemFlag.ItemIsEditable)
        used = self.item(number, USED)
        if used is not None:
            used.setFlags(used.flags() | Qt.ItemFlag.ItemIsUserCheckable)
            used.setCheckState(Qt.CheckState.Checked if row.used else Qt.CheckState.Unchecked)

    def _on_changed(self, item: QTableWidgetItem) -> None:
        row = self._rows[item.row()]
        if item.column() == RANGE:
            self._selection.set_cue(row, range_text=item.text())
        else:
            ticked = item.checkState() == Qt.CheckState.Checked
            self._selection.set_cue(row, used=ticked, name=item.text().strip())
