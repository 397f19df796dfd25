"""A proofreader who knows the gold standard gets further by the queue than in random order."""

from __future__ import annotations

import numpy as np
import pytest

import napari_agglo as agglo
from benchmarks.proofreader import Truth, answer, proofread, questions
from napari_agglo import Session

pytestmark = pytest.mark.compiled

DECISIONS = 30


@pytest.fixture(scope="module")
def lessons():
    """Four crops of the sample, each by another seed; the first is learned from."""
    out = []
    for seed in range(4):
        sample = agglo.sample("neuropil2d", seed=seed)
        part = np.s_[:128, :128]
        cues = {name: np.ascontiguousarray(cue[part]) for name, cue in sample.cues.items()}
        graph = agglo.region_graph(agglo.oversegment(cues["boundary"]), cues)
        out.append((graph, np.ascontiguousarray(sample.gold[part])))
    return out


@pytest.fixture(scope="module")
def policy(lessons):
    return agglo.train(*lessons[0], strategy="flat", preset="minimal")


@pytest.mark.slow
def test_the_queue_beats_random_order(lessons, policy):
    """Over three crops and three orders each: the mean VI of the first decisions."""
    gains = []
    for graph, gold in lessons[1:]:
        queue = proofread(graph, gold, policy, "queue", DECISIONS)
        for seed in range(3):
            random = proofread(graph, gold, policy, "random", DECISIONS, seed=seed)
            assert random[0] == queue[0]
            gains.append(random.mean() - queue.mean())
    gains = np.array(gains)
    error = gains.std(ddof=1) / np.sqrt(len(gains))
    assert gains.mean() > 3 * error
    assert (gains > 0).sum() >= 8


@pytest.mark.slow
def test_truthful_answers_lower_the_error_and_end(tmp_path, lessons, policy):
    """Asked until nothing is left, in any order, the error is far below that of the policy."""
    graph, gold = lessons[1]
    for order in ("queue", "random", "largest boundary"):
        vi = proofread(graph, gold, policy, order, 30)
        assert len(vi) == 31
        assert vi[-1] < vi[0]
    with Session.create(tmp_path / "a.agglo", graph, policy, gold=gold) as session:
        truth = Truth.of(graph, gold)
        rng = np.random.default_rng(0)
        for _, asked in zip(range(20), questions(session, "queue", rng), strict=False):
            before = session.queue.next(1)[0]
            assert asked == before
            answer(session, truth, asked)
            now = session.queue.next(1)
            assert not now or now[0].superpixels != asked.superpixels


def test_relearning_keeps_the_answers(lessons, policy):
    graph, gold = lessons[1]
    vi = proofread(graph, gold, policy, "queue", 24, relearn_every=12, volumes=[lessons[0]])
    plain = proofread(graph, gold, policy, "queue", 24)
    assert (vi[:12] == plain[:12]).all()
    assert vi[-1] < vi[0]
