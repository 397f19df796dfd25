"""Refusals of input that cannot be used, in words that say what to do."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from refusals import refuses

from napari_agglo.errors import (
    ConvertTo,
    DataWarning,
    PickIndex,
    ReadAffinities,
    SetOption,
    alternatives,
)
from napari_agglo.superpixels import oversegment
from napari_agglo.volumes import affinities

MAP = np.linspace(0, 1, 12).reshape(3, 4)


def spoilt(value, dtype=float):
    image = MAP.astype(dtype)
    image[1, 2] = value
    image[2, 3] = value
    return image


def value_range(low, high, when=""):
    return SetOption("value_range", (low, high), when=when)


COUNT_AS_BOUNDARY = SetOption("nan", "boundary", when="to count them as boundary")
NO_SMOOTHING = SetOption("sigma", 0, when="for no smoothing")
ONE_VOXEL = SetOption("sigma", 0.008, when="for 1 voxel")
ALL_SIZES = SetOption("min_size", 1, when="to keep every superpixel")
OTHER_RANGE = "e.g. (0, 255)"
FROM_THE_MINIMA = "leave it out to flood from the minima"
SEPARATE = SetOption("per_plane", True, when="if these are 3 separate volumes")
NO_CHANNELS = ConvertTo("uint16", when="if it is a volume 3 voxels wide")


@pytest.mark.parametrize(
    ("boundary", "options", "argument", "remedy", "facts"),
    [
        (spoilt(np.nan), {}, "boundary", COUNT_AS_BOUNDARY, ("2 values", "(1, 2)")),
        (spoilt(-np.inf), {}, "boundary", COUNT_AS_BOUNDARY, ("2 values", "(1, 2)")),
        (spoilt(200), {}, "boundary", value_range(0, 255), ("[0, 1]", "2 values", "(1, 2)")),
        (spoilt(3000), {}, "boundary", value_range(0, 65535), ("[0, 1]", "from 3000 to 3000")),
        (spoilt(-2), {}, "boundary", value_range(-2, 1), ("from -2 to -2",)),
        (
            spoilt(9, int), {"value_range": (0, 5)}, "boundary",
            SetOption("value_range", None, when="as wide as its values"), ("[0, 5]", "(1, 2)"),
        ),
        (
            MAP > 0.5, {}, "boundary",
            ConvertTo("float32", when="to use it as a map of 0 and 1"), ("bool",),
        ),
        (MAP.astype(np.uint8), {}, "boundary", value_range(0, 255), ("uint8",)),
        (
            MAP.astype(np.uint8), {}, "boundary",
            value_range(255, 0, when="if dark is boundary"), ("uint8",),
        ),
        (MAP.astype(np.uint16), {}, "boundary", value_range(0, 65535), ("uint16",)),
        (
            MAP.astype(int), {}, "boundary",
            SetOption("value_range", None, when="to declare its range"), ("int64",),
        ),
        (MAP.astype(complex), {}, "boundary", ConvertTo("float32"), ("complex128",)),
        (np.float64(0.5), {}, "boundary", "pass the whole map", ()),
        ("map.tif", {}, "boundary", "open_volume('map.tif')", ("map.tif",)),
        (MAP, {"value_range": (1, 1)}, "value_range", OTHER_RANGE, ("(1, 1)",)),
        (MAP, {"value_range": 255}, "value_range", OTHER_RANGE, ("not 255",)),
        (MAP, {"spacing": (1, 2, 3)}, "spacing", SetOption, ("2 positive", "(1, 2, 3)")),
        (MAP, {"sigma": -1}, "sigma", NO_SMOOTHING, ("-1",)),
        (MAP, {"sigma": np.nan}, "sigma", NO_SMOOTHING, ("nan",)),
        (
            MAP, {"sigma": 1e300}, "sigma", SetOption("sigma", 1.0, when="for 1 voxel"),
            ("1e+300 voxels along axis 0",),
        ),
        (MAP, {"sigma": 10**400}, "sigma", NO_SMOOTHING, ("not 1000",)),
        (
            np.zeros((400, 300)), {"sigma": 2, "spacing": (0.008, 0.01)}, "sigma", ONE_VOXEL,
            ("250 voxels along axis 0", "0.008", "`spacing`"),
        ),
        (MAP, {"min_size": 2**63}, "min_size", ALL_SIZES, (str(2**63),)),
        (MAP, {"per_plane": True}, "boundary", "leave `per_plane` out", ("(3, 4)",)),
        (MAP, {"nan": "zero"}, "nan", SetOption("nan", "refuse"), ("'zero'",)),
        (
            MAP, {"value_range": (-1.7e308, 1.7e308)}, "value_range", OTHER_RANGE,
            ("(-1.7e+308, 1.7e+308)",),
        ),
        (MAP, {"value_range": (0, 5e-324)}, "value_range", OTHER_RANGE, ("(0, 5e-324)",)),
        (
            np.zeros((32, 48, 3), np.uint8), {"value_range": (0, 255)}, "boundary",
            PickIndex((2,), 3), ("(32, 48, 3)", "RGB"),
        ),
        (
            np.zeros((32, 48, 3), np.uint8), {"value_range": (0, 255)}, "boundary", NO_CHANNELS,
            ("(32, 48, 3)", "RGB"),
        ),
        (np.zeros((3, 2, 20, 30)), {}, "boundary", ReadAffinities, ("(3, 2, 20, 30)",)),
        (np.zeros((3, 2, 20, 30)), {}, "boundary", SEPARATE, ("(3, 2, 20, 30)",)),
        (
            np.zeros((5, 32, 48, 4), np.uint8), {"value_range": (0, 255)}, "boundary",
            PickIndex((3,), 4), ("RGB",),
        ),
        (MAP, {"sigma": "wide"}, "sigma", NO_SMOOTHING, ("'wide'",)),
        (MAP, {"min_size": -1}, "min_size", ALL_SIZES, ("-1",)),
        (MAP, {"min_size": 2.5}, "min_size", ALL_SIZES, ("2.5",)),
        (MAP, {"min_size": True}, "min_size", ALL_SIZES, ("True",)),
        (MAP, {"mask": np.ones((4, 3), bool)}, "mask", "image.T", ("(4, 3)", "(3, 4)")),
        (MAP, {"mask": MAP}, "mask", "mask > 0.5", ("float64",)),
        (
            MAP, {"seeds": np.ones((3, 3), int)}, "seeds", "use the same crop",
            ("(3, 3)", "`boundary`", "(3, 4)"),
        ),
        (MAP, {"seeds": MAP}, "seeds", ConvertTo, ("float64",)),
        (MAP, {"seeds": -np.ones((3, 4), int)}, "seeds", "set them to 0", ("12 voxels", "-1")),
        (MAP, {"seeds": np.zeros((3, 4), int)}, "seeds", FROM_THE_MINIMA, ()),
        (
            MAP, {"seeds": np.eye(3, 4, dtype=int), "mask": np.eye(3, 4) == 0}, "seeds",
            FROM_THE_MINIMA, ("mask",),
        ),
    ],
)  # fmt: skip
def test_refused(boundary, options, argument, remedy, facts):
    with refuses(argument, remedy, facts=facts):
        oversegment(boundary, **options)


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


@pytest.mark.parametrize(
    ("shape", "warned"),
    [
        ((2, 20, 24, 28), True),  # of two offsets
        ((3, 40, 12, 16), True),  # narrow
        ((12, 12, 12, 12), False),  # no axis is shorter
        ((2, 3, 8, 9), False),  # too small to tell
        ((2, 80, 90), False),  # a volume
    ],
)
def test_an_array_that_may_be_affinities_is_warned_of(shape, warned):
    cue = np.random.default_rng(0).random(shape)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        labels = oversegment(cue)
    assert labels.shape == shape
    assert [one.message.argument for one in caught] == ["boundary"] * warned
    for one in caught:
        assert ReadAffinities() in alternatives(one.message.remedy)
    oversegment(cue, per_plane=True)  # no warning: planes of their own


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


@pytest.mark.parametrize("top", [1.0, 0.4])
def test_values_that_hardly_fill_a_declared_range_give_a_warning(top):
    values = np.random.default_rng(0).random((50, 50), np.float32) * np.float32(top)
    with pytest.warns(DataWarning, match="of the range 0 to 255") as caught:
        oversegment(values, value_range=(0, 255))
    assert caught[0].message.remedy == SetOption("value_range", when="as wide as its values")
    oversegment(values, value_range=(0, 1))  # warnings are errors
