"""Flooding along parents against the queue: the same labels."""

from __future__ import annotations

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from napari_agglo.superpixels import _flood_minima
from napari_agglo.superpixels._flood_minima import (
    WALL,
    flood_minima,
    is_drained,
    lowest_neighbours,
)
from napari_agglo.superpixels._flood_queue import flood, label_minima, make_grid


def quiet(stage, done, total):
    pass


def seeded(levels, mask, connected):
    """Return the layout, the state with all minima labelled, levels, and lowest neighbours."""
    grid = make_grid(levels.shape, connected)
    state = np.zeros(grid.size, np.int32)
    grid.view(state)[...] = np.where(mask, -1 - levels.astype(np.int32), 0)
    heights = np.full(grid.size, WALL, np.uint16)
    grid.view(heights)[...] = np.where(mask, levels, WALL)
    codes = lowest_neighbours(heights, grid, quiet)
    quicker = state.copy()
    count = label_minima(state, grid, quiet)
    assert label_minima(quicker, grid, quiet, is_drained(codes)) == count
    np.testing.assert_array_equal(quicker, state)
    return grid, state, heights, codes


@st.composite
def maps(draw):
    """Return levels with few values, so that there are ties and plateaus; a mask; the axes."""
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=2, max_side=9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    most = draw(st.sampled_from([1, 2, 4, 20, 1000]))
    levels = rng.integers(0, most, shape, endpoint=True).astype(np.uint16)
    if draw(st.booleans()):  # slopes with long ways to the first difference
        levels = np.maximum.accumulate(levels, axis=-1)
    if draw(st.booleans()):
        levels = (WALL - levels).astype(np.uint16)
    mask = rng.random(shape) < draw(st.sampled_from([0.6, 1.0]))
    connected = [True] * len(shape)
    connected[0] = draw(st.booleans()) or len(shape) == 1
    return levels, mask, connected


@examples(300)
@given(maps())
def test_the_labels_are_those_of_the_queue(problem):
    grid, state, heights, codes = seeded(*problem)
    expected = state.copy()
    flood(expected, heights, grid, quiet)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_flood_minima, "_RESOLVED", 1.0)
        patch.setattr(_flood_minima, "_COMPARISONS", np.inf)
        patch.setattr(_flood_minima, "flood", None)  # all of it is resolved
        flood_minima(state, heights, codes, grid, quiet)
    np.testing.assert_array_equal(state, expected)
    assert state.min() >= 0


@pytest.mark.parametrize("name", ["_RESOLVED", "_COMPARISONS"])
def test_many_equal_levels_are_left_to_the_queue(name, monkeypatch):
    levels = np.add.outer(np.arange(40), np.arange(40)).astype(np.uint16)
    grid, state, heights, codes = seeded(levels, np.ones(levels.shape, bool), [True, True])
    expected = state.copy()
    flood(expected, heights, grid, quiet)
    used = []

    def queue(*arguments):
        used.append(name)
        flood(*arguments)

    monkeypatch.setattr(_flood_minima, "flood", queue)
    monkeypatch.setattr(_flood_minima, "_RESOLVED", 1.0)
    monkeypatch.setattr(_flood_minima, name, 0.01)
    monkeypatch.setattr("napari_agglo.superpixels._flood_queue.BUDGET", 8)
    flood_minima(state, heights, codes, grid, quiet)
    np.testing.assert_array_equal(state, expected)
    assert used == [name]


def test_a_plateau_by_hand(monkeypatch):
    # The seeds are 1, 2 and 1. The middle 3 is one step from both rims of its plateau; the left one
    # leaves the queue first, since its parent is lower.
    levels = np.array([1, 3, 3, 3, 2, 5, 1], np.uint16)
    grid, state, heights, codes = seeded(levels, np.ones(7, bool), [True])
    monkeypatch.setattr(_flood_minima, "_RESOLVED", 1.0)
    monkeypatch.setattr(_flood_minima, "flood", None)
    flood_minima(state, heights, codes, grid, quiet)
    assert grid.view(state).tolist() == [1, 1, 1, 2, 2, 3, 3]
