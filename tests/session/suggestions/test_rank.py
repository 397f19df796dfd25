"""Suggestions: the first is the most valuable for a truthful person, and its position is right."""

from __future__ import annotations

import dataclasses
import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from napari_agglo import Session, agglomerate, region_graph, split_vi
from napari_agglo.errors import SetOption
from napari_agglo.policy import LearnedPolicy, MeanPolicy, RandomPolicy
from napari_agglo.session._incremental_vi import IncrementalVI
from napari_agglo.session._segment_statistics import segments_of
from napari_agglo.session._suggestions import (
    Decisions,
    answered_boundaries,
    answered_merges,
    as_probabilities,
    effort,
    expected_gain,
    suggest,
)
from napari_agglo.session._suggestions.decisions import decisions as decisions_of
from napari_agglo.session._suggestions.review_value import confusion
from napari_agglo.volumes import contingency


def grid(rng, n=18, cell=3, noise=0.25):
    """Return a graph of n x n superpixels of many sizes, gold of cell x cell; boundaries lie."""
    cuts = [np.sort(rng.choice(np.arange(1, 8 * n), n - 1, replace=False)) for _ in "yx"]
    rows, columns = (np.searchsorted(cut, np.arange(8 * n), side="right") for cut in cuts)
    superpixels = rows[:, None] * n + columns + 1
    gold = (rows // cell)[:, None] * n + columns // cell + 1
    graph = region_graph(superpixels, np.zeros(superpixels.shape))
    belongs = np.zeros(n * n + 1, int)
    belongs[superpixels] = gold
    differ = belongs[graph.edges[:, 0]] != belongs[graph.edges[:, 1]]
    message = np.clip(0.2 + 0.6 * differ + rng.normal(0, noise, len(differ)), 0, 1)
    boundaries = graph.boundaries.copy()
    samples = 2 * boundaries[:, graph.layout.faces].sum(axis=1)
    boundaries[:, graph.layout.boundary_sums(0).start] = (255 * message).round() * samples
    return dataclasses.replace(graph, boundaries=boundaries), gold


def decisions(graph, scale):
    """Return the segments at a scale, and the decisions of the mean policy there."""
    tree = agglomerate(graph)
    m = tree.n_merges_at(scale)
    lut = tree.lut(scale).astype(np.int64)
    found = segments_of(graph, lut)
    boundaries = found.boundaries()
    means = boundaries.cue_means[:, 0]
    first, second = found.ids[boundaries.pairs].astype(np.int64).T
    left, joined = as_probabilities(MeanPolicy(), scale, means, tree.priorities[:m])
    made = Decisions.of(tree.winners[:m], tree.losers[:m], joined)
    return lut, Decisions.of(first, second, left), made


def members_of(graph, lut, apart, made):
    """Return kind and the superpixels of both sides of every decision."""
    out = [
        ("false_split", np.flatnonzero(lut == a), np.flatnonzero(lut == b))
        for a, b in zip(apart.first.tolist(), apart.second.tolist(), strict=True)
    ]
    members = {k: [k] for k in range(1, graph.n_regions + 1)}
    for a, b in zip(made.first.tolist(), made.second.tolist(), strict=True):
        out.append(("false_merge", np.array(members[a]), np.array(members[b])))
        members[a] = members[a] + members[b]
    return out


def which(suggestion, lut, apart, made):
    """Return the number of the decision that a suggestion is about, by its superpixels alone."""
    if suggestion.kind == "false_split":
        (k,) = np.flatnonzero(answered_boundaries(apart, lut, [suggestion.superpixels]))
        return int(k)
    (k,) = np.flatnonzero(answered_merges(made, [suggestion.superpixels]))
    return len(apart) + int(k)


def vi_along(graph, gold, lut, asked):
    """Return the VI as a truthful person answers: joins what is one, parts what is two."""
    table = contingency(graph.superpixels, gold)
    overlaps = np.zeros((graph.n_regions + 1, table.column_ids.size), int)
    overlaps[table.rows, table.columns] = table.counts
    live, path = IncrementalVI(table, lut), []
    for kind, one, two in asked:
        new = lut.copy()
        same = np.argmax(overlaps[one].sum(axis=0)) == np.argmax(overlaps[two].sum(axis=0))
        if kind == "false_split" and same:
            new[new == new[two[0]]] = new[one[0]]
        elif kind == "false_merge" and not same:
            new[two[new[two] == new[one[0]]]] = new.max() + 1
        live.update(new)
        path.append(live.errors().vi)
        lut = new
    assert path[-1] == pytest.approx(sum(split_vi(lut[graph.superpixels.image], gold)))
    return path


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("seed", "scale", "kind"),
    [
        (0, 0.3, None),
        (1, 0.5, None),
        (2, 0.6, None),
        (3, 0.3, "false_split"),
        (4, 0.6, "false_merge"),
    ],
)
def test_a_truthful_person_gains_more_by_the_ranking_than_by_chance(seed, scale, kind):
    rng = np.random.default_rng(seed)
    graph, gold = grid(rng)
    lut, apart, made = decisions(graph, scale)
    every = members_of(graph, lut, apart, made)
    alike = [k for k in range(len(every)) if kind in (None, every[k][0])]
    n = len(alike) // 5
    ranked = suggest(graph, lut, apart, made, n, kind=kind)
    numbers = [which(suggestion, lut, apart, made) for suggestion in ranked]
    assert len(set(numbers)) == n > 10
    before = sum(split_vi(lut[graph.superpixels.image], gold))
    gained = before - np.mean(vi_along(graph, gold, lut, [every[k] for k in numbers]))
    by_chance = []
    for _ in range(10):
        some = rng.permutation(alike)[:n]
        by_chance.append(before - np.mean(vi_along(graph, gold, lut, [every[k] for k in some])))
    assert gained > 2 * max(np.mean(by_chance), 0)


# ------------------------------------------------------------------------------------- scores


def test_a_gain_is_the_change_in_vi():
    superpixels = np.repeat([1, 2, 3], [5, 3, 8])
    joined = np.array([0, 1, 1, 3])
    one, two = np.repeat([1, 1, 3], [5, 3, 8]), superpixels
    bits = confusion(5, 3) / 16
    assert sum(split_vi(superpixels, one)) - sum(split_vi(joined[superpixels], one)) == (
        pytest.approx(bits)
    )
    assert sum(split_vi(joined[superpixels], two)) - sum(split_vi(superpixels, two)) == (
        pytest.approx(bits)
    )


@given(st.floats(0, 1), st.integers(1, 10**6), st.integers(1, 10**6))
def test_doubt_only_lowers_a_gain(error, x, y):
    gain, score = expected_gain(x, y, error, 10**7)
    assert 0 <= score <= gain <= 1
    assert gain == pytest.approx(error * confusion(x, y) / 10**7)
    if error == 0.5:
        assert score == gain
    if error in (0, 1):
        assert score == 0


def test_a_learned_policy_is_taken_at_its_word():
    policy = object.__new__(LearnedPolicy)
    (p,) = as_probabilities(policy, 0.3, [0.0, 0.25, 1.0, 1.5, np.nan])
    assert p[:4].tolist() == [0.0, 0.25, 1.0, 1.0]
    assert np.isnan(p[4])


@given(st.lists(st.floats(0, 1), min_size=1), st.floats(0, 1))
def test_a_mean_is_even_at_the_threshold_and_rises_with_the_priority(means, scale):
    left, made = as_probabilities(MeanPolicy(), scale, np.array([*means, scale]), [])
    assert left[-1] == 0.5
    assert len(made) == 0
    order = np.argsort(means)
    assert (np.diff(left[:-1][order]) >= 0).all()
    assert ((left >= 0) & (left <= 1)).all()


@pytest.mark.parametrize("scale", [np.inf, -np.inf])
def test_a_threshold_beyond_all_leaves_no_doubt(scale):
    (p,) = as_probabilities(MeanPolicy(), scale, [0.1, 0.9])
    assert np.allclose(p, 0 if scale > 0 else 1)


def test_random_priorities_say_nothing():
    (p,) = as_probabilities(RandomPolicy(), 0.2, [0.1, 0.9, np.nan])
    assert p[:2].tolist() == [0.5, 0.5]
    assert np.isnan(p[2])


# -------------------------------------------------------------------------------- suggestions

DRAWN = np.array(
    [
        [1, 1, 1, 2, 2],
        [1, 1, 1, 2, 2],
        [3, 3, 4, 4, 4],
        [3, 3, 4, 4, 4],
        [5, 5, 5, 5, 6],
    ]
)


def drawn_case(answered=None):
    """Segments {1, 2}, {3}, {4, 5}, {6}; the boundary 3 | 4 and the merge of 1 and 2 in doubt."""
    graph = region_graph(DRAWN, np.zeros(DRAWN.shape))
    lut = np.array([0, 1, 1, 3, 4, 4, 6])
    apart = Decisions.of([1, 1, 3, 4], [3, 4, 4, 6], [0.9, 0.95, 0.55, 0.99], answered)
    made = Decisions.of([1, 4], [2, 5], [0.4, 0.01])
    return graph, lut, apart, made


def test_the_drawn_case():
    best, second = suggest(*drawn_case(), 2)
    assert (best.kind, best.segments, set(best.superpixels)) == ("false_split", (3, 4), {3, 4})
    assert best.sizes == (4, 10)
    assert best.wrong == 0.55
    assert best.position in [(2.0, 1.5), (3.0, 1.5)]
    assert best.gain == pytest.approx(confusion(4, 10) / 25)
    assert best.score == pytest.approx(best.gain * 0.45 * 4 * 0.45 * 0.55)
    assert "45% likely that they are one" in best.reason
    assert (second.kind, second.segments) == ("false_merge", (1,))
    assert second.superpixels == (1, 2)
    assert second.position[1] == 2.5
    assert second.question == "Cut here?"
    assert "40% likely that they are two" in second.reason


def test_scores_descend_and_all_that_is_in_doubt_comes():
    graph, lut, apart, made = drawn_case()
    found = suggest(graph, lut, apart, made, 100)
    assert len(found) == 6
    scores = [suggestion.score for suggestion in found]
    assert scores == sorted(scores, reverse=True)
    assert suggest(graph, lut, apart, made, 0) == []
    assert suggest(graph, lut, apart, made, 3) == found[:3]


def test_filters():
    graph, lut, apart, made = drawn_case()
    splits = suggest(graph, lut, apart, made, kind="false_split")
    merges = suggest(graph, lut, apart, made, kind="false_merge")
    assert {one.kind for one in splits} == {"false_split"}
    assert (len(splits), len(merges)) == (4, 2)
    large = suggest(graph, lut, apart, made, min_size=5)
    assert all(min(one.sizes) >= 5 for one in large)
    assert len(large) == 1
    everywhere = suggest(graph, lut, apart, made)
    corner = np.array([[3, 2], [5, 5]])
    here = suggest(graph, lut, apart, made, within=corner)
    assert {one.superpixels for one in here} == {(4, 6), (4, 5)}
    assert len(everywhere) > len(here)
    for one in here:
        assert (np.array(one.position) >= corner[0]).all()
        assert (np.array(one.position) <= corner[1] - 1).all()


def test_an_answered_suggestion_does_not_come_again():
    answered = [False, False, True, False]
    assert suggest(*drawn_case(answered), 1)[0].kind == "false_merge"
    graph, lut, apart, made = drawn_case()
    first = suggest(graph, lut, apart, made, 1)[0]
    message = answered_boundaries(apart, lut, [first.superpixels])
    assert message.tolist() == answered


def test_merges_without_a_probability_are_decisions_of_a_person():
    graph, lut, apart, _ = drawn_case()
    made = Decisions.of([1, 4], [2, 5], [np.nan, 0.01])
    assert [one.segments for one in suggest(graph, lut, apart, made, kind="false_merge")] == [(4,)]


def test_a_merge_that_is_not_seen_is_passed_over():
    graph, _, apart, made = drawn_case()
    seen = np.array([0, 1, 2, 3, 4, 4, 6])  # 1 and 2 looked at one by one
    assert [one.segments for one in suggest(graph, seen, apart, made, kind="false_merge")] == [(4,)]


@given(st.data())
def test_a_suggestion_lies_between_its_two_sides(data):
    labels = np.array(data.draw(st.lists(st.integers(1, 8), min_size=24, max_size=24)))
    dams = data.draw(st.booleans())
    labels = labels.reshape(2, 3, 4)
    if dams:
        labels = np.where(data.draw(st.sampled_from([0, 1])) == labels % 2, labels, 0)
    graph = region_graph(labels, np.zeros(labels.shape), dams=dams)
    scale = data.draw(st.sampled_from([-5e-324, 0.0]))
    lut, apart, made = decisions(graph, scale)
    apart = Decisions.of(apart.first, apart.second, np.full(len(apart), 0.6))
    made = Decisions.of(made.first, made.second, np.full(len(made), 0.4))
    image = graph.superpixels.image
    for one in suggest(graph, lut, apart, made, 50):
        at = np.array(one.position)
        (axis,) = np.flatnonzero((at % 1 != 0) | (np.arange(3) == _across(image, at, one)))[:1]
        reach = 0.5 if at[axis] % 1 else 1.0
        low, high = at.copy(), at.copy()
        low[axis] -= reach
        high[axis] += reach
        touching = {int(image[tuple(end.astype(int))]) for end in (low, high)}
        assert touching == set(one.superpixels)
        segments = [int(lut[superpixel]) for superpixel in one.superpixels]
        assert tuple(segments) == one.segments or set(segments) == set(one.segments)


def _across(image, at, one):
    """Return the axis along which a point on a dam has the two superpixels on both sides."""
    for axis in range(image.ndim):
        step = np.arange(image.ndim) == axis
        ends = [tuple((at + sign * step).astype(int)) for sign in (-1, 1)]
        inside = all(0 <= k < n for end in ends for k, n in zip(end, image.shape, strict=True))
        if not (at % 1).any() and inside and {image[e] for e in ends} == set(one.superpixels):
            return axis
    return -1


@given(st.data())
def test_a_pair_s_merge_is_the_first_that_holds_both(data):
    labels = np.array(data.draw(st.lists(st.integers(1, 9), min_size=16, max_size=16)))
    graph = region_graph(labels.reshape(4, 4), np.random.default_rng(0).random((4, 4)))
    tree = agglomerate(graph)
    made = Decisions.of(tree.winners, tree.losers, np.zeros(tree.n_merges))
    for u, v in itertools.combinations(range(1, graph.n_regions + 1), 2):
        node = tree.lowest_common_ancestor(u, v)
        (k,) = np.flatnonzero(answered_merges(made, [(u, v)]))
        assert k == node - graph.n_regions - 1
    assert not answered_merges(made, [(1, 1)]).any()
    assert not answered_merges(Decisions.of([], [], []), [(1, 1), (1, 2)]).any()


# -------------------------------------------------------------------------------------- effort


def test_effort_counts_decisions_and_edits():
    _, _, apart, made = drawn_case()
    left = effort(apart, made)
    assert left.false_splits == pytest.approx(0.1 + 0.05 + 0.45 + 0.01)
    assert left.false_merges == left.cuts == pytest.approx(0.41)
    assert left.merges == pytest.approx(0.1 + 0.45 + 0.01)  # 1 | 4 would close a circle
    assert left.wrong_decisions == pytest.approx(1.02)
    assert left.edits == pytest.approx(0.97)
    answered = Decisions.of(apart.first, apart.second, apart.wrong, [True] * 4)
    nothing = effort(answered, Decisions.of([], [], []))
    assert (nothing.wrong_decisions, nothing.edits) == (0, 0)
    assert str(nothing) == "about 0 edits left: 0 merges and 0 cuts"


@given(st.data())
def test_merges_along_a_forest_are_what_networkx_finds(data):
    pairs = list(itertools.combinations(range(1, 7), 2))
    asked = data.draw(st.lists(st.sampled_from(pairs), unique=True))
    wrong = data.draw(st.lists(st.floats(0, 1), min_size=len(asked), max_size=len(asked)))
    graph = nx.Graph()
    for (u, v), p in zip(asked, wrong, strict=True):
        graph.add_edge(u, v, weight=1 - p)
    forest = nx.maximum_spanning_tree(graph)
    first, second = [u for u, _ in asked], [v for _, v in asked]
    left = effort(Decisions.of(first, second, wrong), Decisions.of([], [], []))
    assert left.merges == pytest.approx(forest.size("weight"), abs=1e-9)
    assert left.merges <= left.false_splits + 1e-9


def test_effort_is_right_on_average_if_probabilities_are():
    rng = np.random.default_rng(1)
    p = rng.random(2000)
    merges_wrong = rng.random(2000) < p
    chain = np.arange(1, 2001)
    left = effort(Decisions.of([], [], []), Decisions.of(np.ones(2000), chain + 1, p))
    assert left.cuts == pytest.approx(merges_wrong.sum(), rel=0.05)


def test_merges_come_after_those_they_are_made_of_and_edits_have_no_priority(tmp_path):
    cue = np.repeat([[0.1, 0.2, 0.5, 0.6, 0.3, 0.8]], 2, axis=0).repeat(2, axis=1)
    labels = np.arange(1, 7)[None].repeat(2, axis=0).repeat(2, axis=1)
    with Session.create(tmp_path / "a.agglo", region_graph(labels, cue)) as session:
        session.threshold = 0.3
        first, second = session.segments.ids()[:2].tolist()
        session.merge(first, second)
        for threshold in (0.1, 0.3, 0.45, 1.0):
            session.threshold = threshold
            _, made = decisions_of(session._view)
            log, nodes = session._state.tree.log, session._view.inner_nodes()[::-1]
            children = np.sort(log.rows["low"][log.children(nodes)], axis=1)
            assert np.array_equal(np.stack([made.first, made.second], axis=1), children)
            assert np.array_equal(made.answered, log.rows["edit"][nodes] >= 0)
            parts = {k: {k} for k in range(1, 7)}
            for a, b in zip(made.first.tolist(), made.second.tolist(), strict=True):
                assert min(parts[a]) == a
                parts[a] |= parts.pop(b)


# ------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({"n": -1}, ("n", SetOption("n", 0))),
        ({"kind": "merge"}, ("kind", SetOption("kind", "false_merge"))),  # the nearest
        ({"min_size": 0.5}, ("min_size", SetOption("min_size", 0))),
        ({"within": [[0, 0], [5, 0]]}, ("within", "leave it out to search the whole image")),
        ({"within": [0, 5]}, ("within", "leave it out to search the whole image")),
    ],
)
def test_refusals(arguments, refusal):
    with refuses(*refusal):
        suggest(*drawn_case(), **arguments)
