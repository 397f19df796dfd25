"""The VI breakdown on the screen: which segments are to blame."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from qtpy.QtCore import QSize, Signal
from qtpy.QtGui import QResizeEvent
from qtpy.QtWidgets import QBoxLayout, QWidget

from napari_agglo.errors import InvalidInput
from napari_agglo.widgets.plots._dots import DotsPlot, Measure
from napari_agglo.widgets.plots._export import export

if TYPE_CHECKING:
    from napari_agglo.evaluate import Breakdown

_WIDE = 520  # pixels from which both plots stand side by side


class BreakdownPlot(QWidget):
    """False merges of segments and false splits of gold objects, above or beside each other.

    `picked` gives ``"false merge"`` and the id of a segment, or ``"false split"`` and that of a
    gold object.
    """

    picked = Signal(str, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("VI breakdown")
        self.merges, self.splits = DotsPlot("false merge"), DotsPlot("false split")
        self._row = QBoxLayout(QBoxLayout.Direction.TopToBottom, self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(4)
        for half in (self.merges, self.splits):
            self._row.addWidget(half)
            half.picked.connect(self._pick)

    def sizeHint(self) -> QSize:
        return QSize(280, 410)

    def set_breakdown(self, found: Breakdown | None) -> None:
        """Draw a breakdown, or nothing."""
        self.merges.set_breakdown(found)
        self.splits.set_breakdown(found)

    def set_measure(self, measure: Measure) -> None:
        """Show bits for each voxel ("entropy") or of the whole VI ("contribution")."""
        self.merges.set_measure(measure)
        self.splits.set_measure(measure)

    def select(self, kind: str, one: int | None) -> None:
        """Ring the dot of an id, and none of the other kind."""
        if kind not in ("false merge", "false split"):
            raise InvalidInput(f"`kind` must be 'false merge' or 'false split', got {kind!r}.")
        self.merges.select(one if kind == "false merge" else None)
        self.splits.select(one if kind == "false split" else None)

    def say_empty(self, words: str) -> None:
        """Show words instead of both plots."""
        self.merges.say_empty(words)
        self.splits.say_empty(words)

    def set_theme(self, background: str, foreground: str) -> None:
        """Follow the colours of a theme."""
        self.merges.set_theme(background, foreground)
        self.splits.set_theme(background, foreground)

    def export(self, path: str | Path) -> None:
        """Write both plots to one file, .png or .svg."""
        export(self, path)

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        down = self.width() < _WIDE
        way = QBoxLayout.Direction.TopToBottom if down else QBoxLayout.Direction.LeftToRight
        self._row.setDirection(way)
        super().resizeEvent(event)

    def _pick(self, kind: str, one: object) -> None:
        self.select(kind, one)  # type: ignore[arg-type]
        self.picked.emit(kind, one)
