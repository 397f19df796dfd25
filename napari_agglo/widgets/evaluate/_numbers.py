"""Every measure at this threshold, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qtpy.QtCore import QSize, Qt
from qtpy.QtWidgets import QAbstractItemView, QHeaderView, QTableWidget, QTableWidgetItem

if TYPE_CHECKING:
    import pandas as pd

# Column of `metrics`: what to call it, and what it means.
MEASURES = {
    "vi": ("VI (bits)", "Variation of information: false merge and false split together"),
    "false_merge": ("False merge (bits)", "H(gold | segments): what segments merge wrongly"),
    "false_split": ("False split (bits)", "H(segments | gold): how gold objects are split"),
    "adapted_rand_error": ("Adapted Rand error", "1 - F of pairs of voxels; 0 is perfect"),
    "rand": ("Rand index", "Share of pairs of voxels on which both agree; 1 is perfect"),
    "adjusted_rand": ("Adjusted Rand index", "Rand index beyond chance; 1 is perfect"),
    "fowlkes_mallows": ("Fowlkes-Mallows", "Mean of precision and recall of pairs; 1 is perfect"),
    "covering": ("Covering", "How well segments cover gold objects; 1 is perfect"),
    "cremi_score": ("CREMI score", "As the CREMI challenge defines it; 0 is perfect"),
    "merges_needed": ("Merges needed", "Merges that a proofreader would still have to make"),
    "cuts_needed": ("Cuts needed", "Cuts that a proofreader would still have to make"),
    "segments": ("Segments", "In the whole image"),
    "gold_segments": ("Gold objects", "In the whole image"),
    "voxels": ("Voxels compared", "Those that are annotated in gold"),
}
_WHOLE = {"merges_needed", "cuts_needed", "segments", "gold_segments", "voxels"}


class Numbers(QTableWidget):
    """Two columns: the measure, and its value."""

    def __init__(self) -> None:
        super().__init__(len(MEASURES), 2)
        self.setObjectName("numbers")
        self.setAccessibleName("Measures at this threshold")
        self.setToolTip("Every measure at this threshold; hover over one to see what it means")
        self.setHorizontalHeaderLabels(["Measure", "Value"])
        self.verticalHeader().setVisible(False)
        self.verticalHeader().setDefaultSectionSize(22)
        header = self.horizontalHeader()
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        for row, (name, tooltip) in enumerate(MEASURES.values()):
            for column, text in enumerate((name, "–")):
                item = QTableWidgetItem(text)
                item.setToolTip(tooltip)
                if column:
                    right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
                    item.setTextAlignment(right)
                self.setItem(row, column, item)

    def sizeHint(self) -> QSize:
        return QSize(280, 26 + 22 * len(MEASURES))

    def show_numbers(self, numbers: pd.Series[float] | None) -> None:
        """Write values, or none."""
        for row, key in enumerate(MEASURES):
            value = None if numbers is None else float(numbers[key])
            self.item(row, 1).setText("–" if value is None else text_of(key, value))


def text_of(key: str, value: float) -> str:
    """Return a value as it is read.

    Examples
    --------
    >>> text_of("vi", 0.123456), text_of("voxels", 1234567.0)
    ('0.1235', '1,234,567')
    """
    return f"{value:,.0f}" if key in _WHOLE else f"{value:.4f}"
