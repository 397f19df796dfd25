"""Parts of napari that have moved between versions, plugin settings, and roles of layers."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

KEY = "napari_agglo"  # of the role of a layer in its metadata; its name is up to the user


def role(kind: str, name: str = "") -> dict[str, str]:
    """Return the metadata of a layer that is an image, a cue of some name, or gold.

    Examples
    --------
    >>> role("cue", "mitochondria")
    {'napari_agglo': 'cue mitochondria'}
    """
    return {KEY: f"{kind} {name}".rstrip()}


def role_of(layer: Any) -> tuple[str, str]:
    """Return the role of a layer in its metadata and its name in that role, or empty strings."""
    written = layer.metadata.get(KEY)
    kind, _, name = written.partition(" ") if isinstance(written, str) else ("", "", "")
    return kind, name


_SAMPLE = "napari_agglo_sample"  # in the metadata of the layers of an embedded sample


def sample_mark(name: str) -> dict[str, str]:
    """Return the metadata of a layer of an embedded sample."""
    return {_SAMPLE: name}


def is_of_sample(layer: Any) -> bool:
    """Return whether a layer is of an embedded sample."""
    return _SAMPLE in layer.metadata


# Settings of the plugin as in the manifest; napari has them from 0.9 on.
DEFAULTS: dict[tuple[str, str], Any] = {
    ("sessions", "folder"): "~/napari-agglo",
    ("training", "epochs"): 5,
}


def setting(group: str, key: str) -> Any:
    """Return a setting, or its default in older versions of napari."""
    try:
        from napari.settings import get_plugin_settings

        return getattr(getattr(get_plugin_settings("napari-agglo"), group), key)
    except (ImportError, AttributeError, KeyError, ValueError, OSError):
        return DEFAULTS[group, key]


def add_inactive(viewer: Any, layer: Any, default: Any = None) -> None:
    """Add a layer, and keep the active layer; without one, activate `default`."""
    active = viewer.layers.selection.active
    viewer.add_layer(layer)
    viewer.layers.selection.active = default if active is None else active


def camera(viewer: Any) -> Any:
    """Return the camera of a viewer."""
    return viewer.scene.camera if hasattr(viewer, "scene") else viewer.camera


def grid(viewer: Any) -> Any:
    """Return the grid of a viewer."""
    canvas = getattr(viewer, "canvas", None)
    return viewer.grid if canvas is None else canvas.grid


def text_overlay(viewer: Any) -> Any:
    """Return the text on the canvas of a viewer."""
    canvas = getattr(viewer, "canvas", None)
    return viewer.text_overlay if canvas is None else canvas.overlays["text"]


def canvas_widget(viewer: Any) -> Any:
    """Return the widget of a viewer's canvas, or None for layers without a window."""
    window = getattr(viewer, "window", None)
    return None if window is None else window._qt_viewer.canvas.native


def view_size(viewer: Any) -> tuple[float, float]:
    """Return the height and width of one picture in pixels: of the canvas, or of a grid's cell."""
    canvas = getattr(viewer, "canvas", None)
    size = viewer._get_viewbox_size() if canvas is None else canvas.viewbox_size(viewer.layers)
    height, width = size
    return float(height), float(width)


def one_update(viewer: Any) -> AbstractContextManager[object]:
    """Let the canvas follow several new or removed layers at once, from napari 0.9 on.

    For each layer that is removed by itself, napari collects garbage in the whole process and lays
    out the canvas anew.
    """
    batched = getattr(viewer.layers, "batched_update", None)
    return nullcontext() if batched is None else batched()


def draw_in_own_window(viewer: Any) -> None:
    """Let the removal of a layer reach the graphics card by way of the viewer's own window.

    napari hands the textures of a removed layer to OpenGL at once, in the window that was painted
    last. With two windows that may be the other one, whose textures are then deleted or replaced:
    the next frame raises a GLError, or ends the process (docs/reliability.md has a script for it).
    """
    window = getattr(viewer, "window", None)
    if window is None:  # layers without a window
        return
    reference = weakref.ref(window._qt_viewer.canvas._scene_canvas)

    def make_current(_: object = None) -> None:
        canvas = reference()
        with suppress(RuntimeError):  # the window is closed, and Qt has deleted its canvas
            if canvas is not None:
                canvas.set_current()

    viewer.layers.events.removing.connect(make_current)


def when_resized(viewer: Any, action: Callable[[Any], object]) -> None:
    """Call `action` when the canvas of a viewer has another size, from napari 0.9 on."""
    canvas = getattr(viewer, "canvas", None)
    if canvas is not None:
        canvas.events.size.connect(action)
