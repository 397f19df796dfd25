"""Points of every plot: those of its table."""

from __future__ import annotations

import functools
import io
import math

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from refusals import refuses

from napari_agglo.errors import SetOption
from napari_agglo.evaluate import breakdown, contingency, split_vi
from napari_agglo.plots import (
    DARK,
    LIGHT,
    error_picture,
    new_axes,
    plot_boundaries,
    plot_breakdown,
    plot_error_map,
    plot_importances,
    plot_paired_vi,
    plot_reliability,
    plot_split_vi,
    plot_vi_by_epoch,
    plot_vi_by_threshold,
    plot_vi_rows,
    worst_plane,
    wrong_shares,
)


def curve(*states, **more):
    """Make a curve of (threshold, false merge, false split)."""
    table = pd.DataFrame(states, columns=["threshold", "false_merge", "false_split"])
    return table.assign(vi=table["false_merge"] + table["false_split"], **more)


MEAN = curve((-math.inf, 0.1, 2.0), (0.3, 0.2, 0.4), (0.45, 0.5, 0.3), (0.7, 2.0, 0.0))
AGGLO = curve((-math.inf, 0.1, 2.0), (0.4, 0.15, 0.3), (0.8, 2.0, 0.0))
HOSTILE = ["<script>", "$x^", "a_b", "\n\t", "", "x" * 300, "日本", r"$\frac{$", "%s{}"]


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


LABELS = np.array([[1, 1, 1, 2, 2, 2], [3, 3, 3, 3, 3, 3]])
GOLD = np.array([[7, 7, 7, 7, 7, 7], [8, 8, 8, 9, 9, 0]])


def test_breakdown():
    found = breakdown(LABELS, GOLD)
    split = plot_breakdown(found.gold, kind="false split")
    (dots,) = split.collections
    assert dots.get_offsets().tolist() == [[6 / 11, 1.0]]
    assert names(split) == ["7"]
    assert "1 with false splits" in split.get_title(loc="left")
    assert "2 without" in split.get_title(loc="left")
    merge = plot_breakdown(found.segments, kind="false merge", worst=0)
    ((share, entropy),) = merge.collections[0].get_offsets().tolist()
    assert share * entropy == pytest.approx(split_vi(LABELS, GOLD)[0])
    assert names(merge) == []
    assert merge.get_ylabel() == "H(U|S=s) (bits)"


def test_the_worst_are_named_and_curves_join_equal_costs():
    table = pd.DataFrame({"share": np.geomspace(1e-4, 0.1, 50), "entropy": np.linspace(0.1, 2, 50)})
    table["contribution"] = table["share"] * table["entropy"]
    axes = plot_breakdown(table, kind="false merge", worst=3)
    assert sorted(map(int, names(axes))) == [47, 48, 49]
    curves = [x.get_xydata() for x in axes.lines if x.get_gid() == "isocurve"]
    assert len(curves) == 3
    for line in curves:
        assert np.ptp(line[:, 0] * line[:, 1]) == pytest.approx(0, abs=1e-9)


def test_many_dots_do_not_swell_a_vector_file():
    table = pd.DataFrame({"share": np.full(20000, 1e-5), "entropy": np.linspace(0.1, 2, 20000)})
    table["contribution"] = table["share"] * table["entropy"]
    out = io.BytesIO()
    plot_breakdown(table, kind="false split").figure.savefig(out, format="svg")
    assert len(out.getvalue()) < 400_000


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


def test_boundaries():
    table = pd.DataFrame({"precision": [0.5, 0.9, 1.0], "recall": [0.9, 0.8, 0.1]})
    table["f"] = 2 * table["precision"] * table["recall"] / table.sum(axis=1)
    axes = plot_boundaries({"mean": table}, human={"precision": 0.95, "recall": 0.7})
    assert drawn(axes, "greatest") == [(0.8, 0.9)]
    assert drawn(axes, "human") == [(0.7, 0.95)]
    for line in (x.get_xydata() for x in axes.lines if x.get_gid() == "isoline"):
        f = 2 * line[:, 0] * line[:, 1] / line.sum(axis=1)
        assert np.ptp(f) == pytest.approx(0, abs=1e-9)
    nothing = table.assign(precision=np.nan, recall=np.nan, f=np.nan)
    assert drawn(plot_boundaries({"none": nothing}), "greatest") == []


def test_paired():
    axes = plot_paired_vi(
        {"a": 1.0, "b": 2.0, "c": 3.0}, {"a": 0.4, "b": 2.5, "d": 1.0}, names=("mean", "agglo")
    )
    better, worse = (c.get_offsets().tolist() for c in axes.collections)
    assert better == [[1.0, 0.4]]
    assert worse == [[2.0, 2.5]]
    assert axes.get_title(loc="left") == "1 of 2 images better by agglo"
    assert sorted(names(axes)) == ["a", "b"]
    assert "no image" in plot_paired_vi({"a": 1.0}, {}).texts[0].get_text()


def test_rows():
    axes = plot_vi_rows({"agglo": [1.0, 2.0], "human": [0.5], "none": []})
    assert drawn(axes, "mean")[::2] == [(1.5, pytest.approx(-0.28)), (0.5, pytest.approx(0.72))]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["agglo", "human", "none"]


RECORD = {
    "held_out": True,
    "calibration": [[0.1, 0.2, 30], [0.9, 0.9, 10]],
    "importances": {"b": 0.1, "a": 0.6, "c": 0.3},
}


def test_reliability():
    axes = plot_reliability(RECORD)
    assert drawn(axes, "curve") == [(0.1, 0.2), (0.9, 0.9)]
    assert axes.get_title(loc="left") == "40 held-out examples, off by 7.5 % on average"
    assert "no record" in plot_reliability({}).texts[0].get_text()
    with refuses("record['calibration']", "pass the record of a policy as train wrote"):
        plot_reliability({"calibration": [[1, 2]]})


def test_importances():
    axes = plot_importances(RECORD, most=2)
    assert [bar.get_width() for bar in axes.patches] == [0.6, 0.3]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["a", "c"]
    assert "no record" in plot_importances({}).texts[0].get_text()


def test_shares_of_the_error_map_sum_to_the_vi():
    merge, split = wrong_shares(contingency(LABELS, GOLD), LABELS, GOLD)
    known = GOLD != 0
    bits = [-np.log2(1 - share[known]).mean() for share in (merge, split)]
    assert bits == pytest.approx(split_vi(LABELS, GOLD))
    assert merge[1].tolist() == pytest.approx([0.4, 0.4, 0.4, 0.6, 0.6, 0.0])


def test_error_picture_paints_what_is_wrong():
    table = contingency(LABELS, GOLD)
    picture = error_picture(np.zeros((2, 6)), LABELS, GOLD, table, side=60)
    assert picture.shape == (20, 60, 3)
    assert picture[5, 5, 2] > picture[5, 5, 0], "false split is blue"
    assert picture[15, 5, 0] > picture[15, 5, 2], "false merge is orange"
    assert picture[15, 55].max() == 0, "nothing is known there"
    perfect = error_picture(np.zeros((2, 6)), GOLD, GOLD, contingency(GOLD, GOLD), side=60)
    assert perfect.max() == 0


def test_no_segment_is_larger_than_the_image():
    axes = plot_breakdown(breakdown(np.ones(4, int), np.arange(1, 5)).segments, kind="false merge")
    low, high = axes.get_xlim()
    assert high == 1
    assert low <= 0.1


def test_the_error_map_shows_the_plane_that_is_wrong():
    gold = np.ones((2, 3, 6, 6), np.uint8)
    labels = gold.copy()
    labels[1, 2, :3] = 9
    assert worst_plane(contingency(labels, gold), labels, gold) == (1, 2)
    axes = plot_error_map(np.zeros(gold.shape), labels, gold)
    assert "plane 1, 2" in axes.get_title(loc="left")
    rgb = plot_error_map(np.zeros((*gold.shape, 3)), labels, gold, plane=(0, 0))
    assert "plane 0, 0" in rgb.get_title(loc="left")
    with refuses("plane", "leave it out", facts=("2 indices", "(0,)")):
        plot_error_map(np.zeros(gold.shape), labels, gold, plane=(0,))
    with refuses("plane", "leave it out", facts=("0 to 2 along axis 1", "(0, 99)")):
        plot_error_map(np.zeros(gold.shape), labels, gold, plane=(0, 99))
    with refuses("image", "pass the same crop of both"):
        plot_error_map(np.zeros((2, 3)), labels, gold)


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


def test_names_stand_apart_and_within():
    close = {str(k): MEAN.assign(false_merge=MEAN["false_merge"] + k / 50) for k in range(5)}
    axes = plot_split_vi(close)
    places = np.array([t.xy for t in axes.texts if t.get_gid() == "name"])
    assert len(places) == 5
    assert ((places >= 0) & (places <= 1)).all()
    apart = np.abs(places[:, None] - places[None]).max(axis=2) + np.eye(5)
    assert apart.min() > 0.015


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
