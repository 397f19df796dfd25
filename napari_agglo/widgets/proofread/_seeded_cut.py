"""Cuts by seeds: points in groups, a preview of the parts, and the controls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from napari.layers import Points
from numpy.typing import NDArray
from psygnal import Signal
from qtpy.QtWidgets import QGroupBox, QToolButton

from napari_agglo.errors import AggloError
from napari_agglo.session._cut_methods import cut_methods
from napari_agglo.widgets._colours import GROUP_NAMES, GROUPS
from napari_agglo.widgets._dataset import Placement
from napari_agglo.widgets._fixed_label import fixed_label
from napari_agglo.widgets._lut_array import Patch
from napari_agglo.widgets._napari import add_inactive, camera
from napari_agglo.widgets._qt import (
    button,
    column,
    combo_box,
    link,
    named,
    pixel_word,
    row,
    tell_error,
)
from napari_agglo.widgets._scene import SEEDS, Scene
from napari_agglo.widgets.proofread._commands import Commands

if TYPE_CHECKING:
    from napari_agglo.widgets.proofread._proofreader import Proofreader


_NEAR = 8  # pixels of the screen from a seed that still hit it
_DIAMETER = 14  # pixels of the screen


@dataclass(frozen=True)
class Seed:
    """A pixel, its dense superpixel, and its group, counted from 0."""

    index: tuple[int, ...]
    superpixel: int
    group: int


class Seeds:
    """The seeds of one viewer."""

    changed = Signal()

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.placed: list[Seed] = []
        self.group = 0  # of the next seed
        self._layer: Points | None = None
        scene.project.hierarchy_changed.connect(self._on_hierarchy)
        camera(scene.viewer).events.zoom.connect(self._resize)

    def __bool__(self) -> bool:
        return bool(self.placed)

    @property
    def groups(self) -> list[list[Seed]]:
        """The seeds of each group in use, in the order of the groups."""
        used = sorted({seed.group for seed in self.placed})
        return [[seed for seed in self.placed if seed.group == group] for group in used]

    @property
    def layer(self) -> Points | None:
        """The layer of the seeds, if it is in the viewer."""
        layer = self._layer
        return layer if layer is not None and layer in self.scene.viewer.layers else None

    def near(self, index: tuple[int, ...]) -> Seed | None:
        """Return the seed at or near a pixel."""
        placement = self.scene.project.placement
        if placement is None or not self.placed:
            return None
        scale = np.abs(np.asarray(placement.scale))
        places = np.array([seed.index for seed in self.placed])
        hidden = list(self.scene.viewer.dims.not_displayed)
        offset = self.scene.viewer.dims.ndim - len(index)
        away = (places - np.asarray(index)) * scale
        other_plane = [axis - offset for axis in hidden if axis >= offset]
        far = np.sqrt((away**2).sum(axis=1))
        far[(places[:, other_plane] != np.asarray(index)[other_plane]).any(axis=1)] = np.inf
        closest = int(np.argmin(far))
        reach = max(_NEAR / camera(self.scene.viewer).zoom, float(scale.min()) / 2)
        return self.placed[closest] if far[closest] <= reach else None

    def place(self, index: tuple[int, ...], superpixel: int) -> None:
        """Place a seed of the current group."""
        self.placed.append(Seed(index, superpixel, self.group))
        self._show()

    def remove(self, seed: Seed) -> None:
        """Remove a seed."""
        self.placed.remove(seed)
        self._show()

    def next_group(self) -> None:
        """Go to the next group, or to the first after an empty group.

        So the key cycles through the groups in use and one more.
        """
        used = sorted({seed.group for seed in self.placed})
        last = used[-1] if used else -1
        self.group = self.group + 1 if self.group <= last and last + 1 < len(GROUPS) else 0
        self.changed.emit()

    def set_group(self, group: int) -> None:
        """Set the group of the next seeds."""
        self.group = group
        self.changed.emit()

    def clear(self) -> None:
        """Remove all seeds."""
        self.placed.clear()
        self.group = 0
        self._show()

    def _on_hierarchy(self) -> None:
        """Remove all seeds and, without a session, their layer."""
        self.clear()
        layer = self.layer
        if layer is not None and self.scene.project.session is None:
            self.scene.viewer.layers.remove(layer)

    def raise_(self) -> None:
        """Move the points above all other layers, as a hidden seed cannot be removed."""
        layer, layers = self.layer, self.scene.viewer.layers
        if layer is not None and layers[-1] is not layer:
            layers.move(layers.index(layer), len(layers))

    def _show(self) -> None:
        placement, layer = self.scene.project.placement, self.layer
        if layer is None and self.placed and placement is not None:
            layer = self._add(placement)
        if layer is not None:
            layer.data = np.array([seed.index for seed in self.placed], float).reshape(
                -1, layer.ndim
            )
            if self.placed:
                layer.face_color = [GROUPS[seed.group] for seed in self.placed]
                layer.size = self._size()
                layer.visible = True
            layer.selected_data = set()
        self.raise_()
        self.changed.emit()

    def _size(self) -> float:
        """Return the diameter in pixels of the volume, constant on the screen."""
        placement = self.scene.project.placement
        pixel = 1.0 if placement is None else min(abs(x) for x in placement.scale[-2:])
        return float(_DIAMETER / max(camera(self.scene.viewer).zoom * pixel, 1e-6))

    def _resize(self, _: object = None) -> None:
        layer = self.layer if self.placed else None
        if layer is not None:
            layer.size = self._size()

    def _add(self, placement: Placement) -> Points:
        self._layer = layer = Points(
            ndim=len(placement.scale),
            border_color="white",
            border_width=0.12,
            name=SEEDS,
            metadata={"napari_agglo": SEEDS},
            **placement.keywords(),
        )
        add_inactive(self.scene.viewer, layer)
        layer.editable = False
        return layer


_PREVIEW = "preview"  # the topic of the worker


@dataclass(frozen=True)
class Preview:
    """The parts of a cut: their superpixels and colours, and the superpixels that are divided."""

    parts: Sequence[NDArray[np.uint64]]
    colours: Sequence[int]  # the group of seeds of each part, from 0
    divided: Sequence[Patch] = ()
    sizes: Sequence[int] = ()

    def by_colour(
        self, parts: Sequence[NDArray[np.intp]]
    ) -> tuple[list[NDArray[np.intp]], list[Patch]]:
        """Return parts and divided superpixels, numbered and coloured like their groups."""
        coloured = [np.zeros(0, np.intp) for _ in range(max(self.colours) + 1)]
        for colour, part in zip(self.colours, parts, strict=True):
            coloured[colour] = part
        number = np.array([0, *self.colours]) + 1
        number[0] = 0
        return coloured, [(box, number[inner]) for box, inner in self.divided]


class SeededCut:
    """The cut between the seeds, with a preview that follows them."""

    changed = Signal()

    def __init__(self, scene: Scene, seeds: Seeds, commands: Commands) -> None:
        self.scene = scene
        self.project = scene.project
        self.seeds = seeds
        self.commands = commands
        self.method = "min_cut"
        self.message = ""  # the parts of the cut, or the reason why there is none
        self.possible = False
        self._request: Any = None
        seeds.changed.connect(self._on_seeds)

    @property
    def segment(self) -> int:
        """The segment that the seeds are in, by its dense name; 0 if they are in several."""
        table = self.project.table()
        segments = {
            int(table[s.superpixel]) for s in self.seeds.placed if s.superpixel < len(table)
        }
        return segments.pop() if len(segments) == 1 else 0

    def set_method(self, method: str) -> None:
        """Set the method of the cut, between the same seeds."""
        self.method = method
        self._follow()

    def commit(self) -> None:
        """Make the cut."""
        if len(self.seeds.groups) < 2:
            self._say("Place seeds of two groups: Ctrl + click, G for the next group.")
            return
        segment = self.segment
        if not segment:
            self._say(_SEVERAL)
            return
        points = self._within_one()
        self.commands.cut(
            segment, self._groups(points), self.method, self.seeds.clear, points=points
        )

    def _within_one(self) -> bool:
        """Return whether a superpixel has seeds of two groups, so that it must be divided."""
        groups: dict[int, int] = {}
        return any(
            groups.setdefault(seed.superpixel, seed.group) != seed.group
            for seed in self.seeds.placed
        )

    def _groups(self, points: bool) -> list[list[Any]]:
        if points:
            return [[seed.index for seed in group] for group in self.seeds.groups]
        return [
            [self.project.id_of(k) for k in sorted({seed.superpixel for seed in group})]
            for group in self.seeds.groups
        ]

    def _on_seeds(self) -> None:
        """Listen to edits only while there are seeds."""
        for signal in (self.project.edited, self.project.threshold_changed):
            signal.disconnect(self._on_change, missing_ok=True)
            if self.seeds:
                signal.connect(self._on_change)
        self._follow()

    def _on_change(self) -> None:
        self._request = None
        self._locate()
        self._follow()

    def _locate(self) -> None:
        """Update the superpixels of the seeds, which may be divided since."""
        graph = self.project.graph
        if graph is None:
            return
        image = graph.superpixels.image
        self.seeds.placed[:] = [
            Seed(seed.index, int(image[seed.index]), seed.group) for seed in self.seeds.placed
        ]

    def _follow(self) -> None:
        """Update the preview, or the next thing to do."""
        session, groups = self.project.session, self.seeds.groups
        if session is None or len(groups) < 2 or not self.segment:
            self.project.worker.forget(_PREVIEW)
            self._request = None
            self.scene.preview(None)
            several = bool(self.seeds) and len(groups) > 1
            self._tell(False, _SEVERAL if several else self._next_step())
            return
        points = self._within_one()
        seeds = self._groups(points)
        colours = sorted({seed.group for seed in self.seeds.placed})
        request = (self.segment, seeds, self.method, points, colours)
        if request == self._request:
            self.changed.emit()  # only the current group has changed
            return
        self._request = request
        segment, method = self.project.id_of(self.segment), self.method

        def work() -> Preview:
            between: dict[str, Any] = {"points" if points else "seeds": seeds}
            cut = session.preview(segment, method=method, **between)
            divided = [(one.box, one.parts) for one in cut.divided]
            return Preview(list(cut.whole), colours, divided, cut.sizes)

        if not self.message:
            self.message = "Computing the preview…"
        self.changed.emit()
        self.project.worker.latest(_PREVIEW, work, self._show, self._refused)

    def _show(self, preview: Preview) -> None:
        graph = self.project.graph
        if graph is None:
            return
        inside = [np.searchsorted(graph.ids, part) for part in preview.parts]
        sizes = preview.sizes or [int(graph.sizes[part].sum()) for part in inside]
        shown, divided = preview.by_colour(inside)
        self.scene.preview(shown, divided)
        self.seeds.raise_()
        n = len(divided)
        through = "one superpixel" if n == 1 else f"{n} superpixels"
        more = f", {through} divided" if n else ""
        many = " + ".join(f"{size:,}" for size in sizes)
        unit = pixel_word(graph.superpixels.image.ndim, int(sizes[-1]))
        self._tell(True, f"{len(inside)} parts of {many} {unit}{more}. Enter cuts.")

    def _refused(self, error: Exception) -> None:
        self.scene.preview(None)
        if isinstance(error, AggloError):
            self._tell(False, str(error))
        else:
            self._tell(False, "The preview failed; the error is shown in the window.")
            tell_error(error)

    def _next_step(self) -> str:
        if not self.seeds:
            return "Ctrl + click places a seed; G begins the next group; Enter cuts."
        return "Press G, then Ctrl + click where the other part is."

    def _tell(self, possible: bool, message: str) -> None:
        self.possible, self.message = possible, message
        self.changed.emit()

    def _say(self, message: str) -> None:
        self.project.worker.message.emit(message)


_SEVERAL = "The seeds are in several segments; remove those in the others, or merge first."


class CutPanel(QGroupBox):
    """Controls of a cut: the method, groups of seeds, and a text on the parts."""

    def __init__(self, proofreader: Proofreader) -> None:
        super().__init__("Cut by seeds")
        self.cut = proofreader.cut
        self.seeds = proofreader.seeds
        self.swatches = [self._swatch(k) for k in range(len(GROUPS))]
        self.method = combo_box("cut method", "Method of the cut between the seeds")
        for method in cut_methods.values():
            self.method.addItem(method.label, method.name)
        self.method.activated.connect(lambda: self.cut.set_method(self.method.currentData()))
        self.message = fixed_label("cut message", lines=2)
        self.commit = button("Cut", "Make the cut of the preview (Enter)", self.cut.commit, "cut")
        away = "Remove all seeds (Escape)"
        self.clear = button("Clear seeds", away, self.seeds.clear, "clear seeds")
        groups = row(*self.swatches, spacing=2)
        groups.addStretch(1)
        buttons = row(self.commit, self.clear)
        layout = column(self, self.method, groups, self.message, buttons, spacing=6)
        layout.setContentsMargins(8, 8, 8, 8)
        link(self._follow, self.cut.changed, self.seeds.changed)
        self._follow()

    def _swatch(self, group: int) -> QToolButton:
        place = f"Place seeds of group {group + 1}, {GROUP_NAMES[group]} (G: the next)"
        swatch = named(QToolButton(), f"group {group + 1}", place)
        swatch.setAccessibleName(f"Group {group + 1}, {GROUP_NAMES[group]}")
        swatch.setCheckable(True)
        swatch.setMinimumSize(18, 22)
        swatch.setMaximumSize(26, 22)
        swatch.setStyleSheet(
            f"QToolButton {{ background: {GROUPS[group]}; color: black; border: 1px solid #777; "
            "border-radius: 3px; }"
            "QToolButton:checked { border: 3px solid palette(text); font-weight: bold; }"
        )
        swatch.clicked.connect(lambda: self.seeds.set_group(group))
        return swatch

    def _follow(self) -> None:
        counts = Counter(seed.group for seed in self.seeds.placed)
        for k, swatch in enumerate(self.swatches):
            swatch.setChecked(k == self.seeds.group)
            swatch.setText(str(counts[k]) if counts[k] else "")
        self.method.setCurrentIndex(self.method.findData(self.cut.method))
        self.message.setText(self.cut.message)
        self.commit.setEnabled(self.cut.possible)
        self.clear.setEnabled(bool(self.seeds))
