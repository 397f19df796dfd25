"""Seeds against scikit-image's regional minima."""

from __future__ import annotations

import hypothesis.extra.numpy as hnp
import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from skimage.measure import label
from skimage.morphology import local_minima

from napari_agglo.superpixels._flood_queue import label_minima, make_grid


def quiet(stage, done, total):
    pass


@examples(100)
@given(
    hnp.array_shapes(min_dims=1, max_dims=4, min_side=2, max_side=6).flatmap(
        lambda shape: hnp.arrays(np.uint16, shape, elements=st.integers(0, 4))
    )
)
def test_equals_scikit_image(levels):
    grid = make_grid(levels.shape, [True] * levels.ndim)
    state = np.zeros(grid.size, np.int32)
    grid.view(state)[...] = -1 - levels.astype(np.int32)
    count = label_minima(state, grid, quiet)
    ours = np.maximum(grid.view(state), 0)
    # scikit-image knows no minimum in a constant image; here it is one basin
    lowest = local_minima(levels, connectivity=1) | (levels.min() == levels.max())
    np.testing.assert_array_equal(ours, label(lowest, connectivity=1))
    assert count == ours.max()
    walls = np.ones(grid.size, bool)
    grid.view(walls)[...] = False
    assert not state[walls].any()


def test_plateaus_by_hand():
    # the 3s on the left are a minimum; the 4s drain into the 2; the 6s are a minimum at the border
    levels = np.array([3, 3, 5, 4, 4, 2, 7, 6, 6], np.uint16)
    grid = make_grid(levels.shape, [True])
    state = np.zeros(grid.size, np.int32)
    grid.view(state)[...] = -1 - levels.astype(np.int32)
    assert label_minima(state, grid, quiet) == 3
    np.testing.assert_array_equal(np.maximum(grid.view(state), 0), [1, 1, 0, 0, 0, 2, 0, 3, 3])
