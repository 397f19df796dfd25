from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from napari_agglo.errors import SetOption
from napari_agglo.evaluate import contingency, metrics, split_vi, table_metrics, weighted_vi

seeds = st.integers(0, 2**32)


def random_pair(seed, n_labels, n_gold, lowest=1):
    rng = np.random.default_rng(seed)
    return rng.integers(lowest, n_labels + 1, (6, 7)), rng.integers(1, n_gold + 1, (6, 7))


def covering_by_hand(labels, gold):
    """Look at every pair of segments."""
    covered = 0.0
    for u in np.unique(gold[gold > 0]):
        overlaps = [
            ((gold == u) & (labels == s)).sum() / ((gold == u) | ((labels == s) & (gold > 0))).sum()
            for s in np.unique(labels)
        ]
        covered += (gold == u).sum() * max(overlaps)
    return covered / (gold > 0).sum()


def snemi3d_by_hand(labels, gold):
    """SNEMI3D's definition, voxel pair by voxel pair: each voxel of label 0 is alone."""
    s, u = labels[gold > 0], gold[gold > 0]
    alone = np.where(s == 0, -1 - np.arange(s.size), s)
    drawn = alone[:, None] == alone
    true = u[:, None] == u
    precision, recall = (drawn & true).sum() / drawn.sum(), (drawn & true).sum() / true.sum()
    return 1 - 2 * precision * recall / (precision + recall)


@pytest.mark.parametrize(
    ("labels", "gold", "expected"),
    [
        (  # one object in two equal halves
            [3, 3, 9, 9],
            [1, 1, 1, 1],
            {"vi": 1, "false_split": 1, "rand": 1 / 3, "adapted_rand_precision": 1,
             "adapted_rand_recall": 1 / 3, "adapted_rand_error": 0.5, "covering": 0.5,
             "merges_needed": 1, "cuts_needed": 0, "segments": 2, "gold_segments": 1,
             "snemi3d_error": 1 - 16 / 24, "cremi_score": (1 / 3) ** 0.5},
        ),
        (  # two objects in one segment
            [1, 1, 1, 1],
            [3, 3, 9, 9],
            {"vi": 1, "false_merge": 1, "adapted_rand_precision": 1 / 3, "adapted_rand_recall": 1,
             "covering": 0.5, "merges_needed": 0, "cuts_needed": 1, "edit_distance": 1},
        ),
        (  # perfect, with names of its own
            [1, 1, 2, 2],
            [8, 8, 5, 5],
            {"vi": 0, "rand": 1, "adjusted_rand": 1, "adapted_rand_error": 0, "covering": 1,
             "fowlkes_mallows": 1, "edit_distance": 0, "snemi3d_error": 0, "voxels": 4},
        ),
        (  # crosswise: everything is cut, everything is merged
            [1, 2, 1, 2],
            [1, 1, 2, 2],
            {"false_merge": 1, "false_split": 1, "cuts_needed": 2, "merges_needed": 2,
             "rand": 1 / 3, "adjusted_rand": -0.5, "fowlkes_mallows": 0, "covering": 1 / 3},
        ),
        (  # voxels that are not annotated are nowhere, but their segments are counted
            [1, 1, 2, 2],
            [1, 1, 0, 0],
            {"vi": 0, "voxels": 2, "segments": 2, "covering": 1},
        ),
    ],
)  # fmt: skip
def test_computed_by_hand(labels, gold, expected):
    found = metrics(np.array(labels), np.array(gold))
    for name, value in expected.items():
        assert found[name] == pytest.approx(value), name


@given(seeds, st.integers(1, 9), st.integers(1, 9))
def test_equal_to_scikit_image(seed, n_labels, n_gold):
    from skimage.metrics import adapted_rand_error, variation_of_information

    labels, gold = random_pair(seed, n_labels, n_gold, lowest=0)
    found = metrics(labels, gold)
    split, merge = variation_of_information(gold, labels)
    assert found["false_merge"] == pytest.approx(merge, abs=1e-12)
    assert found["false_split"] == pytest.approx(split, abs=1e-12)
    # It calls precision what its own documentation, and everybody else, calls recall.
    error, recall, precision = adapted_rand_error(gold, labels)
    assert found["adapted_rand_error"] == pytest.approx(error, abs=1e-12)
    assert found["adapted_rand_precision"] == pytest.approx(precision, abs=1e-12)
    assert found["adapted_rand_recall"] == pytest.approx(recall, abs=1e-12)


@given(seeds, st.integers(1, 9), st.integers(1, 9))
def test_equal_to_scikit_learn(seed, n_labels, n_gold):
    from sklearn.metrics import adjusted_rand_score, fowlkes_mallows_score, rand_score

    labels, gold = random_pair(seed, n_labels, n_gold, lowest=0)
    found = metrics(labels, gold)
    flat = gold.ravel(), labels.ravel()
    assert found["rand"] == pytest.approx(rand_score(*flat), abs=1e-12)
    assert found["adjusted_rand"] == pytest.approx(adjusted_rand_score(*flat), abs=1e-12)
    assert found["fowlkes_mallows"] == pytest.approx(fowlkes_mallows_score(*flat), abs=1e-12)


@given(seeds, st.integers(1, 9), st.integers(1, 9), st.booleans())
def test_equal_to_the_definitions(seed, n_labels, n_gold, ignore_labels):
    rng = np.random.default_rng(seed)
    labels, gold = rng.integers(0, n_labels + 1, 42), rng.integers(0, n_gold + 1, 42)
    gold[0], labels[0] = 1, 1  # something is left to compare
    found = metrics(labels, gold, ignore_labels=ignore_labels)
    left = np.where(labels == 0, 0, gold) if ignore_labels else gold
    assert found["covering"] == pytest.approx(covering_by_hand(labels, left), abs=1e-12)
    assert found["snemi3d_error"] == pytest.approx(snemi3d_by_hand(labels, left), abs=1e-12)
    pairs = {(s, u) for s, u in zip(labels, gold, strict=True) if s > 0 and u > 0}
    assert found["cuts_needed"] == len(pairs) - len({s for s, _ in pairs})
    assert found["merges_needed"] == len(pairs) - len({u for _, u in pairs})


def test_small_overlaps_need_no_edit():
    labels, gold = np.array([1] * 9 + [2]), np.array([5] * 8 + [6, 6])
    assert metrics(labels, gold)[["cuts_needed", "merges_needed"]].tolist() == [1, 1]
    found = metrics(labels, gold, min_overlap=2)  # as gala does; it never falls below 0 here
    assert found[["cuts_needed", "merges_needed", "edit_distance"]].tolist() == [0, 0, 0]
    assert found["vi"] > 0
    with refuses("min_overlap", SetOption("min_overlap", 1)):
        metrics(labels, gold, min_overlap=0)


def test_nothing_to_compare_is_no_error():
    labels, gold = np.array([0, 5]), np.array([7, 0])  # the voxels with labels are not annotated
    found = metrics(labels, gold, ignore_labels=True)
    perfect = {"rand", "adjusted_rand", "adapted_rand_precision", "adapted_rand_recall"}
    perfect |= {"fowlkes_mallows", "covering"}
    for name in found.index.drop(["segments", "gold_segments"]):
        assert found[name] == (1 if name in perfect else 0), name


@pytest.mark.parametrize("ignore_labels", [False, True])
def test_all_background_is_one_segment_unless_ignored(ignore_labels):
    found = metrics(np.zeros(4, int), np.array([1, 1, 2, 2]), ignore_labels=ignore_labels)
    assert found["false_merge"] == (0 if ignore_labels else 1)
    assert found["segments"] == 0
    assert found["cuts_needed"] == 0  # there is no segment to cut


def test_one_voxel_and_voxels_alone():
    one = metrics(np.array([3]), np.array([4]))
    assert one["vi"] == 0
    assert one["rand"] == one["covering"] == one["fowlkes_mallows"] == 1
    alone = metrics(np.arange(1, 6), np.arange(11, 16))
    assert alone["adjusted_rand"] == 1
    assert alone["adapted_rand_error"] == 0


def test_squares_beyond_64_bits():
    """Tables may come from volumes larger than memory: 2**40 voxels."""
    table = contingency(np.array([1, 1, 2, 2]), np.array([1, 2, 1, 2]))
    huge = type(table)(
        table.rows, table.columns, table.counts << 38, table.row_ids, table.column_ids
    )
    found = table_metrics(huge)
    assert found["rand"] == pytest.approx(0.5)
    assert found["adjusted_rand"] == pytest.approx(0, abs=1e-11)
    assert found["covering"] == pytest.approx(1 / 3)
    assert found["snemi3d_error"] == pytest.approx(0.5)


def test_ids_may_be_huge_and_sparse():
    labels, gold = random_pair(0, 5, 5)
    far = np.array([0, 3, 2**40, 2**63, 2**63 + 1, 2**64 - 1], np.uint64)
    assert metrics(far[labels], far[gold]).equals(metrics(labels, gold))


def test_weighted_vi():
    labels, gold = random_pair(1, 4, 4)
    false_merge, false_split = split_vi(labels, gold)
    assert weighted_vi(labels, gold) == pytest.approx(false_merge + false_split)
    assert weighted_vi(labels, gold, 0.25) == pytest.approx(false_merge / 4 + false_split)
    for wrong in (0, -1, float("inf"), float("nan"), "2"):
        with refuses("a", "pass 1 to weigh both errors alike, 2 to"):
            weighted_vi(labels, gold, wrong)


def test_shapes_must_match():
    with refuses("labels", "use the same crop of both"):
        metrics(np.ones(4, int), np.ones((2, 2), int))
