"""The style of all plots: axes of their own, light and dark, any name."""

from __future__ import annotations

import functools

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from plots.curves import AGGLO, GOLD, LABELS, MEAN, RECORD, pixels

from napari_agglo.evaluate import breakdown
from napari_agglo.plots import (
    DARK,
    LIGHT,
    new_axes,
    plot_boundaries,
    plot_breakdown,
    plot_error_map,
    plot_importances,
    plot_paired_vi,
    plot_reliability,
    plot_split_vi,
    plot_vi_by_threshold,
    plot_vi_rows,
)

HOSTILE = ["<script>", "$x^", "a_b", "\n\t", "", "x" * 300, "日本", r"$\frac{$", "%s{}"]


EMPTY = functools.cache(lambda: pixels(new_axes(3, 3)))


PLOTS = {
    "split": lambda axes: plot_split_vi({"a": MEAN, "b": AGGLO}, weight=2, axes=axes),
    "threshold": lambda axes: plot_vi_by_threshold({"a": MEAN}, axes=axes),
    "breakdown": lambda axes: plot_breakdown(
        breakdown(LABELS, GOLD).gold, kind="false split", axes=axes
    ),
    "reliability": lambda axes: plot_reliability(RECORD, axes=axes),
    "importances": lambda axes: plot_importances(RECORD, axes=axes),
    "rows": lambda axes: plot_vi_rows({"a": [1.0, 2.0]}, axes=axes),
    "map": lambda axes: plot_error_map(np.zeros((2, 6)), LABELS, GOLD, axes=axes),
}


@pytest.mark.parametrize("plot", PLOTS.values(), ids=PLOTS)
def test_own_axes_light_and_dark_and_no_state_is_touched(plot):
    before = dict(mpl.rcParams)
    light, dark = new_axes(3, 3), new_axes(3, 3, colours=DARK)
    assert plot(light) is light
    assert plot(dark) is dark
    on_light, on_dark = pixels(light), pixels(dark)
    assert (on_light != EMPTY()).any()
    assert on_light.size == on_dark.size
    assert (on_light != on_dark).any()
    figure = Figure()
    FigureCanvasAgg(figure)
    plot(figure.subplots(1, 2)[1])  # one of many
    pixels(figure.axes[0])
    assert dict(mpl.rcParams) == before
    pyplot = __import__("sys").modules.get("matplotlib.pyplot")
    assert pyplot is None or pyplot.get_fignums() == []


def test_dark_axes_get_light_words():
    axes = plot_split_vi({"a": MEAN}, axes=new_axes(colours=DARK))
    (name,) = (text for text in axes.texts if text.get_gid() == "name")
    assert name.get_color() == DARK.text[0]
    assert DARK.text[0] != LIGHT.text[0]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
def test_any_name_can_be_drawn():
    one = pd.DataFrame({"precision": [1.0], "recall": [1.0], "f": [1.0]})
    ones = dict.fromkeys(HOSTILE, 1.0)
    for axes in (
        plot_split_vi(dict.fromkeys(HOSTILE, MEAN)),
        plot_vi_by_threshold(dict.fromkeys(HOSTILE, MEAN)),
        plot_vi_rows({name: [1.0] for name in HOSTILE}),
        plot_importances({"importances": ones}),
        plot_boundaries(dict.fromkeys(HOSTILE, one)),
        plot_paired_vi(ones, ones, label=len(ones)),
        *(plot_paired_vi({"a": 1.0}, {"a": 2.0}, names=(n, n)) for n in HOSTILE),
    ):
        pixels(axes)
