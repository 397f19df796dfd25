"""Levels of a volume for a layer: a plane reads a plane, and 3-D never more than it may."""

from __future__ import annotations

import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses
from windows import limit_voxels

from napari_agglo.volumes import DiskLabels
from napari_agglo.volumes._on_disk import OnDisk
from napari_agglo.widgets import _layer_levels
from napari_agglo.widgets._layer_levels import (
    LazyArray,
    Strided,
    coarser,
    is_empty_in_3d,
    lazy_levels,
    level_steps,
)


@given(st.data())
@examples(60, deadline=None)
def test_a_strided_array_is_every_so_manieth_voxel(data):
    shape = data.draw(st.lists(st.integers(1, 7), min_size=2, max_size=4))
    step = data.draw(st.integers(1, 4))
    whole = np.arange(np.prod(shape)).reshape(shape)
    steps = (slice(None, None, step),) * min(3, len(shape))
    expected, coarse = whole[(..., *steps)], Strided(whole, step)
    assert coarse.shape == expected.shape
    index = []
    for n in expected.shape[: data.draw(st.integers(0, len(shape)))]:
        ends = st.none() | st.integers(-n - 1, n + 1)
        slices = st.builds(slice, ends, ends, st.none() | st.sampled_from([-2, -1, 1, 2]))
        index.append(data.draw(st.integers(-n, n - 1) | slices))
    index = (*index, ...) if data.draw(st.booleans()) else tuple(index)
    assert np.array_equal(coarse[index], expected[index])


def test_an_array_on_disk_is_not_read_whole_where_it_does_not_fit():
    lazy = LazyArray(OnDisk((1 << 20,) * 3, np.uint8, lambda index: np.ones((2, 3), np.uint8)))
    assert np.asarray(lazy[5, :2, :3]).shape == (2, 3)
    for whole in (np.asarray, lambda array: array[np.array([1, 2])]):
        with refuses("array", "use a crop"):
            whole(lazy)


def test_the_last_level_is_small_enough_for_3d(monkeypatch):
    limit_voxels(monkeypatch, 600, 300)
    image = np.arange(20 * 10 * 10).reshape(20, 10, 10)
    ids = np.arange(image.size, dtype=np.uint64)
    levels = coarser(DiskLabels(image, ids, coarser=(image[::2, ::2, ::2],)))
    assert [one.shape for one in levels] == [(20, 10, 10), (10, 5, 5)]
    levels = coarser(DiskLabels(image, ids))
    assert [one.shape for one in levels] == [(20, 10, 10), (10, 5, 5)]
    assert level_steps(levels, levels[1]) == [2, 2, 2]
    assert np.array_equal(levels[1][...], image[::2, ::2, ::2])
    assert not is_empty_in_3d(levels)
    monkeypatch.setattr(_layer_levels, "_READ", 1000)
    levels = lazy_levels([DiskLabels(image, ids)])
    assert is_empty_in_3d(levels)
    assert not levels[1][...].any(), "3-D is empty rather than read as a whole"
    assert np.array_equal(levels[1][3], image[6, ::2, ::2])
