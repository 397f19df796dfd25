"""Arguments and notes of relearn(); the file of a policy stays only if an entry refers to it."""

from __future__ import annotations

import errno
import shutil

import numpy as np
import pytest
from oracles.disks import Disk
from oracles.sessions import observed
from refusals import refuses

from napari_agglo import LearnedPolicy, Session
from napari_agglo.errors import SetOption
from napari_agglo.session import NotSaved


@pytest.fixture
def session(grid_session):
    """Return a session with two merges and a cut."""
    grid_session.merge(1, 2)
    grid_session.merge(3, 4)
    grid_session.cut_children(1)
    return grid_session


PAIRS = ("volumes", "pass the training set of the policy")
WEIGHT = ("weight", SetOption("weight", 1))
SEED = ("seed", SetOption("seed", 0))


@pytest.mark.parametrize(
    ("volumes", "options", "refusal"),
    [
        (lambda graph: graph, {}, PAIRS),
        (lambda _: [1, 2], {}, PAIRS),
        (lambda graph: [(graph, None)], {}, PAIRS),
        (lambda _: "x", {}, PAIRS),
        (lambda _: 3, {}, PAIRS),
        (lambda _: {}, {}, PAIRS),
        (lambda _: [], {}, PAIRS),
        (lambda _: None, {"foo": 1}, ("foo", "use volumes, strategy, weight, seed or progress")),
        (lambda _: None, {"weight": -1}, WEIGHT),
        (lambda _: None, {"weight": 0}, WEIGHT),
        (lambda _: None, {"weight": 1001}, WEIGHT),
        (lambda _: None, {"weight": 1.5}, WEIGHT),
        (lambda _: None, {"weight": True}, WEIGHT),
        (lambda _: None, {"seed": "a"}, SEED),
        (lambda _: None, {"seed": -1}, SEED),
        (lambda _: None, {"seed": 2**32}, SEED),
        (lambda _: None, {"strategy": "best"}, ("strategy", SetOption("strategy", "flat"))),
        (lambda graph: [(graph, np.ones((19, 20), int))], {}, ("superpixels", "use the same crop")),
    ],
)
def test_wrong_arguments_are_refused(session, grid, volumes, options, refusal):
    before = observed(session)
    with refuses(*refusal):
        session.relearn(volumes(grid[0]), **options)
    assert observed(session) == before


def test_one_pair_is_as_good_as_a_list_of_one(session, grid):
    graph = grid[0]
    scores = []
    for volumes in [grid, list(grid), [grid], iter([list(grid)])]:
        change = session.relearn(volumes, strategy="flat", weight=np.int64(2), seed=3)
        assert not any("alone" in note for note in change.notes)
        assert isinstance(session.policy, LearnedPolicy)
        assert session.policy.record["edits"]["weight"] == 2
        scores.append(session.policy.score(graph).tolist())
        session.undo()
    assert scores[1:] == scores[:-1]


def test_words_are_those_of_a_session(session, grid):
    change = session.relearn()
    assert change.notes[0].startswith("The policy was learned from 3 examples alone")
    session.undo()
    session.undo()
    for number in ("2 merges", "1 merge"):
        with refuses("volumes", "cut a wrong segment, answer suggestions") as caught:
            session.relearn()
        assert f"There are {number} and 0 cuts to learn from" in caught.value.problem
        session.undo()
    with refuses("rows", "merge or cut a segment, or answer"):
        session.relearn([grid])


def test_a_failure_leaves_no_policy_behind(session, tmp_path):
    session.close()
    not_saved = 0
    for at in range(30):
        with Session.open(shutil.copytree(session.path, tmp_path / f"{at}.agglo")) as copy:
            there = sorted(copy.path.iterdir())
            disk = Disk(at, errno.ENOSPC)
            try:
                with disk.in_use():
                    copy.relearn()
            except NotSaved:
                not_saved += 1
                assert sorted(copy.path.iterdir()) == there
            else:
                assert len(list(copy.path.glob("policy-*"))) == 1
        if not disk.failed:
            break
    assert not_saved > 4, "test invalid"
    assert at < 29, "test invalid: not each call failed"


def test_a_policy_that_an_entry_refers_to_stays(session):
    session.relearn()
    session.undo()
    (file,) = session.path.glob("policy-*")
    not_saved = 0
    for at in range(30):  # the same policy once more
        disk = Disk(at, errno.ENOSPC)
        try:
            with disk.in_use():
                session.relearn()
        except NotSaved:
            not_saved += 1
        else:
            session.undo()
        assert file.exists()
        if not disk.failed:
            break
    assert not_saved > 4, "test invalid"
    session.redo()


def test_a_policy_of_an_unsure_entry_is_not_removed(session):
    """Neither written for sure, nor taken back: opening it again shows, and must be possible."""
    for at in range(30):
        with Disk(at, errno.EIO, times=1000).in_use(), pytest.raises(NotSaved):
            session.relearn()
        if session.read_only:
            break
    assert session.read_only, "test invalid: it could be taken back"
    session.close()
    with Session.open(session.path) as again:
        again.threshold = 0.5
