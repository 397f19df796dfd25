"""The Compare dock: segmentations side by side, moved together, with where they differ."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import QObject, QSize, Qt, QTimer
from qtpy.QtWidgets import (
    QComboBox,
    QDockWidget,
    QHBoxLayout,
    QLabel,
    QMainWindow,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from napari_agglo.errors import InvalidInput
from napari_agglo.widgets._links import link, when_gone
from napari_agglo.widgets._notices import tell_error
from napari_agglo.widgets._project import project_of
from napari_agglo.widgets._run_row import RunRow
from napari_agglo.widgets._scene import scene_of
from napari_agglo.widgets._step_widget import close_with_window
from napari_agglo.widgets._theme import theme_colours
from napari_agglo.widgets._viewer_links import link_viewer
from napari_agglo.widgets.compare._choosing import Choosing
from napari_agglo.widgets.compare._differing import Differing
from napari_agglo.widgets.compare._director import COMPARE, director_of
from napari_agglo.widgets.compare._film import Film
from napari_agglo.widgets.compare._numbers import Numbers
from napari_agglo.widgets.compare._player import Player
from napari_agglo.widgets.compare._thresholds import Mode
from napari_agglo.widgets.hierarchy._slider import MarkedSlider
from napari_agglo.widgets.plots import SplitVIPlot

_HINT = (
    "Choose two to four segmentations of the same image. They appear side by side, under one "
    "camera, and are cut together. Policies that are not there yet are trained from gold first."
)


class CompareWidget(QWidget):
    """Side by side: flat, agglo, gold, or whatever there is."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__()
        self.setObjectName("agglo compare")
        viewer = getattr(napari_viewer, "__wrapped__", napari_viewer)
        self.viewer = viewer
        self.project, self.scene = project_of(viewer), scene_of(viewer)
        self.director = director_of(viewer)
        self.hint = QLabel(_HINT)
        self.hint.setWordWrap(True)
        self.choosing = Choosing(viewer, self.project, self.scene)
        self.run = RunRow(self.project, COMPARE, "Compare", "Show them side by side", self.compare)
        self.leave = QPushButton("Leave")
        self.leave.setObjectName("leave")
        self.leave.setToolTip("Restore the viewer as it was before")
        self.leave.clicked.connect(self.director.leave)
        self.run.row.addWidget(self.leave)
        self.shown = QWidget()
        self.mode = QComboBox()
        self.mode.setObjectName("mode")
        self.mode.setToolTip("What the panels have in common")
        for mode in Mode:
            self.mode.addItem(mode.value, mode)
        self.mode.activated.connect(lambda _: self.director.set(mode=self.mode.currentData()))
        self.slider = MarkedSlider()
        self.slider.setToolTip("Move all panels; equal steps are equal numbers of merges")
        self.slider.moved.connect(self._on_slider)
        self.player = Player()
        self.player.stepped.connect(self._on_step)
        self.player.restarted.connect(self.director.restart)
        self.numbers = Numbers()
        self.plot = SplitVIPlot()
        self.plot.threshold_picked.connect(lambda _, t: self.director.set(position=t))
        self.differing = Differing(self.director, self.scene)
        self.film = Film(self.director)
        self.film.by_threshold = lambda: self.player.by_threshold
        self._lay_out()
        link(self, self.director.changed, self.follow)
        link(self, self.director.left, self.follow)
        link_viewer(self, viewer.events.theme, self._paint)
        when_gone(self, self.director.leave)
        self._drawn: object = None
        self._placed = False
        self._paint()
        self.follow()

    def compare(self) -> None:
        """Prepare and show what is chosen."""
        chosen = self.choosing.chosen()
        if len(chosen) < 2:
            tell_error(InvalidInput("Choose at least two segmentations to compare."))
            return
        self.director.start(chosen)

    def sizeHint(self) -> QSize:
        """Be as wide as the guided dock."""
        return QSize(360, 640)

    def showEvent(self, event: Any) -> None:
        """Close the project with its window; share the place of the guided dock."""
        super().showEvent(event)
        close_with_window(self, self.project)
        if not self._placed:
            self._placed = True
            QTimer.singleShot(0, self._share_place)

    def _share_place(self) -> None:
        """Become a tab beside the guided dock: below it there is no room."""
        mine, window = _above(self, QDockWidget), _above(self, QMainWindow)
        if mine is None or window is None:
            return
        for other in window.findChildren(QDockWidget):
            if other is not mine and other.findChild(QWidget, "agglo dock") is not None:
                window.tabifyDockWidget(other, mine)
                mine.raise_()
                return

    def follow(self) -> None:
        """Show where the comparison is now."""
        comparison, ticks = self.director.comparison, self.director.ticks
        self.shown.setVisible(comparison is not None)
        self.leave.setEnabled(comparison is not None)
        if comparison is None:
            self.player.play.setChecked(False)
            self._drawn = None
            return
        free = comparison.mode in (Mode.THRESHOLD, Mode.SEGMENTS) and ticks is not None
        self.slider.setEnabled(free)
        self.player.setEnabled(free)
        self.mode.setCurrentIndex(self.mode.findData(comparison.mode))
        if ticks is not None:
            self.slider.set_range(ticks.last, ticks.step)
            self.slider.set_value(ticks.merges(comparison.position))
        self.numbers.show_panels(comparison)
        curves = {
            panel.name: (panel.cut.curve, panel.threshold)
            for panel in comparison.panels
            if panel.cut is not None and panel.cut.curve is not None
        }
        if self._drawn is not comparison:
            self._drawn = comparison
            self.plot.clear()
            for name, (curve, _) in curves.items():
                self.plot.set_curve(name, curve)
        for name, (_, threshold) in curves.items():
            self.plot.set_point(name, threshold)
        self.plot.setVisible(bool(curves))

    def _lay_out(self) -> None:
        inner = QVBoxLayout(self.shown)
        inner.setContentsMargins(0, 6, 0, 0)
        row = QHBoxLayout()
        row.addWidget(QLabel("Cut at"))
        row.addWidget(self.mode, 1)
        inner.addLayout(row)
        for shown in (self.slider, self.player, self.numbers, self.plot, self.differing, self.film):
            inner.addWidget(shown)
        column = QWidget()
        body = QVBoxLayout(column)
        body.setContentsMargins(8, 6, 8, 8)
        body.setAlignment(Qt.AlignmentFlag.AlignTop)
        for part in (self.hint, self.choosing, self.run, self.shown):
            body.addWidget(part)
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setWidget(column)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(area)

    def _on_slider(self, merges: int) -> None:
        if self.director.ticks is not None:
            self.director.set(position=self.director.ticks.threshold(merges))

    def _on_step(self, direction: int) -> None:
        if not self.director.step(direction, self.player.by_threshold) and direction > 0:
            self.player.end()

    def _paint(self) -> None:
        self.plot.set_theme(*theme_colours(self.viewer))


def _above(widget: QObject | None, kind: type) -> Any:
    """Return the nearest parent of a kind."""
    while widget is not None and not isinstance(widget, kind):
        widget = widget.parent()
    return widget
