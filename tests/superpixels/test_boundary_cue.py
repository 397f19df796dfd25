"""Lines and edges are found whatever way they run, and whatever the type and the slabs."""

from __future__ import annotations

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

import napari_agglo as agglo
from napari_agglo.errors import Cancelled, DataWarning, InvalidInput, SetOption, alternatives
from napari_agglo.superpixels import CUE_KINDS, _oversegment, boundary_cue
from napari_agglo.superpixels._ridges import largest_eigenvalue
from napari_agglo.volumes import Volume

GREY = [kind for kind in CUE_KINDS if kind != "colour"]


def with_sheet(shape, axis, thickness=1, bright=True):
    """Return an image with a sheet across the middle of `axis`."""
    middle = shape[axis] // 2
    image = np.zeros(shape, np.float32)
    index = [slice(None)] * len(shape)
    index[axis] = slice(middle - thickness // 2, middle - thickness // 2 + thickness)
    image[tuple(index)] = 1
    return image if bright else 1 - image


def noise(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((15, 17), 0), ((15, 17), 1), ((13, 11, 12), 0), ((13, 11, 12), 1), ((13, 11, 12), 2),
     ((21,), 0)],
)  # fmt: skip
@pytest.mark.parametrize("bright", [True, False])
def test_a_sheet_is_found_along_any_axis(shape, axis, bright):
    cue = boundary_cue(with_sheet(shape, axis, bright=bright), spacing=(1.0,) * len(shape))
    assert cue.shape == shape
    assert cue.dtype == np.float32
    assert (cue.argmax(axis=axis) == shape[axis] // 2).all()
    other = "dark_ridges" if bright else "bright_ridges"
    wrong = boundary_cue(with_sheet(shape, axis, bright=bright), other)
    assert (wrong.argmax(axis=axis) != shape[axis] // 2).all(), "test invalid"


def test_a_sheet_that_runs_askew_is_as_strong_as_a_straight_one():
    rows, columns = np.mgrid[:40, :40]
    flat = np.exp(-((rows - 20.0) ** 2) / 2)
    askew = np.exp(-(((rows - columns) / np.sqrt(2)) ** 2) / 2)
    both = boundary_cue(np.hstack([flat, askew]), "bright_ridges")
    assert abs(both[20, 10:30].mean() - np.diag(both[:, 40:])[10:30].mean()) < 0.08


def test_an_edge_is_found_by_its_gradient_and_a_line_of_equal_grey_by_its_colour():
    step = np.zeros((9, 20), np.uint16)
    step[:, 10:] = 1000
    assert set(boundary_cue(step, "gradient", scale=1).argmax(axis=1)) <= {9, 10}

    red, green = np.array([200, 0, 0]), np.array([0, 104, 0])  # of about the same luminance
    picture = np.where(np.arange(20)[:, None] < 10, red, green)[None].repeat(9, 0).astype(np.uint8)
    assert set(boundary_cue(picture).argmax(axis=1)) <= {9, 10}
    np.testing.assert_array_equal(boundary_cue(picture), boundary_cue(picture, "colour"))


def test_slopes_that_point_opposite_ways_in_two_channels_do_not_cancel():
    step = np.zeros((8, 20))
    step[:, 10:] = 1
    pair = np.stack([step, 1 - step])
    cue = boundary_cue(pair, channel_axis=0, scale=1)
    assert set(cue.argmax(axis=1)) <= {9, 10}
    with refuses("image", "try another `kind` (one of auto"):
        boundary_cue(pair, "gradient", channel_axis=0)  # their mean is flat


@pytest.mark.parametrize("channel_axis", [0, 1, 2, -1])
def test_channels_may_stand_anywhere_and_transparency_is_left_out(channel_axis):
    picture = np.random.default_rng(1).integers(0, 255, (12, 14, 4), dtype=np.uint8)
    moved = np.moveaxis(picture, -1, channel_axis)
    cue = boundary_cue(moved, channel_axis=channel_axis)
    np.testing.assert_array_equal(cue, boundary_cue(picture[..., :3]))


def test_thick_walls_are_not_hollow():
    across = np.abs(np.arange(60) - 30)
    profile = np.exp(-(np.clip(across - 3, 0, None) ** 2) / 18)  # flat on top, with soft flanks
    image = np.tile(profile, (60, 1)) + 1e-3 * noise((60, 60))
    cue = boundary_cue(image)
    np.testing.assert_array_equal(cue, boundary_cue(image, "bright"))
    assert cue[:, 30].min() > 0.8
    hollow = boundary_cue(image, "bright_ridges")
    assert hollow[:, 30].mean() < hollow[:, 26].mean(), "test invalid"


@examples(40)
@given(
    hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=6),
    st.sampled_from(GREY),
    st.sampled_from([np.uint8, np.int16, np.uint16, np.int64, np.float32, np.float64, ">u2"]),
    st.integers(0, 99),
)
def test_a_cue_is_from_0_to_1(shape, kind, dtype, seed):
    image = (noise(shape, seed) * 20 + 100).astype(dtype)
    if np.unique(image).size < 2 or (len(shape) > 2 and shape[-1] in (3, 4)):
        return
    try:
        cue = boundary_cue(image, kind)
    except InvalidInput:
        return  # nothing of this kind is to be seen
    assert cue.shape == shape
    assert cue.dtype == np.float32
    assert cue.min() >= 0
    assert cue.max() == 1


@pytest.mark.parametrize("kind", CUE_KINDS)
@pytest.mark.parametrize("spacing", [(1, 1, 1), (2, 1, 1), (5, 1, 1)])
def test_slabs_leave_no_trace(kind, spacing, monkeypatch):
    shape = (40, 7, 9, 3) if kind == "colour" else (40, 7, 9)
    image = np.random.default_rng(3).integers(0, 16, shape, dtype=np.uint8) ** 2
    options = {"spacing": spacing, "scale": 1}
    whole = boundary_cue(image, kind, **options)
    monkeypatch.setattr(_oversegment, "_SLAB", 200)
    in_slabs = boundary_cue(image, kind, **options)
    np.testing.assert_allclose(in_slabs, whole, atol=1e-6)


def test_planes_far_apart_know_nothing_of_each_other():
    image = noise((5, 20, 20))
    other = image.copy()
    other[3] = np.rot90(other[3])
    one, two = (boundary_cue(each, "dark_ridges", spacing=(30, 6, 6)) for each in (image, other))
    np.testing.assert_allclose(one[2], two[2], atol=1e-6)
    near = boundary_cue(other, "dark_ridges", spacing=(6, 6, 6))
    assert abs(near[2] - boundary_cue(image, "dark_ridges")[2]).max() > 0.01, "test invalid"


def test_the_range_and_an_offset_do_not_matter():
    image = (noise((30, 30)) * 30 + 128).astype(np.uint8)
    cue = boundary_cue(image)
    np.testing.assert_allclose(boundary_cue(image.astype(np.int64) * 7 + 10**9), cue, atol=1e-5)
    np.testing.assert_allclose(boundary_cue(image / 255 - 3.0), cue, atol=1e-5)


def test_volumes_and_lazy_arrays():
    da = pytest.importorskip("dask.array")
    image = noise((8, 20, 20))
    expected = boundary_cue(image, spacing=(4, 1, 1))
    lazy = da.from_array(image, chunks=(3, 9, 9))
    np.testing.assert_array_equal(boundary_cue(Volume(lazy, (4.0, 1.0, 1.0))), expected)


@pytest.mark.parametrize("axes", [1, 2, 3, 4])
def test_eigenvalues_equal_those_of_a_general_solver(axes):
    matrices = noise((200, axes, axes)).astype(np.float32)
    matrices = matrices + matrices.swapaxes(1, 2)
    matrices[0] = 0
    matrices[1] = np.eye(axes)
    matrices[2] = np.diag(np.arange(axes))
    parts = np.ascontiguousarray(matrices[:, *np.triu_indices(axes)].T)
    expected = np.linalg.eigvalsh(matrices.astype(np.float64))[:, -1]
    np.testing.assert_allclose(largest_eigenvalue(parts, axes), expected, atol=1e-5)


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("kind", "expected"), [("neuropil2d", "dark_ridges"), ("cells2d", "bright_ridges")]
)
def test_auto_knows_the_samples(kind, expected):
    image = agglo.sample(kind).image
    np.testing.assert_array_equal(boundary_cue(image), boundary_cue(image, expected))


@pytest.mark.compiled
def test_boundary_cue_is_nearly_as_good_as_the_cue_of_the_sample():
    sample = agglo.sample("neuropil2d")

    def least_vi(cue):
        graph = agglo.region_graph(agglo.oversegment(cue), cue, statistics="mean")
        return agglo.vi_curve(agglo.agglomerate(graph), sample.gold)["vi"].min()

    assert least_vi(boundary_cue(sample.image)) < 1.3 * least_vi(sample.cues["boundary"])


def spoilt(value):
    image = noise((4, 5, 6))
    image[1, 2, 3] = value
    return image


THIN = SetOption("scale", 1, when="if a membrane is about two voxels thick")


@pytest.mark.parametrize(
    ("image", "options", "argument", "remedy", "facts"),
    [
        (np.full((5, 5), 7), {}, "image", "use the image that shows the objects", ("is 7",)),
        (spoilt(np.nan), {}, "image", "replace them by numbers", ("(1, 2, 3)",)),
        (spoilt(np.inf), {}, "image", "replace them by numbers", ("(1, 2, 3)",)),
        (noise((5, 5)) > 0, {}, "image", "use the grey values or colours", ("bool",)),
        (noise((5, 5)) + 1j, {}, "image", "use the grey values or colours", ("complex128",)),
        (noise((1, 1)), {}, "image", "use a larger crop", ("(1, 1)",)),
        (np.zeros((0, 4)), {}, "image", "use a larger crop", ("(0, 4)",)),
        ("image.tif", {}, "image", "open_volume('image.tif')", ()),
        (
            noise((5, 5)), {"kind": "edges"}, "kind", SetOption("kind", "auto"),
            ("'dark_ridges'", "'edges'"),
        ),
        (noise((5, 5)), {"kind": "colour"}, "image", SetOption("kind", "gradient"), ("(5, 5)",)),
        (noise((5, 5)), {"kind": "colour"}, "image", SetOption("channel_axis", None), ()),
        (
            noise((5, 5)), {"channel_axis": 2}, "channel_axis", "leave it out",
            ("(5, 5)", "not 2"),
        ),
        (noise((5, 5)), {"scale": 0}, "scale", THIN, ("from 0.5 to 4", "not 0")),
        (noise((5, 5)), {"scale": "fine"}, "scale", THIN, ("'fine'",)),
        (noise((5, 5)), {"scale": 100}, "scale", THIN, ("not 100",)),
        (noise((5, 5)), {"spacing": (1, 1, 1)}, "spacing", SetOption, ("2 positive numbers",)),
        (noise((5, 1)), {"spacing": (9, 1)}, "scale", "use a larger one", ("half a voxel",)),
    ],
)  # fmt: skip
def test_refused(image, options, argument, remedy, facts):
    with refuses(argument, remedy, facts=facts):
        boundary_cue(image, **options)


def test_progress_and_cancel():
    seen = []
    boundary_cue(noise((9, 9)), progress=seen.append)
    assert {"checking the image", "finding boundaries"} <= {one.stage for one in seen}
    assert seen[-1].done == seen[-1].total

    def cancel(progress):
        raise Cancelled

    with pytest.raises(Cancelled):
        boundary_cue(noise((9, 9)), progress=cancel)


@pytest.mark.parametrize(
    ("shape", "axis"), [((3, 20, 30), 0), ((20, 30, 3), 2), ((3, 5, 20, 30), 0)]
)
def test_an_axis_that_may_be_of_channels_is_named(shape, axis):
    image = np.random.default_rng(0).random(shape)
    with pytest.warns(DataWarning) as caught:
        taken_for_space = boundary_cue(image)
    remedies = alternatives(caught[0].message.remedy)
    assert remedies[0] == SetOption("channel_axis", axis, when="if these are channels")
    assert taken_for_space.shape == shape
    assert boundary_cue(image, channel_axis=axis).ndim == image.ndim - 1  # no warning


def test_thin_volumes_and_planes_are_not_said_to_have_channels():
    image = np.random.default_rng(0).random((5, 20, 30))
    for one in (image, image[0], image[:3, :6, :6], image[:2]):
        assert boundary_cue(one).shape == one.shape
