"""Boundary maps of label images against a loop over pairs of pixels."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from refusals import refuses

from napari_agglo import Volume, boundary_from_labels, oversegment

shapes = hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)
labels = shapes.flatmap(lambda shape: hnp.arrays(np.uint8, shape, elements=st.integers(0, 2)))


def map_by_loops(image, width, spacing):
    """Return exp(-d**2 / 2 width**2) for the distance to the nearest pixel at a border."""
    indices = list(itertools.product(*map(range, image.shape)))

    def touches(index):
        steps = (tuple(i + by * (a == axis) for a, i in enumerate(index))
                 for axis in range(image.ndim) for by in (-1, 1))  # fmt: skip
        return any(step in indices and image[step] != image[index] for step in steps)

    border = [index for index in indices if touches(index)]
    out = np.zeros(image.shape)
    for index in indices:
        distances = [
            math.dist(np.multiply(index, spacing), np.multiply(other, spacing)) for other in border
        ]
        out[index] = math.exp(-0.5 * (min(distances) / width) ** 2) if distances else 0.0
    return out


@given(labels, st.sampled_from([0.5, 1.0, 3.0]))
def test_the_map_equals_a_loop(image, width):
    if (image == image.flat[0]).all():
        return
    spacing = (3.0, 1.0, 0.5)[-image.ndim :]
    found = boundary_from_labels(image, width=width, spacing=spacing)
    assert found == pytest.approx(map_by_loops(image, width, spacing), abs=1e-6)
    assert found.dtype == np.float32


@given(st.lists(hnp.arrays(np.uint8, (4, 5), elements=st.integers(0, 2)), min_size=1, max_size=3))
def test_several_are_averaged(images):
    if all((image == image.flat[0]).all() for image in images):
        return
    expected = np.mean([map_by_loops(image, 1.0, (1, 1)) for image in images], axis=0)
    assert boundary_from_labels(images) == pytest.approx(expected, abs=1e-6)


def test_superpixels_of_the_map_keep_the_borders():
    image = np.zeros((20, 20), int)
    image[:, 10:] = 1
    superpixels = oversegment(boundary_from_labels(image + 1, width=3.0), min_size=1)
    assert superpixels.max() == 2
    assert (superpixels[:, :9] == superpixels[0, 0]).all()


def test_the_spacing_of_a_volume_counts():
    image = np.array([[1, 1, 1, 2]])
    found = boundary_from_labels(Volume(image, (1.0, 2.0)), width=2.0)
    assert found == pytest.approx(boundary_from_labels(image, width=1.0))


def test_bad_input_is_refused():
    image = np.array([[1, 2]])
    for width in (-1, math.nan, "wide", math.inf):
        with refuses("width"):
            boundary_from_labels(image, width=width)
    with refuses("labels"):
        boundary_from_labels(np.zeros((3, 3), int))
    with refuses("labels"):
        boundary_from_labels([])
    with refuses("labels"):
        boundary_from_labels(np.array([[0.5, 0.7]]))
    with refuses("labels[1]"):
        boundary_from_labels([image, np.array([[1, 2, 3]])])
