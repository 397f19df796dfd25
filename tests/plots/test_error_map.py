"""The error map: shares, colours and the plane of what is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from plots.curves import GOLD, LABELS
from refusals import refuses

from napari_agglo.evaluate import breakdown, contingency, split_vi
from napari_agglo.plots import (
    error_picture,
    plot_breakdown,
    plot_error_map,
    worst_plane,
    wrong_shares,
)


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
