from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_agglo.errors import Cancelled
from napari_agglo.evaluate import _path, conditional_entropies, contingency, split_vi
from napari_agglo.evaluate._path import vi_path


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


def path(superpixels, gold, winners, losers):
    table = contingency(superpixels, gold)
    return vi_path(table, winners, losers, start=conditional_entropies(table))


def test_two_halves_joined():
    false_merge, false_split = path(
        np.array([1, 1, 2, 2]), np.array([1, 1, 1, 1]), np.array([1]), np.array([2])
    )
    assert false_merge.tolist() == [0.0, 0.0]
    assert false_split.tolist() == [1.0, 0.0]


@given(st.integers(0, 2**32), st.integers(1, 25), st.integers(1, 8))
def test_equals_recomputation_at_every_merge(seed, n, n_gold):
    rng = np.random.default_rng(seed)
    superpixels = np.concatenate([np.arange(n + 1), rng.integers(0, n + 1, 120)])
    gold = rng.integers(0, n_gold + 1, superpixels.size)
    winners, losers = random_merges(rng, n, n)
    false_merge, false_split = path(superpixels, gold, winners, losers)
    labels = superpixels.copy()
    for k in range(winners.size + 1):
        if k:
            labels[labels == losers[k - 1]] = winners[k - 1]
        assert (false_merge[k], false_split[k]) == pytest.approx(split_vi(labels, gold), abs=1e-12)


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
    false_merge, false_split = path(superpixels, gold, winners.copy(), losers.copy())
    assert false_merge[0] == 1.0
    assert false_merge[-1] == pytest.approx(10.0, abs=1e-12)
    assert not false_split.any()


def test_slices_make_no_difference_and_are_reported(monkeypatch):
    rng = np.random.default_rng(3)
    superpixels = np.concatenate([np.arange(61), rng.integers(1, 61, 400)])
    gold = rng.integers(0, 9, superpixels.size)
    table = contingency(superpixels, gold)
    merges = random_merges(rng, 60, 60)
    start = conditional_entropies(table)
    whole = vi_path(table, *merges, start=start)
    monkeypatch.setattr(_path, "_SLICE", 7)
    seen = []
    sliced = vi_path(table, *merges, start=start, progress=seen.append)
    assert all((a == b).all() for a, b in zip(whole, sliced, strict=True))
    done = [progress.done for progress in seen]
    assert len(done) > 59 // 7 + table.counts.size // 7
    assert done == sorted(done)
    assert seen[0].fraction == 0
    assert seen[-1].fraction == 1

    def cancel(progress):
        raise Cancelled

    with pytest.raises(Cancelled):
        vi_path(table, *merges, start=start, progress=cancel)
