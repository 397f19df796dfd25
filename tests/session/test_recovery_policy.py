"""A policy that was learned in a session and is gone: recover does without it, and says so."""

from __future__ import annotations

import errno
import shutil
from contextlib import suppress

import numpy as np
import pytest
from oracles.disks import Disk, tree_of
from oracles.sessions import observed
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import InvalidInput, Session
from napari_agglo.session import SessionDamaged

LABELS = np.repeat(np.repeat(np.arange(1, 26).reshape(5, 5), 4, 0), 4, 1)
GOLD = (LABELS > 12) + 1
DAMAGES = {
    "missing": lambda file: file.unlink(),
    "cut off": lambda file: file.write_bytes(file.read_bytes()[:-40]),
    "flipped": lambda file: file.write_bytes(file.read_bytes()[:-1] + b"\x7f"),
}


@pytest.fixture(scope="module")
def graph():
    return agglo.region_graph(LABELS, np.random.default_rng(0).random(LABELS.shape).astype("f4"))


@pytest.fixture
def session(tmp_path, graph):
    with Session.create(tmp_path / "a.agglo", graph) as made:
        made.threshold = 0.0
        yield made


def learned(session, graph):
    """Merge, look, and learn; return what was seen before, and the file of the policy."""
    session.merge(1, int(session.segments.neighbours(1)[0]))
    before = observed(session)
    session.relearn([(graph, GOLD)], strategy="flat")
    (file,) = session.path.glob("policy-*")
    return before, file


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_the_entries_before_it_are_kept_and_the_rest_moved_aside(session, graph, damage):
    before, file = learned(session, graph)
    session.marks.rename(1, "later")
    session.close()
    journal = (session.path / "journal.jsonl").read_bytes()
    whole = file.read_bytes()
    damage(file)
    with pytest.raises(SessionDamaged, match=r"entry 2 .*call recover\(\), which keeps"):
        Session.open(session.path)
    report = Session.recover(session.path)
    assert (report.kept, report.lost, report.unmended) == (1, 2, False)
    assert f"learned the policy {file.name}, which is missing or damaged" in str(report)
    (aside,) = report.aside
    first = (session.path / "journal.jsonl").read_bytes()
    assert first + aside.read_bytes() == journal
    assert str(Session.recover(session.path)) == "All is well: 1 entry."
    with Session.open(session.path) as again:
        assert again.history.report.lost == 0
        again.threshold = 0.0
        assert observed(again) == before
    # As the report says: with the file, all of it can be had again.
    file.write_bytes(whole)
    (session.path / "journal.jsonl").write_bytes(first + aside.read_bytes())
    with Session.open(session.path) as again:
        assert again.marks.of(1).name == "later"


def test_what_was_undone_costs_nothing_but_redoing(session, graph):
    before, file = learned(session, graph)
    session.undo()
    session.close()
    journal = (session.path / "journal.jsonl").read_bytes()
    file.unlink()
    report = Session.recover(session.path)
    assert (report.kept, report.lost, report.unmended, report.aside) == (3, 0, False, ())
    assert "was undone and cannot be redone" in str(report)
    assert (session.path / "journal.jsonl").read_bytes() == journal
    with Session.open(session.path) as again:
        assert observed(again) == before
        with refuses("path", "put back the file that was there, from a", kind=SessionDamaged):
            again.redo()
        assert observed(again) == before
        again.marks.rename(1, "new")  # now it cannot be redone anyway
    assert str(Session.recover(session.path)) == "All is well: 4 entries."


def test_redone_counts(session, graph):
    _, file = learned(session, graph)
    session.undo()
    session.redo()
    session.close()
    file.unlink()
    report = Session.recover(session.path)
    assert (report.kept, report.lost) == (1, 3)
    Session.open(session.path).close()


def test_each_system_call_may_fail(session, graph):
    _, file = learned(session, graph)
    session.close()
    file.unlink()
    everything = tree_of(session.path)
    for at in range(100):
        shutil.rmtree(session.path)
        for name, data in everything.items():
            (session.path / name).parent.mkdir(parents=True, exist_ok=True)
            (session.path / name).write_bytes(data)
        disk = Disk(at, errno.ENOSPC)
        with suppress(InvalidInput), disk.in_use():
            Session.recover(session.path)
        Session.recover(session.path)
        with Session.open(session.path) as again:
            assert len(again.history) == 1
        kept = b"".join(tree_of(session.path).values())
        assert everything["journal.jsonl"].splitlines()[1] in kept
        if not disk.failed:
            break
    assert 10 < at < 99, "test invalid: no call failed, or not each"
