"""The Compare dock: segmentations side by side, moved together, with where they differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from napari.layers import Labels
from qtpy.QtCore import QObject, QSize, Qt, QTimer
from qtpy.QtWidgets import (
    QComboBox,
    QDockWidget,
    QFileDialog,
    QGridLayout,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QMainWindow,
    QPushButton,
    QScrollArea,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from napari_agglo.errors import InvalidInput
from napari_agglo.policy import MeanPolicy
from napari_agglo.widgets._jobs import RunRow
from napari_agglo.widgets._project import Project
from napari_agglo.widgets._qt import (
    link,
    link_viewer,
    per_viewer,
    real_viewer,
    tell_error,
    theme_colours,
    when_gone,
)
from napari_agglo.widgets._scene import Scene
from napari_agglo.widgets._steps import close_with_window
from napari_agglo.widgets.compare._choices import STRATEGIES, Choice, Mode
from napari_agglo.widgets.compare._comparison import Comparison
from napari_agglo.widgets.compare._differences import Differing
from napari_agglo.widgets.compare._director import COMPARE, Director
from napari_agglo.widgets.compare._playback import Film, Player
from napari_agglo.widgets.hierarchy._slider import MarkedSlider
from napari_agglo.widgets.plots import SplitVIPlot

# A line for each panel: where it is cut, how many segments, how wrong.


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


# The boxes in which panels are chosen, with what can be compared now.


NONE, FILE = "none", "a saved policy…"
PANELS = 4


class Choosing(QWidget):
    """Two to four boxes; the list follows the project and the layers."""

    def __init__(self, viewer: Any, project: Project, scene: Scene) -> None:
        super().__init__()
        self._viewer, self._project, self._scene = viewer, project, scene
        self._files: dict[str, Path] = {}
        self.boxes = [QComboBox() for _ in range(PANELS)]
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setVerticalSpacing(2)
        for k, box in enumerate(self.boxes):
            box.setObjectName(f"panel {k + 1}")
            box.setSizeAdjustPolicy(
                QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
            )
            box.setToolTip("What this panel shows; strategies are trained for it from gold")
            box.activated.connect(lambda _, b=box: self._on_activated(b))
            grid.addWidget(QLabel(f"Panel {k + 1}"), k, 0)
            grid.addWidget(box, k, 1)
        grid.setColumnStretch(1, 1)
        link(self, project.status_changed, self.follow)
        for event in (viewer.layers.events.inserted, viewer.layers.events.removed):
            link_viewer(self, event, self.follow)
        self._touched = False
        self.follow()

    def chosen(self) -> list[Choice]:
        """Return what was chosen, panel by panel."""
        known = self._choices()
        return [known[name] for box in self.boxes if (name := box.currentText()) in known]

    def follow(self) -> None:
        """List what can be compared now; keep what was chosen."""
        names = [NONE, *self._choices(), FILE]
        wanted = [box.currentText() for box in self.boxes]
        if not self._touched:
            wanted = self._defaults()
        for box, text in zip(self.boxes, wanted, strict=True):
            box.blockSignals(True)
            box.clear()
            box.addItems(names)
            box.setCurrentText(text if text in names else NONE)
            box.blockSignals(False)

    def _defaults(self) -> list[str]:
        gold = self._gold() is not None
        first = ["flat", "agglo"] if gold else ["mean", "current policy"]
        if not gold and self._project.policy.name == MeanPolicy.name:
            first = ["mean", NONE]
        return [*first, NONE, NONE]

    def _gold(self) -> Any:
        project = self._project
        if project.gold is not None:
            return project.gold
        return None if project.regions is None else project.regions.dataset.gold

    def _choices(self) -> dict[str, Choice]:
        project = self._project
        found = [Choice("mean", "mean")]
        gold = self._gold()
        if gold is not None:
            found += [Choice(name, "strategy", name) for name in STRATEGIES]
        if project.policy.name != MeanPolicy.name:
            found.append(Choice("current policy", "current", project.policy))
        if project.session is not None:
            found.append(Choice("before edits", "unedited", project.session))
            found.append(Choice("with edits", "edited", project.session))
        if project.session is not None and project.settled:
            found.append(Choice("session as it is", "table", project.table().copy()))
        if gold is not None:
            found.append(Choice("gold", "gold", gold))
        found += [Choice(name, "file", path) for name, path in self._files.items()]
        for layer in self._viewer.layers:
            mine = self._scene.owns(layer) or "napari_agglo" in layer.metadata
            if isinstance(layer, Labels) and not mine and not layer.multiscale:
                found.append(Choice(f"layer {layer.name}", "labels", layer.data))
        return {one.name: one for one in found}

    def _on_activated(self, box: QComboBox) -> None:
        self._touched = True
        if box.currentText() != FILE:
            return
        path, _ = QFileDialog.getOpenFileName(self, "A saved policy", "", "Policies (*.npz)")
        box.setCurrentText(NONE)
        if path:
            self.add_policy(Path(path), box)

    def add_policy(self, path: Path, box: QComboBox) -> None:
        """Offer a saved policy in all boxes, and choose it in one."""
        self._files[path.name] = path
        self._touched = True
        self.follow()
        box.setCurrentText(path.name)


_HINT = (
    "Choose two to four segmentations of the same image. They appear side by side, under one "
    "camera, and are cut together. Policies that are not there yet are trained from gold first."
)


class CompareWidget(QWidget):
    """Side by side: flat, agglo, gold, or whatever there is."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__()
        self.setObjectName("agglo compare")
        viewer = real_viewer(napari_viewer)
        self.viewer = viewer
        self.project, self.scene = per_viewer(viewer, Project), per_viewer(viewer, Scene)
        self.director = per_viewer(viewer, Director)
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
