"""Plots of the screen as files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyqtgraph as pg
from qtpy.QtCore import QPoint, QRect
from qtpy.QtGui import QImage, QPainter
from qtpy.QtSvg import QSvgGenerator
from qtpy.QtWidgets import QWidget

from napari_agglo.errors import InvalidInput
from napari_agglo.widgets.plots._readout import Readout

_FINE = 3  # pixels of a picture for one on the screen


def export(widget: QWidget, path: str | Path) -> None:
    """Paint a widget to a file: to .svg as lines and words, to .png in fine pixels.

    The exporters of pyqtgraph know one scene only, neither its key nor the plot beside it.
    """
    path = Path(path)
    if path.suffix.lower() not in (".png", ".svg"):
        raise InvalidInput(
            f"`path` must end in .png or .svg, got {path.name!r}; choose one of both."
        )
    if not path.absolute().parent.is_dir():
        raise InvalidInput(f"`path` must be in a folder that exists, got {str(path)!r}.")
    for readout in widget.findChildren(Readout):
        readout.hide()
    done = _write_svg(widget, path) if path.suffix.lower() == ".svg" else _write_png(widget, path)
    if not done:
        raise InvalidInput(f"`path` must be where files can be written, got {str(path)!r}.")


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
    """Have marks drawn as shapes of this scale, not copied from pixels made for the screen."""
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
