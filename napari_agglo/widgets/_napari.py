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


def canvas_size(viewer: Any) -> tuple[int, int]:
    """Return the height and width of the canvas, in pixels."""
    size = getattr(getattr(viewer, "canvas", None), "size", (600, 800))
    return int(size[0]), int(size[1])
