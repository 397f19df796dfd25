"""Overrides through edits at the same and at other scales."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import Session


@pytest.fixture
def make(tmp_path):
    """Return a maker of sessions on a row of pixels."""
    made = []

    def make(labels, cue):
        graph = agglo.region_graph(np.array([labels]), np.array([cue], np.float32))
        made.append(Session.create(tmp_path / f"{len(made)}.agglo", graph))
        return made[-1]

    yield make
    for session in made:
        session.close()


def row(session):
    return session.labels()[0].tolist()


def test_undoing_a_lock_is_seen_at_a_scale_below_it(make):
    session = make([1, 2, 3, 4], [0.1, 0.2, 0.6, 0.8])
    session.threshold = 0.5
    session.lock(1)
    session.threshold = 0.0
    assert row(session) == [1, 1, 1, 4]
    session.undo()
    assert row(session) == [1, 2, 3, 4]
    session.redo()
    assert row(session) == [1, 1, 1, 4]
    session.undo()
    session.merge(1, 2)
    assert row(session) == [1, 1, 3, 4]


def test_a_move_is_of_the_segment_that_was_there(make):
    """An edit at a lower scale puts another one in its place, which was not moved."""
    session = make([1, 1, 2, 2, 3, 3, 3, 3, 3], [0.3] * 4 + [1.0] * 5)
    session.threshold = 0.6
    session.down(1)
    assert row(session) == [1, 1, 2, 2, 3, 3, 3, 3, 3]
    session.threshold = 0.5
    session.merge(1, 3)
    session.threshold = 0.6
    assert row(session) == [1] * 9, "the merge is seen above"
    session.marks.rename(1, "axon")
    session.cut_children(1)
    assert [line.split(" at ")[0] for line in session.history.asleep()] == ["2. merged 3 into 1"]
    named = session.marks.named("axon")
    assert len(named) == 1
    assert row(session).count(int(named[0])) == 5, "the largest part keeps the id"
    session.undo()
    session.undo()
    session.undo()
    assert row(session) == [1, 1, 2, 2, 3, 3, 3, 3, 3], "and the move is seen again"


def test_names_that_are_seen_stay_when_an_edit_makes_them_real(make):
    session = make([1, 1, 2, 3, 3, 3, 4, 5], [0.1, 0.1, 0.3, 0.5, 0.5, 0.5, 0.2, 0.4])
    session.threshold = 1.0
    whole = int(session.segments.ids()[0])
    session.lock(whole)
    session.threshold = 0.0
    session.unlock(whole)
    session.threshold = 0.9
    session.down(whole)
    seen = row(session)
    a, b = seen[3], seen[2]
    session.merge(a, b)
    assert row(session) == [a if k == b else k for k in seen]
    session.undo()
    session.merge(4, 5)
    assert row(session) == [4 if k == 5 else k for k in seen]


@pytest.mark.parametrize("scale", [0.7, 1.0])
def test_a_locked_segment_is_whole_after_a_move_down(make, scale):
    session = make([1, 2, 3, 4, 5, 6], [0.1, 0.2, 0.6, 0.8, 0.3, 0.9])
    session.threshold = 0.7
    whole = row(session)
    session.down(1)
    assert row(session) != whole
    session.threshold = scale
    if scale == 0.7:
        session.up(1)  # as it was: the same segment, locked
    held = row(session)
    session.lock(1)
    session.threshold = 0.7
    assert session.segments.locked().tolist() == [1]
    assert {k for k, at in enumerate(row(session)) if at == 1} == {
        k for k, at in enumerate(held) if at == 1
    }
    with refuses("segment", "call unlock(1) first"):
        session.down(1)
    session.unlock(1)
    assert not len(session.segments.locked())


@pytest.mark.parametrize("way", ["up", "down"])
def test_the_end_of_a_branch_is_said_with_the_id(make, way):
    session = make([1, 2], [0.1, 0.2])
    session.threshold = 1.0 if way == "up" else 0.0
    with refuses("segment", "merge it by hand" if way == "up" else "place points in it") as caught:
        getattr(session, way)(1)
    assert caught.value.problem.startswith("Segment 1 ")


def test_a_folder_that_was_moved_while_open_can_be_closed_and_opened(make):
    session = make([1, 2], [0.1, 0.9])
    session.threshold = 0.0
    session.merge(1, 2)
    there = session.path.with_name("moved.agglo")
    shutil.move(session.path, there)
    with refuses("path", "the folder was moved or deleted: close the"):
        session.undo()
    session.close()
    session.close()
    with Session.open(there) as again:
        again.undo()
