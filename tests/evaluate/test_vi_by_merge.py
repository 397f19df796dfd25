from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_agglo.agglomeration import MergeTree
from napari_agglo.errors import Cancelled
from napari_agglo.evaluate import (
    _covering_by_merge,
    _vi_by_merge,
    best_covering,
    conditional_entropies,
    contingency,
    merge_curve,
    table_metrics,
)
from napari_agglo.volumes import dense_labels


def random_merges(rng, n, how_many):
    """Winner < loser, each loser once: a region's id is its smallest superpixel."""
    alive = list(range(1, n + 1))
    winners, losers = [], []
    for _ in range(min(how_many, n - 1)):
        a, b = sorted(rng.choice(alive, 2, replace=False).tolist())
        alive.remove(b)
        winners.append(a)
        losers.append(b)
    return np.array(winners, np.int64), np.array(losers, np.int64)


def chain_merges(rng, n):
    """One segment that swallows the others, in any order."""
    return np.ones(n - 1, np.int64), rng.permutation(np.arange(2, n + 1))


def tree_of(superpixels, winners, losers):
    """Return the tree of merges of superpixels 1..n, in this order."""
    return MergeTree(dense_labels(superpixels), winners, losers, np.arange(winners.size) / 2)


def path(superpixels, gold, winners, losers):
    """Return the errors after each merge, and the best covering by any segments of the tree."""
    tree = tree_of(superpixels, winners, losers)
    return merge_curve(tree, gold), best_covering(tree, gold)


def test_two_halves_joined():
    found, best = path(np.array([1, 1, 2, 2]), np.array([1, 1, 1, 1]), np.array([1]), np.array([2]))
    assert found["false_merge"].tolist() == [0.0, 0.0]
    assert found["false_split"].tolist() == [1.0, 0.0]
    assert found["rand"].tolist() == [pytest.approx(1 / 3), 1.0]
    assert found["covering"].tolist() == [0.5, 1.0]
    assert best == 1


@given(
    st.integers(0, 2**32),
    st.integers(1, 25),
    st.integers(1, 8),
    st.booleans(),
    st.sampled_from([0, 20, 120]),
)
def test_equals_recomputation_at_every_merge(seed, n, n_gold, chain, extra):
    rng = np.random.default_rng(seed)
    superpixels = np.concatenate([np.arange(n + 1), rng.integers(0, n + 1, extra)])
    gold = rng.integers(0, n_gold + 1, superpixels.size)
    gold[rng.integers(gold.size)] = 1  # without an annotation there is nothing to compare
    winners, losers = chain_merges(rng, n) if chain else random_merges(rng, n, n)
    found, best = path(superpixels, gold, winners, losers)
    labels = superpixels.copy()
    reached = dict.fromkeys(np.unique(gold[gold > 0]), 0.0)
    for k in range(winners.size + 1):
        if k:
            labels[labels == losers[k - 1]] = winners[k - 1]
        expected = table_metrics(contingency(labels, gold))
        for name in ("false_merge", "false_split", "rand", "covering"):
            assert found[name][k] == pytest.approx(expected[name], abs=1e-12), name
        for u in reached:
            overlap = [
                ((gold == u) & (labels == s)).sum()
                / ((gold == u) | ((labels == s) & (gold > 0))).sum()
                for s in np.unique(labels[gold == u])
            ]
            reached[u] = max(reached[u], *overlap)
    weights = [(gold == u).sum() for u in reached]
    assert best == pytest.approx(np.average(list(reached.values()), weights=weights))
    assert best >= found["covering"].max() - 1e-12


@given(st.integers(0, 2**32))
def test_a_merge_never_adds_splits_nor_heals_merges(seed):
    rng = np.random.default_rng(seed)
    superpixels = np.concatenate([np.arange(31), rng.integers(0, 31, 100)])
    gold = rng.integers(0, 6, superpixels.size)
    found, _ = path(superpixels, gold, *random_merges(rng, 30, 30))
    assert (np.diff(found["false_split"]) <= 1e-12).all()
    assert (np.diff(found["false_merge"]) >= -1e-12).all()


def test_overlaps_that_move_often_and_a_full_table():
    """Lists of distinct gold segments only move, which fills the table of places."""
    n = 512
    superpixels = np.repeat(np.arange(1, n + 1), 2)
    gold = np.arange(1, 2 * n + 1)
    pairs = [
        (a, a + step)
        for step in (1 << k for k in range(9))
        for a in range(1, n + 1, 2 * step)
    ]  # fmt: skip
    winners, losers = np.array(pairs).T
    found, best = path(superpixels, gold, winners.copy(), losers.copy())
    assert found["false_merge"].iloc[0] == 1.0
    assert found["false_merge"].iloc[-1] == pytest.approx(10.0, abs=1e-12)
    assert not found["false_split"].any()
    assert found["covering"].iloc[-1] == pytest.approx(1 / (2 * n))
    assert best == 0.5


@pytest.mark.compiled
def test_thousands_of_merges_end_as_exact_as_they_began():
    rng = np.random.default_rng(5)
    n = 3000
    superpixels = np.concatenate([np.arange(1, n + 1), rng.integers(1, n + 1, 60_000)])
    gold = superpixels // 40 + rng.integers(0, 2, superpixels.size)
    winners, losers = random_merges(rng, n, n)
    found, _ = path(superpixels, gold, winners, losers)
    labels = np.arange(n + 1)
    for k in range(winners.size):
        labels[labels == losers[k]] = winners[k]
        if k % 250 == 0 or k > n - 10:
            expected = table_metrics(contingency(labels[superpixels], gold))
            names = ["false_merge", "false_split", "rand", "covering"]
            state = found.loc[k + 1, names].tolist()
            assert state == pytest.approx(expected[names].tolist(), abs=1e-12)


def test_slices_make_no_difference_and_are_reported(monkeypatch):
    rng = np.random.default_rng(3)
    superpixels = np.concatenate([np.arange(61), rng.integers(1, 61, 400)])
    gold = rng.integers(0, 9, superpixels.size)
    tree = tree_of(superpixels, *random_merges(rng, 60, 60))
    table = contingency(superpixels, gold)
    whole, best = merge_curve(tree, gold), best_covering(tree, gold)
    start = whole["false_merge"].iloc[0], whole["false_split"].iloc[0]
    assert start == conditional_entropies(table)
    monkeypatch.setattr(_vi_by_merge, "_SLICE", 7)
    monkeypatch.setattr(_covering_by_merge, "_SLICE", 7)
    seen = []
    pd.testing.assert_frame_equal(merge_curve(tree, gold, progress=seen.append), whole)
    assert best_covering(tree, gold) == best
    stages = {}
    for progress in seen:
        stages.setdefault(progress.stage, []).append(progress.fraction)
    assert len(stages["errors"]) > 59 // 7 + table.counts.size // 7
    assert len(stages["covering"]) > 3
    for stage in ("errors", "covering"):
        fractions = stages[stage]
        assert fractions == sorted(fractions)
        assert (fractions[0], fractions[-1]) == (0, 1)

        def cancel(progress, stage=stage):
            if progress.stage == stage:
                raise Cancelled

        for compute in (merge_curve, best_covering):
            with pytest.raises(Cancelled):
                compute(tree, gold, progress=cancel)
