"""Recovery of a session whose learned policy is missing or damaged."""

from __future__ import annotations

import errno
import shutil
from contextlib import suppress

import pytest
from oracles.disks import Disk, tree_of
from oracles.sessions import observed
from refusals import refuses

from napari_agglo import InvalidInput, Session
from napari_agglo.session import SessionDamaged

DAMAGES = {
    "missing": lambda file: file.unlink(),
    "cut off": lambda file: file.write_bytes(file.read_bytes()[:-40]),
    "flipped": lambda file: file.write_bytes(file.read_bytes()[:-1] + b"\x7f"),
}


@pytest.fixture(scope="module")
def pristine(tmp_path_factory, grid):
    """Return a closed session that has merged and learned, its state before, and its policy."""
    with Session.create(tmp_path_factory.mktemp("learned") / "a.agglo", grid[0]) as session:
        session.threshold = 0.0
        session.merge(1, int(session.segments.neighbours(1)[0]))
        before = observed(session)
        session.relearn([grid], strategy="flat")
    (file,) = session.path.glob("policy-*")
    return session.path, before, file.name


@pytest.fixture
def learned(pristine, tmp_path):
    """Return the learned session on a copy, its state before, and the file of its policy."""
    path, before, name = pristine
    copy = shutil.copytree(path, tmp_path / "a.agglo")
    with Session.open(copy) as session:
        yield session, before, copy / name


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_the_entries_before_it_are_kept_and_the_rest_moved_aside(learned, damage):
    session, before, file = learned
    session.marks.rename(1, "later")
    session.close()
    journal = (session.path / "journal.jsonl").read_bytes()
    whole = file.read_bytes()
    damage(file)
    with refuses("path", "call recover(), which keeps the entries", kind=SessionDamaged) as caught:
        Session.open(session.path)
    assert "entry 2 " in caught.value.problem
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


def test_a_missing_policy_of_an_undone_entry_costs_only_its_redo(learned):
    session, before, file = learned
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
        with refuses("path", "restore the file from a copy of the session", kind=SessionDamaged):
            again.redo()
        assert observed(again) == before
        again.marks.rename(1, "new")  # now it cannot be redone anyway
    assert str(Session.recover(session.path)) == "All is well: 4 entries."


def test_redone_counts(learned):
    session, _, file = learned
    session.undo()
    session.redo()
    session.close()
    file.unlink()
    report = Session.recover(session.path)
    assert (report.kept, report.lost) == (1, 3)
    Session.open(session.path).close()


@pytest.mark.slow
def test_each_system_call_may_fail(learned):
    session, _, file = learned
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
