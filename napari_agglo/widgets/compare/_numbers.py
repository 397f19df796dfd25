"""A line for each panel: where it is cut, how many segments, how wrong."""

from __future__ import annotations

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QHeaderView, QTableWidget, QTableWidgetItem

from napari_agglo.widgets.compare._comparison import Comparison

COLUMNS = ("panel", "threshold", "segments", "VI")


class Numbers(QTableWidget):
    """The numbers of all panels, kept up to date."""

    def __init__(self) -> None:
        super().__init__(0, len(COLUMNS))
        self.setObjectName("panel numbers")
        self.setToolTip("Where each panel is cut, and its variation of information against gold")
        self.setHorizontalHeaderLabels(COLUMNS)
        self.verticalHeader().setVisible(False)
        self.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.setSelectionMode(QTableWidget.SelectionMode.NoSelection)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def show_panels(self, comparison: Comparison) -> None:
        """Show the numbers as they are now."""
        self.setRowCount(len(comparison.panels))
        for row, panel in enumerate(comparison.panels):
            vi = panel.vi()
            texts = (
                panel.name,
                "" if panel.cut is None else f"{panel.threshold:.4g}",
                f"{panel.n_segments:,}",
                "" if vi is None else f"{vi:.3f}",
            )
            for column, text in enumerate(texts):
                item = QTableWidgetItem(text)
                if column:
                    item.setTextAlignment(
                        Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
                    )
                self.setItem(row, column, item)
        height = self.horizontalHeader().height() + 4
        height += sum(self.rowHeight(row) for row in range(self.rowCount()))
        self.setFixedHeight(height)
