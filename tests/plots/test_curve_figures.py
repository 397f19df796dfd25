"""Points of the plots of curves: those of their tables."""

from __future__ import annotations

import io
import math

import numpy as np
import pandas as pd
import pytest
from plots.curves import AGGLO, MEAN, curve, drawn, names
from refusals import refuses

from napari_agglo.errors import SetOption
from napari_agglo.plots import (
    plot_breakdown,
    plot_split_vi,
    plot_vi_by_epoch,
    plot_vi_by_threshold,
)


def test_split_vi():
    axes = plot_split_vi(
        {"mean": MEAN, "agglo": AGGLO},
        best={"false_merge": 0.05, "false_split": 0.06},
        human=pd.DataFrame({"false_merge": [0.2, 0.3], "false_split": [0.3, 0.2]}),
    )
    assert drawn(axes, "least") == [(0.2, 0.4), (0.15, 0.3)]
    assert drawn(axes, "at threshold") == [(0.5, 0.3), (0.15, 0.3)]
    assert drawn(axes, "best") == [(0.05, 0.06)]
    assert drawn(axes, "human") == [(0.2, 0.3), (0.3, 0.2)]
    assert drawn(axes, "curve")[:4] == list(
        zip(MEAN["false_merge"], MEAN["false_split"], strict=True)
    )
    assert sorted(names(axes)) == ["agglo", "mean"]
    assert axes.get_xlim() == axes.get_ylim()
    assert axes.get_aspect() == 1


def test_an_error_within_rounding_is_no_error():
    curves = {"m": curve((-math.inf, 0.0, 2.0), (0.3, 0.0, 4e-17))}
    for axes in (plot_split_vi(curves), plot_vi_by_threshold(curves)):
        assert axes.get_ylim() == (0, 1)


def test_the_slope_moves_the_tangent_point():
    assert drawn(plot_split_vi({"m": MEAN}), "tangent") == []
    for weight, point in ((1.0, (0.2, 0.4)), (30.0, (0.1, 2.0)), (0.2, (0.5, 0.3))):
        axes = plot_split_vi({"m": MEAN}, weight=weight, limit=3)
        assert drawn(axes, "tangent") == [point]
        slopes = {line.get_slope() for line in axes.lines if line.get_gid() == "isocline"}
        assert slopes == {-weight}
    with refuses("a", "pass 1 to weigh both errors alike, 2 to"):
        plot_split_vi({"m": MEAN}, weight=-1)


def test_points_beyond_the_edge_have_arrows():
    far = curve((-math.inf, 0.1, 1.0), (0.2, 0.2, 0.2), (0.3, 90.0, 0.1))
    axes = plot_split_vi({"far": far})
    limit = axes.get_xlim()[1]
    assert limit < 2
    assert drawn(axes, "at threshold") == [(limit, 0.1)]
    marker = next(line for line in axes.lines if line.get_gid() == "at threshold")
    assert marker.get_marker() == ">"
    near = next(line for line in axes.lines if line.get_gid() == "least")
    assert near.get_marker() == "*"
    high = plot_vi_by_threshold({"far": far})
    assert next(x for x in high.lines if x.get_gid() == "at threshold").get_marker() == "^"


@pytest.mark.parametrize("plot", [plot_split_vi, plot_vi_by_threshold])
def test_standard_error_is_shaded_where_there_is_one(plot):
    def shades(axes):
        artists = [*axes.patches, *axes.collections]
        return [a for a in artists if a.get_gid() == "standard error"]

    errors = {f"{name}_sem": 0.1 for name in ("false_merge", "false_split", "vi")}
    assert shades(plot({"m": MEAN})) == []
    (shade,) = shades(plot({"m": MEAN.assign(**errors)}))
    box = shade.get_path() if hasattr(shade, "get_path") else shade.get_paths()[0]
    least, most = box.vertices.min(axis=0), box.vertices.max(axis=0)
    if plot is plot_split_vi:
        assert least == pytest.approx([0.0, -0.1])
        assert most == pytest.approx([2.1, 2.1])
    else:
        assert (least[1], most[1]) == pytest.approx((0.5, 2.2))


def test_vi_by_threshold():
    axes = plot_vi_by_threshold({"mean": MEAN}, threshold=0.6)
    assert drawn(axes, "least") == [(0.3, pytest.approx(0.6))]
    assert drawn(axes, "at threshold") == [(0.6, 0.8)]
    line = drawn(axes, "curve")
    assert line[0] == (0.0, 2.1)
    assert line[-1] == (1.0, 2.0)
    assert (0.3, pytest.approx(2.1)) in line, "a state holds until the next begins"
    only = plot_vi_by_threshold({"one": MEAN.head(1)})
    assert drawn(only, "least") == [(0.0, 2.1)]


def test_vi_by_epoch():
    table = pd.DataFrame(
        {"epoch": [1, 0, 1], "vi_at_half": [0.4, 1.0, 0.6], "vi_min": [0.3, 0.5, 0.3]}
    )
    axes = plot_vi_by_epoch(table)
    assert drawn(axes, "curve") == [(0, 1.0), (1, pytest.approx(0.5)), (0, 0.5), (1, 0.3)]
    assert sorted(names(axes)) == ["at threshold 0.5", "least"]
    assert "no epochs" in plot_vi_by_epoch(table.head(0)).texts[0].get_text()


@pytest.mark.parametrize("plot", [plot_split_vi, plot_vi_by_threshold])
def test_curves_of_many_states_are_small_files(plot):
    n = 50000
    table = pd.DataFrame(
        {
            "threshold": np.linspace(0, 1, n),
            "false_merge": 3 * np.linspace(0, 1, n) ** 3,
            "false_split": 5 * np.exp(-9 * np.linspace(0, 1, n)),
        }
    )
    table["vi"] = table["false_merge"] + table["false_split"]
    for name in ("false_merge", "false_split", "vi"):
        table[f"{name}_sem"] = 0.1
    out = io.BytesIO()
    plot({"long": table}).figure.savefig(out, format="svg")
    assert len(out.getvalue()) < 400_000


@pytest.mark.parametrize("bad", [{}, [MEAN], None])
def test_curves_are_checked(bad):
    for plot in (plot_split_vi, plot_vi_by_threshold):
        with refuses("curves", 'pass {"mean": vi_curve(tree, gold)}'):
            plot(bad)


def test_tables_are_checked():
    with refuses("curves['a']", "make it with vi_curve or boundary_curve"):
        plot_split_vi({"a": MEAN.drop(columns="vi")})
    with refuses("curves['a']", "make it with vi_curve or boundary_curve"):
        plot_vi_by_threshold({"a": MEAN.head(0)})
    with refuses("kind", SetOption("kind", "false split")):
        plot_breakdown(MEAN, kind="split")
    with refuses("table", "pass the table as it was computed"):
        plot_breakdown(MEAN, kind="false split")


def test_more_policies_than_colours_differ_by_dashes():
    many = {str(k): MEAN for k in range(8)}
    lines = [x for x in plot_split_vi(many).lines if x.get_gid() == "curve"]
    assert len({(x.get_color(), x.get_linestyle()) for x in lines}) == 8
