"""The inputs of a session as layers: image, cues and gold, remembered and brought back."""

# In its own file: files that have moved, apart from the folder of the session itself.

from __future__ import annotations

import math
import weakref
from collections.abc import Generator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from napari.layers import Image, Labels
from napari.utils.notifications import show_info, show_warning
from qtpy.QtWidgets import QFileDialog

from napari_agglo.errors import AggloError, InvalidInput
from napari_agglo.session import Session, Source
from napari_agglo.volumes import add_pick, in_memory, is_on_disk, open_levels
from napari_agglo.volumes._on_disk import pick
from napari_agglo.widgets._dataset import Dataset, Placement, identity_of
from napari_agglo.widgets._layer_levels import lazy_data, lazy_levels
from napari_agglo.widgets._napari import is_of_sample, one_update, role
from napari_agglo.widgets._project import Project, Regions
from napari_agglo.widgets._qt import ask, per_viewer
from napari_agglo.widgets.data._layers import data_of
from napari_agglo.widgets.data._selection import Selection
from napari_agglo.widgets.proofread._view_state import State, apply_layers, apply_order, image_names

_CUE = "cue "
_AFFINITIES = "affinities"  # of a run of blocks; a layer shows the first channel of them
_CUE_MAPS = ("magma", "bop blue", "bop orange", "bop purple")
_IN_MEMORY = 1 << 30  # bytes: a larger file is read lazily
_LEVEL = 0.51 / 255  # of the range of a cue: the copy of a cue has 256 levels


class Inputs:
    """The layers of a viewer that are inputs of its session, by the keys of `Session.sources`."""

    def __init__(self, viewer: Any) -> None:
        self._viewer = weakref.ref(viewer)
        self._project = per_viewer(viewer, Project)
        self.layers: dict[str, Any] = {}
        self._placement: Placement | None = None  # of the session that is opened
        self._unread: set[str] = set()  # keys of inputs whose file no reader could open

    # A new session.

    def describe(self, dataset: Dataset, gold: Any) -> dict[str, Source]:
        """Return the inputs of a dataset and its gold, with the files of their layers."""
        viewer = self._viewer()
        self.layers = {}
        if viewer is None:
            return {}
        dataset = dataset.origin or dataset
        sources: dict[str, Source] = {}
        inputs = {"image": dataset.image, "gold": gold}
        inputs |= {f"{_CUE}{name}": cue for name, cue in dataset.cues.items()}
        for key, data in inputs.items():
            layer, channel = _layer_with(viewer, key, data)
            if layer is not None:
                self.layers[key] = layer
                source = layer.source
                path = None if source.path is None else str(source.path)
                sources[key] = Source(
                    data_of(layer), path, str(layer.name), source.reader_plugin, channel
                )
            elif hasattr(data, "dtype"):
                sources[key] = Source(data, name=f"{dataset.name} {key.removeprefix(_CUE)}")
        return sources

    # A session that is opened again.

    def restore(
        self, session: Session, state: State, placement: Placement
    ) -> Generator[None, None, list[str]]:
        """Add the layers of the inputs that are not in the viewer; return the keys not found.

        A part has one layer: napari takes a fifth of a second to add it.
        """
        viewer = self._viewer()
        self.layers = {}
        self._placement = placement
        if viewer is None:
            return []
        opened: dict[str, list[Any]] = {}
        missing = []
        self._unread = set()
        for key in [*session.sources, *_without_note(session)]:
            note = session.sources.get(key)
            layer = None
            if note is not None:
                layer = _present(viewer, session, key) or self._from_file(session, key, opened)
            if layer is None:
                with suppress(AggloError):  # a damaged copy is as good as none
                    layer = _from_copy(viewer, session, key, placement)
            if layer is not None:
                self._take(layer, key, note)
                yield
            elif note is not None:
                missing.append(key)
        self._remove_rest(opened)
        self._choose(session)
        return missing

    def set_sample_aside(self, session: Session, state: State) -> None:
        """Remove the layers of a sample before a session of another volume, which they would hide.

        Those of a sample that was worked on are only hidden.
        """
        viewer, project = self._viewer(), self._project
        samples = [] if viewer is None else [one for one in viewer.layers if is_of_sample(one)]
        names = {note.name for note in session.sources.values()} | image_names(state)
        if viewer is None or not names or any(layer.name in names for layer in samples):
            return
        if not samples:  # napari collects garbage after an update, a fifth of a second
            return
        runs = [one for one in (project.regions, project.shown_regions, project.trained.on) if one]
        used = [*project.training, *(one.dataset for one in runs)]
        arrays = [data_of(layer) for layer in samples]
        is_untouched = not project.strokes and not any(
            one.uses(array) for one in used for array in arrays
        )
        with one_update(viewer):
            for layer in samples:
                if is_untouched:
                    viewer.layers.remove(layer)
                else:
                    layer.visible = False

    def _choose(self, session: Session) -> None:
        """Choose the layers in the Data step, by their roles."""
        viewer = self._viewer()
        if viewer is None or not self.layers:
            return
        cues = {
            key.removeprefix(_CUE): (layer, _channel(session, key))
            for key, layer in self.layers.items()
            if key.startswith(_CUE)
        }
        selection = per_viewer(viewer, Selection)
        selection.choose_all(self.layers.get("image"), self.layers.get("gold"), cues)
        if "gold" in self.layers and (people := _channel(session, "gold")) is not None:
            axis, _, person = people.partition(":")
            if self.layers["gold"].ndim == len(session.sources["gold"].shape):
                selection.use_several(int(axis), int(person))

    def adopt(self) -> None:
        """Give the hierarchy of an opened session the chosen dataset, if that fits."""
        project = self._project
        chosen = project.dataset
        if chosen is None or project.built is None or not _fits(chosen, project.built.regions):
            return
        regions = project.built.regions
        graph = regions.graph
        whole = replace(
            chosen, superpixels=graph.superpixels.image, name=regions.dataset.name,
            origin=chosen, placement=regions.dataset.placement,
        )  # fmt: skip
        project.place_regions(Regions(whole, graph))

    def ask_moved(self, session: Session, missing: list[str], state: State) -> None:
        """Ask for the files of inputs that are not in their place."""
        if not missing:
            return
        lines = []
        for key in missing:
            note = session.sources[key]
            if note.path is None:
                why = "was in no file, and is too large for a copy in the session"
            elif session.sources.path(key) is None:
                why = f"is no longer at {note.path}"
            elif key in self._unread:
                why = f"could not be read from {note.path}"
            else:
                why = f"differs from the pixels in {note.path} now"
            lines.append(f"The {_words(key)}, “{note.name}”, {why}.")
        many = "Some inputs have" if len(missing) > 1 else f"The {_words(missing[0])} has"
        text = "<br>".join([*lines, "The session itself is complete."])
        first = missing[0]
        find = f"Find {Path(session.sources[first].path or session.sources[first].name).name}…"
        ask(
            f"{many} moved",
            text,
            {find: lambda: self._find(session, missing, state)},
        )

    def _find(self, session: Session, missing: list[str], state: State) -> None:
        """Let the user point to the file of the first missing input; look for the others there."""
        key, *_ = missing
        note = session.sources[key]
        old = Path(note.path or note.name)
        title, start = f"Find the {_words(key)}: {old.name}", str(session.path.parent)
        if old.suffix.partition(":")[0] in (".zarr", ".n5"):
            chosen = QFileDialog.getExistingDirectory(None, title, start)
        else:
            chosen, _ = QFileDialog.getOpenFileName(None, title, start)
        if chosen and key == _AFFINITIES:
            chosen = add_pick(chosen, "c=*")
        if chosen and self._project.session is session:
            self.find_in(session, missing, chosen, state)

    def find_in(self, session: Session, missing: list[str], path: str, state: State) -> None:
        """Use a file for the first missing input, and the files beside it for the others."""
        left: list[str] = []
        opened: dict[str, list[Any]] = {}
        for k, key in enumerate(missing):
            note = session.sources[key]
            beside = Path(path).with_name(Path(note.path or note.name).name)
            place = path if k == 0 else str(beside)
            layer = self._opened(session, key, place, opened)
            if layer is None:
                left.append(key)
                continue
            self._take(layer, key, note)
            if not session.read_only:
                session.sources.move(key, place)
        self._remove_rest(opened)
        viewer = self._viewer()
        if viewer is not None:
            apply_layers(viewer, state, self.layers)
            apply_order(viewer, state, self.layers)
        self._choose(session)
        self.adopt()
        if missing[0] in left:
            note = session.sources[missing[0]]
            show_warning(
                f"{Path(path).name} has other pixels than “{note.name}” of this session, of shape "
                f"{note.shape}; choose another file."
            )
        elif not left:
            show_info("All layers of the session are back.")
        self.ask_moved(session, left, state)

    def _take(self, layer: Any, key: str, note: Any) -> None:
        """Keep a layer as an input, under its former name, if it had one."""
        if note is None or note.channel is None or key == "gold":  # else one of several cues
            layer.metadata = {**layer.metadata, **_role_of(key)}
            layer.name = layer.name if note is None else note.name
        self.layers[key] = layer

    def _from_file(self, session: Session, key: str, opened: dict[str, list[Any]]) -> Any:
        path = session.sources.path(key)
        return None if path is None else self._opened(session, key, path, opened)

    def _opened(self, session: Session, key: str, path: str, opened: dict[str, list[Any]]) -> Any:
        """Open a file, and return its layer that has the pixels of an input.

        A file that no plugin of napari had opened before is read as the command line and Python
        read it: napari knows neither FILE:KEY nor precomputed volumes, and has two for Zarr.
        """
        viewer = self._viewer()
        if viewer is None or self._placement is None:
            return None
        on_disk = is_on_disk(session.graph.superpixels.image)
        by_plugin = bool(session.sources[key].reader) and not on_disk
        self._unread.add(key)
        layer = self._by_plugin(viewer, session, key, path, opened) if by_plugin else None
        if layer is None:
            with suppress(AggloError):  # of another format, or damaged
                layer = layer_of_file(session, key, path, self._placement)
                self._unread.discard(key)
            if layer is not None:
                viewer.add_layer(layer)
        if layer is None and not by_plugin and not on_disk:
            layer = self._by_plugin(viewer, session, key, path, opened)
        return layer

    def _by_plugin(
        self, viewer: Any, session: Session, key: str, path: str, opened: dict[str, list[Any]]
    ) -> Any:
        """Open a file once by a plugin of napari, and return its layer of an input."""
        kind = "labels" if key == "gold" else None  # napari opens label files as images
        at = f"{kind} {path}"
        if at not in opened:
            try:
                reader = session.sources[key].reader
                opened[at] = list(viewer.open(path, plugin=reader or None, layer_type=kind))
            except Exception:  # a reader of another plugin may raise anything
                opened[at] = []
        if opened[at]:
            self._unread.discard(key)
        for layer in opened[at]:
            if isinstance(layer, (Image, Labels)) and session.sources.matches(key, data_of(layer)):
                return layer
        return None

    def _remove_rest(self, opened: dict[str, list[Any]]) -> None:
        """Remove the layers of opened files that are no inputs."""
        viewer = self._viewer()
        kept = list(self.layers.values())
        for layer in [one for layers in opened.values() for one in layers]:
            is_input = any(layer is one for one in kept)
            if viewer is not None and layer in viewer.layers and not is_input:
                viewer.layers.remove(layer)


def _layer_with(viewer: Any, key: str, data: Any) -> tuple[Any, str | None]:
    """Return the layer that has the pixels of an input, and the channel of a cue in it."""
    if data is None:
        return None, None
    for layer in viewer.layers:
        if isinstance(layer, (Image, Labels)) and identity_of(data_of(layer)) == identity_of(data):
            return layer, None
    selection = per_viewer(viewer, Selection)
    if key == "gold" and any(data is one for one in selection.golds()):
        return selection.gold, f"{selection.people}:{selection.person}"
    for row in selection.rows if key.startswith(_CUE) else ():
        named = row.name == key.removeprefix(_CUE) and row.channel is not None
        if named and identity_of(row.data) == identity_of(data):
            return row.layer, row.channel_text
    return None, None


def _present(viewer: Any, session: Session, key: str) -> Any:
    """Return the layer of an input that is in the viewer already, by its name and pixels."""
    note = session.sources[key]
    for layer in viewer.layers:
        if isinstance(layer, (Image, Labels)) and layer.name == note.name:
            data = data_of(layer)
            if tuple(data.shape) == note.shape and session.sources.matches(key, data):
                return layer
    return None


def _from_copy(viewer: Any, session: Session, key: str, placement: Placement) -> Any:
    """Return the layer of the copy of an input in the session; None if the session has none.

    Without a note on the input, a layer of the viewer with its role and pixels is that layer.
    """
    data = session.sources.copy(key)
    if data is None:
        return None
    note = session.sources.get(key)
    if note is None and (known := _layer_like(viewer, key, data)) is not None:
        return known
    rgb = data.ndim == len(placement.scale) + 1
    if not rgb and data.ndim != len(placement.scale):
        return None
    own = f"{session.path.stem} {key.removeprefix(_CUE)}"
    options: dict[str, Any] = {"name": own if note is None else note.name, **placement.keywords()}
    if key == "gold":
        return viewer.add_labels(data, visible=False, opacity=0.5, **options)
    if key == "image":
        return viewer.add_image(data, rgb=rgb, **options)
    return viewer.add_image(data, **_look_of_cue(session, key), **options)


def _layer_like(viewer: Any, key: str, data: Any) -> Any:
    """Return the layer of a sample with the role and the pixels of an input; None if none has."""
    for layer in viewer.layers:
        if isinstance(layer, (Image, Labels)) and layer.metadata.items() >= _role_of(key).items():
            shown = data_of(layer)
            if isinstance(shown, np.ndarray) and shown.shape == data.shape:
                if key == "gold" and np.array_equal(shown, data):
                    return layer
                if key != "gold" and np.abs(shown - data).max(initial=0) <= _LEVEL * np.ptp(data):
                    return layer
    return None


def _without_note(session: Session) -> list[str]:
    """Return the keys of gold and cues that a session has without a note on where they were.

    A cue that is the borders of the superpixels shows nothing but these.
    """
    graph, known = session.graph, session.sources
    keys = ["gold"] if "gold" not in known and session.errors.has_gold else []
    if any(key.startswith(_CUE) or key == _AFFINITIES for key in known) or not graph.n_boundaries:
        return keys
    rows = graph.layout.sources or ((0,),) * len(graph.cue_names)
    plain = [name for name, row in zip(graph.cue_names, rows, strict=True) if len(row) == 1]
    return keys + [f"{_CUE}{one}" for one in plain if graph.boundary_mean(one).min() < 1]


def _look_of_cue(session: Session, key: str) -> dict[str, Any]:
    """Return the look of a cue: hidden, unless there is no image to look at."""
    cues = [one for one in session.sources if one.startswith(_CUE) or one == _AFFINITIES]
    cues = cues or [one for one in _without_note(session) if one.startswith(_CUE)]
    shown = "image" not in session.sources and key == cues[0]
    return {
        "visible": shown,
        "colormap": "gray" if shown else _CUE_MAPS[cues.index(key) % len(_CUE_MAPS)],
        "blending": "translucent" if shown else "additive",
    }


def _channel(session: Session, key: str) -> str | None:
    note = session.sources.get(key)
    return None if note is None else note.channel


def layer_of_file(session: Session, key: str, path: str, placement: Placement) -> Any:
    """Return a layer of an input in a file; None if it has other pixels.

    That of a volume on disk, or of a large one, is read where it is shown. Raise `InvalidInput` if
    the file cannot be read.
    """
    levels = [level.data for level in open_levels(path)]
    if not session.sources.matches(key, levels[0]):
        return None
    on_disk = is_on_disk(session.graph.superpixels.image)
    if on_disk and key == "gold":
        with suppress(InvalidInput):  # which may have moved here
            # the same object, whose overlaps may be known
            levels[0] = levels[0] if session.errors.gold is None else session.errors.gold
    if key == _AFFINITIES:
        levels = [pick(one, {0: 0}) for one in levels]
    if len(levels[0].shape) != len(placement.scale):
        return None
    options: dict[str, Any] = {"name": session.sources[key].name, **placement.keywords()}
    size = math.prod(levels[0].shape) * np.dtype(levels[0].dtype).itemsize
    if on_disk or size > _IN_MEMORY:
        options |= lazy_data(levels)
    else:
        levels = [in_memory(levels[0], key)]
        options |= {"data": levels[0]}
    if key == "gold":
        return Labels(visible=False, opacity=0.5, **options)
    limits = _limits(session, key, lazy_levels(levels)[-1])
    if key == "image":
        return Image(rgb=False, contrast_limits=limits, **options)
    return Image(rgb=False, contrast_limits=limits, **_look_of_cue(session, key), **options)


def _limits(session: Session, key: str, coarsest: Any) -> tuple[float, float]:
    """Return the contrast limits of an image on disk: the range of a cue, or that of a plane."""
    graph, name = session.graph, key.removeprefix(_CUE)
    if key.startswith(_CUE) and name in graph.cue_names:
        low, high = sorted(graph.cue_ranges[graph.cue_names.index(name)])
        return low, high
    if np.dtype(coarsest.dtype) == np.uint8:
        return 0.0, 255.0
    middle = tuple(n // 2 for n in coarsest.shape[:-2])
    plane = np.asarray(coarsest[(*middle, slice(None), slice(None))], np.float64)
    finite = plane[np.isfinite(plane)]
    low, high = float(finite.min(initial=np.inf)), float(finite.max(initial=-np.inf))
    return (low, high) if low < high else (0.0, 1.0)


def _fits(dataset: Dataset, regions: Regions) -> bool:
    graph = regions.graph
    return dataset.shape == graph.superpixels.image.shape and set(dataset.cues) == set(
        graph.cue_names
    )


def _role_of(key: str) -> dict[str, str]:
    kind, _, name = key.partition(" ")
    return role(kind, name)


def _words(key: str) -> str:
    return f"cue {key.removeprefix(_CUE)}" if key.startswith(_CUE) else key
