"""What relearn() is given, and what it says; a policy that nothing refers to does not stay."""

from __future__ import annotations

import errno
import shutil

import numpy as np
import pytest
from oracles.disks import Disk
from oracles.sessions import observed
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import InvalidInput, LearnedPolicy, Session
from napari_agglo.session import NotSaved

LABELS = np.repeat(np.repeat(np.arange(1, 26).reshape(5, 5), 4, 0), 4, 1)
GOLD = (LABELS > 12) + 1


@pytest.fixture(scope="module")
def graph():
    return agglo.region_graph(LABELS, np.random.default_rng(0).random(LABELS.shape).astype("f4"))


@pytest.fixture
def session(tmp_path, graph):
    with Session.create(tmp_path / "a.agglo", graph) as made:
        made.threshold = 0.0
        made.merge(1, 2)
        made.merge(3, 4)
        made.cut_children(1)
        yield made


@pytest.mark.parametrize(
    ("volumes", "options", "words"),
    [
        ("graph", {}, "`volumes` must be pairs of a RegionGraph .* got RegionGraph; pass what"),
        ([1, 2], {}, "`volumes` must be pairs .* got 1 for one"),
        ([("graph", None)], {}, "`volumes` must be pairs .* for one"),
        ("x", {}, "`volumes` must be pairs .* got str"),
        (3, {}, "`volumes` must be pairs .* got int"),
        ({}, {}, "`volumes` must be pairs .* got dict"),
        ([], {}, "`volumes` must be pairs .* got none"),
        (None, {"foo": 1}, r"`foo` is no argument of relearn\(\); take volumes, strategy, weigh"),
        (None, {"weight": -1}, "`weight` must be a whole number from 1 to 1000, got -1"),
        (None, {"weight": 0}, "`weight` must be a whole number"),
        (None, {"weight": 1.5}, "`weight` must be a whole number"),
        (None, {"weight": True}, "`weight` must be a whole number"),
        (None, {"seed": "a"}, "`seed` must be a whole number from 0 to 4294967295, got 'a'"),
        (None, {"seed": -1}, "`seed` must be a whole number"),
        (
            None,
            {"strategy": "best"},
            "`strategy` must be 'flat', 'agglo', 'lash' or 'mixed', got 'b",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(session, graph, volumes, options, words):
    def put(given):
        if isinstance(given, (list, tuple)):
            return type(given)(put(one) for one in given)
        return graph if isinstance(given, str) and given == "graph" else given

    before = observed(session)
    with pytest.raises(InvalidInput, match=words):
        session.relearn(put(volumes), **options)
    with refuses("superpixels", "use the same crop of both"):
        session.relearn([(graph, GOLD[1:])])
    assert observed(session) == before


def test_one_pair_is_as_good_as_a_list_of_one(session, graph):
    scores = []
    for volumes in [(graph, GOLD), [graph, GOLD], [(graph, GOLD)], iter([[graph, GOLD]])]:
        change = session.relearn(volumes, strategy="flat", weight=np.int64(2), seed=3)
        assert not any("alone" in note for note in change.notes)
        assert isinstance(session.policy, LearnedPolicy)
        assert session.policy.record["edits"]["weight"] == 2
        scores.append(session.policy.score(graph).tolist())
        session.undo()
    assert scores[1:] == scores[:-1]


def test_words_are_those_of_a_session(session, graph):
    change = session.relearn()
    assert change.notes[0].startswith("The policy was learned from 3 examples alone")
    session.undo()
    session.undo()
    with pytest.raises(InvalidInput, match=r"There are 2 merges and 0 cuts to learn.*; cut so"):
        session.relearn()
    session.undo()
    with pytest.raises(InvalidInput, match="There are 1 merge and 0 cuts to learn from"):
        session.relearn()
    session.undo()
    with refuses("rows", "merge or cut a segment, or answer"):
        session.relearn([(graph, GOLD)])


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


def test_nor_one_whose_entry_may_have_been_kept(session):
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
