"""Sessions with damaged files or a failing disk: refused or right, never wrong segments."""

from __future__ import annotations

import errno
import shutil
import warnings

import numpy as np
import pytest
from oracles.disks import Disk
from oracles.sessions import busy_session, journal, observed

from napari_agglo import InvalidInput, Session
from napari_agglo.session import NotSaved

pytestmark = pytest.mark.compiled  # thousands of openings

N_EDITS = 30


@pytest.fixture(scope="module")
def edited(tmp_path_factory):
    """Return a closed session, and what it looked like after each entry of its journal."""
    path = tmp_path_factory.mktemp("damage") / "edited.agglo"
    states = {}

    def note(session):
        states[len(journal(session.path))] = observed(session)

    with busy_session(path, N_EDITS, seed=3, after=note):
        pass
    assert {*range(1, len(states) + 1)} == {*states}, "test invalid: an action of several entries"
    return path, states


@pytest.fixture
def copy(edited, tmp_path):
    return shutil.copytree(edited[0], tmp_path / "copy.agglo")


def check_open(path, states, expected=None):
    """Open a damaged session; return how many entries were kept, None if it was refused."""
    n = max(states)
    with warnings.catch_warnings(record=True) as message:
        warnings.simplefilter("always")
        try:
            session = Session.open(path, read_only=True)
        except InvalidInput:  # which is a sentence, whatever was damaged
            return None
    with session:
        kept = session.history.report.kept
        assert session.history.report.lost == n - kept
        assert bool(message) == (kept < n), "a loss is told, and nothing else is"
        if expected is not None:
            assert kept == expected
        if kept:
            assert observed(session) == states[kept]
        else:
            assert not session.history
    return kept


def cut_off(edited, copy, step):
    """Cut the journal off within its last 20 entries, at each `step`-th byte; return how often."""
    journal = (copy / "journal.jsonl").read_bytes()
    start = sum(map(len, journal.splitlines(keepends=True)[:-20]))
    places = range(start, len(journal), step)
    for at in places:
        (copy / "journal.jsonl").write_bytes(journal[:at])
        assert check_open(copy, edited[1], journal[:at].count(b"\n")) is not None
    return len(places)


def flip_bits(edited, copy, count, seed):
    """Flip one bit at a time, of the journal mostly; return how often it was refused."""
    rng = np.random.default_rng(seed)
    files = sorted(path for path in copy.rglob("*") if path.is_file())
    refused = 0
    for _ in range(count):
        path = copy / "journal.jsonl" if rng.random() < 0.7 else files[rng.integers(len(files))]
        whole = path.read_bytes()
        if not whole:
            continue
        at = int(rng.integers(len(whole)))
        flipped = bytes([whole[at] ^ 1 << int(rng.integers(8))])
        path.write_bytes(whole[:at] + flipped + whole[at + 1 :])
        expected = whole[:at].count(b"\n") if path.name == "journal.jsonl" else None
        kept = check_open(copy, edited[1], expected)
        assert kept is not None or path.name != "journal.jsonl", "only the tail may be lost"
        assert kept in (None, max(edited[1])) or path.name == "journal.jsonl"
        refused += kept is None
        path.write_bytes(whole)
    return refused


@pytest.mark.slow
def test_the_journal_cut_off(edited, copy):
    assert cut_off(edited, copy, step=101) > 30


@pytest.mark.slow
def test_the_journal_cut_off_at_every_byte_of_the_last_twenty_entries(edited, copy):
    print(f"\n{cut_off(edited, copy, step=1)} places where a session's journal was cut off")


@pytest.mark.slow
def test_flipped_bits(edited, copy):
    flip_bits(edited, copy, 60, seed=0)


@pytest.mark.slow
def test_flipped_bits_ten_thousand(edited, copy):
    refused = flip_bits(edited, copy, 10_000, seed=1)
    print(f"\n10,000 flipped bits of a session: {refused} times refused in words")


def work_of(session, kind):
    """Return an action of a kind that can be done now."""
    a = int(session.segments.ids()[0])
    match kind:
        case "unlock":
            session.lock(a)
            return lambda: session.unlock(a)
        case "down":
            table, counts = np.unique(session.lut()[1:], return_counts=True)
            return lambda: session.down(int(table[np.argmax(counts)]))
        case "forced":
            far = int(session.segments.ids()[-1])
            return lambda: session.merge(a, far, force=True)
        case "relearn":
            return session.relearn
        case answer:
            one = session.queue.next(1)[0]
            return lambda: getattr(session.queue, answer)(one)


@pytest.mark.parametrize("code", [errno.ENOSPC, pytest.param(errno.EIO, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "kind", ["unlock", "down", "forced", "accept", "reject", "skip", "relearn"]
)
def test_a_disk_that_fails_at_each_call_of_an_action(tmp_path, kind, code):
    session = busy_session(tmp_path / "a.agglo", 12, seed=5)
    for segment in session.segments.locked().tolist():
        session.unlock(segment)
    work = work_of(session, kind)
    counting = Disk()
    seen = observed(session)
    with counting.in_use():
        work()
    done = observed(session)
    session.undo()
    assert observed(session) == seen
    failed = 0
    for at in range(counting.calls):
        before = observed(session), (session.path / "journal.jsonl").read_bytes()
        disk = Disk(at, code)
        with disk.in_use():
            try:
                work()
            except NotSaved:
                failed += 1
                assert observed(session) == before[0]
                assert (session.path / "journal.jsonl").read_bytes() == before[1]
                continue
        # A call that nothing depends on: a note, a cache.
        assert observed(session) == done
        session.undo()
    assert failed >= 2, "at least the write and its synchronisation"
    work()
    session.close()
    with Session.open(session.path) as again:
        assert observed(again) == done
