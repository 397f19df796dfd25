from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from napari_agglo.errors import Cancelled
from napari_agglo.volumes import _contingency, contingency


def oracle(labels, gold, ignore_labels=False):
    """Count pairs of the user's ids one voxel at a time."""
    pairs = zip(labels.ravel().tolist(), gold.ravel().tolist(), strict=True)
    return Counter((a, b) for a, b in pairs if b != 0 and not (ignore_labels and a == 0))


def as_counter(table):
    rows, columns = table.row_ids[table.rows].tolist(), table.column_ids[table.columns].tolist()
    return Counter(dict(zip(zip(rows, columns, strict=True), table.counts.tolist(), strict=True)))


def test_drawn_example():
    labels = np.array([[1, 1, 2], [1, 2, 2]])
    gold = np.array([[7, 7, 7], [0, 8, 8]])
    table = contingency(labels, gold)
    assert as_counter(table) == {(1, 7): 2, (2, 7): 1, (2, 8): 2}
    assert table.total == 5
    assert table.row_sums().tolist() == [0, 2, 3]
    assert table.column_sums().tolist() == [0, 3, 2]


@given(st.integers(0, 2**32), st.booleans(), st.integers(1, 4))
def test_equals_counting_voxels(seed, ignore_labels, ndim):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 5, ndim))
    ids = np.concatenate([[0], rng.integers(1, 2**63, 5)]).astype(np.uint64)
    labels, gold = ids[rng.integers(0, 6, shape)], ids[rng.integers(0, 6, shape)]
    table = contingency(labels, gold, ignore_labels=ignore_labels)
    assert as_counter(table) == oracle(labels, gold, ignore_labels)
    order = table.rows * table.column_ids.size + table.columns
    assert (np.diff(order) > 0).all()


def test_the_table_grows(monkeypatch):
    """More pairs than the first table holds, and several chunks."""
    monkeypatch.setattr(_contingency, "_CHUNK", 700)
    rng = np.random.default_rng(0)
    labels, gold = rng.integers(0, 60, 4000), rng.integers(0, 60, 4000)
    table = contingency(labels, gold)
    assert table.counts.size > 1024, "test invalid: the first table was large enough"
    assert as_counter(table) == oracle(labels, gold)


def test_inputs_are_left_alone_and_any_layout_will_do():
    labels = np.asfortranarray(np.arange(12).reshape(3, 4) // 3)[:, ::2]
    gold = np.ones((3, 2), np.uint8)
    for array in (labels, gold):
        array.flags.writeable = False
    assert as_counter(contingency(labels, gold)) == oracle(labels, gold)


def test_different_shapes_are_refused_with_both():
    with refuses("labels", "use the same crop of both"):
        contingency(np.ones((2, 3), int), np.ones((3, 3), int))


def test_progress_can_cancel():
    def stop(progress):
        raise Cancelled("enough")

    with pytest.raises(Cancelled):
        contingency(np.ones(4, int), np.ones(4, int), progress=stop)


@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 60))
def test_boxes_of_a_count_cover_the_volume_once_and_are_of_whole_chunks(seed, ndim, room):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 9, ndim).tolist())
    chunks = [tuple(rng.integers(1, 5, ndim).tolist()) for _ in range(2)]
    least = [max(sides) for sides in zip(*chunks, strict=True)]
    before, _contingency._CHUNK = _contingency._CHUNK, room
    try:
        boxes = _contingency._boxes(shape, chunks)
    finally:
        _contingency._CHUNK = before
    seen = np.zeros(shape, int)
    for box in boxes:
        seen[box] += 1
        assert all(part.start % n == 0 for part, n in zip(box, least, strict=True))
        sides = [part.stop - part.start for part in box]
        assert np.prod(sides) <= max(room, np.prod(least))
    assert (seen == 1).all()
