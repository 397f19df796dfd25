"""The whole of it against the oracle, and what must hold for any image."""

from __future__ import annotations

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from oracles import superpixels as oracles
from refusals import refuses

from napari_agglo.errors import Cancelled, DataWarning, SetOption
from napari_agglo.superpixels import _flood_queue, _oversegment, oversegment
from napari_agglo.volumes import Volume

RANGE = (0, 65535)  # with uint16 and no smoothing, values are levels


@st.composite
def images(draw, max_dims=4, max_side=5, top=None, masks=True):
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=max_dims, max_side=max_side))
    top = draw(st.sampled_from([1, 3, 9, 65535])) if top is None else top
    levels = draw(hnp.arrays(np.uint16, shape, elements=st.integers(0, top)))
    whole = np.ones(shape, bool)
    inside = draw(st.one_of(st.just(whole), hnp.arrays(bool, shape))) if masks else whole
    return levels, inside


def axes_of(image, per_plane):
    return range(1 if per_plane else 0, image.ndim)


def distinct(shape, seed=0):
    """Return an image without two equal values."""
    size = int(np.prod(shape))
    return (np.random.default_rng(seed).permutation(size) / size).reshape(shape)


def same_partition(one, two):
    return np.array_equal(oracles.number(one.astype(int)), oracles.number(two.astype(int)))


@examples(150)
@given(images(), st.booleans(), st.sampled_from([1, 2, 4, 9]))
def test_equals_the_oracle(image, per_plane, min_size):
    levels, inside = image
    per_plane = per_plane and levels.ndim > 2
    labels = oversegment(
        levels, value_range=RANGE, sigma=0, mask=inside, per_plane=per_plane, min_size=min_size
    )
    expected = oracles.oversegment(levels.astype(int), inside, axes_of(levels, per_plane), min_size)
    np.testing.assert_array_equal(labels, expected)


@examples(100)
@given(images(max_dims=3), st.booleans(), st.sampled_from([1, 3]), st.data())
def test_own_seeds_equal_the_oracle(image, per_plane, min_size, data):
    levels, inside = image
    per_plane = per_plane and levels.ndim > 2
    few = st.sampled_from([0, 0, 0, 1, 2, 2**40])
    seeds = data.draw(hnp.arrays(np.int64, levels.shape, elements=few))
    seeds.flat[0] = 7
    inside.flat[0] = True
    labels = oversegment(
        levels, value_range=RANGE, sigma=0, mask=inside, seeds=seeds, per_plane=per_plane,
        min_size=min_size,
    )  # fmt: skip
    expected = oracles.oversegment(
        levels.astype(int), inside, axes_of(levels, per_plane), min_size, seeds
    )
    np.testing.assert_array_equal(labels, expected)


@examples(60)
@given(images(max_dims=3, max_side=7), st.booleans(), st.integers(0, 12))
def test_superpixels_are_connected_numbered_and_large_enough(image, per_plane, min_size):
    levels, inside = image
    per_plane = per_plane and levels.ndim > 2
    labels = oversegment(levels / 65535, mask=inside, per_plane=per_plane, min_size=min_size)
    axes = axes_of(levels, per_plane)
    assert labels.dtype == np.uint32
    assert labels.shape == levels.shape
    np.testing.assert_array_equal(labels > 0, inside)
    np.testing.assert_array_equal(labels, oracles.number(labels.astype(int)))
    for label in range(1, labels.max() + 1):
        region = labels == label
        assert oracles.is_connected(region, axes)
        if region.sum() < min_size:  # only one that fills an island of the mask may be small
            voxels = np.argwhere(region)
            around = {labels[o] for v in voxels for o in oracles.neighbours(v, labels.shape, axes)}
            assert around <= {0, label}


@examples(50)
@given(hnp.array_shapes(min_dims=1, max_dims=4, max_side=6), st.integers(0, 999), st.data())
def test_turning_the_image_turns_the_partition(shape, seed, data):
    image = distinct(shape, seed)
    order = data.draw(st.permutations(range(len(shape))))
    flips = data.draw(st.lists(st.sampled_from(range(len(shape))), unique=True))
    plain = oversegment(image, sigma=0, min_size=1)
    turned = oversegment(np.flip(image, flips).transpose(order), sigma=0, min_size=1)
    assert same_partition(turned, np.flip(plain, flips).transpose(order))


@examples(50)
@given(images(max_dims=3), st.sampled_from([0, 0.5, 2]), st.sampled_from([1, 4]))
def test_per_plane_is_plane_by_plane(image, sigma, min_size):
    levels, inside = image
    while levels.ndim < 3:
        levels, inside = levels[:, None], inside[:, None]
    boundary = levels / 65535
    together = oversegment(boundary, per_plane=True, sigma=sigma, min_size=min_size, mask=inside)
    first = 0
    for plane, part, where in zip(together, boundary, inside, strict=True):
        alone = oversegment(part, sigma=sigma, min_size=min_size, mask=where)
        np.testing.assert_array_equal(plane, np.where(where, alone + np.uint32(first), 0))
        first += int(alone.max(initial=0))


@pytest.mark.parametrize("per_plane", [False, True])
def test_does_not_depend_on_slabs_blocks_and_slices(monkeypatch, per_plane):
    image = np.random.default_rng(1).random((7, 9, 8)).astype(np.float32)
    plain = oversegment(image, per_plane=per_plane, sigma=0.8, min_size=6)
    assert plain.max() > 7, "test invalid"
    monkeypatch.setattr(_oversegment, "_SLAB", 80)
    monkeypatch.setattr(_oversegment, "_BLOCK", 150)
    monkeypatch.setattr(_flood_queue, "BUDGET", 16)
    np.testing.assert_array_equal(
        oversegment(image, per_plane=per_plane, sigma=0.8, min_size=6), plain
    )


def test_agrees_with_scikit_image():
    from skimage.segmentation import watershed

    image = distinct((12, 11, 10))
    levels = np.rint(image * 65535).astype(np.uint16)
    seeds = np.zeros(image.shape, int)
    seeds.flat[np.random.default_rng(0).choice(image.size, 20, replace=False)] = range(1, 21)
    ours = oversegment(levels, value_range=RANGE, sigma=0, seeds=seeds)
    # where seeds are no minima, floods at one level meet in another order: a few voxels differ
    theirs = watershed(levels, seeds)
    given = oracles.number(theirs)
    assert ours.max() == 20
    assert (ours == given).mean() > 0.9
    ours = oversegment(image, sigma=0, min_size=1)
    start = np.where(
        np.isin(image, [image[ours == i].min() for i in range(1, ours.max() + 1)]), ours, 0
    )
    np.testing.assert_array_equal(ours, watershed(image, start.astype(int)))


def test_drawn_picture():
    # minima, in raster order: the corner (1), the 2 and the 1 on the right, the 0 below
    picture = np.array(
        [
            [1, 2, 9, 3, 3, 3],
            [2, 1, 8, 2, 3, 1],
            [1, 0, 9, 3, 3, 3],
        ]
    )
    expected = {
        1: [[1, 1, 1, 2, 3, 3], [1, 4, 4, 2, 3, 3], [4, 4, 4, 2, 3, 3]],
        4: [[1, 1, 1, 2, 2, 2], [1, 3, 3, 2, 2, 2], [3, 3, 3, 2, 2, 2]],
        5: [[1, 1, 1, 2, 2, 2], [1, 1, 1, 2, 2, 2], [1, 1, 1, 2, 2, 2]],
    }
    for min_size, labels in expected.items():
        ours = oversegment(picture, value_range=(0, 9), sigma=0, min_size=min_size)
        np.testing.assert_array_equal(ours, labels)


def test_default_minimum_size_goes_by_the_connected_axes():
    image = np.random.default_rng(0).random((6, 16, 16))
    for options, least in [({}, 125), ({"per_plane": True}, 25)]:
        sizes = np.bincount(oversegment(image, **options).ravel())[1:]
        assert sizes.min() >= least
        assert (sizes < 2 * least).any(), "test invalid"
    seeds = np.zeros(image.shape, np.uint8)
    seeds[3, 3, 3:6] = 1, 2, 3
    assert oversegment(image, seeds=seeds).max() == 3  # seeds of one's own are all kept


def test_smoothing_is_in_physical_units():
    image = np.random.default_rng(0).random((9, 12, 20))
    fine = oversegment(image, sigma=1.0, min_size=1)
    np.testing.assert_array_equal(
        oversegment(image, sigma=4.0, spacing=(4, 4, 4), min_size=1), fine
    )
    stretched = oversegment(image, sigma=1.0, spacing=(10, 1, 1), min_size=1)
    assert stretched.max() > fine.max()
    np.testing.assert_array_equal(
        oversegment(Volume(image, (10.0, 1.0, 1.0)), sigma=1.0, min_size=1), stretched
    )
    assert oversegment(
        image.transpose(2, 0, 1), sigma=1.0, spacing=(1, 10, 1), min_size=1
    ).max() == (stretched.max())


def test_inverted_range():
    image = np.random.default_rng(0).integers(0, 256, (20, 20)).astype(np.uint8)
    np.testing.assert_array_equal(
        oversegment(image, value_range=(255, 0)), oversegment(255 - image, value_range=(0, 255))
    )


@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0, 2)])
@pytest.mark.parametrize("per_plane", [False, True])
def test_nothing(shape, per_plane):
    labels = oversegment(np.zeros(shape), per_plane=per_plane and len(shape) > 2)
    assert (labels.shape, labels.dtype) == (shape, np.uint32)


@pytest.mark.parametrize("shape", [(1,), (1, 1), (5,), (1, 6), (3, 1, 4), (2, 3, 2, 3)])
def test_constant_image_is_one_region(shape):
    assert (oversegment(np.full(shape, 0.5)) == 1).all()
    shape += (2,) * (3 - len(shape))
    planes = oversegment(np.full(shape, 0.5), per_plane=True)
    wanted = np.arange(1, shape[0] + 1).reshape((-1,) + (1,) * (len(shape) - 1))
    assert (planes == wanted).all()


def test_a_constant_map_is_named():
    flat = np.full((3, 40, 48), 0.5)
    for per_plane, what in ((False, "it is"), (True, "each plane is")):
        with pytest.warns(DataWarning) as caught:
            labels = oversegment(flat, per_plane=per_plane)
        assert labels.max() == (3 if per_plane else 1)
        assert all(words in str(caught[0].message) for words in ("0.5 everywhere", what, "choose"))
    seeds = np.zeros(flat.shape, int)
    seeds[0, 0, :2] = 1, 2
    oversegment(flat, seeds=seeds)  # no warning: distances divide it
    flat[2, 39, 47] = 0.25
    oversegment(flat, sigma=0)  # nor of a map with a single other value


def test_everything_masked():
    assert not oversegment(
        np.random.default_rng(0).random((4, 4)), mask=np.zeros((4, 4), bool)
    ).any()


def test_inputs_are_left_alone_in_any_layout():
    image = np.random.default_rng(0).random((6, 8, 10))
    plain = oversegment(image, min_size=3)
    still = image.copy()
    still.flags.writeable = False
    np.testing.assert_array_equal(oversegment(still, min_size=3), plain)
    wide = np.zeros((12, 8, 20))
    wide[::2, :, ::-2] = image
    for layout in (np.asfortranarray(image), wide[::2, :, ::-2], image.astype(">f8")):
        np.testing.assert_array_equal(oversegment(layout, min_size=3), plain)
    mask = image > 0.1
    mask.flags.writeable = False
    seeds = np.zeros(image.shape, ">i4")
    seeds[2, 2, 2] = 5
    seeds.flags.writeable = False
    oversegment(still, mask=mask, seeds=seeds)
    np.testing.assert_array_equal(still, image)


def test_lazy_and_multiscale_inputs(tmp_path):
    image = np.random.default_rng(0).random((6, 8, 10)).astype(np.float32)
    plain = oversegment(image)
    np.save(tmp_path / "image.npy", image)
    mapped = np.load(tmp_path / "image.npy", mmap_mode="r")
    np.testing.assert_array_equal(oversegment(mapped), plain)
    np.testing.assert_array_equal(oversegment([image, image[::2, ::2, ::2]]), plain)


@pytest.mark.parametrize("per_plane", [False, True])
def test_progress_and_cancel(monkeypatch, per_plane):
    monkeypatch.setattr(_flood_queue, "BUDGET", 64)
    monkeypatch.setattr(_oversegment, "_BLOCK", 200)
    monkeypatch.setattr(_oversegment, "_POLL", 60)  # the number of reports is the same each time
    image = np.random.default_rng(0).random((6, 10, 10))
    seen = []
    oversegment(image, per_plane=per_plane, min_size=5, progress=seen.append)
    stages = {step.stage for step in seen}
    assert all(0 <= step.done <= step.total for step in seen)
    if per_plane:
        assert "segmenting planes" in stages
        assert seen[-1].fraction == 1
    else:
        assert stages >= {
            "smoothing", "finding seeds", "flooding", "dissolving small superpixels", "numbering"
        }  # fmt: skip

    for stop in range(len(seen)):
        calls = []

        def cancel(step, calls=calls, stop=stop):
            calls.append(step)
            if len(calls) > stop:
                raise Cancelled

        with pytest.raises(Cancelled):
            oversegment(image, per_plane=per_plane, min_size=5, progress=cancel)
        assert len(calls) == stop + 1


def test_wide_indices(monkeypatch):
    image = np.random.default_rng(0).random((6, 10, 10))
    plain = oversegment(image, min_size=5)
    monkeypatch.setattr(_flood_queue.Grid, "index_dtype", np.int64)
    np.testing.assert_array_equal(oversegment(image, min_size=5), plain)


def test_values_that_are_not_finite_count_as_boundary_on_request():
    image = np.array([0.1, 0.0, np.nan, 0.1, 0.0, -np.inf, 0.2, 0.1])
    filled = np.where(np.isfinite(image), image, 1)
    for sigma in (0, 1):
        np.testing.assert_array_equal(
            oversegment(image, nan="boundary", sigma=sigma, min_size=1),
            oversegment(filled, sigma=sigma, min_size=1),
        )
    inverted = oversegment(image, nan="boundary", value_range=(1, 0), sigma=0, min_size=1)
    filled[[2, 5]] = 0
    np.testing.assert_array_equal(
        inverted, oversegment(filled, value_range=(1, 0), sigma=0, min_size=1)
    )


def test_outside_the_mask_values_need_not_be_finite():
    image = np.array([[np.nan, 0.0, 0.9, 0.1], [np.inf, 0.1, 0.8, 0.0]], np.float32)
    mask = np.isfinite(image)
    np.testing.assert_array_equal(
        oversegment(image, mask=mask, sigma=0, min_size=1), [[0, 1, 1, 2], [0, 1, 2, 2]]
    )
    mask[1, 0] = True
    with refuses("boundary", SetOption("nan", "boundary", when="to count them as boundary")):
        oversegment(image, mask=mask)


def test_indices_are_64_bit_where_32_do_not_do():
    assert _flood_queue.make_grid((2**15, 2**15), (True, True)).index_dtype is np.int32
    large = _flood_queue.make_grid((2**11, 2**11, 2**9), (True, True, True))
    assert large.index_dtype is np.int64
    assert large.offsets.dtype == np.int64
    assert list(large.scans())[-1][1] == large.size > 2**31
