"""Base of all interactive plots: a key, a text while empty, colours, files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from qtpy.QtCore import QPoint, QPointF, QRect, QSize, Qt
from qtpy.QtGui import QAction, QContextMenuEvent, QImage, QPainter, QShowEvent, QWheelEvent
from qtpy.QtSvg import QSvgGenerator
from qtpy.QtWidgets import QFileDialog, QLabel, QMenu, QStackedLayout, QWidget

from napari_agglo.errors import InvalidInput
from napari_agglo.plots import LIGHT, Colours
from napari_agglo.widgets._qt import column, guarded
from napari_agglo.widgets.plots._plot_style import palette

_APART = 12  # pixels between the mouse and the text


class Readout(QLabel):
    """A text beside the mouse, within the plot.

    A tooltip of Qt comes late, disappears by itself, and has the colours of another theme.
    """

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.hide()

    def paint(self, colours: Colours) -> None:
        self.setStyleSheet(
            f"QLabel {{ color: {colours.ink}; background: {colours.paper}; font-size: 11px; "
            f"border: 1px solid {colours.muted}; border-radius: 3px; padding: 3px; }}"
        )

    def show_text(self, text: str, at: QPoint) -> None:
        """Show a text beside a point of the parent."""
        room = self.parentWidget().rect()
        self.setWordWrap(False)
        self.setText(text)
        self.adjustSize()
        if self.width() > room.width() - 4:
            self.setWordWrap(True)
            self.resize(room.width() - 4, self.heightForWidth(room.width() - 4))
        left = at.x() + _APART
        if left + self.width() > room.right():
            left = max(at.x() - _APART - self.width(), room.right() - self.width())
        top = at.y() + _APART
        if top + self.height() > room.bottom():
            top = at.y() - _APART - self.height()
        self.move(max(left, 0), max(top, 0))
        self.raise_()
        self.show()


_FINE = 3  # resolution of a picture, relative to the screen


def export(widget: QWidget, path: str | Path) -> None:
    """Paint a widget to a file: .svg with lines and text, .png at a high resolution.

    The exporters of pyqtgraph write a single scene, without its key and the plot beside it.
    """
    path = Path(path)
    if path.suffix.lower() not in (".png", ".svg"):
        raise InvalidInput(
            f"`path` must end in .png or .svg, got {path.name!r}",
            argument="path",
            remedy="choose one of them",
        )
    if not path.absolute().parent.is_dir():
        raise InvalidInput(
            f"`path` must be in a folder that exists, got {str(path)!r}",
            argument="path",
            remedy="create it first",
        )
    for plot in (widget, *widget.findChildren(Plot)):
        if isinstance(plot, Plot):
            plot.complete()
    for readout in widget.findChildren(Readout):
        readout.hide()
    done = _write_svg(widget, path) if path.suffix.lower() == ".svg" else _write_png(widget, path)
    if not done:
        raise InvalidInput(
            f"`path` must be writable, got {str(path)!r}",
            argument="path",
            remedy="choose another folder",
        )


def _write_svg(widget: QWidget, path: Path) -> bool:
    device = QSvgGenerator()
    device.setFileName(str(path))
    device.setSize(widget.size())
    device.setViewBox(QRect(QPoint(0, 0), widget.size()))
    device.setTitle(widget.accessibleName())
    painter = QPainter()
    if not painter.begin(device):
        return False
    with _sharp(widget, 1):
        widget.render(painter, QPoint(0, 0))
    painter.end()
    return True


def _write_png(widget: QWidget, path: Path) -> bool:
    image = QImage(_FINE * widget.size(), QImage.Format.Format_RGB32)
    painter = QPainter(image)
    painter.scale(_FINE, _FINE)
    with _sharp(widget, _FINE):
        widget.render(painter, QPoint(0, 0))
    painter.end()
    return bool(image.save(str(path)))


@contextmanager
def _sharp(widget: QWidget, scale: int) -> Iterator[None]:
    """Draw marks as shapes of this scale, not as copies of pixels of the screen."""
    items = [
        item
        for view in widget.findChildren(pg.GraphicsView)
        for item in view.scene().items()
        if hasattr(item, "setExportMode")
    ]
    for item in items:
        item.setExportMode(True, {"antialias": True, "resolutionScale": scale})
    try:
        yield
    finally:
        for item in items:
            item.setExportMode(False)


_LEFT = Qt.MouseButton.LeftButton


class PickBox(pg.ViewBox):
    """A view box that passes clicks and drags to its plot before it moves the view."""

    def __init__(self, plot: Plot) -> None:
        super().__init__(enableMenu=False)
        self._plot = plot
        self._grabbed = False

    def mouseClickEvent(self, ev: Any) -> None:
        if ev.button() != _LEFT:
            return
        if ev.double():
            self._plot.show_all()
            ev.accept()
        elif self._plot.click(ev.pos()):
            ev.accept()

    def mouseDragEvent(self, ev: Any, axis: int | None = None) -> None:
        if ev.button() == _LEFT and axis is None:
            if ev.isStart():
                self._grabbed = self._plot.grab_from(ev.buttonDownPos())
            if self._grabbed:
                ev.accept()
                self._plot.drag(ev.pos())
                self._grabbed = not ev.isFinish()
                return
        super().mouseDragEvent(ev, axis)

    def hoverEvent(self, ev: Any) -> None:
        self._plot.hover(None if ev.isExit() else ev.pos())

    def pixels(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the positions of points of the plot, in pixels of the box; shape (n, 2)."""
        (x0, x1), (y0, y1) = self.viewRange()
        size = self.rect()
        return np.column_stack(
            [
                (np.asarray(x, float) - x0) / (x1 - x0) * size.width(),
                (y1 - np.asarray(y, float)) / (y1 - y0) * size.height(),
            ]
        )

    def place(self, at: QPointF) -> tuple[float, float]:
        """Return the point of the plot at a pixel of the box."""
        point = self.mapToView(at)
        return float(point.x()), float(point.y())


class Canvas(pg.PlotWidget):
    """Axes for a narrow dock; the wheel scrolls the dock, and zooms with Ctrl."""

    def __init__(self, plot: Plot, axes: dict[str, pg.AxisItem] | None = None) -> None:
        self.box = PickBox(plot)
        super().__init__(viewBox=self.box, axisItems=axes or {})
        self.setMenuEnabled(False)
        self.hideButtons()
        self.box.disableAutoRange()
        for side in ("left", "bottom"):
            axis = self.getAxis(side)
            axis.setStyle(
                tickLength=-4, tickTextOffset=3, maxTickLevel=0, hideOverlappingLabels=False
            )
            axis.enableAutoSIPrefix(False)
        self.plotItem.layout.setContentsMargins(2, 8, 14, 5)  # room for labels at the ends of axes
        self.getAxis("left").setWidth(42)
        self.getAxis("bottom").setHeight(32)

    def sizeHint(self) -> QSize:
        return QSize(280, 200)

    def minimumSizeHint(self) -> QSize:
        return QSize(160, 110)

    def wheelEvent(self, ev: QWheelEvent | None) -> None:
        if ev is not None and ev.modifiers() & Qt.KeyboardModifier.ControlModifier:
            super().wheelEvent(ev)
        elif ev is not None:
            ev.ignore()

    def paint(self, colours: Colours, x: str, y: str) -> None:
        """Colour background and axes, and name the axes."""
        self.setBackground(colours.paper)
        font = self.font()
        font.setPixelSize(10)
        for side, title in (("left", y), ("bottom", x)):
            axis = self.getAxis(side)
            axis.setPen(pg.mkPen(colours.muted))
            axis.setTextPen(pg.mkPen(colours.ink))
            axis.setTickFont(font)
            axis.setLabel(title, **{"color": colours.ink, "font-size": "11px"})


def _tab_after(place: QWidget, late: QWidget) -> None:
    """Let Tab go to a widget where it stands, not at the end as to all that are made late."""
    before = place.previousInFocusChain()
    while before is not None and before is not place:
        if before.focusPolicy() != Qt.FocusPolicy.NoFocus:
            QWidget.setTabOrder(before, late)
            return
        before = before.previousInFocusChain()


class Plot(QWidget):
    """A plot with a key above it, or a text with the next thing to do.

    Subclasses define `axes_names`, add their items in `furnish`, and draw in `redraw`, called when
    the colours change. Positions of the mouse are pixels of the view box.

    Axes are made when a plot with data is shown for the first time: those of all steps would take
    longer than the rest of the dock.
    """

    axes_names = ("", "")
    picks = False  # a click picks the item of the text

    def __init__(
        self,
        name: str,
        tip: str,
        empty: str,
        *,
        axes: dict[str, pg.AxisItem] | None = None,
    ) -> None:
        super().__init__()
        self.colours: Colours = LIGHT
        self.setAccessibleName(name)
        self.setAccessibleDescription(tip)
        self.setToolTip(tip)
        self._axes = axes
        self._canvas: Canvas | None = None
        self.key = QLabel()
        self.key.setTextFormat(Qt.TextFormat.RichText)
        self.key.setWordWrap(True)
        self.key.setAccessibleName(f"{name}: key")
        self._next_step = empty
        self.hint = QLabel(empty)
        self.hint.setWordWrap(True)
        self.hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.hint.setAccessibleName(f"{name}: empty")
        drawn = QWidget()
        self._column = column(drawn, self.key, spacing=0)
        self._pages = QStackedLayout(self)
        self._pages.addWidget(self.hint)
        self._pages.addWidget(drawn)
        self._paint()

    def sizeHint(self) -> QSize:
        return QSize(280, 230)

    def minimumSizeHint(self) -> QSize:
        return QSize(160, 120)

    @property
    def canvas(self) -> Canvas:
        """The axes, with all items."""
        if self._canvas is None:
            self._canvas = Canvas(self, self._axes)
            self._canvas.setAccessibleName(f"{self.accessibleName()}: plot")
            self._column.addWidget(self._canvas, 1)
            _tab_after(self, self._canvas)
            self.furnish(self._canvas)
            self._paint()
            self.complete()
        return self._canvas

    @cached_property
    def readout(self) -> Readout:
        """The text beside the mouse."""
        readout = Readout(self.canvas)
        readout.paint(self.colours)
        return readout

    @property
    def furnished(self) -> bool:
        """Whether the axes are made: until then, nothing can be placed on them."""
        return self._canvas is not None

    @property
    def empty(self) -> bool:
        """Whether a text is shown instead of a plot."""
        return self._pages.currentIndex() == 0

    def show_empty(self, text: str | None = None) -> None:
        """Show a text instead of the plot; by default the next thing to do."""
        self.hint.setText(self._next_step if text is None else text)
        if self.furnished:
            self.readout.hide()
        self._pages.setCurrentIndex(0)

    def set_theme(self, background: str, foreground: str) -> None:
        """Use the colours of a theme: background and text, hexadecimal."""
        self.colours = palette(background, foreground)
        self._paint()
        if self.furnished:
            self.redraw()

    def export(self, path: str | Path) -> None:
        """Write the plot to a file, as pixels (.png) or as lines and text (.svg)."""
        export(self, path)

    def draw(self) -> None:
        """Show the whole plot instead of a text; one that is hidden is drawn when it is shown."""
        self._pages.setCurrentIndex(1)
        if self.furnished or self.isVisible():
            self.complete()

    def complete(self) -> None:
        """Draw the whole plot, if it has data."""
        if self.empty:
            return
        if not self.furnished:
            self.canvas  # noqa: B018 -- it draws itself
            return
        self.show_all()
        self.redraw()

    def furnish(self, canvas: Canvas) -> None:
        """Add all items to new axes."""

    def showEvent(self, event: QShowEvent | None) -> None:
        """Draw a plot that is shown for the first time."""
        if event is not None:
            super().showEvent(event)
        if not self.furnished:
            self.complete()

    def redraw(self) -> None:
        """Draw all items in the current colours."""

    def show_all(self) -> None:
        """Reset the view to the whole plot."""

    def click(self, at: QPointF) -> bool:
        """Handle a click; return whether it hit an item."""
        return False

    def grab_from(self, at: QPointF) -> bool:
        """Return whether the plot handles a drag from here; if not, it moves the view."""
        return False

    def drag(self, at: QPointF) -> None:
        """Handle a move of the drag."""

    def text_at(self, at: QPointF) -> str:
        """Return the text beside the mouse; empty away from items."""
        return ""

    def hover(self, at: QPointF | None) -> None:
        """Show the text beside the mouse; None: the mouse has left."""
        text = "" if at is None else self.text_at(at)
        if at is None or not text:
            self.readout.hide()
        else:
            self._show_text(text, at)
        if self.picks and text:
            self.canvas.setCursor(Qt.CursorShape.PointingHandCursor)
        elif self.picks:
            self.canvas.unsetCursor()

    def menu_actions(self) -> list[QAction]:
        """Return further actions of the context menu."""
        return []

    def contextMenuEvent(self, event: QContextMenuEvent | None) -> None:
        if self.empty or event is None:
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addActions(self.menu_actions())
        menu.addAction("Show all (double click)").triggered.connect(self.show_all)
        menu.addAction("Save picture…").triggered.connect(self._ask_and_export)
        menu.popup(event.globalPos())

    def _ask_and_export(self) -> None:
        name = self.accessibleName().lower().replace(" ", "-")
        path, _ = QFileDialog.getSaveFileName(
            self, "Save picture", f"{name}.png", "Pictures (*.png *.svg)"
        )
        if path:
            guarded(lambda: self.export(path))

    def _show_text(self, text: str, at: QPointF) -> None:
        """Show a text beside a position of the view box."""
        spot = self.canvas.mapFromScene(self.canvas.box.mapToScene(at))
        self.readout.show_text(text, spot)

    def _paint(self) -> None:
        colours = self.colours
        if self.furnished:
            self.canvas.paint(colours, *self.axes_names)
            self.readout.paint(colours)
        plain = f"background: {colours.paper}; font-size: 11px;"
        self.key.setStyleSheet(f"QLabel {{ color: {colours.muted}; {plain} padding: 2px 4px; }}")
        self.hint.setStyleSheet(f"QLabel {{ color: {colours.muted}; {plain} padding: 12px; }}")
        self.hint.setAutoFillBackground(True)
