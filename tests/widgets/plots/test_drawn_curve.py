"""Split VI and VI by threshold: what the mouse picks, and what is drawn."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from refusals import refuses
from widgets.plots.mouse import AGGLO, MEAN, Mouse, curve

from napari_agglo.evaluate import minimum
from napari_agglo.widgets.plots import SplitVIPlot, ThresholdPlot
from napari_agglo.widgets.plots._drawn_curve import MOST, Curve, thin


@pytest.fixture
def split(shown):
    plot = SplitVIPlot()
    plot.set_curve("mean", MEAN)
    plot.set_curve("agglo", AGGLO)
    plot.set_point("mean", 0.25)
    shown(plot)
    plot.canvas.setRange(xRange=(0, 1), yRange=(0, 1), padding=0)  # as if zoomed out
    QTest.qWait(20)
    return plot


@pytest.fixture
def picks(split):
    found = []
    split.threshold_picked.connect(lambda name, at: found.append((name, at)))
    return found


def place(plot, name):
    """Return where the point of a curve is drawn."""
    x, y = plot._curves[name].point.getData()
    return (float(x[0]), float(y[0])) if len(x) else None


def test_a_click_at_a_state_picks_it(split, picks):
    Mouse(split).click(0.3, 0.4)
    Mouse(split).click(0.15, 0.2, away=(3, 3))
    assert picks == [("mean", 0.3), ("agglo", 0.4)]
    assert place(split, "mean") == (0.3, 0.4)


def test_a_click_between_two_states_picks_the_nearer(split, picks):
    Mouse(split).click(0.24, 0.64)  # on the line from 0.2 to 0.3
    assert picks == [("mean", 0.2)]


def test_a_click_far_from_every_curve_picks_nothing(split, picks):
    Mouse(split).click(0.6, 0.6)
    assert picks == []
    assert place(split, "mean") == (0.2, 0.8)


def test_a_click_on_the_state_of_now_says_nothing_new(split, picks):
    split.set_point("mean", 0.3)
    Mouse(split).click(0.3, 0.4)
    assert picks == []


def test_a_drag_along_a_curve_follows_it_though_another_is_nearer(split, picks):
    Mouse(split).drag((0.2, 0.8), (0.16, 0.22))
    assert {name for name, _ in picks} == {"mean"}
    assert picks[-1] == ("mean", 0.3)
    assert place(split, "mean") == (0.3, 0.4)


def test_a_drag_far_from_every_curve_moves_the_view_and_a_double_click_back(split, picks):
    split.show_all()
    QTest.qWait(20)
    before = split.canvas.box.viewRange()
    Mouse(split).drag((0.5, 0.5), (0.4, 0.4))
    assert picks == []
    assert split.canvas.box.viewRange() != before
    spot = Mouse(split).spot(0.55, 0.55)
    QTest.mouseClick(split.canvas.viewport(), Qt.MouseButton.LeftButton, pos=spot)
    QTest.mouseDClick(split.canvas.viewport(), Qt.MouseButton.LeftButton, pos=spot)
    QTest.mouseRelease(split.canvas.viewport(), Qt.MouseButton.LeftButton, pos=spot)
    assert np.allclose(split.canvas.box.viewRange(), before)


def test_a_curve_taken_away_while_it_is_dragged(split, picks):
    Mouse(split).drag((0.2, 0.8), (0.25, 0.6), release=False)
    split.remove_curve("mean")
    Mouse(split).drag((0.25, 0.6), (0.3, 0.4))
    assert "mean" not in split.key.text()
    assert all(name == "mean" for name, _ in picks)


def test_the_state_of_the_superpixels_is_picked_as_a_finite_threshold(split, picks):
    split.canvas.setRange(xRange=(0, 1.5), yRange=(0, 1.5), padding=0)
    QTest.qWait(20)
    Mouse(split).click(0.1, 1.2)
    name, at = picks[0]
    assert math.isfinite(at)
    assert Curve.of({"mean": MEAN, "agglo": AGGLO}[name]).row(at) == 0


def test_hover_says_threshold_segments_and_errors(split):
    Mouse(split).move(0.3, 0.4)
    assert split.readout.isVisible()
    name, _, numbers = split.readout.text().partition(": ")
    assert name == "mean"
    assert re.findall(r"[\d.]+", numbers) == ["0.3", "30", "0.7", "0.3", "0.4"]
    assert split.canvas.rect().contains(split.readout.geometry())
    Mouse(split).move(0.7, 0.7)
    assert not split.readout.isVisible()


def test_the_point_may_lie_beside_the_curve_after_edits(split):
    split.set_point("mean", 0.25, errors=(0.05, 0.5))
    assert place(split, "mean") == (0.05, 0.5)
    split.set_point("mean", 0.25)
    assert place(split, "mean") == (0.2, 0.8)


def test_a_point_beyond_the_plot_is_a_triangle_at_its_edge(split):
    split.set_point("agglo", 0.95)  # a false merge of 1.2
    right = split.canvas.box.viewRange()[0][1]
    assert right < 1.2, "test invalid"
    assert place(split, "agglo") == (right, 0.0)
    assert split._curves["agglo"].point.opts["symbol"] == "t2"


def test_stars_are_at_the_least_vi_and_colours_stay(split):
    for name, table in (("mean", MEAN), ("agglo", AGGLO)):
        x, y = split._curves[name].star.getData()
        least = minimum(table)
        assert (x[0], y[0]) == (least["false_merge"], least["false_split"])
    colour = split._curves["agglo"].colour
    split.remove_curve("mean")
    split.set_curve("flat", MEAN)
    assert split._curves["agglo"].colour == colour != split._curves["flat"].colour


def test_a_name_is_text_not_markup(split):
    split.set_curve("<b>&bold</b>", MEAN)
    assert "&lt;b&gt;" in split.key.text()


def test_a_curve_to_compare_with_is_not_picked(split, picks):
    split.set_curve("mean", MEAN, pickable=False)
    Mouse(split).click(0.3, 0.4)
    assert picks == []
    assert place(split, "mean") is None
    Mouse(split).move(0.3, 0.4)
    assert split.readout.text().startswith("mean: threshold 0.3")


def test_no_curve_no_plot(split):
    split.clear()
    assert split.empty
    assert split.hint.isVisible()
    assert "gold" in split.hint.text()


def test_refuses_what_is_no_curve(split):
    with refuses("curves['x']", "make it with vi_curve or boundary_curve"):
        split.set_curve("x", MEAN.drop(columns="false_split"))
    assert "x" not in split._curves


def test_many_states_are_drawn_as_few_points_on_the_same_line():
    rng = np.random.default_rng(0)
    n = 120_000
    x = np.sort(rng.random(n) ** 9) * 4  # most of it near 0, the end far beyond the plot
    y = np.sort(rng.random(n) ** 9)[::-1] * 9
    kept = thin(x, y, 1.0, 1.0)
    assert len(kept) <= MOST
    assert {0, n - 1} <= set(kept)
    inside = (x <= 1) & (y <= 1)
    assert inside.sum() > 1000, "test invalid"
    drawn = np.interp(x[inside], x[kept], y[kept])
    assert np.abs(drawn - y[inside]).max() < 0.02  # of a plot of 200 pixels: 4


# ---- by threshold


@pytest.fixture
def line(shown):
    plot = ThresholdPlot()
    plot.set_curve(MEAN)
    plot.set_threshold(0.25)
    return shown(plot)


@pytest.fixture
def dragged(line):
    found = []
    line.threshold_dragged.connect(found.append)
    return found


def test_merges_are_evenly_spaced_and_a_click_gives_the_state(line, dragged):
    assert "merges" in line.axes_names[0]
    assert line._now.value() == 40
    Mouse(line).click(90, 0.5)
    Mouse(line).click(50, 0.5)  # between the states of 40 and 70 merges: the last that is done
    assert dragged == [0.6, 0.2]
    assert line._now.value() == 40


def test_the_line_follows_a_drag(line, dragged):
    Mouse(line).drag((40, 0.6), (88.5, 0.6))
    assert dragged[-1] == 0.3
    assert line._now.value() == 70
    assert len(dragged) == len(set(dragged)), "a state was told twice"


def test_near_to_a_mark_means_the_mark(line, dragged):
    Mouse(line).click(70, 0.5, away=(-3, 0))  # the least VI, and 0.5, are both after 70 merges
    assert dragged == [0.5]
    line.set_by("threshold")
    QTest.qWait(20)
    Mouse(line).click(0.3, 0.5, away=(2, 0))
    Mouse(line).click(0.5, 0.5, away=(-2, 0))
    assert dragged[1:] == [0.3, 0.5]


def test_by_threshold_a_click_gives_the_threshold_itself(line, dragged):
    line.set_by("threshold")
    QTest.qWait(20)
    Mouse(line).click(0.75, 0.5)
    assert dragged[0] == pytest.approx(0.75, abs=0.01)
    Mouse(line).drag((0.75, 0.5), (1.5, 0.5))  # beyond the right edge
    assert dragged[-1] == 1.0


def test_the_first_state_is_a_finite_threshold(line, dragged):
    Mouse(line).click(2, 0.5)
    assert dragged == [0.0]
    line.set_curve(MEAN.assign(threshold=[-math.inf, 0.0, 0.3, 0.6]))
    line.set_threshold(0.3)
    Mouse(line).click(2, 0.5)
    assert dragged[-1] < 0
    assert math.isfinite(dragged[-1])


def test_labels_are_the_thresholds_of_the_merges(line):
    axis = line.canvas.getAxis("bottom")
    assert axis.tickStrings([0, 40, 75, 90], 1, 1) == ["0", "0.2", "0.3", "0.6"]
    line.set_by("threshold")
    assert axis.tickStrings([0.5], 1, 0.5) == ["0.5"]


def test_hover_follows_without_moving_the_line(line, dragged):
    Mouse(line).move(90, 0.5)
    assert re.findall(r"[\d.]+", line.readout.text())[:2] == ["0.6", "10"]
    assert dragged == []


def test_a_curve_of_one_state(line, split, dragged):
    one = curve((-math.inf, 5, 0.1, 0.2))
    line.set_curve(one)
    split.set_curve("one", one)
    Mouse(line).click(0.2, 0.1)
    assert dragged[-1:] in ([], [0.5], [0.0])
    line.set_curve(None)
    assert line.empty


def words(plot):
    """Return the key of a plot with breaking spaces."""
    return plot.key.text().replace("&nbsp;", " ")


def test_keys_have_the_digits_of_a_threshold_or_words(shown):
    plot, split = ThresholdPlot(), SplitVIPlot()
    zero = MEAN.assign(threshold=[-math.inf, 0.0, *np.linspace(0.25, 0.2501, len(MEAN) - 2)])
    plot.set_curve(zero)
    split.set_curve("mean", zero)
    for one in (plot, split):
        shown(one)
    for threshold, text in ((-5e-324, "before any merge"), (0.25004, "0.25004"), (0.0, "0")):
        plot.set_threshold(threshold)
        split.set_point("mean", threshold)
        for key in (words(plot), words(split)):
            assert f"{text}<" in key, key
            assert "0.000" not in key
    above = MEAN.assign(threshold=[-math.inf, *np.linspace(0.2, 0.9, len(MEAN) - 1)])
    plot.set_curve(above)
    plot.set_threshold(0.0)
    assert "before any merge" in words(plot)
    plot.set_threshold(0.1)
    assert "before any merge" not in words(plot)


def test_the_least_vi_may_be_before_any_merge(shown):
    plot = ThresholdPlot()
    rising = MEAN.assign(threshold=[-math.inf, *np.linspace(0, 1, len(MEAN) - 1)])
    plot.set_curve(rising.assign(vi=np.arange(len(MEAN)) + 1.0))
    shown(plot)
    assert "before any merge" in words(plot)
