"""Differences of two segmentations, against pairs counted one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.compare import parts, shared
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import InvalidInput
from napari_agglo.compare import disagreements, table_codes, table_disagreements

IDS = np.array([0, 3, 8, 200, 2**40, 2**63 + 5], np.uint64)


@st.composite
def images(draw, most=5):
    shape = draw(st.sampled_from([(7,), (5, 6), (3, 4, 5)]))
    size = int(np.prod(shape))
    pick = st.lists(st.integers(0, most), min_size=size, max_size=size)
    return tuple(np.array(draw(pick)).reshape(shape) for _ in range(2))


def expected_rows(a, b, sizes):
    pairs = shared(a, b, sizes)
    merged, split = parts(pairs, 0), parts(pairs, 1)
    rows = [("merged", p[0], p[1], main[1], pairs[p], bits) for p, (main, bits) in merged.items()]
    rows += [("split", p[1], p[0], main[0], pairs[p], bits) for p, (main, bits) in split.items()]
    codes = {pair: (pair in merged) + 2 * (pair in split) for pair in pairs}
    return rows, codes


@given(images())
def test_as_counted_one_by_one(case):
    a, b = case
    found = disagreements(IDS[a], IDS[b])
    rows, codes = expected_rows(a.ravel(), b.ravel(), [1] * a.size)
    wanted = [codes.get(pair, 0) for pair in zip(a.ravel(), b.ravel(), strict=True)]
    assert found.codes.ravel().tolist() == wanted
    table = found.largest(10**6)
    assert (np.diff(table["bits"]) <= 1e-12).all()
    got = {tuple(row[:3]): tuple(row[3:6]) for row in table.itertuples(index=False)}
    assert len(got) == len(table) == len(rows)
    for kind, whole, part, main, size, bits in rows:
        key = kind, int(IDS[whole]), int(IDS[part])
        assert got[key][:2] == (int(IDS[main]), size)
        assert got[key][2] == pytest.approx(bits)
    check_places(table, IDS[a], IDS[b])
    both = (a > 0) & (b > 0)
    gold = np.where(both, IDS[b], 0)
    false_merge, false_split = agglo.split_vi(IDS[a], gold) if both.any() else (0.0, 0.0)
    assert found.merged_bits == pytest.approx(false_merge)
    assert found.split_bits == pytest.approx(false_split)
    assert table["bits"].sum() == pytest.approx(false_merge + false_split)


def check_places(table, a, b):
    """Check that the voxel is one of the part, and that the box just holds the part."""
    for row in table.to_dict("records"):
        whole, part = (a, b) if row["kind"] == "merged" else (b, a)
        where = (whole == np.uint64(row["whole"])) & (part == np.uint64(row["part"]))
        axes = range(a.ndim)
        assert where[tuple(row[f"voxel_{axis}"] for axis in axes)]
        at = np.argwhere(where)
        assert [row[f"box_start_{axis}"] for axis in axes] == at.min(axis=0).tolist()
        assert [row[f"box_stop_{axis}"] for axis in axes] == (at.max(axis=0) + 1).tolist()


@given(images(), st.lists(st.integers(0, 5), min_size=12, max_size=12))
def test_tables_like_their_images(case, names):
    superpixels, _ = case
    graph = agglo.region_graph(IDS[superpixels], np.zeros(superpixels.shape))
    n = graph.n_regions
    a, b = (np.array([0, *(min(name, n) for name in part[:n])]) for part in (names[:6], names[6:]))
    image = graph.superpixels.image
    labels = [graph.ids[table][image] for table in (a, b)]
    found, expected = table_disagreements(a, b, graph), disagreements(*labels)
    assert (found.codes[image] == expected.codes).all()
    assert (table_codes(a, b, graph.sizes) == found.codes).all()
    ours, theirs = found.largest(100), expected.largest(100)
    places = [name for name in ours.columns if name.startswith("voxel_")]
    assert ours.drop(columns=places).equals(theirs.drop(columns=places))
    check_places(ours, *labels)


def test_a_sliver_is_not_the_whole_segment():
    """Of ten pixels that a has as one, b splits two off: these differ, not all ten."""
    a, b = np.ones(10, int), np.array([1] * 8 + [2] * 2)
    assert disagreements(a, b).codes.tolist() == [0] * 8 + [1] * 2
    assert disagreements(b, a).codes.tolist() == [0] * 8 + [2] * 2
    assert disagreements(a, a).codes.sum() == 0


def test_filters():
    a = np.array([1] * 6 + [2] * 2 + [2] * 4)
    b = np.array([1] * 4 + [3] * 2 + [3] * 2 + [4] * 4)
    found = disagreements(a, b)
    assert found.largest()["kind"].tolist() == ["merged", "merged", "split"]
    assert found.largest(1)["kind"].tolist() == ["merged"]
    assert found.largest(kind="split")[["whole", "part", "main"]].values.tolist() == [[3, 2, 1]]
    assert len(found.largest(min_size=3)) == 0
    assert repr(found).startswith("Disagreements(2 parts merged in a")
    for wrong in ({"n": -1}, {"kind": "both"}, {"min_size": 0.5}):
        with pytest.raises(InvalidInput):
            found.largest(**wrong)


def test_nothing_in_common():
    found = disagreements(np.array([0, 0, 1]), np.array([1, 1, 0]))
    assert found.codes.tolist() == [0, 0, 0]
    assert found.merged_bits == found.split_bits == 0
    assert len(found.largest()) == 0
    assert "box_stop_0" in found.largest().columns


def test_tables_of_another_graph_are_refused():
    graph = agglo.region_graph(np.array([[1, 2]]), np.zeros((1, 2)))
    with refuses("a", "pass tables of this graph"):
        table_disagreements([0, 1, 3], [0, 1, 2], graph)
    with refuses("sizes", "take all from one graph"):
        table_disagreements([0, 1], [0, 1], graph)
