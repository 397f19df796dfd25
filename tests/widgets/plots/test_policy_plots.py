"""Breakdown, epochs and what a policy says of itself: what the mouse picks, what is drawn."""

from __future__ import annotations

import re

import numpy as np
import pytest
from qtpy.QtTest import QTest
from refusals import refuses
from widgets.plots.mouse import Mouse

from napari_agglo.evaluate import breakdown
from napari_agglo.widgets.plots import BreakdownPlot, EpochPlot, ImportancePlot, ReliabilityPlot

# Segment 7 merges gold 1, 2 and a bit of 3; gold 4 is split into 8 and 9; gold 5 is right.
LABELS = np.repeat([7, 7, 7, 7, 8, 9, 2**40], 8)
GOLD = np.repeat([1, 1, 2, 3, 4, 4, 5], 8)


@pytest.fixture
def both(shown):
    plot = BreakdownPlot()
    plot.set_breakdown(breakdown(LABELS, GOLD))
    return shown(plot, 300, 520)


@pytest.fixture
def picks(both):
    found = []
    both.picked.connect(lambda kind, one: found.append((kind, one)))
    return found


def spot(plot, one):
    """Return where the dot of an id is drawn."""
    x, y = plot._points()
    k = list(plot._table.index).index(one)
    return x[k], y[k]


def test_a_click_on_a_dot_picks_the_segment_and_rings_it(both, picks):
    Mouse(both.merges).click(*spot(both.merges, 7))
    assert picks == [("false merge", 7)]
    assert np.allclose(np.ravel(both.merges._ring.getData()), spot(both.merges, 7))
    Mouse(both.splits).click(*spot(both.splits, 4), away=(2, -2))
    assert picks[1:] == [("false split", 4)]
    assert len(both.merges._ring.getData()[0]) == 0, "both are ringed"


def test_a_click_beside_all_dots_picks_nothing(both, picks):
    x, y = spot(both.merges, 7)
    Mouse(both.merges).click(x, y / 2)
    assert picks == []


def test_only_what_is_wrong_has_a_dot(both):
    assert list(both.merges._table.index) == [7]
    assert list(both.splits._table.index) == [4]


def test_hover_names_id_size_bits_and_partners(both):
    Mouse(both.merges).move(*spot(both.merges, 7))
    message = both.merges.readout.text()
    assert re.findall(r"\d[\d.]*", message)[:3] == ["7", "32", "0.857"]
    assert all(part in message for part in ("1 (50 %)", "2 (25 %)", "3 (25 %)"))
    assert both.merges.canvas.rect().contains(both.merges.readout.geometry())
    Mouse(both.splits).move(*spot(both.splits, 4))
    assert all(part in both.splits.readout.text() for part in ("8 (50 %)", "9 (50 %)"))


def test_contribution_on_the_y_axis(both, picks):
    both.merges.set_measure("contribution")
    QTest.qWait(20)
    assert spot(both.merges, 7)[1] == pytest.approx(32 * 1.5 / 56)
    Mouse(both.merges).click(*spot(both.merges, 7))
    assert picks == [("false merge", 7)]


def test_ten_thousand_dots_are_few_shapes_and_all_can_be_picked(both, picks):
    rng = np.random.default_rng(0)
    gold = np.repeat(np.arange(1, 25_001), rng.integers(2, 40, 25_000))
    both.set_breakdown(breakdown(np.arange(gold.size) // 50 + 1, gold))
    table = both.merges._table
    assert len(table) > 5000, "test invalid"
    assert len(both.merges._dots.data) == 500
    assert len(both.merges._specks.data) == len(table) - 500
    least = int(table.index[-1])
    Mouse(both.merges).click(*spot(both.merges, least))
    assert len(picks) == 1
    picked = picks[0][1]
    away = np.subtract(spot(both.merges, picked), spot(both.merges, least))
    assert np.abs(away).max() < 0.05


def test_ids_of_64_bits_are_whole(both, picks):
    labels = np.where(LABELS == 7, 2**63 + 11, LABELS.astype(np.uint64))
    both.set_breakdown(breakdown(labels.astype(np.uint64), GOLD))
    Mouse(both.merges).click(*spot(both.merges, 2**63 + 11))
    assert picks == [("false merge", 2**63 + 11)]


def test_nothing_wrong_and_nothing_known_are_said(both):
    both.set_breakdown(breakdown(GOLD, GOLD))
    assert both.merges.empty
    assert re.match(r"No .* merges ", both.merges.hint.text())
    assert re.match(r"No .* split", both.splits.hint.text())
    both.set_breakdown(None)
    assert "gold labels" in both.merges.hint.text()
    both.select("false merge", 7)  # of something that is no longer there


def test_wide_docks_have_both_side_by_side(both):
    assert both.splits.y() > both.merges.y()
    both.resize(700, 300)
    QTest.qWait(20)
    assert both.splits.y() == both.merges.y()
    assert both.splits.x() > both.merges.x()


def test_epochs_grow_and_go(shown):
    plot = shown(EpochPlot())
    assert plot.empty
    assert "epoch" in plot.hint.text()
    plot.add(0, 0.5, 0.7)
    plot.add(1, 0.3, 0.2)
    plot.add(1, 0.25, 0.2)
    QTest.qWait(20)
    assert not plot.empty
    vi, merge, split = (line.getData()[1].tolist() for line in plot._lines)
    assert vi == [1.2, 0.45]
    assert merge == [0.5, 0.25]
    assert split == [0.7, 0.2]
    (left, right), (low, high) = plot.canvas.box.viewRange()
    assert left < 0
    assert right > 1
    assert low <= 0
    assert high > 1.2
    Mouse(plot).move(1, 0.6)
    assert re.findall(r"\d[\d.]*", plot.readout.text())[:2] == ["1", "0.45"]
    assert plot.canvas.getAxis("bottom").tickValues(-0.3, 4.3, 250)[0][1] == [0, 1, 2, 3, 4]
    plot.clear()
    assert plot.empty


def test_the_twelve_most_important_features(shown):
    plot = shown(ImportancePlot())
    assert plot.empty
    plot.set_record({"importances": {f"feature/{k}": k / 100 for k in range(30)}})
    QTest.qWait(20)
    names = [item.toPlainText() for item in plot._names if item.isVisible()]
    assert names == [f"feature/{k}" for k in range(29, 17, -1)]
    Mouse(plot).move(0.1, -2)
    assert plot.readout.text() == "feature/27: 0.27"
    plot.set_record({})
    assert plot.empty
    assert "no record" in plot.hint.text()


def test_reliability(shown):
    plot = shown(ReliabilityPlot())
    plot.set_record({"calibration": [[0.1, 0.2, 90], [0.9, 0.8, 10]], "held_out": 3})
    QTest.qWait(20)
    assert all(number in plot.key.text() for number in ("100 ", " 10.0 %"))
    Mouse(plot).move(0.9, 0.8)
    assert re.findall(r"[\d.]+", plot.readout.text()) == ["0.9", "0.8", "10"]
    with refuses("record['calibration']", "pass the record of a LearnedPolicy"):
        plot.set_record({"calibration": [[1, 2]]})
    plot.set_record(None)
    assert plot.empty
