"""What all plots on the screen share: a key, words while they are empty, colours, files."""

from __future__ import annotations

from pathlib import Path

import pyqtgraph as pg
from qtpy.QtCore import QPointF, QSize, Qt
from qtpy.QtGui import QAction, QContextMenuEvent
from qtpy.QtWidgets import QFileDialog, QLabel, QMenu, QStackedLayout, QVBoxLayout, QWidget

from napari_agglo.plots import LIGHT, Colours
from napari_agglo.widgets.plots._canvas import Canvas
from napari_agglo.widgets.plots._export import export
from napari_agglo.widgets.plots._palette import palette
from napari_agglo.widgets.plots._readout import Readout


class Plot(QWidget):
    """A plot with a key above it, which never covers a curve, or words that say what is missing.

    Subclasses give `axes_names`, and draw in `redraw`, which is called when the colours change.
    """

    axes_names = ("", "")

    def __init__(
        self,
        name: str,
        tip: str,
        empty: str,
        *,
        axes: dict[str, pg.AxisItem] | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.colours: Colours = LIGHT
        self.setAccessibleName(name)
        self.setAccessibleDescription(tip)
        self.setToolTip(tip)
        self.canvas = Canvas(self, axes)
        self.canvas.setAccessibleName(f"{name}: plot")
        self.key = QLabel()
        self.key.setTextFormat(Qt.TextFormat.RichText)
        self.key.setWordWrap(True)
        self.key.setAccessibleName(f"{name}: key")
        self._what_to_do = empty
        self.words = QLabel(empty)
        self.words.setWordWrap(True)
        self.words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.words.setAccessibleName(f"{name}: nothing to see yet")
        self.readout = Readout(self.canvas)
        drawn = QWidget()
        column = QVBoxLayout(drawn)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.key)
        column.addWidget(self.canvas, 1)
        self._pages = QStackedLayout(self)
        self._pages.addWidget(self.words)
        self._pages.addWidget(drawn)
        self._paint()

    def sizeHint(self) -> QSize:
        return QSize(280, 230)

    def minimumSizeHint(self) -> QSize:
        return QSize(160, 120)

    @property
    def empty(self) -> bool:
        """Whether words are shown instead of a plot."""
        return self._pages.currentIndex() == 0

    def say_empty(self, words: str | None = None) -> None:
        """Show words instead of the plot; by default those that say what to do."""
        self.words.setText(self._what_to_do if words is None else words)
        self.readout.hide()
        self._pages.setCurrentIndex(0)

    def set_theme(self, background: str, foreground: str) -> None:
        """Follow the colours of a theme, given as hexadecimal colours of background and text."""
        self.colours = palette(background, foreground)
        self._paint()
        self.redraw()

    def export(self, path: str | Path) -> None:
        """Write what is shown to a file, as a picture (.png) or as lines and words (.svg)."""
        export(self, path)

    def redraw(self) -> None:
        """Draw everything again, in the colours of now; a plot without curves has only words."""
        return None

    def click(self, at: QPointF) -> bool:
        return False

    def grab_from(self, at: QPointF) -> bool:
        return False

    def drag(self, at: QPointF) -> None:
        return None

    def hover(self, at: QPointF | None) -> None:
        return None

    def show_all(self) -> None:
        return None

    def actions_offered(self) -> list[QAction]:
        """Return what the menu of the right button offers besides the picture."""
        return []

    def contextMenuEvent(self, event: QContextMenuEvent | None) -> None:
        if self.empty or event is None:
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addActions(self.actions_offered())
        menu.addAction("Show all (double click)").triggered.connect(self.show_all)
        menu.addAction("Save picture…").triggered.connect(self._ask_and_export)
        menu.popup(event.globalPos())

    def _ask_and_export(self) -> None:
        name = self.accessibleName().lower().replace(" ", "-")
        path, _ = QFileDialog.getSaveFileName(
            self, "Save picture", f"{name}.png", "Pictures (*.png *.svg)"
        )
        if path:
            self.export(path)

    def _drawn(self) -> None:
        """Show the plot instead of words."""
        self._pages.setCurrentIndex(1)

    def _say(self, text: str, at: QPointF) -> None:
        """Show words beside a place of the view box."""
        spot = self.canvas.mapFromScene(self.canvas.box.mapToScene(at))
        self.readout.say(text, spot)

    def _paint(self) -> None:
        colours = self.colours
        self.canvas.paint(colours, *self.axes_names)
        self.readout.paint(colours)
        plain = f"background: {colours.paper}; font-size: 11px;"
        self.key.setStyleSheet(f"QLabel {{ color: {colours.muted}; {plain} padding: 2px 4px; }}")
        self.words.setStyleSheet(f"QLabel {{ color: {colours.muted}; {plain} padding: 12px; }}")
        self.words.setAutoFillBackground(True)
