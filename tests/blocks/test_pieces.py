"""Pieces of the superpixels of a block: the connected parts of each label within a box."""

from __future__ import annotations

import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from napari_agglo.blocks._block_superpixels import cropped_pieces
from napari_agglo.superpixels._watershed import make_grid
from napari_agglo.volumes import split_components


@examples(100)
@given(
    npst.arrays("u4", npst.array_shapes(min_dims=1, max_dims=4, max_side=7),
                elements=st.integers(0, 2)),
    st.data(),
)  # fmt: skip
def test_pieces_in_a_box_are_its_components_in_the_order_of_their_first_voxels(image, data):
    labels = split_components(image).astype(np.uint32)  # each is connected in the whole
    box = []
    for n in labels.shape:
        start = data.draw(st.integers(0, n - 1))
        box.append(slice(start, data.draw(st.integers(start + 1, n))))
    here = tuple(box)
    grid = make_grid(labels.shape, [True] * labels.ndim)
    flat = np.zeros(grid.size, np.int32)
    view = grid.view(flat)
    view[...] = labels
    pieces, count = cropped_pieces(view, flat[grid.front :], int(labels.max()), here)
    expected = split_components(np.ascontiguousarray(labels[here]))
    ids, first = np.unique(expected[expected > 0], return_index=True)
    assert count == len(ids) == pieces.max()
    order = {0: 0} | {int(one): k for k, one in enumerate(ids[np.argsort(first)], start=1)}
    np.testing.assert_array_equal(pieces, np.vectorize(order.get)(expected))
