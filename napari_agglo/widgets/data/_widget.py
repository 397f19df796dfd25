"""The Data step as a widget: what is there, what it is used for, and the regions made of it."""

from __future__ import annotations

from typing import Any

from qtpy.QtWidgets import QFormLayout, QLabel

from napari_agglo.widgets._links import link
from napari_agglo.widgets._notices import tell_error
from napari_agglo.widgets._run_row import RunRow
from napari_agglo.widgets._step_widget import StepWidget
from napari_agglo.widgets._steps import Status, Step
from napari_agglo.widgets.data._cue_table import CueTable
from napari_agglo.widgets.data._layer_box import LayerBox
from napari_agglo.widgets.data._make_cue import MakeCue
from napari_agglo.widgets.data._more import More
from napari_agglo.widgets.data._preview import remove_preview
from napari_agglo.widgets.data._selection import selection_of
from napari_agglo.widgets.data._superpixel_part import SuperpixelPart
from napari_agglo.widgets.data._trouble_part import TroublePart


class DataWidget(StepWidget):
    """Choose image, cues, gold and superpixels; build the regions."""

    step = Step.DATA
    hints = {  # noqa: RUF012 - what to do next
        Status.EMPTY: "Open an image, or a sample: File > Open Sample > Agglo.",
        Status.READY: "Ready. Build the regions here, or go on to step 2 or 3, which do it too.",
        Status.RUNNING: "Building the regions.",
        Status.STALE: "The choice below has changed since the regions were built: build them anew.",
    }

    def __init__(self, napari_viewer: Any) -> None:
        selection = selection_of(napari_viewer)  # the first one tells the project what is there
        super().__init__(napari_viewer)
        self.selection = selection
        self.image = LayerBox(
            "image", "none", "The picture. A boundary cue can be made from it if you have none."
        )
        self.image.picked.connect(lambda layer: self.selection.choose("image", layer))
        self.cues = CueTable(self.selection)
        self.make = MakeCue(self.viewer, self.selection)
        self.gold = LayerBox(
            "gold",
            "none",
            "Labels that are right, to learn from and to measure against. They may cover a part "
            "only: 0 is “not annotated”. Not needed to segment by the mean.",
        )
        self.gold.picked.connect(lambda layer: self.selection.choose("gold", layer))
        self.superpixels = SuperpixelPart(self.viewer, self.selection)
        self.trouble = TroublePart()
        self.run = RunRow(
            self.project,
            self.step.value,
            "Build regions",
            "Compute superpixels and what is known of each and of the boundaries between them.",
            self._build,
        )
        self.found = QLabel()
        self.found.setObjectName("found")
        self.found.setWordWrap(True)
        self.more = More(self.selection)
        self._lay_out()
        link(self, self.selection.changed, self._follow)
        self.start()
        self._follow()

    def _lay_out(self) -> None:
        top = QFormLayout()
        top.addRow("Image", self.image)
        top.addRow("Gold", self.gold)
        self.body.addWidget(self.trouble)
        self.body.addLayout(top)
        self.body.addWidget(self.cues)
        self.body.addWidget(self.make)
        self.body.addWidget(self.superpixels)
        self.body.addWidget(self.run)
        self.body.addWidget(self.found)
        self.body.addWidget(self.more)

    def hint_for(self, status: Status) -> str:
        """Say what to do next."""
        if status is Status.EMPTY and self.project.trouble:
            return ""  # the box of the trouble says it
        if status is Status.DONE:
            gold = self.project.material is not None and self.project.material.gold is not None
            return "Done. Next: " + ("step 2, Train." if gold else "step 3, Hierarchy.")
        return super().hint_for(status)

    def update_state(self, status: Status) -> None:
        """Follow the project."""
        ready = self.project.material is not None
        self.run.set_ready(ready, self.project.trouble)
        graph = self.project.built
        words = "" if graph is None else (
            f"{graph.n_regions:,} superpixels, {graph.n_boundaries:,} boundaries between them."
        )  # fmt: skip
        self.found.setText(words)
        self.found.setVisible(bool(words))
        self.more.follow()

    def _follow(self) -> None:
        chosen = self.selection
        self.image.show_layers(chosen.images(), chosen.image)
        self.gold.show_layers(chosen.label_images(), chosen.gold)
        self.cues.follow()
        self.make.follow()
        self.superpixels.follow()
        self.more.follow()
        self.trouble.show_trouble(chosen.trouble)
        self.cues.setVisible(bool(chosen.rows))

    def _build(self) -> None:
        material = self.project.material
        if material is None:
            return
        project, viewer = self.project, self.viewer

        def work(progress: Any) -> Any:
            whole = material.oversegmented(progress)
            return whole.graph(progress), whole

        def done(result: Any) -> None:
            remove_preview(viewer)
            project.set_graph(*result)

        project.jobs.start(self.step.value, "Building regions", work, done, tell_error)
