"""Curves, tables and a record to draw, and what is drawn of them."""

from __future__ import annotations

import io
import math

import numpy as np
import pandas as pd


def curve(*states, **more):
    """Make a curve of (threshold, false merge, false split)."""
    table = pd.DataFrame(states, columns=["threshold", "false_merge", "false_split"])
    return table.assign(vi=table["false_merge"] + table["false_split"], **more)


MEAN = curve((-math.inf, 0.1, 2.0), (0.3, 0.2, 0.4), (0.45, 0.5, 0.3), (0.7, 2.0, 0.0))
AGGLO = curve((-math.inf, 0.1, 2.0), (0.4, 0.15, 0.3), (0.8, 2.0, 0.0))


def drawn(axes, gid):
    """Return the points of what was drawn under a name, in the order of drawing."""
    lines = [line for line in axes.lines if line.get_gid() == gid]
    return [tuple(map(float, point)) for line in lines for point in line.get_xydata()]


def names(axes):
    return [text.get_text() for text in axes.texts if text.get_gid() == "name"]


def pixels(axes):
    out = io.BytesIO()
    axes.figure.savefig(out, format="raw", dpi=40)
    return np.frombuffer(out.getvalue(), np.uint8)


LABELS = np.array([[1, 1, 1, 2, 2, 2], [3, 3, 3, 3, 3, 3]])


GOLD = np.array([[7, 7, 7, 7, 7, 7], [8, 8, 8, 9, 9, 0]])


RECORD = {
    "held_out": True,
    "calibration": [[0.1, 0.2, 30], [0.9, 0.9, 10]],
    "importances": {"b": 0.1, "a": 0.6, "c": 0.3},
}
