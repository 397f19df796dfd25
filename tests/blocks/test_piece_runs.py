"""Pieces of the superpixels of a block: connected parts of labels in a box, and their ids."""

from __future__ import annotations

import tracemalloc

import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from napari_agglo.blocks._block_superpixels import cropped_pieces, dense_block
from napari_agglo.blocks._piece_runs import Runs, fill, runs_of
from napari_agglo.blocks._run_files import Job
from napari_agglo.blocks._tables import write_table
from napari_agglo.superpixels._flood_queue import make_grid
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


def test_ids_of_a_block_take_memory_by_its_superpixels_not_by_the_highest_id_of_the_volume():
    pieces = np.array([1, 1, 2, 0, 3, 2], np.uint32)
    ids = np.array([0, 7, 2**32 - 1, 2**31], np.uint32)  # a volume with so many superpixels
    above = {0: np.array([2**31, 0, 5], np.uint32), 1: np.array([9, 9], np.uint32)}
    dense_block(runs_of(pieces), ids, (2, 3), above)  # compiles
    tracemalloc.start()
    block = dense_block(runs_of(pieces), ids, (2, 3), above)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    expected = [[7, 7, 2**32 - 1, 9], [0, 2**31, 2**32 - 1, 9], [2**31, 0, 5, 0]]
    assert block.ids[block.image].tolist() == expected
    assert block.ids.tolist() == [0, 5, 7, 9, 2**31, 2**32 - 1]
    assert peak < 2**20


@examples(100)
@given(
    npst.arrays("u4", npst.array_shapes(min_dims=1, max_dims=4, max_side=9),
                elements=st.sampled_from([0, 1, 2, 2**32 - 1])),
    st.integers(0, 2),
)  # fmt: skip
def test_runs_give_the_array_back_in_a_box_too(array, margin):
    runs = runs_of(array)
    flat = array.reshape(-1)
    begins = np.concatenate([[True], flat[1:] != flat[:-1]])
    assert runs.values.tolist() == flat[begins].tolist()
    np.testing.assert_array_equal(np.packbits(begins, bitorder="little"), runs.begins)
    outer = np.full([n + margin for n in array.shape], 7, np.uint32)
    box = tuple(slice(n) for n in array.shape)
    table = np.arange(5, 10, dtype=np.uint32)
    small = Runs(np.where(runs.values > 2, 3, runs.values), runs.begins)
    fill(small, table, outer[box])
    np.testing.assert_array_equal(outer[box], table[np.minimum(array, 3)])
    outer[box] = 7
    assert (outer == 7).all()


def test_tables_of_pieces_by_voxel_that_earlier_versions_wrote_are_read(tmp_path):
    pieces = np.array([1, 1, 0, 2, 2, 2, 1], np.uint32)
    (tmp_path / "tables" / "cut").mkdir(parents=True)
    for index, arrays in enumerate(({"pieces": pieces}, runs_of(pieces)._asdict())):
        write_table(tmp_path / "tables" / "cut" / f"{index:06d}.table", arrays)
        read = Job(tmp_path, None).pieces(index)
        assert [part.tolist() for part in read] == [[1, 0, 2, 1], [0b1001101]]
