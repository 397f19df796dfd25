"""Answers to suggestions: given once, and of two contradictory ones the newer is an example."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import Session
from napari_agglo.session import Refused


@pytest.fixture
def session(tmp_path):
    cue = np.repeat([[0.1, 0.2, 0.5, 0.6, 0.3, 0.8]], 2, axis=0).repeat(2, axis=1)
    labels = np.arange(1, 7)[None].repeat(2, axis=0).repeat(2, axis=1)
    graph = agglo.region_graph(labels, cue)
    with Session.create(tmp_path / "a.agglo", graph) as made:
        made.threshold = 0.45
        assert 1 < len(made.segments) < 6, "test invalid: nothing to ask"
        yield made


def holder(session, superpixel):
    """Return the segment that holds a superpixel now."""
    return next(int(s) for s in session.segments.ids() if superpixel in session.segments.members(s))


@pytest.mark.parametrize("kind", ["false_split", "false_merge"])
@pytest.mark.parametrize("way", ["reject", "skip"])
def test_the_same_answer_again_is_refused(session, kind, way):
    (asked,) = session.queue.next(1, kind=kind)
    getattr(session.queue, way)(asked)
    examples = session.history.examples()[1].tolist()
    with refuses("suggestion", "call accept() to overrule the answer", kind=Refused):
        getattr(session.queue, way)(asked)
    assert len(session.history) == 1
    assert session.history.examples()[1].tolist() == examples
    session.undo()
    getattr(session.queue, way)(asked)  # as if it had never been answered


def test_an_answer_after_a_skip_but_no_skip_after_an_answer(session):
    (asked,) = session.queue.next(1, kind="false_split")
    session.queue.skip(asked)
    session.queue.reject(asked)
    with refuses("suggestion", "call accept() to overrule the answer", kind=Refused):
        session.queue.skip(asked)
    assert session.history.examples()[1].tolist() == [1]


def test_the_same_two_segments_by_other_superpixels(session):
    asked = next(one for one in session.queue.next(9, kind="false_split") if 1 in one.segments)
    session.queue.reject(asked)
    a, b = ([int(k) for k in session.segments.members(s)] for s in asked.segments)
    assert len(a) * len(b) > 1, "test invalid: there are no others"
    for pair in [(s, t) for s in a for t in b]:
        with refuses("suggestion", "call accept() to overrule the answer", kind=Refused):
            session.queue.reject(replace(asked, superpixels=pair))


@pytest.mark.parametrize(("kind", "label"), [("false_split", 1), ("false_merge", -1)])
def test_accepting_after_all_makes_the_rejection_teach_no_more(session, kind, label):
    (asked,) = session.queue.next(1, kind=kind)
    session.queue.reject(asked)
    assert session.history.examples()[1].tolist() == [label]
    session.queue.accept(asked)
    assert session.history.examples()[1].tolist() == [-label]
    path = session.path
    session.close()
    with Session.open(path) as again:
        assert again.history.examples()[1].tolist() == [-label]
        again.undo()
        assert again.history.examples()[1].tolist() == [label]


def test_an_edit_by_hand_overrules_and_the_policy_does_not(session):
    (asked,) = session.queue.next(1, kind="false_split")
    session.queue.reject(asked)
    session.threshold = 1.0  # the policy merges them up there, which is no person's word
    assert len(session.segments) == 1
    assert session.history.examples()[1].tolist() == [1]
    session.threshold = 0.45
    session.merge(*asked.segments)
    assert session.history.examples()[1].tolist() == [-1]
    session.cut(holder(session, asked.superpixels[0]), [[s] for s in asked.superpixels])
    assert session.history.examples()[1].tolist() == [1, -1, 1]


def test_the_newer_of_two_answers(session):
    (asked,) = session.queue.next(1, kind="false_split")
    session.queue.reject(asked)
    session.threshold = 1.0
    one = holder(session, asked.superpixels[0])
    session.queue.reject(replace(asked, kind="false_merge", segments=(one,)))
    assert session.history.examples()[1].tolist() == [-1]


def asked_about(session):
    return {(one.kind, one.segments) for one in session.queue.next(99)}


def test_reviewed_segments_are_not_asked_about_but_their_boundary_with_another_is(session):
    before, effort = asked_about(session), session.queue.effort()
    (one,) = min(segments for kind, segments in before if kind == "false_merge")
    pair = min(segments for _, segments in before if len(segments) == 2 and one in segments)
    (other,) = set(pair) - {one}
    session.marks.review(one)
    assert asked_about(session) == before - {("false_merge", (one,))}
    session.marks.review(other)
    gone = {one for one in before if set(one[1]) <= set(pair)}
    assert ("false_split", pair) in gone
    assert asked_about(session) == before - gone
    assert session.queue.effort().wrong_decisions < effort.wrong_decisions
    session.undo()
    session.marks.review(one, False)
    assert asked_about(session) == before


def test_the_reason_is_in_voxels_of_a_volume_and_one_is_singular(session):
    (asked,) = session.queue.next(1)
    assert "pixels)" in asked.reason
    volume = replace(asked, position=(0.0, 0.0, 0.5), sizes=(1200, 1))
    assert "(1,200 and 1 voxel)" in volume.reason
