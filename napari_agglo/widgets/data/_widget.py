"""Widget of the Data step: the layers and their roles, options, and the regions made from them."""

from __future__ import annotations

import weakref
from functools import partial
from typing import Annotated, Any

from napari.layers import Image, Labels
from qtpy.QtWidgets import QFrame, QWidget

from napari_agglo.errors import InvalidInput
from napari_agglo.superpixels import boundary_cue, oversegment
from napari_agglo.widgets._colours import PROBLEM
from napari_agglo.widgets._forms import Form, fold
from napari_agglo.widgets._jobs import RunRow
from napari_agglo.widgets._napari import role
from napari_agglo.widgets._project import Project, Regions
from napari_agglo.widgets._qt import button, column, guarded, label, link, per_viewer, tell_error
from napari_agglo.widgets._steps import Status, StepWidget
from napari_agglo.widgets.data._check import Fix, fixes, message
from napari_agglo.widgets.data._cue_table import CueTable
from napari_agglo.widgets.data._guess_roles import BOUNDARY
from napari_agglo.widgets.data._layers import data_of, is_rgb, placement_of
from napari_agglo.widgets.data._plane_preview import PREVIEW, preview_plane, remove_preview
from napari_agglo.widgets.data._selection import Selection
from napari_agglo.widgets.data._training_set import TrainingVolumes

_ROLES: dict[str, tuple[Any, str, str]] = {
    "image": (
        Image | None,
        "none",
        "The picture. A boundary cue can be made from it if you have none.",
    ),
    "gold": (
        Labels | Image | None,
        "none",
        "Labels that are right, to learn from and to measure against. They may cover a part only: "
        "0 is “not annotated”. Not needed to segment by the mean.",
    ),
    "superpixels": (
        Labels | Image | None,
        "compute them",
        "Small pieces that are merged: computed from the boundary cue, or labels that you have, "
        "also a segmentation of another tool that is split too finely.",
    ),
    "start": (
        Labels | Image | None,
        "single superpixels",
        "Proofread the segmentation of another tool: no superpixel crosses its borders, and a "
        "session begins with its segments.",
    ),
}


class RoleForm(Form):
    """Choices of a layer for some roles; they follow the layers of the viewer."""

    def __init__(self, selection: Selection, *roles: str) -> None:
        def layers() -> list[Any]:
            return [one for one in selection.layers() if not (is_rgb(one) and "image" not in roles)]

        table = {}
        for name in roles:
            kind, nothing, tooltip = _ROLES[name]
            label = "Start from" if name == "start" else name.capitalize()
            options = {"label": label, "tooltip": tooltip, "automatic": nothing, "layers": layers}
            table[name] = Annotated[kind, options]
        super().__init__(table=table)
        self._selection = selection
        self.changed.connect(lambda name: selection.choose(name, self[name].value))

    def follow(self) -> None:
        """Show the layers of the selection."""
        self.show_values({name: getattr(self._selection, name) for name in self.fields})


class OptionForm(Form):
    """Some of the options of `oversegment`, as the selection has them."""

    def __init__(self, selection: Selection, **parts: Any) -> None:
        super().__init__(
            oversegment,
            table={
                "per_plane": {"label": "each plane by itself", "name": "per plane"},
                "min_size": {"label": "Least size", "min": 1, "max": 10**7},
                "sigma": {"label": "Smoothing", "max": 1000.0},
                "nan": {"label": "NaN", "names": {"boundary": "take for boundary"}},
            },
            **parts,
        )
        self._selection = selection
        self.changed.connect(lambda name: selection.set_option(name, self.values()[name]))

    def follow(self) -> None:
        """Show the options of the selection."""
        self.show_values(self._selection.options)


class ProblemBox(QFrame):
    """A box with the problem of the chosen layers, and a button for each remedy by click."""

    def __init__(self, selection: Selection) -> None:
        super().__init__()
        self.setObjectName("trouble")
        self.setStyleSheet(f"QFrame#trouble {{ border: 1px solid {PROBLEM}; border-radius: 4px; }}")
        self._selection = selection
        self._fixes: list[Fix] = []
        self.words = label("trouble words")
        together = "Do this, so that the layers can be used together"
        self.button = button("", together, lambda: self._act(0), "mend")
        self.second = button("", together, lambda: self._act(1), "mend otherwise")
        column(self, self.words, self.button, self.second).setContentsMargins(6, 4, 6, 4)

    def follow(self) -> None:
        """Show the problem of the selection, if it has one."""
        problem = self._selection.problem
        self.setVisible(problem is not None)
        self._fixes = [] if problem is None else fixes(problem, self._selection)
        if problem is not None:
            self.words.setText(message(problem, self._selection))
        for k, push in enumerate((self.button, self.second)):
            push.setVisible(k < len(self._fixes))
            if k < len(self._fixes):
                push.setText(self._fixes[k].text)

    def _act(self, k: int) -> None:
        guarded(self._fixes[k].act)


CUE = "cue"  # the name of the job
_KINDS = {
    "auto": ("automatic", "Colour edges if the image is in colours, else the clearest lines"),
    "dark_ridges": ("dark lines", "Thin and dark, as membranes in electron microscopy"),
    "bright_ridges": ("bright lines", "Thin and bright, as a sharp membrane stain"),
    "dark": ("dark walls", "Dark and thick, or out of focus"),
    "bright": ("bright walls", "Bright and thick, or out of focus"),
    "gradient": ("edges", "Where the grey level changes"),
    "colour": ("colour edges", "Where the colour changes; for images in colours"),
}


class MakeCue(RunRow):
    """A button that makes a boundary cue, with the look of a boundary."""

    def __init__(self, viewer: Any, selection: Selection) -> None:
        super().__init__(
            selection.project,
            CUE,
            "Make a boundary cue",
            "Find lines or edges in the image and use them as the boundary cue. A map that was "
            "learned for the tissue is better where you have one.",
            self._make,
        )
        self._viewer = weakref.ref(viewer)
        self._selection = selection
        self.form = Form(
            boundary_cue,
            only=("kind",),
            table={
                "kind": {
                    "name": "cue kind",
                    "label": "look of a boundary",
                    "tooltip": "The look of a boundary in the image",
                    "names": {kind: name for kind, (name, _) in _KINDS.items()},
                    "tips": {kind: tip for kind, (_, tip) in _KINDS.items()},
                }
            },
            labels=False,
        )
        # The other options of `boundary_cue`; they stand in the part that is folded away.
        self.rest = Form(
            boundary_cue,
            without=("kind", "channel_axis"),
            table={"scale": {"label": "Cue scale", "min": 0.5, "max": 100.0, "step": 0.5}},
        )
        self.row.addWidget(self.form)

    def follow(self) -> None:
        """Enable the button if there is an image."""
        there = self._selection.image is not None
        self.set_ready(there, "Choose the image first.")
        self.form.setEnabled(there)

    def _make(self) -> None:
        layer = self._selection.image
        if layer is None:
            return
        data, placement, name = data_of(layer), placement_of(layer), str(layer.name)
        axis = -1 if is_rgb(layer) else None
        options = {**self.form.values(), **self.rest.values()}

        def work(progress: Any) -> Any:
            return boundary_cue(
                data,
                spacing=tuple(abs(one) for one in placement.scale),
                channel_axis=axis,
                progress=progress,
                **options,
            )

        viewer, selection = self._viewer, self._selection

        def done(cue: Any) -> None:
            live = viewer()
            if live is None:
                return
            layer = live.add_image(
                cue,
                name=f"{name} boundary",
                colormap="magma",
                contrast_limits=(0.0, 1.0),
                blending="additive",
                metadata=role("cue", BOUNDARY),
                **placement.keywords(),
            )
            selection.use_as_boundary(layer)

        self._selection.project.jobs.start(CUE, "Making a boundary cue", work, done)


class SuperpixelPart(QWidget):
    """Superpixels: a layer, or computed, with a preview of the plane in view."""

    def __init__(self, viewer: Any, selection: Selection) -> None:
        super().__init__()
        self._selection = selection
        self.role = RoleForm(selection, "superpixels")
        self.options = OptionForm(selection, only=("min_size", "per_plane"))
        self.preview = RunRow(
            selection.project,
            PREVIEW,
            "Preview this plane",
            "Compute the superpixels of the plane on the screen, and show their outlines.",
            lambda: preview_plane(viewer, selection),
        )
        column(self, self.role, self.options, self.preview)

    def follow(self) -> None:
        """Show the choice and the options of the selection."""
        chosen = self._selection
        self.role.follow()
        self.options.follow()
        computed = chosen.superpixels is None
        for part in (self.options, self.preview):
            part.setVisible(computed)
        ndim = next((len(row.shape) for row in chosen.rows if row.used), 2)
        self.options["per_plane"].visible = ndim > 2
        ready = self._selection.project.dataset is not None
        self.preview.set_ready(ready, "" if ready else self._selection.project.trouble)


class DataWidget(StepWidget):
    """Choose image, cues, gold and superpixels; build the regions."""

    key = "data"
    title = "Data"
    purpose = "choose the image, its boundary cues, and gold labels if you have some."
    hints = {  # noqa: RUF012 - the next thing to do
        Status.EMPTY: "Open an image, or a sample: File > Open Sample > Agglo.",
        Status.READY: "Ready. Build the regions here, or go on to step 2 or 3, which do it too.",
        Status.RUNNING: "Building the regions.",
        Status.STALE: "The choice below has changed since the regions were built: build them anew.",
    }

    def __init__(self, napari_viewer: Any) -> None:
        selection = per_viewer(napari_viewer, Selection)  # before the project is asked
        super().__init__(napari_viewer)
        self.selection = selection
        self.roles = RoleForm(selection, "image", "gold")
        self.cues = CueTable(selection)
        self.make = MakeCue(self.viewer, selection)
        self.superpixels = SuperpixelPart(self.viewer, selection)
        self.trouble = ProblemBox(selection)
        self.run = RunRow(
            self.project,
            self.key,
            "Build regions",
            "Compute superpixels, and statistics of each and of the boundaries between them.",
            self._build,
        )
        self.counts = label("region counts")
        self.start_from = RoleForm(selection, "start")
        self.options = OptionForm(selection, without=("min_size", "per_plane"))
        self.training = TrainingVolumes(self.project)
        inner = QWidget()
        column(inner, self.start_from, self.options, self.make.rest, self.training, spacing=3)
        self.more = fold(
            "More",
            inner,
            "Segments of other tools to start from, smoothing, NaN, several volumes to train on",
        )
        self.more.setObjectName("more data")
        if selection.start is not None or self.project.training:
            self.more.expand(animate=False)
        self.add(self.trouble, self.roles, self.cues, self.make, self.superpixels, self.run)
        self.add(self.counts, self.more)
        link(self._follow, selection.changed)
        self.start()
        self._follow()

    @staticmethod
    def idle_status(project: Project) -> Status:
        regions, dataset = project.regions, project.dataset
        if regions is None:
            if dataset is None:
                return Status.EMPTY if project.graph is None else Status.DONE  # an opened session
            return Status.READY
        current = dataset is None or dataset is regions.dataset
        return Status.DONE if current else Status.STALE

    def hint_for(self, status: Status) -> str:
        """Return the next thing to do."""
        if status is Status.EMPTY and self.project.trouble:
            return ""  # the box of the problem says it
        if status is Status.DONE:
            gold = self.project.dataset is not None and self.project.dataset.gold is not None
            return "Done. Next: " + ("step 2, Train." if gold else "step 3, Hierarchy.")
        return super().hint_for(status)

    def update_state(self, status: Status) -> None:
        """Follow the project."""
        ready = self.project.dataset is not None
        self.run.set_ready(ready, self.project.trouble)
        graph = None if self.project.regions is None else self.project.regions.graph
        words = "" if graph is None else (
            f"{graph.n_regions:,} superpixels, {graph.n_boundaries:,} boundaries between them."
        )  # fmt: skip
        self.counts.setText(words)
        self.counts.setVisible(bool(words))
        self.training.follow()

    def _follow(self) -> None:
        for part in (self.trouble, self.roles, self.cues, self.make, self.superpixels,
                     self.start_from, self.options, self.training):  # fmt: skip
            part.follow()
        self.cues.setVisible(bool(self.selection.rows))

    def _build(self) -> None:
        dataset = self.project.dataset
        if dataset is None:
            return
        project, viewer, selection = self.project, self.viewer, self.selection

        def done(regions: Regions) -> None:
            remove_preview(viewer)
            project.regions = regions

        def failed(error: Exception) -> None:
            if isinstance(error, InvalidInput) and project.dataset is dataset:
                selection.refuse(error)
            tell_error(error)

        work = partial(Regions.of, dataset)
        project.jobs.start(self.key, "Building regions", work, done, failed)
