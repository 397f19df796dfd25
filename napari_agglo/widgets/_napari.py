"""Where napari keeps things, which has moved: from 0.9 the old names warn."""

from __future__ import annotations

from typing import Any


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


def view_size(viewer: Any) -> tuple[float, float]:
    """Return the height and width of one picture in pixels: of the canvas, or of a grid's cell."""
    canvas = getattr(viewer, "canvas", None)
    height, width = (600, 800) if canvas is None else canvas.viewbox_size(viewer.layers)
    return float(height), float(width)
