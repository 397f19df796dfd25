"""The roles of layers, guessed from their names or chosen by the user; one object per viewer.

The widgets of the Data step show a selection and change it.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from napari.layers import Image, Labels
from psygnal import Signal

from napari_agglo.errors import DataWarning, InvalidInput
from napari_agglo.superpixels import oversegment
from napari_agglo.widgets._dataset import Dataset
from napari_agglo.widgets._forms import defaults
from napari_agglo.widgets._napari import is_of_sample
from napari_agglo.widgets._project import Project
from napari_agglo.widgets._qt import per_viewer
from napari_agglo.widgets._scene import Scene
from napari_agglo.widgets.data._check import dataset_of
from napari_agglo.widgets.data._cue_table import CueRow
from napari_agglo.widgets.data._guess_roles import (
    BOUNDARY,
    boundary_rank,
    guess_image,
    has_role,
    is_affinities,
    is_high_inside,
    latest,
    may_be_labels,
)
from napari_agglo.widgets.data._layers import (
    ALL,
    add_plane,
    channel_axis,
    channel_of,
    convert_to_labels,
    data_of,
    dtype_of,
    is_ours,
    is_rgb,
    may_have_offsets,
    placement_of,
    shape_of,
)
from napari_agglo.widgets.data._remedy_buttons import message

ROLES = ("image", "gold", "superpixels", "start")
_THICK = 2.5  # times the size of a pixel: thicker planes are oversegmented one by one


class Selection:
    """The layers of a viewer by their role."""

    changed = Signal()

    def __init__(self, viewer: Any) -> None:
        self._viewer = weakref.ref(viewer)
        self.project = per_viewer(viewer, Project)
        self._scene = per_viewer(viewer, Scene)
        self.image: Any = None  # the picture
        self.gold: Any = None  # gold labels
        self.superpixels: Any = None  # computed, if there is no layer
        self.start: Any = None  # a segmentation to start from
        self.people: int | None = None  # the axis of the people, if gold has several
        self.person = 0  # the one whose gold measures errors
        self._golds: tuple[Any, Any, tuple[Any, ...]] = (None, None, ())  # layer data, axis, each
        self.rows: list[CueRow] = []  # all possible cues: the boundary, others in use, the rest
        self.options = defaults(oversegment)
        self.problem: InvalidInput | None = None  # of the layers, or of the last build
        self._dismissed: list[DataWarning] = []  # doubts that the user does not share
        self._by_hand: set[str] = set()  # roles and options chosen by the user: not guessed
        self._key: Any = None
        self._known: list[Any] = []
        viewer.layers.events.inserted.connect(self._on_layers)
        viewer.layers.events.removed.connect(self._on_layers)
        self._on_layers()

    # Layers to choose from.

    def layers(self) -> list[Any]:
        """Return the layers that may be input: all but the plugin's own."""
        viewer = self._viewer()
        if viewer is None:
            return []
        return [layer for layer in viewer.layers if not is_ours(layer, self._scene)]

    def images(self) -> list[Any]:
        """Return the layers that may be images."""
        return [layer for layer in self.layers() if isinstance(layer, Image)]

    # Choices of the user.

    def choose(self, what: str, layer: Any) -> None:
        """Use a layer as image, gold, superpixels or start; None for none."""
        self._by_hand.add(what)
        setattr(self, what, layer)
        if what == "gold":
            self.people, self.person = None, 0
        if what == "image":  # guess the cues and gold of this one
            ticked = [row for row in self.rows if row.used]
            by_hand = [row for row in ticked if row.chosen and _fits(row, layer)]
            for row in self.rows:
                row.chosen = False
            self._by_hand -= {"gold", "superpixels"}
            self._guess(anew=True)
            if by_hand and all(row in ticked for row in self.rows if row.used):
                for row in by_hand:  # no cue of another volume was found
                    row.used = row.chosen = True
                self._name_boundary()
        self._update()

    def set_cue(
        self,
        row: CueRow,
        *,
        used: bool | None = None,
        name: str | None = None,
        range_text: str | None = None,
        offsets_text: str | None = None,
    ) -> None:
        """Change whether a cue is used, its name, its range, or its offsets."""
        if used is not None and used != row.used:
            row.used, row.chosen = used, True
            if used and row.layer is self.image and "image" not in self._by_hand:
                self._guess_image([one for one in self.images() if shape_of(one) == row.shape])
        if name is not None and name != row.name:
            row.name, row.named, row.guessed = name, True, False
            for other in self.rows:
                if name == BOUNDARY and other is not row:
                    other.drop_guess()
        if range_text is not None:
            row.range_text = range_text
        if offsets_text is not None:
            row.offsets_text = offsets_text
        self._name_boundary()
        self._update()

    def _guess_image(self, images: Sequence[Any]) -> None:
        """Guess the image among some layers: not one that is ticked as a cue, if another fits."""
        self.image = guess_image(images, [r.layer for r in self.rows if r.used and r.chosen])

    def use_as_boundary(self, layer: Any) -> None:
        """Use a layer as the boundary cue, instead of the former one."""
        for row in self.rows:
            if row.layer is layer:
                row.used, row.name, row.chosen, row.guessed = True, BOUNDARY, True, False
            elif row.name == BOUNDARY and row.used:
                row.used, row.chosen = False, True
        self._sort()
        self._update()

    def use_as_cues(self, layers: Mapping[str, Any]) -> None:
        """Use layers as cues of these names, instead of the former ones of these names."""
        for row in self.rows:
            if any(row.layer is layer for layer in layers.values()):
                name = next(name for name, layer in layers.items() if layer is row.layer)
                row.used, row.name, row.chosen, row.named = True, name, True, True
                row.guessed = False
            elif row.name in layers and row.used:
                row.used, row.chosen = False, True
        self._sort()
        self._update()

    def choose_all(self, image: Any, gold: Any, cues: Mapping[str, tuple[Any, str | None]]) -> None:
        """Use these layers and no others; a cue has a channel ``AXIS:INDEX``, or None."""
        self.image, self.gold = image, gold
        self.superpixels = self.start = None
        self._by_hand |= {"image", "gold", "superpixels"}
        self._list_rows()
        for row in self.rows:
            name = next((name for name, (layer, channel) in cues.items()
                         if layer is row.layer and channel == row.channel_text), None)  # fmt: skip
            row.used, row.chosen = name is not None, True
            if name is not None:
                row.name, row.named, row.guessed = name, True, False
        self._sort()
        self._update()

    def set_option(self, name: str, value: Any) -> None:
        """Set an option of `oversegment`."""
        self._by_hand.add(name)
        self.options[name] = value
        self._update()

    def use_several(self, axis: int, person: int = 0) -> None:
        """Use the gold layer as gold standards of several people, one for each index of an axis."""
        self.people, self.person = axis, person
        self._update()

    def golds(self) -> tuple[Any, ...]:
        """Return the gold labels of each of several people; the same arrays at each call."""
        if self.gold is None or self.people is None:
            return ()
        data, axis = data_of(self.gold), self.people
        if self._golds[0] is not data or self._golds[1] != axis:
            each = tuple(channel_of(self.gold, axis, k) for k in range(data.shape[axis]))
            self._golds = (data, axis, each)
        return self._golds[2]

    # Remedies.

    def convert(self, role: str, components: bool = False) -> None:
        """Make a Labels layer of the layer of a role, and use that.

        Gold with one more axis is then of several people.
        """
        viewer, layer = self._viewer(), getattr(self, role)
        shape = next((row.shape for row in self.rows if row.used), None)
        axis = None if layer is None or shape is None else channel_axis(layer, shape)

        def use(labels: Any) -> None:
            self.choose(role, labels)
            if role == "gold" and axis is not None:
                self.use_several(axis)

        if viewer is not None and layer is not None:
            convert_to_labels(viewer, self.project, layer, use, components)

    def pick_plane(self, role: str, axes: Sequence[int]) -> None:
        """Copy the visible plane of the layer of a role to a new Labels layer, and use that."""
        viewer, layer = self._viewer(), getattr(self, role)
        if viewer is not None and layer is not None:
            self.choose(role, add_plane(viewer, layer, axes))

    def align(self, placement: Any) -> None:
        """Give all layers in use one placement."""
        used = [row.layer for row in self.rows if row.used]
        for layer in [*used, *(getattr(self, role) for role in ROLES)]:
            if layer is not None and layer.ndim == len(placement.scale):
                layer.scale, layer.translate = placement.scale, placement.translate
                if placement.units is not None:
                    layer.units = placement.units

    def refuse(self, error: InvalidInput) -> None:
        """Show the error of a build, until the choice changes."""
        self.problem = error
        self.changed.emit()

    def doubt(self) -> DataWarning | None:
        """Return a doubt about the data of the regions that were built last, if they are chosen."""
        regions = self.project.regions
        if regions is None or regions.dataset is not self.project.dataset:
            return None
        rest = (one for one in regions.doubts if not any(one is d for d in self._dismissed))
        return next(rest, None)

    def dismiss_doubt(self) -> None:
        """Show the present doubt no more."""
        doubt = self.doubt()
        self._dismissed = [] if doubt is None else [*self._dismissed, doubt]
        self.changed.emit()

    # Events of the viewer.

    def _on_layers(self, _: object = None) -> None:
        layers = self.layers()
        for layer in layers:
            if not any(layer is one for one in self._known):
                for event in (layer.events.name, layer.events.scale, layer.events.translate,
                              layer.events.units, layer.events.data):  # fmt: skip
                    event.connect(self._on_layer)
                if isinstance(layer, Labels):
                    layer.events.paint.connect(self._on_paint)
        self._known = layers
        for what in ROLES:
            chosen = getattr(self, what)
            if chosen is not None and not any(chosen is layer for layer in layers):
                setattr(self, what, None)
                self._by_hand.discard(what)
        # Once there are regions, a new layer fills a gap, but replaces no other.
        self._guess(anew=self.project.graph is None)
        self._update()

    def _on_paint(self, event: Any) -> None:
        self.project.has_painted(data_of(event.source))

    def _on_layer(self, _: object = None) -> None:
        image = self.image
        if image is not None and is_affinities(image) and "image" not in self._by_hand:
            self._guess(anew=True)  # it is called so by now, and is no picture
        self._list_rows()
        self._guess_planes(anew=self.project.graph is None)
        self._update()

    def _guess(self, anew: bool) -> None:
        """Guess the roles that the user has not chosen."""
        if "image" not in self._by_hand and (anew or self.image is None):
            self._guess_image(self.images())
        shape = None if self.image is None else shape_of(self.image)
        labels = [layer for layer in self.layers() if isinstance(layer, Labels)]
        for what in ("gold", "superpixels"):
            if what not in self._by_hand and (anew or getattr(self, what) is None):
                named = latest([one for one in labels if has_role(one, what)], shape)
                images = [one for one in self.images() if may_be_labels(one, what)]
                guessed = latest(images, shape) if named is None else named
                if guessed is None and what == "gold" and shape is not None:
                    golds = [one for one in labels if has_role(one, what)] + images
                    guessed = latest([one for one in golds if channel_axis(one, shape) is not None],
                                     None)  # fmt: skip
                if what == "gold" and guessed is not self.gold:
                    self.people, self.person = None, 0
                setattr(self, what, guessed)
        self._list_rows()
        if anew or not any(row.used for row in self.rows):
            self._guess_cues(shape)
        self._guess_planes(anew)

    def _guess_planes(self, anew: bool) -> None:
        if "per_plane" not in self._by_hand and anew:
            self.options["per_plane"] = self._is_thick()

    def _list_rows(self) -> None:
        """List the possible cues; each keeps its name, range and check mark."""
        before = {row.key: row for row in self.rows}
        shape = next((shape_of(one) for one in (self.image, self.gold, self.superpixels)
                      if one is not None), None)  # fmt: skip
        rows: list[CueRow] = []
        for layer in self.images():
            if is_rgb(layer):
                continue
            axis = None if shape is None else channel_axis(layer, shape)
            parts = [None] if axis is None else [(axis, k) for k in range(shape_of(layer)[axis])]
            if is_affinities(layer) and may_have_offsets(layer, shape):
                parts = [(0, ALL)]
            for channel in parts:
                row = CueRow.of(layer, channel)
                if is_high_inside(layer):  # boundaries are low: the range descends
                    row.range_text = {"u1": "255:0"}.get(dtype_of(layer).str[1:], "1:0")
                rows.append(before.get(row.key, row))
        self.rows = rows
        self._sort()

    def _guess_cues(self, shape: tuple[int, ...] | None) -> None:
        taken: set[str] = set()
        for row in reversed(self.rows):  # the latest of several of one name
            row.drop_guess()
            if not row.chosen:
                fits = shape is None or row.shape == shape
                row.used = has_role(row.layer, "cue") and fits and row.name not in taken
            taken |= {row.name} if row.used else set()
        self._name_boundary()

    def _name_boundary(self) -> None:
        """Name one of the used cues the boundary, unless the user did.

        Once there are regions, the former choice stays as long as that cue is in use.
        """
        for row in self.rows:
            if not row.used or self.project.graph is None:
                row.drop_guess()
        used = [row for row in self.rows if row.used]
        if not any(row.name == BOUNDARY or row.is_affinities for row in used):
            free = [row for row in used if not row.named]
            if free:
                min(free, key=lambda row: boundary_rank(row.layer)).guess_boundary()
        self._sort()

    @property
    def notes(self) -> list[str]:
        """Sentences on the cues: those that were inverted, and a boundary that was guessed."""
        notes = [row.note for row in self.rows if row.note]
        guessed = next((row for row in self.rows if row.guessed), None)
        if guessed is not None:
            rank = boundary_rank(guessed.layer)
            rivals = [row for row in self.rows if row.used and not row.named and row is not guessed]
            if any(rank or boundary_rank(row.layer) == rank for row in rivals):
                notes.append(
                    f"“{guessed.source}” is taken for the boundary. To take another cue, "
                    "double-click its name and type “boundary”."
                )
        return notes

    def _sort(self) -> None:
        self.rows.sort(
            key=lambda row: (not row.used, row.name != BOUNDARY and not row.is_affinities)
        )

    def _is_thick(self) -> bool:
        layer = next((row.layer for row in self.rows if row.used), self.image)
        if layer is None or len(shape_of(layer)) < 3:
            return False
        spacing = placement_of(layer).scale
        return abs(spacing[-3]) > _THICK * max(abs(spacing[-2]), abs(spacing[-1]))

    def _update(self) -> None:
        """Give the project the dataset of the choice, if that has changed."""
        dataset: Dataset | None = None
        problem: InvalidInput | None = None
        try:
            dataset = dataset_of(self)
        except InvalidInput as error:
            problem = error
        text = "" if problem is None else message(problem, self)
        key = text if dataset is None else dataset.key
        regions = self.project.regions
        if dataset is not None and regions is not None and regions.dataset.key == key:
            dataset = regions.dataset  # chosen again: its regions are up to date
        if key != self._key:
            self._key, self.problem = key, problem
            self.project.set_dataset(dataset, text)
        self.changed.emit()


def _fits(row: CueRow, image: Any) -> bool:
    """Return whether a cue may be of an image: of its shape, and both of a sample or neither."""
    if image is None or image is row.layer:
        return True
    return row.shape == shape_of(image) and is_of_sample(row.layer) == is_of_sample(image)
