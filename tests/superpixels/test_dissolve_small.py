"""Dissolving small superpixels where there are many of them."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import superpixels as oracles

from napari_agglo.superpixels import oversegment


@pytest.mark.parametrize("shape", [(14, 15), (5, 6, 7)])
@pytest.mark.parametrize("top", [6, 60000])
def test_smallest_first_equals_the_oracle(shape, top):
    levels = np.random.default_rng(top).integers(0, top, shape).astype(np.uint16)
    inside = np.ones(shape, bool)
    options = {"value_range": (0, 65535), "sigma": 0}
    assert oversegment(levels, min_size=1, **options).max() > 15, "test invalid"
    for min_size in (6, 13, 40):
        expected = oracles.oversegment(levels.astype(int), inside, range(len(shape)), min_size)
        np.testing.assert_array_equal(oversegment(levels, min_size=min_size, **options), expected)


def test_large_superpixels_equal_the_oracle():
    # some have more voxels than are searched by a scan
    levels = np.random.default_rng(0).integers(0, 1000, (9, 10, 11)).astype(np.uint16)
    options = {"value_range": (0, 65535), "sigma": 0, "min_size": 400}
    expected = oracles.oversegment(levels.astype(int), np.ones(levels.shape, bool), range(3), 400)
    labels = oversegment(levels, **options)
    np.testing.assert_array_equal(labels, expected)
    assert np.bincount(labels.ravel())[1:].min() >= 400


def test_fine_texture_keeps_many_superpixels():
    # a chequerboard of pits, all too small: dissolving them all at once would leave none
    image = np.ones((30, 30))
    image[::3, ::3] = 0
    assert oversegment(image, sigma=0, min_size=1).max() == 100, "test invalid"
    sizes = np.bincount(oversegment(image, sigma=0, min_size=20).ravel())[1:]
    assert sizes.min() >= 20
    assert sizes.size > 15
