"""The lazy label image is what the table over the superpixels would be, however it is sliced."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_agglo.widgets._lut_array import LutArray, Table


class Slow:
    """An array that is read where it is sliced, and counts how often."""

    def __init__(self, values):
        self.values, self.shape, self.reads = values, values.shape, 0

    def __getitem__(self, index):
        self.reads += 1
        return self.values[index]


@st.composite
def cases(draw):
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    n = draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    labels = rng.integers(0, n + 1, shape).astype(np.uint32)
    table = rng.integers(0, 50, n + 1).astype(np.uint32)
    indices = []
    for length in shape:
        ends = st.none() | st.integers(-length - 1, length + 1)
        steps = st.none() | st.sampled_from([-2, -1, 1, 2])
        indices.append(draw(st.integers(-length, length - 1) | st.builds(slice, ends, ends, steps)))
    cut = draw(st.integers(0, len(indices)))
    with_ellipsis = (*indices[:cut], ...) if draw(st.booleans()) else tuple(indices[:cut])
    return labels, table, with_ellipsis


@given(cases())
def test_sliced_once_and_again_it_is_what_numpy_would_give(case):
    labels, table, index = case
    expected = table[labels]
    for source in (labels, Slow(labels)):
        lazy = LutArray(source, table)
        np.testing.assert_array_equal(np.asarray(lazy), expected)
        part = lazy[index]
        np.testing.assert_array_equal(np.asarray(part), expected[index])
        assert np.shape(part) == expected[index].shape
        if np.ndim(part):
            np.testing.assert_array_equal(np.asarray(part[::-1]), expected[index][::-1])


def test_numpy_facts_that_napari_asks_for():
    lazy = LutArray(np.zeros((3, 4, 5), np.uint32), np.zeros(1, np.uint32))
    assert (lazy.shape, lazy.ndim, lazy.size, len(lazy)) == ((3, 4, 5), 3, 60, 3)
    assert lazy.dtype == np.uint32
    assert np.asarray(lazy[1]).dtype == np.uint32
    assert np.asarray(lazy, dtype=np.int64).dtype == np.int64
    with pytest.raises(IndexError):
        lazy[0, 0, 0, 0]


def test_by_arrays_of_indices_it_is_what_numpy_would_give():
    labels = np.arange(12, dtype=np.uint32).reshape(3, 4)
    lazy = LutArray(labels, np.arange(12, dtype=np.uint32)[::-1].copy())
    index = (np.array([0, 2]), np.array([1, 3]))
    np.testing.assert_array_equal(lazy[index], (11 - labels)[index])


def test_a_tick_reads_nothing_again():
    source = Slow(np.ones((4, 6, 6), np.uint32))
    lazy = LutArray(source, np.array([0, 1], np.uint32))
    for tick in range(5):
        lazy.table.values = np.array([0, tick], np.uint32)
        assert (np.asarray(lazy[2]) == tick).all()
    assert source.reads == 1
    lazy.superpixels = Slow(np.zeros((4, 6, 6), np.uint32))
    assert (np.asarray(lazy[2]) == 0).all()


def test_a_large_lazy_volume_is_not_read_before_it_is_narrowed():
    source = Slow(np.ones((4, 6, 6), np.uint32))
    view = LutArray(source, np.array([0, 1], np.uint32))[:, 1:5, 1:5]
    assert source.reads == 0
    assert np.asarray(view[3]).shape == (4, 4)
    assert source.reads == 1


def test_several_arrays_share_a_table():
    table = Table(np.array([0, 1], np.uint32))
    fine, coarse = (LutArray(np.ones((n, n), np.uint32), table) for n in (4, 2))
    table.values = np.array([0, 9], np.uint32)
    assert (np.asarray(fine) == 9).all()
    assert (np.asarray(coarse) == 9).all()


def test_outlines_are_what_touches_another_label():
    labels = np.zeros((6, 7), np.uint32)
    labels[2:5, 2:6] = 1
    table = np.array([0, 5], np.uint32)
    both_sides = np.asarray(LutArray(labels, table, thickness=2))
    expected = np.where(labels == 1, 5, 0)
    expected[3, 3:5] = 0
    np.testing.assert_array_equal(both_sides, expected)
    assert np.asarray(LutArray(np.stack([labels] * 3), table, thickness=2)).max() == 0


def test_one_line_between_two_labels():
    labels = np.array([[1, 1, 2, 2]], np.uint32)
    lines = np.asarray(LutArray(labels, np.array([0, 1, 2], np.uint32), thickness=1))
    np.testing.assert_array_equal(lines, [[0, 1, 0, 0]])


def test_threads_may_read_while_the_table_is_swapped():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 50, (20, 30, 30)).astype(np.uint32)
    lazy = LutArray(Slow(labels), np.zeros(51, np.uint32))
    wrong = []

    def read():
        for z in range(200):
            plane = np.asarray(lazy[z % 20])
            if not (plane == plane.flat[0]).all():
                wrong.append(z)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for tick in range(200):
        lazy.table.values = np.full(51, tick, np.uint32)
    for thread in threads:
        thread.join()
    assert not wrong
