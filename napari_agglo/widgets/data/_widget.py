"""Widget of the Data step: the roles of layers, options, and the regions."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple
from weakref import WeakKeyDictionary

from napari.layers import Image, Labels
from napari.utils.notifications import show_info, show_warning
from qtpy.QtWidgets import QBoxLayout, QGroupBox, QListWidget, QSpinBox, QWidget
from superqt.utils import signals_blocked

from napari_agglo._progress import part_of
from napari_agglo.errors import DataWarning, InvalidInput
from napari_agglo.superpixels import (
    boundary_cue,
    boundary_from_labels,
    oriented_boundary,
    oversegment,
    textons,
)
from napari_agglo.superpixels._boundary_cue import cue_and_kind
from napari_agglo.widgets._forms import Form, fold
from napari_agglo.widgets._napari import role
from napari_agglo.widgets._progress_row import FailureLine, RunRow
from napari_agglo.widgets._project import Project, Regions
from napari_agglo.widgets._qt import (
    button,
    column,
    label,
    link,
    named,
    per_viewer,
    row,
    tell_error,
)
from napari_agglo.widgets._remedies import OPTION_LABELS, window_sentence
from napari_agglo.widgets._steps import Status, StepWidget
from napari_agglo.widgets.data._cue_table import CueTable
from napari_agglo.widgets.data._guess_roles import BOUNDARY
from napari_agglo.widgets.data._layer_units import UnitsBox
from napari_agglo.widgets.data._layers import (
    CONVERT,
    DIRECTIONS,
    PREVIEW,
    TEXTONS,
    data_of,
    is_rgb,
    offsets_of,
    placement_of,
    preview_plane,
    remove_preview,
    shape_of,
)
from napari_agglo.widgets.data._opened_image import OpenedImage
from napari_agglo.widgets.data._paint_panel import PaintPanel
from napari_agglo.widgets.data._remedy_box import RemedyBox
from napari_agglo.widgets.data._selection import Selection

_ROLES: dict[str, tuple[Any, str, str]] = {
    "image": (
        Image | None,
        "none",
        "The picture. A boundary cue can be made from it.",
    ),
    "gold": (
        Labels | Image | None,
        "none",
        "Correct labels, for training and evaluation. They may cover only a part: 0 is “not "
        "annotated”. The mean policy does not need them.",
    ),
    "superpixels": (
        Labels | Image | None,
        "compute them",
        "Small regions to merge: computed from the boundary cue, or your own labels, such as an "
        "oversegmentation by another tool.",
    ),
    "start": (
        Labels | Image | None,
        "single superpixels",
        "A segmentation by another tool to proofread: no superpixel crosses its borders, and a "
        "session starts with its segments.",
    ),
}


class RoleForm(Form):
    """The choice of a layer for some roles, from the layers of the viewer."""

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


class PersonRow(QWidget):
    """The choice of a person, where several have made gold labels of one image."""

    def __init__(self, selection: Selection) -> None:
        super().__init__()
        self._selection = selection
        tooltip = "Number of the gold standard to measure the errors against"
        self.person = named(QSpinBox(), "person", tooltip)
        self.person.setMinimum(1)
        self.person.setKeyboardTracking(False)
        self.person.valueChanged.connect(self._on_person)
        self.text = label("people")
        line = row(self.text, self.person)
        line.setStretch(0, 1)
        column(self, line)

    def follow(self) -> None:
        """Show the person of the selection, if there are several."""
        golds = self._selection.golds()
        self.setVisible(bool(golds))
        if golds:
            self.text.setText(
                f"{len(golds)} gold standards: training learns from all, errors are measured "
                "against number"
            )
            with signals_blocked(self.person):
                self.person.setMaximum(len(golds))
                self.person.setValue(self._selection.person + 1)

    def _on_person(self, number: int) -> None:
        if self._selection.people is not None:
            self._selection.use_several(self._selection.people, number - 1)


_OPTION_PARTS: dict[str, dict[str, Any]] = {
    "per_plane": {"name": "per plane"},
    "nan": {"names": {"boundary": "treat as boundary"}},
}


class OptionForm(Form):
    """Some options of `oversegment` in the selection."""

    def __init__(self, selection: Selection, **parts: Any) -> None:
        super().__init__(
            oversegment,
            table={
                name: {"label": text, **_OPTION_PARTS.get(name, {})}
                for name, text in OPTION_LABELS.items()
            },
            **parts,
        )
        self._selection = selection
        self.changed.connect(lambda name: selection.set_option(name, self.values()[name]))

    def follow(self) -> None:
        """Show the options of the selection."""
        self.show_values(self._selection.options)


_OFFSETS_TIP = (
    "The offset of each channel of the affinities, in voxels: [-1,0,0] relates a voxel to the "
    "one in the plane before. Channels without an offset are not used. Clear the field for the "
    "offsets of the file, or of the nearest voxels."
)


class OffsetForm(Form):
    """The offsets of affinities, shown while affinities are in use."""

    def __init__(self, selection: Selection) -> None:
        options = {"label": "Offsets", "name": "offsets", "tooltip": _OFFSETS_TIP}
        super().__init__(table={"offsets": Annotated[str, options]})
        self._selection = selection
        self.line: Any = self["offsets"].native
        self.line.editingFinished.connect(self._on_typed)

    @property
    def _row(self) -> Any:
        return next((one for one in self._selection.rows if one.used and one.is_affinities), None)

    def follow(self) -> None:
        """Show the offsets that were typed, or those in use."""
        row = self._row
        self.setVisible(row is not None)
        if row is None or self.line.hasFocus():
            return
        self.show_values({"offsets": row.offsets_text or _offsets_text(offsets_of(row.layer))})

    def _on_typed(self) -> None:
        row, text = self._row, str(self["offsets"].value).strip()
        if row is None:
            return
        typed = "" if text == _offsets_text(offsets_of(row.layer)) else text
        if typed != row.offsets_text:
            self._selection.set_cue(row, offsets_text=typed)


def _offsets_text(offsets: tuple[tuple[int, ...], ...]) -> str:
    """Return offsets as they are typed.

    >>> _offsets_text(((-1, 0), (0, -1)))
    '[-1,0], [0,-1]'
    """
    return ", ".join(f"[{','.join(map(str, one))}]" for one in offsets)


CUE = "cue"  # the name of the job
_KINDS = {
    "auto": ("automatic", "Colour edges for an RGB image, otherwise the clearest lines"),
    "dark_ridges": ("dark lines", "Thin and dark, like membranes in electron microscopy"),
    "bright_ridges": ("bright lines", "Thin and bright, like a sharp membrane stain"),
    "dark": ("dark walls", "Dark and thick, or out of focus"),
    "bright": ("bright walls", "Bright and thick, or out of focus"),
    "gradient": ("edges", "Changes of the grey level"),
    "colour": ("colour edges", "Changes of colour, for RGB images"),
    "oriented": (
        "photograph",
        "Changes of brightness, colour and texture in eight directions, as people see them in "
        "photographs; in 2-D only. For the policies “mean” and “oriented mean”, and with textons "
        "for training",
    ),
}


class _Made(NamedTuple):
    """A boundary map, its kind, and metadata: directions and words of a photograph."""

    boundary: Any
    kind: str = ""
    metadata: Mapping[str, Any] = MappingProxyType({})


class MakeCue(RunRow):
    """A button that computes a boundary cue, with the kind of boundaries."""

    def __init__(self, viewer: Any, selection: Selection) -> None:
        super().__init__(
            selection.project,
            CUE,
            "Make a boundary cue",
            "Detect lines or edges in the image and use them as the boundary cue. A map learned "
            "for this tissue is better, if you have one.",
            self._make,
        )
        self._viewer, self._selection = viewer, selection
        self.form = Form(
            boundary_cue,
            only=("kind",),
            table={
                "kind": {
                    "name": "cue kind",
                    "label": "kind of boundaries",
                    "tooltip": "Appearance of boundaries in the image",
                    "names": {kind: name for kind, (name, _) in _KINDS.items()},
                    "tips": {kind: tip for kind, (_, tip) in _KINDS.items()},
                }
            },
            labels=False,
        )
        # The other options of `boundary_cue`, for the part that is folded away.
        self.rest = Form(
            boundary_cue,
            without=("kind", "channel_axis"),
            table={"scale": {"label": "Cue scale"}},
        )
        text = (
            "Make the boundary cue from the borders of the Labels layers that are selected in the "
            "list of layers, such as segmentations by other tools. Several layers are averaged."
        )
        self.labels = button(
            "Make it from selected labels", text, self._make_from_labels, "cue from labels"
        )
        self.note = label("cue doubt")  # of the image of the last run
        self._noted: Any = None
        # The layer that was made last from each layer.
        self._made: WeakKeyDictionary[Any, weakref.ref[Any]] = WeakKeyDictionary()
        layout = self.layout()
        assert isinstance(layout, QBoxLayout)
        layout.insertWidget(1, self.form)
        layout.addWidget(self.note)
        layout.addWidget(self.labels)

    def _make_from_labels(self) -> None:
        chosen = [one for one in self._viewer.layers.selection if isinstance(one, Labels)]
        ordered = [layer for layer in self._viewer.layers if layer in chosen]
        if not ordered:
            show_warning("Select the Labels layers in the list of layers first.")
            return
        arrays, placement = [data_of(layer) for layer in ordered], placement_of(ordered[0])

        def work(progress: Any) -> Any:
            spacing = tuple(abs(one) for one in placement.scale)
            return _Made(boundary_from_labels(arrays, spacing=spacing, progress=progress))

        self._start_job(work, ordered[0])

    def follow(self) -> None:
        """Enable the buttons if there is an image, and labels."""
        self.labels.setVisible(any(isinstance(one, Labels) for one in self._selection.layers()))
        has_image = self._selection.image is not None
        self.set_ready(has_image, "Choose the image first.")
        self.form.setEnabled(has_image)
        self.note.setVisible(has_image and self._noted is self._selection.image)

    def _make(self) -> None:
        layer = self._selection.image
        if layer is None:
            return
        data, placement = data_of(layer), placement_of(layer)
        axis = -1 if is_rgb(layer) else None
        options = {**self.form.values(), **self.rest.values()}

        def work(progress: Any) -> Any:
            if options["kind"] == "oriented":
                first, rest = part_of(progress, 0.0, 0.8), part_of(progress, 0.8, 1.0)
                directions = oriented_boundary(data, channel_axis=axis, progress=first)
                words = textons(data, channel_axis=axis, progress=rest)
                # the layer shows the strongest direction
                more = {DIRECTIONS: directions.channels, TEXTONS: words}
                return _Made(directions.boundary_map(), "oriented", more)
            return _Made(*cue_and_kind(
                data,
                spacing=tuple(abs(one) for one in placement.scale),
                channel_axis=axis,
                progress=progress,
                **options,
            ))  # fmt: skip

        self._start_job(work, layer)

    def _start_job(self, work: Any, source: Any) -> None:
        """Compute a map in the background, and use it as the boundary cue.

        The one that was made from the same layer before is hidden: both would add up.
        """
        viewer, selection = self._viewer, self._selection
        name, placement = str(source.name), placement_of(source)

        def done(made: _Made) -> None:
            former = self._made[source]() if source in self._made else None
            if former is not None:
                former.visible = False
            kind = f" ({_KINDS[made.kind][0]})" if made.kind else ""
            layer = viewer.add_image(
                made.boundary,
                name=f"{name} boundary{kind}",
                colormap="magma",
                contrast_limits=(0.0, 1.0),
                blending="additive",
                metadata=role("cue", BOUNDARY) | dict(made.metadata),
                **placement.keywords(),
            )
            self._made[source] = weakref.ref(layer)
            selection.use_as_boundary(layer)

        def warned(warnings: list[DataWarning]) -> None:
            text = " ".join(window_sentence(one) for one in warnings)
            self.note.setText(text.replace("“image”", f"“{name}”"))
            self._noted = selection.image
            self.follow()

        self._noted = None
        selection.project.jobs.start(CUE, "Making a boundary cue", work, done, warned=warned)


class SuperpixelPart(QWidget):
    """Controls of superpixels: a layer, or options to compute them with a preview."""

    def __init__(self, viewer: Any, selection: Selection) -> None:
        super().__init__()
        self._selection = selection
        self.role = RoleForm(selection, "superpixels")
        self.options = OptionForm(selection, only=("min_size", "per_plane"))
        self.preview = RunRow(
            selection.project,
            PREVIEW,
            "Preview this plane",
            "Compute the superpixels of the visible plane, and show their outlines.",
            lambda: preview_plane(viewer, selection.project),
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
        shapes = [row.shape for row in chosen.rows if row.used]
        ndim = len(shapes[0] if shapes else () if chosen.image is None else shape_of(chosen.image))
        self.options["per_plane"].visible = ndim > 2
        ready = self._selection.project.dataset is not None
        self.preview.set_ready(ready, "" if ready else self._selection.project.trouble)


class TrainingVolumes(QGroupBox):
    """A list of volumes kept for training, with buttons to add and remove one."""

    def __init__(self, project: Project) -> None:
        super().__init__("Further volumes to train on")
        named(self, "training volumes", "Training uses the volume chosen above and these volumes")
        self._project = project
        kept = "Volumes kept for training, with their gold labels"
        self.list = named(QListWidget(), "training list", kept)
        self.list.setFixedHeight(64)
        keep = (
            "Keep the volume chosen above, with its gold labels, to train on it together with "
            "others. Its layers may then be removed."
        )
        self.add = button("Keep this volume", keep, self._add, "add to training")
        marked = "Remove the selected volume from training"
        self.remove = button("Remove", marked, self._remove, "remove from training")
        self.list.currentRowChanged.connect(lambda _: self.follow())
        self.empty = label("no training volumes")
        self.empty.setText("None. One volume with gold labels is enough.")
        inner = column(self, self.empty, self.list, row(self.add, self.remove))
        inner.setContentsMargins(6, 6, 6, 6)

    def follow(self) -> None:
        """Show the volumes of the project."""
        kept = self._project.training
        names = [f"{one.name} {'x'.join(str(n) for n in one.shape)}" for one in kept]
        if names != [self.list.item(k).text() for k in range(self.list.count())]:
            self.list.blockSignals(True)
            self.list.clear()
            self.list.addItems(names)
            self.list.setCurrentRow(len(names) - 1)
            self.list.blockSignals(False)
        self.list.setVisible(bool(names))
        self.empty.setVisible(not names)
        self.remove.setVisible(bool(names))
        dataset = self._project.dataset
        self.add.setEnabled(dataset is not None and dataset.gold is not None)

    def _add(self) -> None:
        dataset = self._project.dataset
        if dataset is None or dataset.gold is None:
            show_warning("This volume has no gold labels; choose them first.")
            return
        if any(one.gold is dataset.gold for one in self._project.training):
            show_info(f"{dataset.name} is in the list already.")
            return
        self._project.training = (*self._project.training, dataset)

    def _remove(self) -> None:
        row = self.list.currentRow()
        self._project.training = [one for k, one in enumerate(self._project.training) if k != row]


class DataWidget(StepWidget):
    """Choose image, cues, gold and superpixels; build the regions."""

    key = "data"
    title = "Data"
    purpose = "choose the image, its boundary cues, and gold labels if you have some."
    hints = {  # noqa: RUF012 - the next thing to do
        Status.EMPTY: "Open an image, or a sample: File > Open Sample > Agglo. A saved session is "
        "opened in step 5.",
        Status.READY: "Ready. Build the regions here, or in step 2 or 3.",
        Status.RUNNING: "Building the regions.",
        Status.STALE: "The choices below have changed; build the regions again.",
    }

    def __init__(self, napari_viewer: Any) -> None:
        selection = per_viewer(napari_viewer, Selection)  # it gives the project its dataset
        super().__init__(napari_viewer)
        self.selection = selection
        self.roles = RoleForm(selection, "image", "gold")
        self.people = PersonRow(selection)
        self.cues = CueTable(selection)
        self.offsets = OffsetForm(selection)
        self.notes = label("cue notes")  # on the sign of maps, from the names of layers
        self.make = MakeCue(self.viewer, selection)
        self.paint = PaintPanel(self.viewer)
        self.superpixels = SuperpixelPart(self.viewer, selection)
        self.trouble = RemedyBox("trouble", selection, lambda: selection.problem)
        self.units = UnitsBox(self.viewer, selection)
        self.opened = OpenedImage(selection)
        self.doubt = RemedyBox("doubt", selection, selection.doubt, selection.dismiss_doubt)
        self.run = RunRow(
            self.project,
            self.key,
            "Build regions",
            "Compute superpixels, and the statistics of regions and boundaries.",
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
            "Segmentation to start from, smoothing, NaN, further volumes to train on",
        )
        self.more.setObjectName("more data")
        if selection.start is not None or self.project.training:
            self.more.expand(animate=False)
        self.add(FailureLine(self.project, CONVERT), self.units, self.opened)
        self.add(self.roles, self.people, self.cues, self.offsets, self.notes)
        self.add(self.make, self.paint, self.superpixels, self.run)
        # Below the controls: a tick makes a problem come and go, and must not move the next one.
        self.add(self.trouble, self.counts, self.doubt, self.more)
        link(self._follow, selection.changed)
        self.start()
        self._follow()

    @staticmethod
    def idle_status(project: Project) -> Status:
        regions, dataset = project.regions, project.dataset
        if project.lacks_data:
            return Status.EMPTY
        if regions is None:
            if dataset is None:
                return Status.EMPTY if project.graph is None else Status.DONE  # an opened session
            return Status.READY
        current = dataset is None or dataset is regions.dataset
        if current:
            return Status.DONE
        return Status.READY if project.is_elsewhere(regions) else Status.STALE

    def hint_for(self, status: Status) -> str:
        """Return the next thing to do."""
        if status is Status.READY and self.project.is_elsewhere(self.project.regions):
            assert self.project.dataset is not None
            return f"Another volume: {self.project.dataset.name}. {self.hints[Status.READY]}"
        if status is Status.EMPTY and self.project.trouble:
            return "Something is missing or does not fit: see the box below “Build regions”."
        if status is Status.DONE:
            gold = self.project.dataset is not None and self.project.dataset.gold is not None
            return "Done. Next: " + ("step 2, Train." if gold else "step 3, Hierarchy.")
        return super().hint_for(status)

    def update_state(self, status: Status) -> None:
        """Update the controls from the project."""
        ready = self.project.dataset is not None
        self.run.set_ready(ready, self.project.trouble)
        regions = self.project.regions
        # Of the volume that was chosen before.
        elsewhere = self.project.lacks_data or self.project.is_elsewhere(regions)
        graph = None if regions is None or elsewhere else regions.graph
        counts = "" if graph is None else (
            f"{graph.n_regions:,} superpixels, {graph.n_boundaries:,} boundaries between them."
        )  # fmt: skip
        if graph is not None and graph.n_boundaries == 0:
            counts += (
                " There is nothing to merge: check that the boundary cue is high on boundaries, or "
                "use a smaller least size."
            )
        self.counts.setText(counts)
        self.counts.setVisible(bool(counts))
        self.doubt.follow()
        self.training.follow()
        self.paint.follow_gold()

    def _follow(self) -> None:
        for part in (self.trouble, self.units, self.opened, self.doubt, self.roles, self.people,
                     self.cues, self.offsets, self.make, self.paint, self.superpixels,
                     self.start_from, self.options, self.training):  # fmt: skip
            part.follow()
        self.cues.setVisible(bool(self.selection.rows))
        notes = " ".join(self.selection.notes)
        self.notes.setText(notes)
        self.notes.setVisible(bool(notes))

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
