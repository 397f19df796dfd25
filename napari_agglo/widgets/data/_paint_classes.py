"""Paint classes: strokes on a Labels layer, live probabilities of the plane in view, and cues."""

# In its own file: a mode of the canvas with a state of its own, apart from the choice of layers.

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from napari.layers import Image, Labels
from napari.utils import Colormap
from psygnal import Signal

from napari_agglo._data_warnings import keep_warnings
from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import DataWarning, InvalidInput
from napari_agglo.pixels import (
    FilterBank,
    LiveTraining,
    PixelClass,
    PixelClassifier,
    check_classes,
    load_pixel_classifier,
)
from napari_agglo.pixels._train_pixels import GOLD_CLASSES, check_scales
from napari_agglo.widgets._colours import direct_colours
from napari_agglo.widgets._napari import add_inactive, role, role_of
from napari_agglo.widgets._qt import ask, per_viewer, single_shot, tell_error
from napari_agglo.widgets._remedies import window_sentence
from napari_agglo.widgets._scene import Scene
from napari_agglo.widgets.data._gold_volumes import GoldVolumes
from napari_agglo.widgets.data._layers import (
    PROBABILITY,
    STROKES,
    data_of,
    is_rgb,
    placement_of,
    shape_of,
)
from napari_agglo.widgets.data._probability_layers import (
    OPACITY,
    classification,
    show_probabilities,
)
from napari_agglo.widgets.data._selection import Selection

PIXELS, LIVE = "pixels", "live pixels"  # the names of the jobs
_WAIT = 60  # milliseconds after a movement of the brush, before the plane is classified
_ROUGH = 10  # trees of the first look at the plane after a stroke; all of them follow
_LARGE = 1 << 20  # pixels of a plane: of a larger one only the part in view is classified
_BRUSH = 4  # pixels


class Painter:
    """Strokes, classes and the classifier of one image; one object per viewer."""

    changed = Signal()

    def __init__(self, viewer: Any) -> None:
        self.scene = per_viewer(viewer, Scene)
        self.selection = per_viewer(viewer, Selection)
        self.project = self.scene.project
        self.classes: list[PixelClass] = list(check_classes(None, 2))
        self.strokes: Labels | None = None
        self.classifier: PixelClassifier | None = None
        self.source = STROKES  # of the classifier: strokes, gold or a file; a stroke takes over
        self.source_text = ""  # on the classifier, until a stroke takes over
        self.message = ""  # what is missing
        # What may be wrong with the image, with the strokes, and with gold or a file.
        self._doubts: dict[str, list[str]] = {"image": [], "strokes": [], "source": []}
        self.is_live = True
        self._image: Any = None  # the layer that is painted on
        self._training: LiveTraining | None = None
        # The features of the next image too; None: each plane by itself where planes are thick.
        self._scales, self._structure = FilterBank.scales, False
        self._per_plane: bool | None = None
        self._one_at_a_time = threading.Lock()  # the training keeps features between strokes
        self._counts: list[int] | None = None  # None after each stroke
        self._is_due = False  # there are strokes that the running job has not read
        self._is_rough = False  # few trees have classified what is on the screen
        self._timer = single_shot(self._classify_view, _WAIT)
        viewer.layers.events.removed.connect(self._on_removed)
        viewer.dims.events.current_step.connect(self._on_dims)
        viewer.dims.events.order.connect(self._on_dims)
        self.project.closing.connect(self._close)

    # Strokes.

    def start(self) -> None:
        """Add a layer for strokes on the chosen image, or go on with the one that it has."""
        layer = self.selection.image
        if layer is None:
            return
        viewer = self.scene.viewer
        if self._image is not layer:
            # Refuses an image that has other axes than planes, rows and columns.
            with keep_warnings() as kept:
                training = LiveTraining(
                    data_of(layer),
                    spacing=tuple(abs(one) for one in placement_of(layer).scale),
                    channel_axis=-1 if is_rgb(layer) else None,
                )
            bank = replace(training.bank, scales=self._scales, structure=self._structure)
            self._training, self._per_plane = training.with_bank(bank), None
            self._image, self.classifier, self.source = layer, None, STROKES
            self._doubt("image", kept)
            self._doubts["source"] = []
            self._remove_preview()
        former = [one for one in viewer.layers
                  if role_of(one)[0] == STROKES and shape_of(one) == shape_of(layer)]  # fmt: skip
        if former:
            self.strokes = former[-1]
        else:
            self.strokes = Labels(
                np.zeros(shape_of(layer), np.uint8),
                name=f"{layer.name} strokes",
                metadata=role(STROKES),
                **placement_of(layer).keywords(),
            )
            viewer.add_layer(self.strokes)
        # A stroke moves many labels: the first when it ends, the second also when it is undone, the
        # third when other data take the place of all strokes.
        events = self.strokes.events
        events.set_data.disconnect(self._forget_counts)
        events.set_data.connect(self._forget_counts)  # whatever is drawn anew
        for event in (events.paint, events.labels_update, events.data):
            event.disconnect(self._on_stroke)
            event.connect(self._on_stroke)
        self.strokes.events.selected_label.connect(self._on_label)
        self.strokes.brush_size = _BRUSH
        self._counts = None
        self.choose(0)
        self._colour_strokes()
        self._timer.start()

    def choose(self, number: int) -> None:
        """Paint with a class from now on."""
        if self.strokes is not None:
            self.scene.viewer.layers.selection.active = self.strokes
            self.strokes.selected_label = number + 1
            self.strokes.mode = "paint"
        self.changed.emit()

    @property
    def chosen(self) -> int:
        """The class of the brush, from 0."""
        label = 1 if self.strokes is None else int(self.strokes.selected_label)
        return min(max(label, 1), len(self.classes)) - 1

    def counts(self) -> list[int]:
        """Return the number of labelled pixels of each class."""
        if self.strokes is None:
            return [0] * len(self.classes)
        if self._counts is None:  # of a volume, counting takes longer than all else on the screen
            values = np.asarray(self.strokes.data).reshape(-1)
            painted = values[np.flatnonzero(values)]
            self._counts = np.bincount(painted, minlength=len(self.classes) + 1)[1:].tolist()
        return self._counts

    # Classes.

    def add_class(self) -> None:
        """Add a class, and paint with it."""
        used = {one.name for one in self.classes}
        proposed = check_classes(None, len(self.classes) + 5)
        name = next(one.name for one in proposed if one.name not in used)
        colour = proposed[len(self.classes)].colour
        self._set_classes([*self.classes, PixelClass(name, colour)])
        self.choose(len(self.classes) - 1)

    def remove_class(self) -> None:
        """Remove the class of the brush; ask first if it has strokes, which go with it."""
        one, painted = self.classes[self.chosen], self.counts()[self.chosen]
        if not painted:
            self._drop(one)
            return
        ask(
            f"Remove the class “{one.name}”?",
            f"The class “{one.name}” has {painted:,} painted pixels, which would be erased. This "
            "cannot be undone; the strokes of the other classes stay.",
            {"Remove class and strokes": lambda: self._drop(one)},
        )

    def _drop(self, one: PixelClass) -> None:
        """Remove a class and its strokes; the next classes move up."""
        if one not in self.classes or len(self.classes) < 3:  # changed while the question was open
            return
        number, strokes = self.classes.index(one), self.strokes
        if strokes is not None and (strokes.data > number).any():
            kept = np.where(strokes.data == number + 1, 0, strokes.data)
            strokes.data = (kept - (kept > number + 1)).astype(strokes.data.dtype)
            # This clears its history: an undo would bring back strokes by their old numbers.
            strokes.editable = False
            strokes.editable = True
        self._set_classes(self.classes[:number] + self.classes[number + 1 :])
        self.choose(min(number, len(self.classes) - 1))

    def change_class(self, number: int, name: str | None = None, colour: str | None = None) -> None:
        """Rename a class or give it another colour."""
        old = self.classes[number]
        word = old.name if name is None else "_".join(name.split())
        new = PixelClass(word, colour or old.colour)
        self._set_classes([new if k == number else one for k, one in enumerate(self.classes)])

    def _set_classes(self, classes: list[PixelClass]) -> None:
        try:
            self.classes = list(check_classes(classes))
            self._counts = None
        finally:
            self.changed.emit()
        self._remove_preview()
        self._colour_strokes()
        self._timer.start()

    def _colour_strokes(self) -> None:
        if self.strokes is not None:
            colours = {k + 1: one.colour for k, one in enumerate(self.classes)}
            self.strokes.colormap = direct_colours(colours, "white")

    # Features.

    @property
    def bank(self) -> FilterBank:
        """The features that are computed of the image."""
        return FilterBank() if self._training is None else self._training.bank

    @property
    def has_planes(self) -> bool:
        """Whether the image has several planes, so that filters may lie across them."""
        return self._training is not None and self._training.source.grid[0] > 1

    def set_features(
        self,
        *,
        scales: Sequence[float] | None = None,
        structure: bool | None = None,
        per_plane: bool | None = None,
    ) -> None:
        """Use other features; a classifier of the former ones is dropped, strokes are kept."""
        if self._training is None:
            return
        changed = self.bank
        if scales is not None:
            changed = replace(changed, scales=check_scales(scales))
        if structure is not None:
            changed = replace(changed, structure=structure)
        if per_plane is not None:
            changed = replace(changed, axes=2 if per_plane else 3)
        if changed != self.bank:
            self._use_bank(changed)
            if self.classifier is not None and self.source != STROKES:
                again = "learn from gold again" if self.source == "gold" else "open it again"
                self._doubts["source"] = [
                    "The classifier that was in use does not read these features: paint a few "
                    f"strokes of each class, or {again}."
                ]
            self.classifier, self.source = None, STROKES
            self._remove_preview()
            self._timer.start()
        self.changed.emit()

    def _use_bank(self, bank: FilterBank) -> None:
        """Compute these features from now on; refuse those that the image does not have."""
        assert self._training is not None
        if bank != self._training.bank:
            if bank.axes != self._training.bank.axes:
                self._per_plane = bank.axes == 2
            self._training = self._training.with_bank(bank)
            self._scales, self._structure = bank.scales, bank.structure

    @property
    def is_pending(self) -> bool:
        """Whether the plane in view does not follow the last stroke by all trees yet."""
        running = LIVE in self.project.jobs.running()
        return self._timer.isActive() or self._is_due or self._is_rough or running

    @property
    def is_awaited(self) -> bool:
        """Whether the plane in view does not show the last stroke at all yet."""
        return self.is_pending and (self._timer.isActive() or self._is_due or not self._is_rough)

    @property
    def remarks(self) -> str:
        """Sentences on what is missing, and on what may be wrong with the image and the strokes."""
        doubts = dict.fromkeys(text for texts in self._doubts.values() for text in texts)
        return " ".join([self.message, *doubts]).strip()

    def _doubt(self, of: str, warnings: list[DataWarning]) -> None:
        """Keep the warnings of the image or of the strokes, in place of the former ones."""
        name = "the image" if self._image is None else f"“{self._image.name}”"
        self._doubts[of] = [
            re.sub(r"“images?(\[\d+\])?”", name, window_sentence(one)) for one in warnings
        ]

    # The plane in view.

    def set_live(self, on: bool) -> None:
        """Classify the plane in view after each stroke, or stop that."""
        self.is_live = on
        if on:
            self._timer.start()
        else:
            self.message = ""  # what was missing for the plane in view
            self._doubt("strokes", [])
            self._remove_preview()
            self.changed.emit()

    def _on_stroke(self, _: object = None) -> None:
        self._counts = None
        self.source = STROKES
        self._doubts["source"] = []
        self._timer.start()

    def _forget_counts(self, _: object = None) -> None:
        self._counts = None

    def _on_label(self, _: object = None) -> None:
        self.changed.emit()

    def _on_dims(self, _: object = None) -> None:
        known = self.classifier is not None or self._is_rough
        if self.strokes is not None and self.is_live and known:
            self._timer.start()

    def _classify_view(self) -> None:
        """Learn from all strokes and classify the part in view, in a worker: first a rough look.

        A fifth of the trees comes first, then all. A stroke in the meantime stops the work of all.
        """
        self.changed.emit()
        self._is_due = False
        self._classify(_ROUGH)
        self._is_rough = False

    def _classify(self, trees: int | None) -> bool:
        """Start to classify the part in view by some trees or all; return whether it began."""
        training, strokes, classes = self._training, self.strokes, tuple(self.classes)
        if training is None or strokes is None or not self.is_live:
            return False
        part = self._part_in_view()
        if part is None:
            return False
        source = self.source
        fixed = None if source == STROKES else self.classifier
        labels = strokes.data
        doubts: list[DataWarning] = []

        def work(progress: ProgressCallback) -> Any:
            with self._one_at_a_time:
                classifier = fixed
                if classifier is None:
                    classifier = training.train(labels, classes, trees=trees, progress=progress)
                else:  # its warnings are shown: the values may be of another range
                    inputs = training.source
                    classifier.check_image(
                        inputs.picture.data, inputs.spacing[3 - inputs.ndim :],
                        inputs.picture.channel_axis,
                    )  # fmt: skip
                return classifier, training.predict(classifier, *part, progress=progress)

        def done(result: Any) -> None:
            is_current = training is self._training and classes == tuple(self.classes)
            if is_current and self.is_live and source == self.source:
                self.message = ""
                self._doubt("strokes", doubts)
                self._is_rough = trees == _ROUGH and fixed is None
                if not self._is_rough:  # that of few trees is neither saved nor used for cues
                    self.classifier = result[0]
                self._show_view(part, result[1])

        job = self.project.jobs.start(
            LIVE, "Learning from strokes", work, done, self._failed, doubts.extend
        )
        if job is None:
            self._is_due = True  # once the running one has ended, which is soon
            if self._is_rough:
                self.project.jobs.cancel(LIVE)
            return False
        job.ended.connect(lambda: self._on_live_ended(trees))
        return True

    def _on_live_ended(self, trees: int | None) -> None:
        if self._is_due:
            self._timer.start()
        else:  # after a look by few trees all of them follow; not again if they failed
            self._is_rough = self._is_rough and trees is not None and self._classify(None)
        self.changed.emit()

    def _failed(self, error: Exception) -> None:
        if isinstance(error, InvalidInput):  # too few strokes as yet, or an image with NaN
            text = window_sentence(error)
            self.message = text.replace("`labels`", "The layer of strokes").replace(
                "`image`", "The image"
            )
            self.changed.emit()
        else:
            tell_error(error)

    def _part_in_view(self) -> tuple[list[int], list[int]] | None:
        """Return first and last index + 1, along each axis, of the part of the plane in view."""
        viewer, strokes = self.scene.viewer, self.strokes
        assert strokes is not None
        if viewer.dims.ndisplay != 2:
            self.message = "Live probabilities are shown only in 2-D, and the view is in 3-D."
            self.changed.emit()
            return None
        shape = strokes.data.shape
        shown = [axis - (viewer.dims.ndim - len(shape)) for axis in viewer.dims.displayed]
        place = strokes.world_to_data(viewer.dims.point)
        start = [0 if a in shown else int(np.clip(round(place[a]), 0, n - 1))
                 for a, n in enumerate(shape)]  # fmt: skip
        stop = [n if a in shown else start[a] + 1 for a, n in enumerate(shape)]
        if np.prod([n for a, n in enumerate(shape) if a in shown]) > _LARGE:
            for axis in shown:
                low, high = (int(one) for one in strokes.corner_pixels[:, axis])
                start[axis] = min(max(0, low), shape[axis] - 1)
                stop[axis] = min(shape[axis], max(high, start[axis]) + 1)
        return start, stop

    def _show_view(self, part: tuple[list[int], list[int]], probabilities: Any) -> None:
        index = tuple(slice(a, b) for a, b in zip(*part, strict=True))
        layers = self.preview()
        for one, probability in zip(self.classes, probabilities, strict=True):
            if one.name not in layers:
                layers[one.name] = self._add_layer(one, np.zeros(self.strokes.data.shape,
                                                                 np.float32))  # fmt: skip
            layers[one.name].data[index] = probability
            layers[one.name].refresh()

    def preview(self) -> dict[str, Any]:
        """Return the layers of live probabilities by class."""
        marked = [(role_of(layer), layer) for layer in self.scene.viewer.layers]
        return {name: layer for (kind, name), layer in marked if kind == PROBABILITY}

    def _add_layer(self, one: PixelClass, data: Any) -> Any:
        layer = Image(
            data,
            name=f"{one.name} (live)",
            colormap=Colormap(["#000000", one.colour], name=f"agglo {one.colour}"),
            contrast_limits=(0.0, 1.0),
            blending="additive",
            opacity=OPACITY,
            visible=self.classes.index(one) == 0,
            metadata=role(PROBABILITY, one.name),
            **placement_of(self._image).keywords(),
        )
        add_inactive(self.scene.viewer, layer)
        self._raise_strokes()
        return layer

    def _raise_strokes(self) -> None:
        layers = self.scene.viewer.layers
        if self.strokes in layers:
            layers.move(layers.index(self.strokes), len(layers))

    def _remove_preview(self) -> None:
        for layer in self.preview().values():
            self.scene.viewer.layers.remove(layer)

    # The whole image.

    def make_cues(self) -> None:
        """Classify the whole image block by block in a worker, then use all classes as cues."""
        training, strokes, image = self._training, self.strokes, self._image
        loaded = self.classifier
        if training is None or image is None or (strokes is None and loaded is None):
            return
        from_strokes = self.source == STROKES and any(self.counts())
        labels = strokes.data if from_strokes and strokes is not None else None
        classes = tuple(self.classes)

        def make() -> PixelClassifier:
            with self._one_at_a_time:
                classifier = loaded if labels is None else training.train(labels, classes)
            assert classifier is not None
            return classifier

        try:
            work = classification(make, training.source, len(classes), image)
        except InvalidInput as error:  # larger than memory, and no file was named
            return self._failed(error)

        def done(result: Any) -> None:
            self.classifier, self.message = result[0], ""
            self._remove_preview()
            self._use(image, *result)
            self.changed.emit()

        def warned(warnings: list[DataWarning]) -> None:
            if self._image is image:
                self._doubt("strokes", warnings)

        self.project.jobs.start(PIXELS, "Classifying pixels", work, done, self._failed, warned)

    def _use(self, image: Any, classifier: PixelClassifier, cues: dict[str, Any]) -> None:
        chosen = show_probabilities(self.scene.viewer, image, classifier, cues)
        self._raise_strokes()
        self.selection.use_as_cues(chosen)

    # Gold, and files.

    def learn_from_gold(self) -> None:
        """Learn the boundary and the rest from gold labels in a worker, in place of strokes."""
        self.start()
        image, golds = self._image, GoldVolumes.of(self.selection)
        if image is None or not golds.volumes:
            return
        golds.check_colours(image)
        has_strokes = any(self.counts())
        if has_strokes and len(self.classes) > 2:
            raise InvalidInput(
                f"Gold tells boundary and interior, and there are {len(self.classes)} classes",
                argument="classes",
                remedy="remove the others first, or learn from the strokes",
            )
        classes = self.classes if has_strokes else check_classes(GOLD_CLASSES)
        bank, per_plane = self.bank, self._per_plane
        if per_plane is None and bank.axes == 2:  # volumes that teach may have thinner planes
            per_plane = True

        def work(progress: ProgressCallback) -> Any:
            return golds.train(classes, bank, per_plane, progress)

        def failed(error: Exception) -> None:
            if self._image is image and isinstance(error, InvalidInput):
                self._doubts["source"] = [window_sentence(error)]
                self.changed.emit()
            else:
                tell_error(error)

        def done(classifier: PixelClassifier) -> None:
            if self._image is image:
                self.message = ""
                self._use_classifier(classifier, "gold", golds.text)

        def warned(warnings: list[DataWarning]) -> None:
            if self._image is image:
                self._doubt("source", warnings)

        self._doubts["source"] = []
        self.project.jobs.start(PIXELS, "Learning from gold", work, done, failed, warned)

    def _use_classifier(self, classifier: PixelClassifier, source: str, source_text: str) -> None:
        """Use a classifier that no stroke has taught, its classes and features.

        The next stroke takes over, with the same features.
        """
        self._use_bank(classifier.bank)
        self.classes = list(classifier.classes)
        self._counts = None
        self._remove_preview()
        self._colour_strokes()
        self.classifier, self.source, self.source_text = classifier, source, source_text
        self._timer.start()
        self.changed.emit()

    def save(self, path: Path) -> None:
        """Write the classifier to a file."""
        if self.classifier is not None:
            self.classifier.save(path)

    def load(self, path: Path) -> None:
        """Use a classifier of a file, and its classes, for the chosen image."""
        classifier = load_pixel_classifier(path)
        self.start()
        self._use_classifier(classifier, "file", "The opened classifier is used as it is.")
        self._doubts["source"] = []

    def _close(self) -> None:
        self._timer.stop()

    def _on_removed(self, event: Any) -> None:
        if event.value is self.strokes:
            self.strokes = None
            self._timer.stop()
            self.changed.emit()
        if event.value is self._image:
            self._image = self._training = None
            self.changed.emit()
