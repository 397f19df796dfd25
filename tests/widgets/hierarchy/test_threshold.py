"""Positions of the slider and thresholds, against the tree."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_agglo.agglomeration import BEFORE
from napari_agglo.evaluate import shortest_threshold
from napari_agglo.widgets._slider_scale import Ticks, knee
from napari_agglo.widgets.hierarchy._threshold import ThresholdBox

heights = st.lists(st.sampled_from([-0.5, 0.0, 0.1, 0.25, 0.3, 0.300001, 0.9, 2.0]), max_size=12)


def states(values):
    """Return the numbers of merges that some threshold gives."""
    return sorted({0, *(sum(v <= t for v in values) for t in values)})


@given(heights, st.integers(-2, 15))
def test_a_threshold_gives_the_last_state_with_so_many_merges(values, wanted):
    values = np.maximum.accumulate(values) if values else np.zeros(0)
    ticks = Ticks(values)
    expected = max(n for n in states(values) if n <= max(wanted, 0))
    at = ticks.threshold(wanted)
    assert math.isfinite(at)
    assert ticks.merges(at) == ticks.reachable(wanted) == expected


@given(heights, st.integers(0, 12), st.integers(1, 5))
def test_a_step_always_moves_until_the_end(values, begin, by):
    values = np.maximum.accumulate(values) if values else np.zeros(0)
    ticks = Ticks(values)
    there = states(values)
    at = ticks.reachable(begin)
    above = [n for n in there if n > at]
    below = [n for n in there if n < at]
    up, down = ticks.moved(at, by), ticks.moved(at, -by)
    assert up in there
    assert up > at or not above
    assert down in there
    assert down < at or not below


@given(heights)
def test_each_state_has_a_place_on_the_track(values):
    values = np.maximum.accumulate(values) if values else np.zeros(0)
    ticks = Ticks(values)
    there = states(values)
    places = [ticks.place(n) for n in there]
    assert places == sorted(set(places))
    assert (places[0], places[-1]) == (0, ticks.end)
    assert [ticks.state(place) for place in places] == there
    assert all(ticks.state(place) <= ticks.state(place + 1) for place in range(ticks.end))
    assert ticks.place(ticks.last + 3) == ticks.end
    for n in there:
        up, down = ticks.stepped(n, +1), ticks.stepped(n, -1)
        assert up in there
        assert up > n or n == there[-1]
        assert down in there
        assert down < n or n == 0


def test_useful_thresholds_of_a_learned_policy_have_half_of_the_track():
    # As of a forest: most merges are certain, with a probability of 0 that they are wrong.
    few = np.linspace(0.001, 1.0, 1000) ** 4
    ticks = Ticks(np.concatenate([np.zeros(2000), few]))
    low, high = (ticks.place(ticks.merges(at)) for at in (0.1, 0.9))
    assert high - low >= 0.5 * ticks.end
    assert ticks.place(2000) < 0.01 * ticks.end, "merges of one height have one place"
    # By value and number: thresholds near 0 keep a part of the track.
    assert low > 0.15 * ticks.end


def test_priorities_of_any_range_have_a_track_by_number():
    ticks = Ticks(np.array([-3.0, 1.0, 2.0, 1e6]))
    assert [ticks.place(n) / ticks.end for n in range(5)] == [0, 0.25, 0.5, 0.75, 1]


@given(st.floats(-3, 3), st.floats(1e-9, 1))
def test_shortest_lies_within(low, width):
    for decimals in (0, 1):
        threshold = shortest_threshold(low, low + width, decimals)
        assert low <= threshold < low + width or threshold == low


def test_short_numbers_for_people():
    assert Ticks(np.array([0.418273, 0.49])).threshold(1) == 0.42
    assert Ticks(np.array([0.418273])).threshold(1) == 1.0  # any number does, and this is short


def test_the_span_holds_all_and_0_to_1():
    assert Ticks(np.array([0.2, 0.4])).span == (0.0, 1.0)
    low, high = Ticks(np.array([-3.0, 7.5])).span
    assert low < -3.0
    assert high >= 7.5
    assert Ticks(np.zeros(0)).span == (0.0, 1.0)


def test_the_knee_lies_before_the_steep_part():
    heights = np.concatenate([np.linspace(0, 0.1, 95), np.linspace(0.2, 1, 5)])
    assert 90 <= knee(heights) <= 96
    assert knee(np.zeros(5)) == 5
    assert knee(np.zeros(0)) == 0


@pytest.mark.parametrize("first", [-0.25, 0.0, 0.2])
def test_the_left_end_of_the_slider_has_words(qtbot, first):
    ticks = Ticks(np.array([first, 0.5]))
    project = SimpleNamespace(threshold=ticks.threshold(0), ticks=ticks)
    box = ThresholdBox(project)
    qtbot.addWidget(box)
    box.setRange(*ticks.span)
    box.setValue(project.threshold)
    assert box.text() == BEFORE
    project.threshold = 0.3
    box.setValue(0.3)
    assert float(box.text().replace(box.locale().decimalPoint(), ".")) == 0.3
