"""Seeds of a cut: pixels in groups, shown as points in the colours of their groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from napari.layers import Points
from psygnal import Signal

from napari_agglo.widgets._napari import camera
from napari_agglo.widgets._scene import GROUPS, Scene

SEEDS = "Seeds"
_NEAR = 8  # pixels of the screen: so near to a seed means that seed
_DIAMETER = 14  # pixels of the screen
GROUP_NAMES = ("orange", "sky blue", "green", "yellow", "red", "pink", "dark blue", "grey")


@dataclass(frozen=True)
class Seed:
    """A pixel, its dense superpixel when it was placed, and its group, counted from 0."""

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
        scene.project.hierarchy_changed.connect(self.clear)
        camera(scene.viewer).events.zoom.connect(self._resize)

    def __bool__(self) -> bool:
        return bool(self.placed)

    @property
    def groups(self) -> list[list[Seed]]:
        """The seeds of each group that has some, in the order of the groups."""
        used = sorted({seed.group for seed in self.placed})
        return [[seed for seed in self.placed if seed.group == group] for group in used]

    @property
    def layer(self) -> Points | None:
        """The layer that shows them, if it is in the viewer."""
        layer = self._layer
        return layer if layer is not None and layer in self.scene.viewer.layers else None

    def near(self, index: tuple[int, ...]) -> Seed | None:
        """Return the seed at a pixel, or so near that one would mean it."""
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
        """Take one away."""
        self.placed.remove(seed)
        self._show()

    def next_group(self) -> None:
        """Go on to the next group: a new one, unless the current one has no seed yet; then round.

        So with two groups the key swaps between them, and a third begins when both are in use.
        """
        used = sorted({seed.group for seed in self.placed})
        last = used[-1] if used else -1
        self.group = self.group + 1 if self.group <= last and last + 1 < len(GROUPS) else 0
        self.changed.emit()

    def set_group(self, group: int) -> None:
        """Place seeds of this group from now on."""
        self.group = group
        self.changed.emit()

    def clear(self) -> None:
        """Take all away."""
        self.placed.clear()
        self.group = 0
        self._show()

    def raise_(self) -> None:
        """Put the points above all other layers: a seed that is hidden cannot be taken away."""
        layer, layers = self.layer, self.scene.viewer.layers
        if layer is not None and layers[-1] is not layer:
            layers.move(layers.index(layer), len(layers))

    def _show(self) -> None:
        layer = self.layer
        if layer is None:
            if self.placed:
                self._add()
        else:
            layer.data = self._places()
            if self.placed:
                layer.face_color = [GROUPS[seed.group] for seed in self.placed]
                layer.size = self._size()
                layer.visible = True
            layer.selected_data = set()
        self.raise_()
        self.changed.emit()

    def _size(self) -> float:
        """Return the diameter in pixels of the volume that looks the same at every zoom."""
        placement = self.scene.project.placement
        pixel = 1.0 if placement is None else min(abs(x) for x in placement.scale[-2:])
        return float(_DIAMETER / max(camera(self.scene.viewer).zoom * pixel, 1e-6))

    def _resize(self, _: object = None) -> None:
        layer = self.layer if self.placed else None
        if layer is not None:
            layer.size = self._size()

    def _places(self) -> Any:
        ndim = len(self.scene.project.placement.scale) if self.scene.project.placement else 2
        return np.array([seed.index for seed in self.placed], float).reshape(-1, ndim)

    def _add(self) -> None:
        placement = self.scene.project.placement
        viewer = self.scene.viewer
        layer = Points(
            self._places(),
            face_color=[GROUPS[seed.group] for seed in self.placed],
            border_color="white",
            border_width=0.12,
            size=self._size(),
            name=SEEDS,
            metadata={"napari_agglo": SEEDS},
            **({} if placement is None else placement.keywords()),
        )
        active = viewer.layers.selection.active
        self._layer = layer
        viewer.add_layer(layer)
        layer.editable = False
        if active is not None and active in viewer.layers:
            viewer.layers.selection.active = active
