"""Questions in place of a gold standard: what answers teach, and how the next one is chosen."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses

import napari_agglo as agglo
from napari_agglo.errors import Cancelled
from napari_agglo.learning import (
    ForestSettings,
    Question,
    Questions,
    answer_by_gold,
    boundary_labels,
)
from napari_agglo.learning._questions import _Answer, _Known
from napari_agglo.policy import LearnedPolicy, MeanPolicy

pytestmark = pytest.mark.compiled  # forests are grown

SETTINGS = ForestSettings(trees=10, early_trees=10)
N = 40


@pytest.fixture(scope="module")
def volume():
    sample = agglo.sample("neuropil2d")
    crop = np.s_[:110, :110]
    boundary = sample.cues["boundary"][crop]
    graph = agglo.region_graph(agglo.oversegment(boundary), boundary)
    return graph, sample.gold[crop]


def teach(graph, gold, n=N, **options):
    """Return the questions, after answers of the simulated person, and what was asked."""
    questions = Questions(graph, preset="minimal", settings=SETTINGS, **options)
    person = answer_by_gold(graph, gold)
    asked = []
    for _ in range(n):
        one = questions.next()
        asked.append((one, person(one)))
        questions.answer(asked[-1][1])
    return questions, asked


@pytest.fixture(scope="module")
def taught(volume):
    return teach(*volume)


def test_answers_label_only_what_follows_from_them():
    """Random answers against labels by a closure of the relation, pair by pair."""
    rng = np.random.default_rng(0)
    n = 14
    objects = rng.integers(0, 4, n + 1)
    answers = []
    for _ in range(9):
        first, second = (
            rng.choice(np.flatnonzero(objects == o)[-3:], 2) for o in rng.integers(0, 4, 2)
        )
        first, second = (np.unique(one[one > 0]) for one in (first, second))
        if len(first) and len(second) and not np.intersect1d(first, second).size:
            same = bool(objects[first[0]] == objects[second[0]])
            answers.append(_Answer(first, second, same, 0.5))
    answers.append(_Answer(np.array([1]), np.array([2]), None, 0.5))
    known = _Known.of(answers, n)
    edges = np.array([(a, b) for a in range(1, n + 1) for b in range(a + 1, n + 1)])
    labels = boundary_labels(edges, known.assigned())

    same = np.eye(n + 1, dtype=bool)
    for one in answers:
        for group in (
            [np.concatenate([one.first, one.second])] if one.same else [one.first, one.second]
        ):
            if one.same is not None:
                same[np.ix_(group, group)] = True
    for _ in range(n):
        same = (same.astype(int) @ same.astype(int)) > 0
    apart = np.zeros_like(same)
    for one in answers:
        if one.same is False:
            apart[np.ix_(same[one.first[0]], same[one.second[0]])] = True
    apart |= apart.T
    expected = [-1 if same[a, b] else 1 if apart[a, b] else 0 for a, b in edges]
    np.testing.assert_array_equal(labels, expected)
    assert set(expected) == {-1, 0, 1}, "test invalid"


def test_a_question_is_about_two_regions_that_touch(volume, taught):
    graph, _ = volume
    for question, _ in taught[1]:
        first, second = (
            np.searchsorted(graph.ids, one) for one in (question.first, question.second)
        )
        assert np.intersect1d(first, second).size == 0
        ends = np.isin(graph.edges, first).any(axis=1) & np.isin(graph.edges, second).any(axis=1)
        assert ends.any()
    sizes = {min(len(q.first), len(q.second)) for q, _ in taught[1]}
    assert 1 in sizes, "at the scale of superpixels"
    assert max(sizes) > 3, "and at coarser ones"


def test_answers_are_constraints_of_later_questions(volume, taught):
    """A region holds whole components, and never two that are different; nothing is asked twice."""
    graph, _ = volume
    questions, asked = taught
    for k in range(questions._every, N, questions._every):
        known = _Known.of(questions._answers[:k], graph.n_regions)
        for question, _ in asked[k : k + questions._every]:
            sides = [np.searchsorted(graph.ids, one) for one in (question.first, question.second)]
            inside = [set(known.component[side].tolist()) - {0} for side in sides]
            assert not inside[0] & inside[1]
            pairs = {(a, b) for a in inside[0] for b in inside[1]}
            assert not {(min(p), max(p)) for p in pairs} & known.different
            for side, members in zip(sides, inside, strict=True):
                for one in members:
                    assert np.isin(np.flatnonzero(known.component == one), side).all()


def test_answers_teach(volume, taught):
    graph, gold = volume
    questions, asked = taught
    assert {True, False} <= {answer for _, answer in asked}
    policy = questions.train()
    assert isinstance(policy, LearnedPolicy)
    assert policy.record["answers"] == N
    errors = [
        agglo.metrics(agglo.agglomerate(graph, one).segment(0.5), gold)["vi"]
        for one in (policy, "mean")
    ]
    assert errors[0] < errors[1]


def test_few_answers_leave_a_share_to_the_mean(volume, taught, tmp_path):
    graph, _ = volume
    questions, _ = taught
    policy = questions.train()
    yes, no, _ = questions.counts
    prior = policy.record["prior"]
    assert prior["share"] == round(12 / (12 + yes + no), 4)
    # The score is the prior's logistic of the mean and the forest, by their shares.
    questions._start = agglo.RandomPolicy()  # a start that is no prior
    alone = questions.train()
    questions._start = MeanPolicy()
    assert "prior" not in alone.record
    mean = MeanPolicy().score(graph)
    logistic = 1 / (1 + np.exp(-prior["slope"] * (mean - prior["middle"])))
    trees = len(policy.model.roots)
    stumps = round(prior["share"] * trees)
    assert (trees - stumps) % len(alone.model.roots) == 0
    share = stumps / trees
    expected = share * logistic + (1 - share) * alone.score(graph)
    np.testing.assert_allclose(policy.score(graph), expected, atol=0.5 / stumps + 1e-6)
    policy.save(tmp_path / "taught.npz")
    read = agglo.load_policy(tmp_path / "taught.npz")
    np.testing.assert_array_equal(read.score(graph), policy.score(graph))
    assert read.record["prior"] == prior


def test_questions_go_on_while_a_policy_learns(volume):
    """Answers that come while it learns are kept, and learned from the next time."""
    graph, gold = volume
    questions = Questions(graph, every=3, preset="minimal", settings=SETTINGS)
    person = answer_by_gold(graph, gold)
    with refuses("graph", "train with the answers so far"):
        questions.next(learn=False)
    questions.learn()
    assert not questions.is_due

    def answer():
        questions.answer(person(questions.next(learn=False)))

    for _ in range(4):
        answer()
    assert (questions.n_new, questions.is_due) == (4, True)
    reports = []

    def answer_meanwhile(progress):
        reports.append(progress)
        if len(reports) == 1:
            answer()

    questions.learn(answer_meanwhile)
    assert (questions.n_answers, questions.n_new, questions.is_due) == (5, 1, False)
    assert sum(questions.counts) == 5
    questions.undo()
    assert not questions.is_due, "the policy has not learned from that answer"
    questions.undo()
    assert questions.is_due, "it learned from an answer that was taken back"

    def cancel(progress):
        raise Cancelled

    before = questions.policy
    with pytest.raises(Cancelled):
        questions.learn(cancel)
    assert questions.policy is before


def test_the_same_seed_asks_the_same(volume, taught):
    again = teach(*volume, n=12)[1]
    for (one, _), (other, _) in zip(taught[1], again, strict=False):
        np.testing.assert_array_equal(one.first, other.first)
        np.testing.assert_array_equal(one.second, other.second)
    other = teach(*volume, n=3, order="random")[1]
    assert any(
        a[0].first.tolist() != b[0].first.tolist() for a, b in zip(again, other, strict=False)
    )


def test_the_simulated_person():
    graph = agglo.region_graph(np.array([[1, 1, 1, 2, 3, 3]]), np.zeros((1, 6)))
    person = answer_by_gold(graph, np.array([[7, 7, 7, 7, 8, 7]]))

    def ask(first, second):
        ids = [np.array(side, np.uint64) for side in (first, second)]
        return person(Question(*ids, 0.5))

    assert ask([1], [2]) is True
    assert ask([2], [3]) is None, "a half of 3 is another object"
    person = answer_by_gold(graph, np.array([[7, 7, 7, 7, 8, 8]]))
    assert ask([2], [3]) is False


def test_undo_and_refusals(volume):
    questions = Questions(volume[0], preset="minimal", settings=SETTINGS)
    assert isinstance(questions.policy, MeanPolicy)
    with refuses("answers", "answer a question"):
        questions.undo()
    first = questions.next()
    assert questions.next() is first, "it stays until it is answered"
    with refuses("same", "pass None if the answer is unclear"):
        questions.answer("yes")
    questions.answer(None)
    assert questions.n_answers == 1
    questions.undo()
    assert questions.n_answers == 0
    np.testing.assert_array_equal(questions.next().first, first.first)
    with refuses("answers", "answers of both kinds"):
        questions.train()
    with refuses("order", ""):
        Questions(volume[0], order="best")
    pair = agglo.region_graph(np.array([[1, 2]]), np.zeros((1, 2)))
    last = Questions(pair, preset="minimal")
    assert last.next().first.tolist() == [1]
    last.answer(False)
    with refuses("graph", "train with the answers so far"):
        last.next()
