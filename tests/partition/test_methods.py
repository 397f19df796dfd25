"""Adaptive cut, multicut and mutex watershed, against exhaustive search on small graphs."""

from __future__ import annotations

import itertools
import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from refusals import refuses

import napari_agglo as agglo
from napari_agglo.errors import DataWarning
from napari_agglo.partition import METHODS, build_tree


def chain(probabilities):
    """Return a graph of superpixels in a row with given boundaries."""
    n = len(probabilities) + 1
    edges = np.array([(k, k + 1) for k in range(1, n)])
    return agglo.RegionGraph.from_edges(edges, np.asarray(probabilities, float))


def grid(rows, columns, seed):
    """Return a grid of superpixels with random boundaries, and these."""
    labels = np.arange(1, rows * columns + 1).reshape(rows, columns)
    pairs = [*zip(labels[:, :-1].ravel(), labels[:, 1:].ravel(), strict=True)]
    pairs += [*zip(labels[:-1].ravel(), labels[1:].ravel(), strict=True)]
    edges = np.array(sorted(pairs))
    weights = np.random.default_rng(seed).random(len(edges)).round(3)
    return agglo.RegionGraph.from_edges(edges, weights), edges, weights


def partition(table):
    """Return a partition of superpixels as a set of sets."""
    return {frozenset(np.flatnonzero(table == name)) for name in np.unique(table[1:])}


def energy_of(merges, tree):
    """Return minus the log probability that just these merges are done; None if inconsistent."""
    first, total = tree.n_superpixels + 1, 0.0
    for k, priority in enumerate(np.clip(tree.priorities, 1e-6, 1 - 1e-6)):
        below = [child - first for child in tree.children[k] if child >= first]
        if k in merges and not all(child in merges for child in below):
            return None
        total -= math.log(1 - priority if k in merges else priority)
    return total


@given(st.integers(0, 10**6), st.integers(2, 3), st.integers(2, 4))
def test_the_adaptive_cut_is_the_most_probable_consistent_set(seed, rows, columns):
    graph, *_ = grid(rows, columns, seed)
    made = agglo.agglomerate(graph)
    tree = agglo.MergeTree(
        made.superpixels, made.winners, made.losers,
        np.random.default_rng(seed).random(made.n_merges),
    )  # fmt: skip
    every = range(tree.n_merges)
    sets = [set(c) for n in range(tree.n_merges + 1) for c in itertools.combinations(every, n)]
    energies = [energy for one in sets if (energy := energy_of(one, tree)) is not None]
    cut = agglo.adaptive_cut(tree)
    chosen = {
        k for k in every
        if tree.losers[k] in set(cut.losers[: cut.n_merges_at(0.5)])
    }  # fmt: skip
    assert energy_of(chosen, tree) == pytest.approx(min(energies))
    assert len(chosen) == cut.n_merges_at(0.5)


def test_the_adaptive_cut_has_all_merges_of_the_tree():
    graph, *_ = grid(5, 6, 0)
    tree = agglo.agglomerate(graph)
    cut = agglo.adaptive_cut(tree)
    assert sorted(cut.losers) == sorted(tree.losers)
    assert cut.n_segments(1) == 1


def test_priorities_that_are_no_probabilities_are_refused():
    graph = chain([0.5, 3.0])
    with refuses("tree", "use a learned policy, or the mean of a cue from 0 to 1"):
        agglo.adaptive_cut(agglo.agglomerate(graph))
    with refuses("tree", "pass agglomerate(graph, policy)"):
        agglo.adaptive_cut(graph)


def test_a_method_is_found_by_name():
    graph = chain([0.1, 0.9])
    assert METHODS.names()[:4] == ("threshold", "adaptive", "multicut", "mutex")
    assert build_tree(graph, "mean", "adaptive").n_segments(0.5) == 2
    with refuses("method"):
        build_tree(graph, "mean", "nothing")


def test_bad_options_of_the_multicut_are_refused():
    graph = chain([0.1, 0.9])
    with refuses("beta", "use 0.5"):
        agglo.multicut(graph, beta=1)
    with refuses("solver"):
        agglo.multicut(graph, solver="exact")


def test_without_its_solver_the_multicut_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "bioimage_cpp", None)
    with refuses("method", "pip install 'napari-agglo[multicut]'"):
        agglo.multicut(chain([0.1, 0.9]))
    with refuses("method", "pip install 'napari-agglo[multicut]'"):
        agglo.mutex_watershed(chain([0.1, 0.9]))


def cost_of(table, edges, weights, beta):
    """Return the total cost of the boundaries that a partition cuts."""
    apart = np.clip(weights, 1e-6, 1 - 1e-6)
    costs = np.log((1 - apart) / apart) + np.log((1 - beta) / beta)
    return costs[table[edges[:, 0]] != table[edges[:, 1]]].sum()


@given(st.integers(0, 10**6), st.sampled_from([0.3, 0.5, 0.7]))
def test_the_multicut_is_no_dearer_than_any_partition(seed, beta):
    pytest.importorskip("bioimage_cpp", reason="the solver of the multicut is not installed")
    graph, edges, weights = grid(2, 3, seed)
    tree = agglo.multicut(graph, beta=beta)
    least = min(
        cost_of(np.array([0, *names]), edges, weights, beta)
        for names in itertools.product(range(3), repeat=6)
    )
    table = tree.lut(0.5)
    # A heuristic: on graphs as small as these it finds the optimum, or comes very near.
    assert cost_of(table, edges, weights, beta) <= least + 0.05 * abs(least) + 1e-9
    assert tree.n_segments(1) == 1


def test_the_tree_of_a_multicut_has_its_partition_at_one_half():
    pytest.importorskip("bioimage_cpp", reason="the solver of the multicut is not installed")
    graph = chain([0.1, 0.9, 0.2, 0.6])
    tree = agglo.multicut(graph)
    assert partition(tree.lut(0.5)) == {frozenset({1, 2}), frozenset({3, 4}), frozenset({5})}
    assert tree.n_segments(0) == 5


def by_force(n, attractive, repulsive):
    """Return the mutex watershed of (weight, u, v) triples as a set of sets, one at a time."""
    segments = [{k} for k in range(1, n + 1)]
    apart = []
    find = lambda k: next(one for one in segments if k in one)  # noqa: E731
    every = [(w, "attract", u, v) for w, u, v in attractive]
    every += [(w, "repel", u, v) for w, u, v in repulsive]
    for _, kind, u, v in sorted(every, key=lambda one: -one[0]):
        first, second = find(u), find(v)
        if first is second:
            continue
        if kind == "repel":
            apart.append((u, v))
        elif not any(
            (a in first and b in second) or (b in first and a in second) for a, b in apart
        ):
            segments.remove(second)
            first |= second
    return {frozenset(one) for one in segments}


@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(2, 4))
def test_the_mutex_watershed_of_scores_is_that_by_force(seed, rows, columns):
    pytest.importorskip("bioimage_cpp", reason="the solver of the mutex watershed is missing")
    graph, edges, _ = grid(rows, columns, seed)
    # no two of equal strength, on either side of 0.5
    weights = (np.random.default_rng(seed).permutation(len(edges)) * 2 + 1) / (2.0 * len(edges))
    weights = np.where(weights < 0.5, weights, weights - 0.25 / len(edges))
    graph = agglo.RegionGraph.from_edges(edges, weights)
    weights = graph.boundary_mean()
    strengths = np.maximum(weights, 1 - weights)
    assert len(np.unique(strengths)) == len(edges), "test invalid"
    signed = [(max(w, 1 - w), *map(int, edge)) for w, edge in zip(weights, edges, strict=True)]
    expected = by_force(
        rows * columns,
        [one for one, w in zip(signed, weights, strict=True) if w < 0.5],
        [one for one, w in zip(signed, weights, strict=True) if w >= 0.5],
    )
    tree = agglo.mutex_watershed(graph)
    assert partition(tree.lut(0.5)) == expected
    assert tree.n_segments(0) == rows * columns


@pytest.mark.filterwarnings("ignore::napari_agglo.errors.DataWarning")  # most may be low
@given(st.integers(0, 10**6))
def test_the_mutex_watershed_of_long_range_affinities_is_that_by_force(seed):
    pytest.importorskip("bioimage_cpp", reason="the solver of the mutex watershed is missing")
    rng = np.random.default_rng(seed)
    labels = np.arange(1, 13).reshape(3, 4)
    offsets = [[-1, 0], [0, -1], [0, -2], [2, 0], [-1, 2]]
    # bytes, each of which comes once, and not as 255 minus another: no two of equal strength
    values = rng.permutation(np.arange(60, dtype=np.uint8) * 4 + 3).reshape(5, 3, 4)
    graph = agglo.region_graph(labels, {"affinity": agglo.affinities(values, offsets)})
    attractive, repulsive = [], []
    for k, offset in enumerate(offsets):
        for at in np.ndindex(3, 4):
            other = tuple(np.add(at, offset))
            if all(0 <= n < size for n, size in zip(other, (3, 4), strict=True)):
                pair = int(labels[at]), int(labels[other])
                if k < 2:
                    attractive.append((values[k][at] / 255, *pair))
                else:
                    repulsive.append((1 - values[k][at] / 255, *pair))
    strengths = [one[0] for one in attractive + repulsive]
    assert len({round(one, 6) for one in strengths}) == len(strengths), "test invalid"
    tree = agglo.mutex_watershed(graph, agglo.MeanPolicy("affinity"))
    assert partition(tree.lut(0.5)) == by_force(12, attractive, repulsive)


@pytest.mark.parametrize("result", [None, np.zeros(3), "labels"])
def test_a_method_of_another_package_returns_a_tree(monkeypatch, result):
    graph = chain([0.1])
    monkeypatch.setitem(METHODS._values, "odd", lambda graph, policy, *, progress=None: result)
    with refuses("method", "let it return a MergeTree", facts=("'odd'", type(result).__name__)):
        build_tree(graph, "mean", "odd")
    with refuses("beta", "leave it out", facts=("'odd'",)):
        build_tree(graph, "mean", "odd", beta=0.5)


@pytest.mark.parametrize("method", ["threshold", "adaptive"])
def test_a_policy_that_is_not_local_is_warned_of(method):
    def share(graph):
        return graph.boundary_mean() / (1e-9 + graph.boundary_mean().sum())

    with pytest.warns(DataWarning, match="not local"):
        build_tree(chain([0.1, 0.7, 0.4]), share, method)


def test_the_error_of_a_method_names_it(monkeypatch):
    def fail(graph, policy, *, progress=None):
        raise KeyError("mine")

    monkeypatch.setitem(METHODS._values, "failing", fail)
    with pytest.raises(KeyError) as raised:
        build_tree(chain([0.1]), "mean", "failing")
    assert "'failing'" in raised.value.__notes__[0]
