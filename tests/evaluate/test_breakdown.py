from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from napari_agglo.errors import Cancelled, SetOption
from napari_agglo.evaluate import breakdown, split_vi

# Gold 1 is split into 3 and 4; segment 4 merges half of gold 1 with gold 2; 0 is not annotated.
LABELS = np.array([[3, 3, 4, 4, 4, 4], [3, 3, 4, 4, 5, 5]])
GOLD = np.array([[1, 1, 1, 1, 2, 2], [1, 1, 1, 1, 0, 0]])


def test_by_hand():
    found = breakdown(LABELS, GOLD)
    gold, segments = found.gold, found.segments
    assert gold.index.tolist() == [1, 2]
    assert gold.loc[1, ["voxels", "share", "entropy", "contribution", "pieces"]].tolist() == [
        8, 0.8, 1, 0.8, 2,
    ]  # fmt: skip
    assert gold.loc[1, ["centroid_0", "centroid_1"]].tolist() == [0.5, 1.5]
    assert gold.loc[2, ["entropy", "contribution", "pieces"]].tolist() == [0, 0, 1]
    assert segments.index.tolist() == [3, 4]  # 5 lies where nothing is annotated
    assert segments.loc[4, "pieces"] == 2
    third = np.log2(3) - 2 / 3
    assert segments.loc[4, "entropy"] == pytest.approx(third)
    assert segments.loc[4, "contribution"] == pytest.approx(0.6 * third)
    pieces = found.pieces(1)
    assert pieces["id"].tolist() == [3, 4]
    assert pieces["fraction"].tolist() == [0.5, 0.5]
    assert pieces[["centroid_0", "centroid_1"]].to_numpy().tolist() == [[0.5, 0.5], [0.5, 2.5]]
    merged = found.merged(4)
    assert merged["id"].tolist() == [1, 2]
    assert merged["voxels"].tolist() == [4, 2]
    worst = found.worst()
    assert worst["kind"].tolist() == ["false split", "false merge"]
    assert worst["id"].tolist() == [1, 4]
    assert worst["partners"].tolist() == [[3, 4], [1, 2]]
    assert len(found.worst(1)) == 1


@given(st.integers(0, 2**32), st.integers(1, 3), st.booleans())
def test_sums_to_the_whole_and_finds_every_place(seed, ndim, ignore_labels):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 6, ndim))
    names = np.array([0, 1, 7, 2**40, 2**64 - 1], np.uint64)
    labels, gold = names[rng.integers(0, 5, shape)], names[rng.integers(0, 5, shape)]
    found = breakdown(labels, gold, ignore_labels=ignore_labels)
    total = found.segments["contribution"].sum(), found.gold["contribution"].sum()
    assert total == pytest.approx(split_vi(labels, gold, ignore_labels=ignore_labels), abs=1e-12)
    counted = (gold > 0) & ((labels > 0) | (not ignore_labels))
    for table, image in ((found.gold, gold), (found.segments, labels)):
        assert table.index.tolist() == np.unique(image[counted]).tolist()
        assert table["voxels"].sum() == counted.sum()
        product = table["share"] * table["entropy"]
        assert table["contribution"].to_numpy() == pytest.approx(product.to_numpy(), abs=1e-12)
        for one, row in table.iterrows():
            check_place(row, counted & (image == np.uint64(one)))
    for row in found.overlaps.itertuples():
        where = counted & (labels == row.segment) & (gold == row.gold)
        assert where.sum() == row.voxels
        check_place(row._asdict(), where)


def check_place(row, where):
    voxels = np.argwhere(where)
    centroid = [row[f"centroid_{axis}"] for axis in range(where.ndim)]
    assert centroid == pytest.approx(voxels.mean(axis=0))
    voxel = [int(row[f"voxel_{axis}"]) for axis in range(where.ndim)]
    assert where[tuple(voxel)]
    distances = np.linalg.norm(voxels - centroid, axis=1)
    assert np.linalg.norm(np.array(voxel) - centroid) == pytest.approx(distances.min())


def test_a_centroid_outside_has_a_voxel_inside():
    ring = np.ones((5, 5), int)
    ring[1:4, 1:4] = 2
    row = breakdown(ring, ring).gold.loc[1]
    assert row[["centroid_0", "centroid_1"]].tolist() == [2, 2]
    assert ring[int(row["voxel_0"]), int(row["voxel_1"])] == 1


def test_nothing_to_compare_and_nothing_wrong():
    found = breakdown(np.array([[0, 5]]), np.array([[7, 0]]), ignore_labels=True)
    assert len(found.gold) == len(found.segments) == len(found.worst()) == 0
    assert "centroid_1" in found.worst().columns
    assert len(breakdown(GOLD, GOLD).worst()) == 0


def test_the_representation_is_a_summary():
    text = repr(breakdown(LABELS, GOLD))
    assert "\n" not in text
    assert "2 of 2 segments" in text or "1 of 2 segments" in text


def test_partners_of_the_worst_are_those_of_each_alone():
    rng = np.random.default_rng(0)
    labels, gold = rng.integers(0, 9, (2, 20, 20)).astype(np.uint64) * np.uint64(2**60)
    found = breakdown(labels, gold)
    worst = found.worst(1000)
    assert set(worst["kind"]) == {"false split", "false merge"}
    for kind, one, partners in zip(worst["kind"], worst["id"], worst["partners"], strict=True):
        alone = found.pieces(one) if kind == "false split" else found.merged(one)
        assert partners == alone["id"].tolist()


def test_refusals_and_cancel():
    found = breakdown(LABELS, GOLD)
    with refuses("gold_id", "choose one of the 2 ids in the index of"):
        found.pieces(9)
    with refuses("segment_id", "choose one of the 2 ids in the index of"):
        found.merged(5)
    with refuses("n", SetOption("n", 0)):
        found.worst(-1)
    with refuses("labels", "use the same crop of both"):
        breakdown(LABELS, GOLD[:, :4])

    def cancel(progress):
        if progress.stage == "places":
            raise Cancelled

    with pytest.raises(Cancelled):
        breakdown(LABELS, GOLD, progress=cancel)
