"""Colours of segments: a function of the id, and different for nearly all pairs of ids."""

from __future__ import annotations

import numpy as np
from napari.utils.colormaps import label_colormap

from napari_agglo.widgets._colours import segment_colours


def drawn(colours, ids):
    """Return the bytes that are drawn for ids."""
    return np.rint(255 * colours.map(np.asarray(ids, np.uint32))).astype(int)


def most_alike(colours, first):
    """Return how many of 1,000 ids from `first` on have the commonest of their colours."""
    return np.unique(drawn(colours, first + np.arange(1000)), axis=0, return_counts=True)[1].max()


def test_a_thousand_ids_in_a_row_have_a_thousand_colours():
    assert most_alike(label_colormap(254), 1) > 4, "test invalid"
    for first in (1, 500, 3_600, 1_000_000):  # 3,600 is near the end of the palette
        assert most_alike(segment_colours(), first) == 1


def test_close_ids_have_colours_that_are_far_apart():
    colours = drawn(segment_colours(), np.arange(1, 4000))
    for step in range(1, 9):
        assert np.abs(colours[step:] - colours[:-step]).max(axis=1).min() > 60
    assert colours[:, :3].max(axis=1).min() > 100, "none is nearly black"
    assert np.ptp(colours[:, :3], axis=1).min() > 70, "none is grey, like the image"


def test_the_background_is_transparent_and_a_colour_depends_on_the_id_alone():
    assert drawn(segment_colours(), [0])[0, 3] == 0
    ids = [7, 70_000, 3]
    np.testing.assert_array_equal(
        drawn(segment_colours(), ids), drawn(segment_colours(), ids[::-1])[::-1]
    )
