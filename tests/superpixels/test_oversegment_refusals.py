"""Refusals of input that cannot be used, in words that say what to do."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses

from napari_agglo.errors import DataWarning, InvalidInput, PickIndex, SetOption
from napari_agglo.superpixels import oversegment
from napari_agglo.volumes import affinities

MAP = np.linspace(0, 1, 12).reshape(3, 4)


def spoilt(value, dtype=float):
    image = MAP.astype(dtype)
    image[1, 2] = value
    image[2, 3] = value
    return image


@pytest.mark.parametrize(
    ("boundary", "options", "words"),
    [
        (spoilt(np.nan), {}, ["`boundary`", "2 values", "NaN or infinite", "(1, 2)"]),
        (spoilt(-np.inf), {}, ["2 values", "NaN or infinite", "(1, 2)"]),
        (spoilt(200), {}, ["[0, 1]", "2 values are outside", "(1, 2)", "value_range=(0, 255)"]),
        (spoilt(3000), {}, ["value_range=(0, 65535)"]),
        (spoilt(-2), {}, ["from -2 to -2", "value_range=(-2, 1)"]),
        (spoilt(9, int), {"value_range": (0, 5)}, ["[0, 5]", "(1, 2)", "`value_range` as wide"]),
        (MAP > 0.5, {}, ["bool mask", "astype('float32')"]),
        (MAP.astype(np.uint8), {}, ["uint8", "value_range=(0, 255)", "value_range=(255, 0)"]),
        (MAP.astype(np.uint16), {}, ["uint16", "value_range=(0, 65535)"]),
        (MAP.astype(int), {}, ["label image", "`value_range` to declare"]),
        (MAP.astype(complex), {}, ["real numbers", "complex128"]),
        (np.float64(0.5), {}, ["at least one axis"]),
        ("map.tif", {}, ["open_volume"]),
        (MAP, {"value_range": (1, 1)}, ["`value_range`", "two different numbers", "(1, 1)"]),
        (MAP, {"value_range": 255}, ["`value_range`", "255"]),
        (MAP, {"spacing": (1, 2, 3)}, ["`spacing`", "2 positive numbers"]),
        (MAP, {"sigma": -1}, ["`sigma`", "0 or more", "-1"]),
        (MAP, {"sigma": np.nan}, ["`sigma`", "nan"]),
        (MAP, {"sigma": 1e300}, ["`sigma`=1e+300 is 1e+300 voxels along axis 0"]),
        (MAP, {"sigma": 10**400}, ["`sigma` must be a number"]),
        (
            np.zeros((400, 300)),
            {"sigma": 2, "spacing": (0.008, 0.01)},
            [
                "`sigma`=2 is 250 voxels along axis 0, whose spacing is 0.008",
                "`sigma` is in the unit of `spacing`; pass sigma=0.008 for 1 voxel",
            ],
        ),
        (MAP, {"min_size": 2**63}, ["`min_size`", "below 2**63"]),
        (MAP, {"per_plane": True}, ["(3, 4)", "has only one plane; leave `per_plane` out"]),
        (MAP, {"nan": "zero"}, ["`nan` must be"]),
        (MAP, {"value_range": (-1.7e308, 1.7e308)}, ["`value_range`", "infinitely far apart"]),
        (MAP, {"value_range": (0, 5e-324)}, ["`value_range`", "infinitely close"]),
        (
            np.zeros((32, 48, 3), np.uint8),
            {"value_range": (0, 255)},
            ["(32, 48, 3)", "looks like an RGB(A) image", "array[:, :, 0]", "astype('uint16')"],
        ),
        (np.zeros((3, 2, 20, 30)), {}, ["(3, 2, 20, 30)", "affinities", "per_plane=True"]),
        (np.zeros((5, 32, 48, 4), np.uint8), {"value_range": (0, 255)}, ["RGB(A) image"]),
        (MAP, {"sigma": "wide"}, ["`sigma`", "'wide'"]),
        (MAP, {"min_size": -1}, ["`min_size`", "-1"]),
        (MAP, {"min_size": 2.5}, ["`min_size`", "2.5"]),
        (MAP, {"min_size": True}, ["`min_size`", "True"]),
        (MAP, {"mask": np.ones((4, 3), bool)}, ["`mask`", "(4, 3)", "(3, 4)"]),
        (MAP, {"mask": MAP}, ["`mask`", "float64"]),
        (MAP, {"seeds": np.ones((3, 3), int)}, ["`seeds`", "(3, 3)", "`boundary`", "(3, 4)"]),
        (MAP, {"seeds": MAP}, ["`seeds`", "float64"]),
        (MAP, {"seeds": -np.ones((3, 4), int)}, ["`seeds`", "negative"]),
        (MAP, {"seeds": np.zeros((3, 4), int)}, ["`seeds`", "at least one label", "leave it out"]),
        (
            MAP,
            {"seeds": np.eye(3, 4, dtype=int), "mask": np.eye(3, 4) == 0},
            ["`seeds`", "inside the mask"],
        ),
    ],
)
def test_refused(boundary, options, words):
    with pytest.raises(InvalidInput) as caught:
        oversegment(boundary, **options)
    for word in words:
        assert word in str(caught.value)


def test_rounding_beyond_the_range_is_forgiven():
    image = MAP.copy()
    image[0, 0], image[2, 3] = -1e-7, 1 + 1e-7
    np.testing.assert_array_equal(oversegment(image), oversegment(MAP))


def test_one_number_seeds_in_two_places_are_two_seeds():
    seeds = np.array([1, 0, 0, 0, 1])
    np.testing.assert_array_equal(oversegment(np.zeros(5), seeds=seeds), [1, 1, 1, 2, 2])


def test_a_volume_three_voxels_wide_has_a_way_in():
    thin = np.zeros((5, 6, 3), np.uint16)
    assert oversegment(thin, value_range=(0, 255)).max() == 1


def test_a_wide_sigma_is_fine_on_a_small_image_and_across_what_is_not_smoothed():
    assert oversegment(MAP, sigma=4).max() == 1
    stack = np.zeros((2, 100, 100), np.float32)
    with pytest.warns(DataWarning, match="0 everywhere"):
        assert oversegment(stack, sigma=20, spacing=(0.01, 1, 1), per_plane=True).max() == 2


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_affinities_with_channels_last_have_a_way_in(dtype):
    channels_last = np.zeros((20, 24, 28, 3), dtype)
    wanted = "pass affinities(np.moveaxis(array, -1, 0)) if its channels are those of offsets"
    with refuses("boundary", wanted):
        oversegment(channels_last, value_range=(0, 255))
    first = np.moveaxis(channels_last, -1, 0)
    assert affinities(first, value_range=(0, 255)).shape == (20, 24, 28)


def test_affinities_have_a_way_in():
    assert oversegment(np.zeros((3, 2, 20, 20)), per_plane=True).max() == 3


def test_a_map_that_is_high_nearly_everywhere_is_said_to_be_upside_down():
    inside = np.where(np.arange(4900).reshape(70, 70) % 9 == 0, 0.1, 0.9)
    with pytest.warns(DataWarning, match="high inside objects") as caught:
        upside_down = oversegment(inside, sigma=0, min_size=1)
    assert caught[0].message.argument == "boundary"
    assert caught[0].message.remedy == SetOption("value_range", (1.0, 0.0), when="if it is")
    oversegment(inside, mask=np.ones(inside.shape, bool), sigma=0)  # no warning within a mask
    with_remedy = oversegment(inside, sigma=0, min_size=1, value_range=(1, 0))  # no warning
    assert not np.array_equal(with_remedy, upside_down)


def test_a_picture_in_colours_of_floats_is_refused():
    with refuses("boundary", PickIndex((2,), 3)):
        oversegment(np.zeros((20, 30, 3)))
    assert oversegment(np.zeros((5, 6, 3))).shape == (5, 6, 3)  # a small volume
