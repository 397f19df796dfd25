"""Dense ids: against numpy's unique, over types, orders and sizes."""

from __future__ import annotations

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from refusals import refuses

from napari_agglo.errors import Cancelled, ConvertTo
from napari_agglo.volumes import Volume, _volume, dense_labels
from napari_agglo.volumes import _labels as relabel_module

INTEGERS = ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", ">u2", ">i4", ">u8"]


def no_tick(part, stop):
    pass


def oracle(labels):
    ids = np.unique(np.append(labels.reshape(-1), labels.dtype.type(0)))
    return np.searchsorted(ids, labels).astype(np.uint32), ids.astype(np.uint64)


@st.composite
def label_images(draw):
    dtype = np.dtype(draw(st.sampled_from(INTEGERS)))
    shape = draw(npst.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5))
    highest = int(np.iinfo(dtype).max)
    pool = draw(st.lists(st.integers(0, highest), min_size=1, max_size=6))
    picked = draw(npst.arrays(np.int64, shape, elements=st.integers(0, len(pool) - 1)))
    values = np.array(pool, dtype=dtype)[picked].astype(dtype)
    return draw(st.sampled_from([values, np.asfortranarray(values), values[::-1], values.T]))


@examples(150)
@given(label_images())
def test_equals_unique(labels):
    before = labels.copy()
    dense = dense_labels(labels)
    image, ids = oracle(labels)
    np.testing.assert_array_equal(dense.image, image)
    np.testing.assert_array_equal(dense.ids, ids)
    assert dense.image.dtype == np.uint32
    assert dense.ids.dtype == np.uint64
    assert dense.image.flags.c_contiguous
    assert dense.dtype == labels.dtype.newbyteorder("=")
    np.testing.assert_array_equal(labels, before)


@examples(60)
@given(npst.arrays(np.uint64, st.integers(1, 60), elements=st.integers(0, 2**64 - 1)), st.data())
def test_hash_grows_as_often_as_it_must(labels, data):
    small = data.draw(st.sampled_from([2, 4, 8]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relabel_module, "_FIRST_TABLE", small)
        image, ids = relabel_module._by_hash(labels, no_tick)
    expected_image, expected_ids = oracle(labels)
    np.testing.assert_array_equal(image, expected_image)
    np.testing.assert_array_equal(ids, expected_ids)


def test_hash_on_a_table_path_input_gives_the_same():
    labels = np.array([5, 5, 0, 9, 2, 2, 9], np.uint32)
    by_table = relabel_module._by_table(labels.copy(), 9, no_tick)
    by_hash = relabel_module._by_hash(labels, no_tick)
    np.testing.assert_array_equal(by_table[0], by_hash[0])
    np.testing.assert_array_equal(by_table[1], by_hash[1])


def mapped(labels, tmp_path):
    np.save(tmp_path / "labels.npy", labels)
    return np.load(tmp_path / "labels.npy", mmap_mode="r+")


@pytest.mark.parametrize("dtype", [np.uint32, np.int32, np.uint8, np.int64])
@pytest.mark.parametrize("hold", [lambda a, _: a, mapped, lambda a, _: Volume(a)])
def test_painting_afterwards_does_not_show(tmp_path, dtype, hold):
    labels = hold(np.array([[1, 2, 0], [3, 3, 2]], dtype), tmp_path)
    dense = dense_labels(labels)
    data = getattr(labels, "data", labels) if isinstance(labels, Volume) else labels
    assert not np.shares_memory(dense.image, data)
    data[:] = 100
    np.testing.assert_array_equal(dense.image, [[1, 2, 0], [3, 3, 2]])
    np.testing.assert_array_equal(dense.ids, [0, 1, 2, 3])


@pytest.mark.parametrize("labels", [[1, 2, 0], [5, 9, 5], [2**60, 1, 1]])
def test_neither_image_nor_ids_can_be_written_to(labels):
    dense = dense_labels(np.array(labels))
    for array in (dense.image, dense.ids):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


def test_painting_meanwhile_does_no_harm():
    """A value that came after the table was made is looked up nowhere: it becomes 0."""
    flat, seen = np.array([1, 9, 2], np.uint16), np.zeros(3, np.uint8)
    relabel_module._mark_present(flat, seen)
    np.testing.assert_array_equal(seen, [0, 1, 1])
    out = np.empty(3, np.uint32)
    relabel_module._look_up(flat, np.array([0, 4, 6], np.uint32), out)
    np.testing.assert_array_equal(out, [4, 0, 6])


@pytest.mark.parametrize("top", [3, 2**40])
def test_progress_between_pieces(monkeypatch, top):
    labels = np.arange(20) % 4 * (top // 3)
    plain = dense_labels(labels)
    monkeypatch.setattr(_volume, "PIECE", 3)
    monkeypatch.setattr(relabel_module, "PIECE", 3)
    monkeypatch.setattr(relabel_module, "_FIRST_TABLE", 2)
    seen = []
    dense = dense_labels(labels, "gold", progress=seen.append)
    np.testing.assert_array_equal(dense.image, plain.image)
    np.testing.assert_array_equal(dense.ids, plain.ids)
    assert {step.stage for step in seen} == {"checking gold", "numbering gold"}
    assert len(seen) >= 4 * 7
    fractions = [step.fraction for step in seen if step.stage == "numbering gold"]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1

    def cancel(step):
        raise Cancelled

    with pytest.raises(Cancelled):
        dense_labels(labels, progress=cancel)


def test_neighbours_above_two_to_the_53_stay_apart():
    labels = np.array([2**53, 2**53 + 1, 2**64 - 1], np.uint64)
    dense = dense_labels(labels)
    np.testing.assert_array_equal(dense.image, [1, 2, 3])
    assert [int(i) for i in dense.ids] == [0, 2**53, 2**53 + 1, 2**64 - 1]


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2)])
def test_no_voxels(shape):
    dense = dense_labels(np.zeros(shape, np.int64))
    assert dense.image.shape == shape
    np.testing.assert_array_equal(dense.ids, [0])


def test_read_only_input():
    labels = np.array([4, 4, 9], np.uint16)
    labels.flags.writeable = False
    np.testing.assert_array_equal(dense_labels(labels).image, [1, 1, 2])


def test_the_name_is_in_the_message():
    with refuses("gold", ConvertTo("int64", "if it holds whole numbers")):
        dense_labels(np.array([0.5]), "gold")
