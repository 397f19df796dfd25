"""Colours of marked segments, seeds, the cut preview, differences, modes and states.

Colours of plots are in `plots._plot_style`; those of the theme are napari's.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from napari.utils.colormaps import CyclicLabelColormap, DirectLabelColormap
from napari.utils.theme import get_theme
from numpy.typing import NDArray

# On the canvas.
# Of segments. Neighbours have two random ids, and with a few hundred colours often the same one;
# napari draws labels with two bytes as fast as with one.
LABEL_COLOURS = 4095
# The active segment, further selected ones, and the partners of an error.
MARKS = {1: "#ffffff", 2: "#ffd400", 3: "#ff4d4d"}
SUPERPIXEL_OPACITY = 0.35  # of the outlines of superpixels
# Groups of seeds, in the order in which they are placed; told apart by most colour-blind people.
GROUPS = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#d55e00", "#cc79a7", "#0072b2", "#999999")
GROUP_NAMES = ("orange", "sky blue", "green", "yellow", "red", "pink", "dark blue", "grey")
# The parts in the preview of a cut, each in the colour of its seeds.
CUT_PREVIEW = {k: GROUPS[(k - 1) % len(GROUPS)] for k in range(1, 65)}
CUT_PREVIEW_OPACITY = 0.6
# Merged in the first panel of Compare but split here, the other way round, both, and just merged.
DIFFERENCES = {1: "#e69f00", 2: "#56b4e9", 3: "#cc79a7", 4: "#ffffff"}

# In the dock, beside a text with the same meaning, for colour-blind people.
READING, EDITING, CUTTING = "#6b7280", "#15803d", "#b45309"  # modes of the canvas
# Background and text of the status of a step, by its word.
STATUS = {
    "empty": ("#6b7280", "#ffffff"),
    "ready": ("#2563eb", "#ffffff"),
    "running": ("#b45309", "#ffffff"),
    "done": ("#15803d", "#ffffff"),
    "stale": ("#facc15", "#1f2937"),
    "open": ("#15803d", "#ffffff"),
}
SAVED, NOT_SAVED = "#16a34a", "#ef4444"
PROBLEM = "#d97706"  # the frame of a problem with the chosen layers
FOCUS = "#3b82f6"  # the frame of the control that the keyboard acts on
GREY = "#8a8f98"  # lines and weak text, legible on dark and on light


_BRIGHT, _COLOURFUL = 0.45, 0.3  # at least: the largest channel, and its distance to the smallest
_PLASTIC = 1.2207440846  # the root of x^4 = x + 1: its powers spread points in three dimensions


def segment_colours() -> CyclicLabelColormap:
    """Return the colour map of segments, which gives an id the same colour in every layer."""
    return CyclicLabelColormap(
        name="segments",
        colors=_palette(),
        controls=np.linspace(0, 1, LABEL_COLOURS + 2),
        interpolation="zero",
    )


@cache
def _palette() -> NDArray[np.float32]:
    """Return the colours of label 0, which is transparent, and of segments, all different.

    They are spread evenly over bright and colourful RGB, and those of close ids are far apart.
    """
    steps = np.arange(1, 4 * LABEL_COLOURS)[:, None]
    spread = (0.5 + steps * _PLASTIC ** -np.arange(1.0, 4.0)) % 1
    fit = (spread.max(axis=1) >= _BRIGHT) & (np.ptp(spread, axis=1) >= _COLOURFUL)
    colours = np.ones((LABEL_COLOURS + 1, 4), np.float32)
    colours[0] = 0
    # Bytes, so that the processor and the graphics card round alike.
    colours[1:, :3] = np.rint(spread[fit][:LABEL_COLOURS] * 255) / 255
    return colours


def direct_colours(colours: dict[int, str], others: str = "transparent") -> DirectLabelColormap:
    """Return a colour map of a few labels; background is transparent."""
    every: dict[int | None, str] = {None: others, 0: "transparent"}
    return DirectLabelColormap(color_dict=every | colours)


def theme_colours(viewer: Any) -> tuple[str, str]:
    """Return the colours of background and text of a viewer's theme, in hexadecimal."""
    theme = get_theme(viewer.theme)
    return str(theme.background.as_hex()), str(theme.text.as_hex())
