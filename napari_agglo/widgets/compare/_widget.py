"""Widget of the Compare dock: the choice of panels, their threshold and differences."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from napari.layers import Labels
from qtpy.QtCore import QSize, Qt, QTimer
from qtpy.QtWidgets import QDockWidget, QFileDialog, QMainWindow, QTableWidget, QWidget

from napari_agglo.agglomeration import threshold_text
from napari_agglo.errors import InvalidInput
from napari_agglo.partition import METHODS
from napari_agglo.policy import MeanPolicy, policies
from napari_agglo.widgets._colours import theme_colours
from napari_agglo.widgets._folded_text import FoldedText
from napari_agglo.widgets._forms import Form
from napari_agglo.widgets._progress_row import RunRow
from napari_agglo.widgets._project import Project
from napari_agglo.widgets._qt import (
    ROW_HEIGHT,
    button,
    column,
    dock_width,
    link,
    parent_of,
    per_viewer,
    read_only_table,
    real_viewer,
    scroll_area,
    tell_error,
    when_gone,
    write_row,
)
from napari_agglo.widgets._scene import Scene
from napari_agglo.widgets._steps import close_with_window
from napari_agglo.widgets.compare._choices import STRATEGIES, Choice, Mode
from napari_agglo.widgets.compare._comparison import Comparison, Panel
from napari_agglo.widgets.compare._controller import COMPARE, CompareController
from napari_agglo.widgets.compare._differences import Differences
from napari_agglo.widgets.compare._playback import MovieExport, Playback
from napari_agglo.widgets.hierarchy._slider import MarkedSlider
from napari_agglo.widgets.plots import SplitVIPlot

COLUMNS = ("panel", "threshold", "segments", "VI", "CPU s")


def numbers_table() -> QTableWidget:
    """Return an empty table of panels: threshold, number of segments, error, time."""
    tooltip = (
        "Threshold of each panel, its variation of information against gold, and the CPU seconds "
        "of the choice of its segments: all merges of a policy, or another method, without "
        "superpixels, features and training"
    )
    table = read_only_table("panel numbers", COLUMNS, tooltip)
    table.setSelectionMode(QTableWidget.SelectionMode.NoSelection)
    table.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    table.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    return table


OWN = "* On its own training data (dotted): expect a larger error elsewhere."


def is_own(panel: Panel) -> bool:
    """Return whether the error of a panel is measured on the training data of its policy."""
    curve = None if panel.cut is None else panel.cut.curve
    return curve is not None and bool(curve.attrs.get("training"))


def show_panels(table: QTableWidget, comparison: Comparison) -> None:
    """Show the numbers of all panels; an asterisk marks errors on training data."""
    table.setRowCount(len(comparison.panels))
    for at, panel in enumerate(comparison.panels):
        vi = panel.vi()
        texts = (
            panel.name,
            "" if panel.cut is None else threshold_text(panel.threshold, panel.cut.first),
            f"{panel.n_segments:,}",
            "" if vi is None else f"{vi:.3f}{' *' * is_own(panel)}",
            "" if panel.seconds is None else f"{panel.seconds:.3f}",
        )
        write_row(table, at, texts)
    table.setFixedHeight(table.horizontalHeader().height() + 4 + ROW_HEIGHT * table.rowCount())


FILE = "a saved policy…"
PANELS = 4  # at most


class PanelForm(Form):
    """The choices of two to four segmentations of the project and the layers."""

    def __init__(self, viewer: Any, project: Project, scene: Scene) -> None:
        self._viewer, self._project, self._scene = viewer, project, scene
        self._files: dict[str, Path] = {}
        self._is_chosen = False  # by the user
        tooltip = "Segmentation of this panel; a strategy without a policy is trained first"
        table = {}
        for k in range(1, PANELS + 1):
            options = {"label": f"Panel {k}", "name": f"panel {k}", "automatic": "none"}
            extra = {"choices": self._names, "tooltip": tooltip}
            table[f"panel_{k}"] = Annotated[str | None, {**options, **extra}]
        super().__init__(table=table)
        self.changed.connect(self._on_changed)
        layers = viewer.layers.events
        link(self.follow, project.status_changed, layers.inserted, layers.removed)
        self.follow()

    def chosen(self) -> list[Choice]:
        """Return the choices of the panels in use."""
        choices = self._choices()
        return [choices[name] for name in self.values().values() if name in choices]

    def follow(self) -> None:
        """List the available segmentations; keep the choice."""
        names = {name for name, _ in self._names()}
        wanted = self.values() if self._is_chosen else self._defaults()
        self.show_values({at: name if name in names else None for at, name in wanted.items()})

    def _defaults(self) -> dict[str, str | None]:
        if self._project.session is not None:
            first = ["before edits", "with edits"]
        elif self._project.any_gold is not None:
            first = ["flat", "agglo"]
        elif self._project.policy.name == MeanPolicy.name:
            first = ["mean"]
        else:
            first = ["mean", "current policy"]
        return dict(zip(self.fields, [*first, *[None] * PANELS], strict=False))

    def _names(self) -> list[tuple[str, str]]:
        return [(name, name) for name in (*self._choices(), FILE)]

    def _choices(self) -> dict[str, Choice]:
        project = self._project
        choices = [Choice("mean", "mean")]
        choices += [Choice(name, "named", name) for name in policies if name != MeanPolicy.name]
        gold = project.any_gold
        if gold is not None:
            choices += [Choice(name, "strategy", name) for name in STRATEGIES]
        if project.policy.name != MeanPolicy.name:
            choices.append(Choice("current policy", "current", project.policy))
        for method in METHODS:
            if method != "threshold":
                choices.append(Choice(f"{method} of the policy", "current", project.policy, method))
                if gold is not None:
                    choices.append(Choice(f"{method} of flat", "strategy", "flat", method))
        if project.session is not None:
            choices.append(Choice("before edits", "unedited", project.session))
            choices.append(Choice("with edits", "edited", project.session))
        if project.session is not None and project.worker.settled:
            choices.append(Choice("session as it is", "table", project.table().copy()))
        if gold is not None:
            choices.append(Choice("gold", "gold", gold))
        choices += [Choice(name, "file", path) for name, path in self._files.items()]
        for layer in self._viewer.layers:
            mine = self._scene.owns(layer) or "napari_agglo" in layer.metadata
            if isinstance(layer, Labels) and not mine and not layer.multiscale:
                choices.append(Choice(f"layer {layer.name}", "labels", layer.data))
        return {one.name: one for one in choices}

    def _on_changed(self, name: str) -> None:
        self._is_chosen = True
        if self[name].value != FILE:
            return
        path, _ = QFileDialog.getOpenFileName(self, "Open a policy", "", "Policies (*.npz)")
        self.show_values({name: None})
        if path:
            self.add_policy(Path(path), name)

    def add_policy(self, path: Path, name: str) -> None:
        """List a saved policy in all panels, and choose it in one."""
        title = path.name if self._files.get(path.name, path) == path else str(path)
        self._files[title] = path
        self._is_chosen = True
        self.show_values({**self.values(), name: title})


_HINT = (
    "Choose two to four segmentations of an image to see them side by side, with one camera and "
    "one threshold. A strategy that has no policy yet is trained from the gold labels first."
)


class CompareWidget(QWidget):
    """Compare segmentations side by side."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__()
        self.setObjectName("agglo compare")
        viewer = real_viewer(napari_viewer)
        self.viewer = viewer
        self.project, self.scene = per_viewer(viewer, Project), per_viewer(viewer, Scene)
        self.controller = per_viewer(viewer, CompareController)
        self.hint = FoldedText("hint")
        self.hint.setText(_HINT)
        self.choices = PanelForm(viewer, self.project, self.scene)
        self.plan = FoldedText("training plan")
        self.run = RunRow(self.project, COMPARE, "Compare", "Show them side by side", self.compare)
        before = "Restore the viewer"
        self.leave = button("Leave", before, self.controller.leave, "leave")
        self.run.row.addWidget(self.leave)
        self.shown = QWidget()
        options = {"label": "Cut at", "name": "mode", "tooltip": "Common property of the panels"}
        self.mode = Form(table={"mode": Annotated[Mode, options]})
        self.mode.changed.connect(lambda _: self.controller.set(**self.mode.values()))
        self.slider = MarkedSlider()
        self.slider.setToolTip("Threshold of all panels: fine on the left, coarse on the right")
        self.slider.moved.connect(self._on_slider)
        self.playback = Playback()
        self.playback.stepped.connect(self._on_step)
        self.playback.restarted.connect(self.controller.restart)
        self.numbers = numbers_table()
        self.own = FoldedText("training data note")
        self.own.setText(OWN)
        self.plot = SplitVIPlot()
        self.plot.threshold_picked.connect(lambda _, t: self.controller.set(position=t))
        self.differences = Differences(self.controller, self.scene)
        self.movie = MovieExport(self.controller, self.playback)
        self._lay_out()
        link(self.follow, self.controller.changed, self.controller.left)
        self.choices.changed.connect(lambda _: self._say_plan())
        link(self._say_plan, self.project.status_changed)
        link(self._paint, viewer.events.theme)
        when_gone(self, self.controller.leave)
        self._drawn: object = None
        self._placed = False
        self._paint()
        self.follow()
        self._say_plan()

    def _say_plan(self) -> None:
        """Show the policies that a click on Compare trains, and the time of that."""
        text = self.controller.plan(self.choices.chosen())
        self.plan.setText(text)
        self.plan.setVisible(bool(text))

    def compare(self) -> None:
        """Prepare and show the chosen panels."""
        chosen = self.choices.chosen()
        if len(chosen) < 2:
            tell_error(InvalidInput("A comparison needs two segmentations", remedy="choose more"))
            return
        self.controller.start(chosen)

    def sizeHint(self) -> QSize:
        """Return the size of the guided dock."""
        return QSize(dock_width(self), 640)

    def showEvent(self, event: Any) -> None:
        """Close the project with its window; become a tab of the guided dock."""
        super().showEvent(event)
        close_with_window(self, self.project)
        if not self._placed:
            self._placed = True
            QTimer.singleShot(0, self._share_place)

    def _share_place(self) -> None:
        """Become a tab beside the guided dock, as there is no room below it."""
        mine, window = parent_of(self, QDockWidget), parent_of(self, QMainWindow)
        if mine is None or window is None:
            return
        for other in window.findChildren(QDockWidget):
            if other is not mine and other.findChild(QWidget, "agglo dock") is not None:
                window.tabifyDockWidget(other, mine)
                mine.raise_()
                return

    def follow(self) -> None:
        """Show the state of the comparison."""
        comparison, ticks = self.controller.comparison, self.controller.ticks
        self.shown.setVisible(comparison is not None)
        self.leave.setEnabled(comparison is not None)
        if comparison is None:
            self.playback.play.setChecked(False)
            self._drawn = None
            return
        free = comparison.mode in (Mode.THRESHOLD, Mode.SEGMENTS) and ticks is not None
        self.slider.setEnabled(free)
        self.playback.setEnabled(free)
        self.mode.show_values({"mode": comparison.mode})
        if ticks is not None:
            self.slider.set_range(ticks.end, ticks.step)
            self.slider.set_value(ticks.place(ticks.merges(comparison.position)))
        show_panels(self.numbers, comparison)
        self.own.setVisible(any(map(is_own, comparison.panels)))
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
        shown = (self.mode, self.slider, self.playback, self.numbers, self.own, self.plot)
        column(self.shown, *shown, self.differences, self.movie, spacing=6, top=6)
        content = QWidget()
        body = column(content, self.hint, self.choices, self.plan, self.run, self.shown, spacing=6)
        body.setContentsMargins(8, 6, 8, 8)
        body.setAlignment(Qt.AlignmentFlag.AlignTop)
        scroll_area(self, content)

    def _on_slider(self, place: int) -> None:
        ticks = self.controller.ticks
        if ticks is not None:
            self.controller.set(position=ticks.threshold(ticks.state(place)))

    def _on_step(self, direction: int) -> None:
        if not self.controller.step(direction, self.playback.by_threshold) and direction > 0:
            self.playback.end()

    def _paint(self) -> None:
        self.plot.set_theme(*theme_colours(self.viewer))
