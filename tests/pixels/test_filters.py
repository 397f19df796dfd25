"""Filters equal scipy's, whatever the axes, the spacing and the block."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import ndimage

from napari_agglo.pixels import FilterBank
from napari_agglo.pixels._filters import gaussian, smooth
from napari_agglo.pixels._pixel_image import Box, PixelImage, blocks

POOL = ThreadPoolExecutor(1)
CASES = [
    (axes, structure, spacing)
    for axes in (2, 3)
    for structure in (False, True)
    for spacing in ((1.0, 1.0, 1.0), (2.0, 1.0, 1.5))
]


def slow_features(image, bank, spacing):
    """Return the features by scipy and numpy, of an image whose edge voxels go on for ever."""
    pad = 26
    axes = range(3 - bank.axes, 3)
    wide = [(pad, pad) if axis in axes else (0, 0) for axis in range(3)]
    big = np.pad(image.astype(float), wide, mode="edge")
    cut = tuple(slice(a, n - b) for (a, b), n in zip(wide, big.shape, strict=True))
    fine = min(spacing[axis] for axis in axes)
    columns = []
    for scale in bank.scales:
        sigmas = [scale * fine / d if a in axes else 0 for a, d in enumerate(spacing)]
        value = ndimage.gaussian_filter(big, sigmas, mode="nearest")
        slopes = [np.gradient(value, axis=axis) * sigmas[axis] for axis in axes]
        hessian, tensor = np.empty((2, *value.shape, bank.axes, bank.axes))
        for i, one in enumerate(axes):
            for j, two in enumerate(axes):
                hessian[..., i, j] = np.gradient(slopes[i], axis=two) * sigmas[two]
                if one == two:
                    bent = ndimage.correlate1d(value, [1, -2, 1], axis=one)
                    hessian[..., i, j] = bent * sigmas[one] ** 2
                mean = ndimage.gaussian_filter(slopes[i] * slopes[j], [s / 2 for s in sigmas])
                tensor[..., i, j] = mean
        length = np.sqrt(sum(slope**2 for slope in slopes))
        columns += [value[cut], length[cut], np.trace(hessian, axis1=-2, axis2=-1)[cut]]
        for matrices in (hessian, tensor)[: 1 + bank.structure]:
            columns += list(np.moveaxis(np.linalg.eigvalsh(matrices[cut])[..., ::-1], -1, 0))
    return np.stack([column.reshape(-1) for column in columns], axis=1)


def features(image, bank, spacing, box=None):
    source = PixelImage.of(image, spacing)
    box = box or Box((0, 0, 0), source.grid)
    filtered = bank.apply(source.read(box, bank.reach(source.spacing)), source.spacing, POOL)
    return filtered.features(0, box.shape[0] * box.shape[1])


@pytest.mark.parametrize(("axes", "structure", "spacing"), CASES)
def test_features_are_those_of_scipy(axes, structure, spacing):
    image = np.random.default_rng(0).random((4, 6, 5), np.float32)
    bank = FilterBank(axes=axes, structure=structure)
    got = features(image, bank, spacing)
    want = slow_features(image, bank, spacing)
    assert got.shape == want.shape == (image.size, len(bank.names))
    assert want.std(axis=0).min() > 1e-5, "test invalid: a feature is constant"
    assert (np.abs(got - want).max(axis=0) < 1e-3 * want.std(axis=0)).all()
    np.testing.assert_allclose(got, want, atol=1e-4)


def test_eigenvalues_that_are_equal():
    grid = np.mgrid[:9, :9, :9] - 4.0
    ball = (grid**2).sum(axis=0) / 50
    bank = FilterBank(scales=(1.0,))
    got, want = (f(ball, bank, (1.0,) * 3) for f in (features, slow_features))
    np.testing.assert_allclose(got, want, atol=1e-4)
    middle = got[np.ravel_multi_index((4, 4, 4), ball.shape)]
    np.testing.assert_allclose(middle[3:], middle[3], atol=1e-4)
    assert features(np.ones((3, 3, 3)), bank, None)[:, 1:].max() < 1e-6


@pytest.mark.parametrize("axes", [2, 3])
def test_features_do_not_depend_on_the_block(axes):
    image = np.random.default_rng(1).random((4, 9, 8), np.float32)
    bank = FilterBank(axes=axes, structure=True, scales=(0.7, 2.0))
    whole = features(image, bank, None).reshape(*image.shape, -1)
    for box in (Box((1, 0, 3), (3, 4, 8)), Box((3, 8, 0), (4, 9, 1))):
        part = features(image, bank, None, box).reshape(*box.shape, -1)
        np.testing.assert_array_equal(part, whole[box.index])


def test_channels_have_features_of_their_own():
    image = np.random.default_rng(2).random((6, 7, 2), np.float32)
    bank = FilterBank(axes=2, channels=2)
    source = PixelImage.of(image, channel_axis=-1)
    block = source.read(Box((0, 0, 0), (1, 6, 7)), bank.reach((1.0,) * 3))
    both = bank.apply(block, (1.0,) * 3, POOL).features(0, 6)
    each = [features(image[..., k], FilterBank(axes=2), None) for k in range(2)]
    np.testing.assert_array_equal(both, np.hstack(each))
    assert len(set(bank.names)) == bank.width == 40


def test_a_gaussian_is_that_of_scipy():
    impulse = np.zeros(41)
    impulse[20] = 1
    for sigma in (0.35, 0.7, 1.0, 4.0):
        want = ndimage.gaussian_filter1d(impulse, sigma)[20:]
        half = gaussian(sigma)
        np.testing.assert_allclose(half, want[: len(half)], atol=1e-6)
        assert want[len(half) :].max(initial=0) == 0
    block = np.zeros((3, 4, 5), np.float32)
    assert smooth(block, (0.0, 0.0, 0.0), (0, 0, 0)) is block


def test_blocks_cover_a_grid_once():
    count = np.zeros((70, 130, 300), np.uint8)
    for box in blocks(count.shape, 3):
        count[box.index] += 1
    assert (count == 1).all()
