"""Roles of the scene's layers, and the colours that have a meaning."""

from __future__ import annotations

from napari.utils.colormaps import DirectLabelColormap

SEGMENTATION = "Segmentation"
OUTLINE = "Selected"
PREVIEW = "Cut preview"
SUPERPIXELS = "Superpixel outlines"
COLOURS = 254  # with background and "selected" they still fit a byte a pixel
# The active segment, further selected ones, and what a segment is confused with.
MARKS = {1: "#ffffff", 2: "#ffd400", 3: "#ff4d4d"}
# Groups of seeds, in the order in which they are placed; told apart by most colour-blind people.
GROUPS = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#d55e00", "#cc79a7", "#0072b2", "#999999")


def direct_colours(colours: dict[int, str]) -> DirectLabelColormap:
    """Return a colour map of a few labels; all others are transparent."""
    plain: dict[int | None, str] = {None: "transparent", 0: "transparent"}
    for label, colour in colours.items():
        plain[label] = colour
    return DirectLabelColormap(color_dict=plain)
