"""Smoothing of boundary maps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from napari_agglo.superpixels._gaussian import smooth_axis


def slowly(values, sigma, axis):
    """Sum by the definition, in scipy's order: the centre, then pairs from outside."""
    radius = int(4 * sigma + 0.5)
    phi = np.exp(-0.5 / sigma**2 * np.arange(radius + 1) ** 2)
    weights = phi / (phi[:0:-1].sum() + phi.sum())
    padding = [(0, 0)] * values.ndim
    padding[axis] = (radius, radius)
    padded = np.moveaxis(np.pad(values, padding, mode="edge").astype(float), axis, 0)
    n = values.shape[axis]
    sums = padded[radius : radius + n] * weights[0]
    for step in range(radius, 0, -1):
        low, high = (padded[radius + k : radius + k + n] for k in (-step, step))
        sums += (low + high) * weights[step]
    return np.moveaxis(sums, 0, axis).astype(np.float32)


@pytest.mark.parametrize("shape", [(5,), (1, 7), (6, 7, 2100), (2, 3, 4, 5)])
@pytest.mark.parametrize("sigma", [0.3, 1.3])
def test_kernels_equal_the_definition_and_scipy(shape, sigma):
    values = np.random.default_rng(0).random(shape).astype(np.float32)
    for axis in range(len(shape)):
        smooth = smooth_axis(values, sigma, axis, 4.0)
        expected = ndimage.gaussian_filter1d(values, sigma, axis=axis, mode="nearest", truncate=4.0)
        np.testing.assert_allclose(smooth, slowly(values, sigma, axis), rtol=2e-7)
        np.testing.assert_allclose(smooth, expected, rtol=2e-7)  # a processor may fuse operations


def test_transposed_map_is_smoothed_as_its_copy():
    values = np.random.default_rng(1).random((4, 5, 6)).astype(np.float32)
    np.testing.assert_array_equal(
        smooth_axis(values.T, 0.5, 0, 4.0), smooth_axis(values.T.copy(), 0.5, 0, 4.0)
    )
