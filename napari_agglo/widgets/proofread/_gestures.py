"""Mouse and keys on the canvas of a session; one object per viewer."""

# In its own file: mouse and keys of the canvas, apart from the panels of the dock.

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from napari.layers import Labels, Points, Shapes
from numpy.typing import NDArray

from napari_agglo.volumes import is_on_disk
from napari_agglo.widgets._key_bindings import Actions, KeyBindings
from napari_agglo.widgets._layer_levels import level_steps
from napari_agglo.widgets._napari import camera
from napari_agglo.widgets._qt import guarded
from napari_agglo.widgets._scene import Scene
from napari_agglo.widgets.proofread._commands import Commands, Selection
from napari_agglo.widgets.proofread._keyboard_pointer import KeyPointer, clicks
from napari_agglo.widgets.proofread._mode import COMPARING
from napari_agglo.widgets.proofread._seeded_cut import SeededCut, Seeds

_STEPS_A_VOXEL = 8  # along a ray: only corners of a voxel may be missed


@dataclass(frozen=True)
class Hit:
    """A pixel of the volume, and the dense superpixel there; 0 is no region."""

    index: tuple[int, ...]
    superpixel: int


def pick(scene: Scene, position: Any, direction: Any = None) -> Hit | None:
    """Return the superpixel at a position in the world; None outside the volume.

    In 3-D it is the first visible superpixel along the line of sight. `direction` is that of the
    line, as in an event of the mouse: with perspective it depends on the pixel of the canvas. By
    default it is that of the camera.
    """
    layer, graph = scene.segmentation, scene.project.graph
    if layer is None or graph is None:
        return None
    image = graph.superpixels.image
    dims = scene.viewer.dims
    displayed = list(dims.displayed)
    if len(displayed) == 3:
        if direction is None:
            direction = camera(scene.viewer).calculate_nd_view_direction(dims.ndim, displayed)
        return _along(scene, layer, image, np.asarray(position), direction, displayed)
    index = np.floor(np.asarray(layer.world_to_data(position)) + 0.5).astype(np.int64)
    if not _inside(index[None], image.shape)[0]:
        return None
    at = tuple(int(i) for i in index)
    return Hit(at, int(image[at]))


def _along(
    scene: Scene, layer: Any, image: Any, position: Any, direction: Any, displayed: list[int]
) -> Hit | None:
    start, end = layer.get_ray_intersections(position, direction, displayed, world=True)
    if start is None or end is None:
        return None
    way = np.asarray(end, float) - np.asarray(start, float)
    n = max(2, int(np.ceil(np.abs(way).max() * _STEPS_A_VOXEL)) + 1)
    points = np.asarray(start) + np.linspace(0, 1, n)[:, None] * way
    index = np.floor(points + 0.5).astype(np.int64)
    index = index[_inside(index, image.shape)]
    if not len(index):
        return None
    shown = scene.levels[-1] if is_on_disk(image) else image  # what is seen in 3-D
    steps = np.array(level_steps(scene.levels, shown) if shown is not image else [1] * image.ndim)
    superpixels = _values(shown, np.minimum(index // steps, np.array(shown.shape) - 1))
    visible = _visible(scene)[superpixels]
    first = int(np.argmax(visible))  # 0 if none is
    superpixel = int(superpixels[first]) if visible.any() else 0
    at = index[first]
    if superpixel and (steps > 1).any():
        at = _pixel_of(image, superpixel, at, steps)
    return Hit(tuple(int(i) for i in at), superpixel)


def _values(image: Any, index: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the values of an image at pixels; of a lazy image, their box is read."""
    if isinstance(image, np.ndarray):
        return image[tuple(index.T)].astype(np.int64)
    low, high = index.min(axis=0), index.max(axis=0) + 1
    box = np.asarray(image[tuple(slice(int(a), int(b)) for a, b in zip(low, high, strict=True))])
    return box[tuple((index - low).T)].astype(np.int64)


def _pixel_of(image: Any, superpixel: int, at: Any, steps: Any) -> Any:
    """Return the pixel of a superpixel nearest to another one, in the coarse pixel around that."""
    low = at // steps * steps
    high = np.minimum(low + steps, image.shape)
    part = image[tuple(slice(int(a), int(b)) for a, b in zip(low, high, strict=True))]
    inside = np.argwhere(part == superpixel) + low
    return at if not len(inside) else inside[np.abs(inside - at).sum(axis=1).argmin()]


def _visible(scene: Scene) -> NDArray[np.bool_]:
    """Return whether each superpixel is visible, by dense id."""
    project = scene.project
    table = project.table()
    visible = np.ones(len(table), bool)
    if scene.isolated:
        visible = np.asarray(np.isin(table, [project.active, *project.selected]))
    visible[0] = False
    return visible


def _inside(index: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    return np.asarray(((index >= 0) & (index < np.asarray(shape))).all(axis=1))


_STILL = 4  # pixels that the mouse may move during a click


class Gestures:
    """Gestures on the canvas, as edits.

    They work with any selected layer, unless that layer is in a mode to paint or edit it.
    """

    def __init__(
        self, scene: Scene, selection: Selection, seeds: Seeds, cut: SeededCut, commands: Commands
    ) -> None:
        self.scene = scene
        self.project = scene.project
        self.selection = selection
        self.seeds = seeds
        self.cut = cut
        self.commands = commands
        self._listening = False
        self._sight: Any = None  # the last line of sight of the mouse
        self.pointer = KeyPointer(scene.viewer)
        scene.project.closing.connect(self.pointer.hide)
        self._keys = KeyBindings()
        self._seed_keys = False
        self.project.hierarchy_changed.connect(self._follow)
        seeds.changed.connect(self._follow_seeds)
        scene.viewer.layers.events.inserted.connect(self._on_inserted)
        self._follow()

    # Mouse.

    def _on_drag(self, viewer: Any, event: Any) -> Iterator[None]:
        if not self._free() or "Alt" in event.modifiers:
            return
        start, still = tuple(event.pos), True
        yield
        while event.type == "mouse_move":
            still = still and _near(start, event.pos)
            yield
        if still and _near(start, event.pos):
            keys, sight = set(_modifiers(event)), event.view_direction
            guarded(lambda: self.click(event.position, keys, event.button, sight))

    def _on_move(self, viewer: Any, event: Any) -> None:
        self._sight = event.view_direction

    def click(self, position: Any, modifiers: set[str], button: int, direction: Any = None) -> None:
        """Handle a click at a position in the world, in 3-D along a line of sight."""
        layer = self.scene.segmentation
        if self.scene.suspended:
            self._say(f"{COMPARING}.")
            return
        if layer is None or not layer.visible:
            self.scene.show()
            self._say(
                "The layer of segments was deleted; it has been added again."
                if layer is None
                else "The layer of segments is hidden; show it to proofread."
            )
            return
        self._take_keys(layer)
        hit = pick(self.scene, position, direction)
        name = 0 if hit is None else int(self.project.table()[hit.superpixel])
        if hit is None or not name:
            self._nothing_there(modifiers, button)
        elif button == 2 or modifiers == {"Shift", "Control"}:
            self.selection.toggle(name, hit.superpixel)
        elif button != 1:
            return
        elif modifiers == {"Shift"}:
            self.commands.merge([name])
        elif modifiers == {"Control"}:
            self._seed(hit, name)
        elif not modifiers:
            self.selection.activate(name, hit.superpixel)
            self._say(f"Segment {self.project.id_of(name)} is active.")

    def _nothing_there(self, modifiers: set[str], button: int) -> None:
        if button == 1 and not modifiers:
            self.selection.activate(0)
            self._say("There is no segment here; the selection is cleared.")
        else:
            self._say("There is no segment here; background cannot be merged or cut.")

    def _seed(self, hit: Hit, name: int) -> None:
        there = self.seeds.near(hit.index)
        if there is not None:
            self.seeds.remove(there)
            return
        if self.seeds and self.cut.segment not in (0, name):
            self._say(
                f"The seeds are in segment {self.project.id_of(self.cut.segment)}, not in this "
                "one; press Escape to clear them."
            )
            return
        if name != self.project.active:
            self.selection.activate(name, hit.superpixel)
        self.seeds.place(hit.index, hit.superpixel)

    def _free(self) -> bool:
        """Return whether a click is a gesture: no layer is in an editing mode."""
        active = self.scene.viewer.layers.selection.active
        mode = getattr(active, "mode", "pan_zoom")
        return self.project.session is not None and str(mode) == "pan_zoom"

    def _take_keys(self, layer: Labels) -> None:
        """Select the segmentation if the active layer has key bindings of its own."""
        layers = self.scene.viewer.layers
        if isinstance(layers.selection.active, (Labels, Points, Shapes)):
            layers.selection.active = layer

    # Keys.

    def _actions(self) -> Actions:
        commands = self.commands
        return {
            "next group": self.seeds.next_group,
            "undo": commands.undo,
            "redo": commands.redo,
            "down": commands.down,
            "up": commands.up,
            "detach": self.detach,
            "lock": commands.lock,
            "merge selected": commands.merge_selected,
            "review": commands.review,
            **clicks(self.pointer),
        }

    def _seed_actions(self) -> Actions:
        return {"cut": self.cut.commit, "clear seeds": self.seeds.clear}

    def detach(self) -> None:
        """Detach the superpixel under the mouse from its segment."""
        hit = pick(self.scene, self.scene.viewer.cursor.position, self._sight)
        if hit is None or not hit.superpixel:
            self._say("There is no superpixel under the mouse; point at one, then press K.")
            return
        self.commands.detach(int(self.project.table()[hit.superpixel]), hit.superpixel)

    def _follow(self) -> None:
        """Listen to mouse and keys while a session is open."""
        if self.project.session is not None:
            self._start()
        else:
            self._stop()

    def _start(self) -> None:
        if self._listening:
            return
        self._listening = self.pointer.active = True
        viewer = self.scene.viewer
        viewer.mouse_drag_callbacks.append(self._on_drag)
        viewer.mouse_move_callbacks.append(self._on_move)
        layer = self.scene.segmentation
        for owner in (viewer, layer):
            self._keys.bind(owner, self._actions())
        if layer is not None:
            viewer.layers.selection.active = layer

    def _stop(self) -> None:
        if not self._listening:
            return
        self._listening = self._seed_keys = False
        self.pointer.hide()
        viewer = self.scene.viewer
        for callbacks, ours in (
            (viewer.mouse_drag_callbacks, self._on_drag),
            (viewer.mouse_move_callbacks, self._on_move),
        ):
            if ours in callbacks:
                callbacks.remove(ours)
        self._keys.release()

    def _follow_seeds(self) -> None:
        """Bind Enter and Escape only while there are seeds."""
        wanted = self._listening and bool(self.seeds)
        if wanted == self._seed_keys:
            return
        self._seed_keys = wanted
        if wanted:
            for owner in (self.scene.viewer, self.scene.segmentation):
                self._keys.bind(owner, self._seed_actions())
        else:
            self._keys.release(self._seed_actions())

    def _on_inserted(self, event: Any) -> None:
        layer = self.scene.segmentation
        if self._listening and layer is not None and event.value is layer:
            self._keys.bind(layer, self._actions())
            if self._seed_keys:
                self._keys.bind(layer, self._seed_actions())

    def _say(self, message: str) -> None:
        self.project.worker.message.emit(message)


def _near(a: Any, b: Any) -> bool:
    return max(abs(float(a[0]) - float(b[0])), abs(float(a[1]) - float(b[1]))) <= _STILL


def _modifiers(event: Any) -> list[str]:
    return [str(getattr(key, "name", key)) for key in event.modifiers]
