"""Oriented boundary maps of photographs: filters, discs, likenesses by slow twins; refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses
from scipy import ndimage

import napari_agglo as agglo
from napari_agglo.superpixels import textons
from napari_agglo.superpixels._eigenvectors import likenesses, spectral_gradients
from napari_agglo.superpixels._filter_bank import mr8, mr8_filters
from napari_agglo.superpixels._half_discs import disc_gradient, half_discs
from napari_agglo.volumes import OrientedMap

pytestmark = pytest.mark.compiled


def test_the_filter_bank_is_that_of_scipy_filter_by_filter():
    image = np.random.default_rng(0).random((30, 41)).astype(np.float32)
    slow = np.zeros((8, *image.shape))
    filters = list(mr8_filters())
    assert [sum(one == k for one, _ in filters) for k in range(8)] == [6] * 6 + [1, 1]
    for response, kernel in filters:
        assert np.abs(kernel).sum() == pytest.approx(1)
        found = np.abs(ndimage.correlate(image.astype(float), kernel, mode="reflect"))
        slow[response] = np.maximum(slow[response], found)
    assert np.abs(mr8(image) - slow).max() < 1e-5


def test_an_edge_and_a_bar_do_not_change_when_the_image_turns():
    image = np.zeros((61, 61), np.float32)
    image[:, 30:] = 1
    assert np.abs(mr8(image)[:, 30, 30] - mr8(image.T)[:, 30, 30]).max() < 1e-5


@pytest.mark.parametrize("radius", [1, 3, 10])
@pytest.mark.parametrize("direction", range(8))
def test_two_halves_of_a_disc_mirror_each_other(radius, direction):
    runs = half_discs(radius, direction / 8)
    masks = np.zeros((2, 2 * radius + 1, 2 * radius + 1), int)
    for half in range(2):
        for row, first, last in runs[half]:
            masks[half, row, first:last] += 1
    assert np.array_equal(masks[0], masks[1][::-1, ::-1])
    rows, columns = np.mgrid[-radius : radius + 1, -radius : radius + 1]
    angle = math.pi * direction / 8
    distance = np.abs(columns * math.sin(angle) + rows * math.cos(angle))
    inside = (rows**2 + columns**2 <= radius**2) & (distance > 1e-9)
    assert np.array_equal(masks.sum(axis=0), inside)


def slow_gradient(words, radius, direction, n_words, reach):
    """Half the chi-squared distance of two histograms, pixel by pixel."""
    padded = np.pad(words, radius, mode="symmetric")
    runs = half_discs(radius, direction / 8)
    out = np.zeros(words.shape)
    for r, c in np.ndindex(words.shape):
        pair = []
        for half in range(2):
            values = [padded[r + k, c + a : c + b] for k, a, b in runs[half]]
            counts = np.bincount(np.concatenate(values), minlength=n_words)
            wide = [counts[max(k - reach, 0) : k + reach + 1].sum() for k in range(n_words)]
            pair.append(np.array(wide) / len(np.concatenate(values)) / (2 * reach + 1))
        a, b = pair
        out[r, c] = 0.5 * ((a - b) ** 2 / np.maximum(a + b, 1e-12)).sum()
    return out


@examples(15)
@given(
    st.integers(0, 10**6), st.integers(1, 4), st.integers(0, 7), st.integers(2, 9),
    st.integers(0, 2),
)  # fmt: skip
def test_gradients_of_discs_are_those_of_a_slow_twin(seed, radius, direction, n_words, reach):
    random = np.random.default_rng(seed)
    words = random.integers(0, n_words, random.integers(1, 9, 2)).astype(np.uint8)
    runs = half_discs(radius, direction / 8)
    size = int((runs[0, :, 2] - runs[0, :, 1]).sum())
    out = np.empty(words.shape, np.float32)
    disc_gradient(
        np.pad(words, radius, mode="symmetric"), runs, n_words, reach,
        np.float32(0.5 / size / (2 * reach + 1)), np.zeros((2, n_words + reach), np.int32),
        np.zeros((2, n_words), np.float32), np.zeros(n_words, np.float32), out,
    )  # fmt: skip
    assert np.allclose(out, slow_gradient(words, radius, direction, n_words, reach), atol=1e-5)


def edge_image(direction, size=48):
    """Return a step along a line through the middle."""
    rows, columns = np.mgrid[:size, :size] - size / 2 + 0.25
    angle = math.pi * direction / 8
    return np.where(columns * math.sin(angle) + rows * math.cos(angle) > 0, 200, 60)


@pytest.mark.parametrize("direction", [0, 3, 4])
def test_an_edge_is_found_in_its_own_direction(direction):
    found = agglo.oriented_boundary(edge_image(direction).astype(np.uint8))
    assert int(found.channels[:, 24, 24].astype(int).argmax()) == direction
    middle = found.boundary_map()
    assert middle[24, 24] > 2 * max(middle[4, 4], middle[44, 44])


def test_colours_of_equal_brightness_are_divided_and_grey_has_no_colours():
    image = np.zeros((48, 48, 3), np.uint8)
    image[:, :24], image[:, 24:] = (180, 60, 60), (40, 120, 40)
    found = agglo.oriented_boundary(image)
    assert found.channels.shape == (8, 48, 48)
    assert found.channels[4, 24].argmax() in (22, 23, 24, 25)
    same = agglo.oriented_boundary(np.moveaxis(image, -1, 0), channel_axis=0)
    assert np.array_equal(same.channels, found.channels)
    several = np.stack([edge_image(4)] * 2).astype(np.uint16)  # two channels: their mean
    assert agglo.oriented_boundary(several, channel_axis=0).shape == (48, 48)


def test_a_photograph_goes_through_the_pipeline():
    found = agglo.oriented_boundary(edge_image(4).astype(np.float32))
    superpixels = agglo.oversegment(found)
    graph = agglo.region_graph(superpixels, {"boundary": found})
    tree = agglo.agglomerate(graph, "oriented mean")
    two = tree.segment(tree.heights[-1] * 0.999) if tree.n_merges else superpixels
    assert two[24, 4] != two[24, 44]


def test_progress_ends_and_cancels():
    states = []
    agglo.oriented_boundary(edge_image(4).astype(np.uint8), progress=states.append)
    shares = [one.whole for one in states if one.stage != "checking the image"]
    assert shares == sorted(shares)
    assert shares[-1] == 1

    def cancel(state):
        raise agglo.Cancelled("stop")

    with pytest.raises(agglo.Cancelled):
        agglo.oriented_boundary(edge_image(4).astype(np.uint8), progress=cancel)


def test_bad_images_are_refused_with_a_way_out():
    with refuses("image", "array[0]"):
        agglo.oriented_boundary(np.zeros((4, 30, 30)))
    with refuses("image"):
        agglo.oriented_boundary(np.zeros((30, 30)))  # constant
    broken = edge_image(4).astype(float)
    broken[3, 4] = np.nan
    with refuses("image"):
        agglo.oriented_boundary(broken)
    with refuses("channel_axis"):
        agglo.oriented_boundary(np.zeros((30, 30)), channel_axis=5)
    with refuses("image"):
        agglo.oriented_boundary(np.zeros((1, 1)))
    with refuses("image"):
        agglo.oriented_boundary(np.array([["a"]]))


def test_a_map_that_is_high_in_most_places_is_not_taken_for_an_inverted_one():
    channels = np.full((8, 80, 80), 200, np.uint8)
    channels[:, 4:8, 4:8] = 20
    labels = agglo.oversegment(OrientedMap(channels))  # a warning would be an error here
    assert labels.shape == (80, 80)


@pytest.mark.parametrize("make", [agglo.oriented_boundary, textons])
def test_channels_first_have_a_way_in(make):
    image = np.random.default_rng(0).random((3, 24, 30))
    with refuses("image", "channel_axis=0"):
        make(image)
    make(image, channel_axis=0)


@given(seed=st.integers(0, 99), height=st.integers(1, 9), width=st.integers(2, 9))
@examples(20)
def test_likenesses_are_those_of_a_loop_over_lines(seed, height, width):
    strength = np.random.default_rng(seed).random((height, width)).astype(np.float32)
    found = likenesses(strength).toarray().reshape(height, width, height, width)
    for a, b, c, d in np.ndindex(found.shape):
        if (a, b) > (c, d):
            a, b, c, d = c, d, a, b  # a line goes downwards
        steps = max(c - a, abs(d - b))
        if steps == 0:
            expected = 1.0
        elif math.hypot(c - a, d - b) > 5:
            expected = 0.0
        else:
            line = [
                strength[a + round((c - a) * k / steps), b + round((d - b) * k / steps)]
                for k in range(steps + 1)
            ]
            expected = math.exp(-max(line) / 0.3)
        assert found[a, b, c, d] == pytest.approx(expected, rel=1e-5)
        assert found[c, d, a, b] == pytest.approx(expected, rel=1e-5)


def wall_and_stub():
    """Return a wall from top to bottom, and a line of the same strength that ends."""
    strength = np.zeros((120, 160), np.float32)
    strength[:, 80] = strength[60, 110:140] = 1.0
    return strength


def test_a_border_of_two_parts_is_stronger_than_a_line_within_one():
    strength = wall_and_stub()
    found = spectral_gradients(strength, 8)
    assert found.shape == (8, 120, 160)
    assert found.dtype == np.float32
    wall, stub = found[4, 20:100, 80].mean(), found[0, 60, 115:135].mean()
    assert strength[60, 80] == strength[60, 120]
    assert wall > 2 * stub
    assert wall > 3 * found[4, :, 20:40].mean()


def test_the_direction_of_a_border_is_that_of_a_map():
    strength = wall_and_stub()
    assert spectral_gradients(strength, 8)[:, 20:50, 80].mean(axis=1).argmax() == 4  # upright
    assert spectral_gradients(strength.T.copy(), 8)[:, 80, 20:50].mean(axis=1).argmax() == 0


def test_the_same_image_has_the_same_gradients():
    strength = np.random.default_rng(0).random((140, 150)).astype(np.float32)
    first = spectral_gradients(strength, 8)
    np.testing.assert_array_equal(first, spectral_gradients(strength.copy(), 8))


@pytest.mark.parametrize("shape", [(1, 400), (2, 2), (7, 9), (4, 90), (33, 41)])
def test_images_of_any_shape_have_gradients(shape):
    strength = np.random.default_rng(0).random(shape).astype(np.float32)
    found = spectral_gradients(strength, 4)
    assert found.shape == (4, *shape)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_an_image_without_any_difference_has_finite_gradients(value):
    assert np.isfinite(spectral_gradients(np.full((150, 150), value, np.float32), 8)).all()
