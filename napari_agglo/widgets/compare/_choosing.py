"""The boxes in which panels are chosen, with what can be compared now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from napari.layers import Labels
from qtpy.QtWidgets import QComboBox, QFileDialog, QGridLayout, QLabel, QWidget

from napari_agglo.policy import MeanPolicy
from napari_agglo.widgets._links import link
from napari_agglo.widgets._project import Project
from napari_agglo.widgets._scene import Scene
from napari_agglo.widgets._viewer_links import link_viewer
from napari_agglo.widgets.compare._choices import STRATEGIES, Choice

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
        if not gold and isinstance(self._project.policy, MeanPolicy):
            first = ["mean", NONE]
        return [*first, NONE, NONE]

    def _gold(self) -> Any:
        project = self._project
        if project.gold is not None:
            return project.gold
        return None if project.graph_of is None else project.graph_of.gold

    def _choices(self) -> dict[str, Choice]:
        project = self._project
        found = [Choice("mean", "mean")]
        gold = self._gold()
        if gold is not None:
            found += [Choice(name, "strategy", name) for name in STRATEGIES]
        if not isinstance(project.policy, MeanPolicy):
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
