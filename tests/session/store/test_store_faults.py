"""A disk that fails at the k-th call, for every k: the change is done, or reported as not done."""

from __future__ import annotations

import errno
import math
import os
import shutil
import sys

import numpy as np
import pytest
from oracles.disks import Died, Disk, entries_of, small_graph, tree_of
from refusals import refuses

from napari_agglo import AggloError, InvalidInput
from napari_agglo.session import NotSaved
from napari_agglo.session._store import Store

ERRORS = [errno.ENOSPC, errno.EIO, errno.EACCES]
DONE = [{"number": k} for k in range(3)]
NEXT = {"number": 3, "long": "x" * 300}


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    """Return a session with three entries; to be copied."""
    path = tmp_path_factory.mktemp("sessions") / "pristine.agglo"
    with Store.create(path, small_graph()) as store:
        for entry in DONE:
            store.journal.append(entry)
        store.snapshot("state", {"lut": np.arange(3)})
        store.save_settings({"threshold": 0.25})
    return path


@pytest.fixture
def copied(pristine, tmp_path):
    """Return a function that gives a fresh copy of the session, by default without its arrays."""

    def copy(arrays=False):
        shutil.rmtree(tmp_path / "copy.agglo", ignore_errors=True)
        ignored = None if arrays else shutil.ignore_patterns("arrays.zarr")
        return shutil.copytree(pristine, tmp_path / "copy.agglo", ignore=ignored)

    return copy


def every_call(what, **how):
    """Yield disks that fail at call 0, 1, 2, ... of `what` until one has not failed."""
    at = 0
    while True:
        disk = Disk(at, **how)
        yield disk
        if not disk.failed:
            assert at > 0, "test invalid: nothing was called"
            print(f"\n{what}: {at} calls, each failed once")
            return
        at += 1


def attempt(disk, kinds, function, *arguments):
    """Call on a failing disk; return the error, which must be of these kinds, or None."""
    with disk.in_use():
        try:
            function(*arguments)
        except kinds as error:
            return error
    return None


def entries_on_disk(path):
    with Store.open(path, read_only=True) as store:
        if (path / "arrays.zarr").exists():
            assert store.data.graph.n_regions == 5
        return entries_of(store)


@pytest.mark.parametrize("torn", [True, False])
@pytest.mark.parametrize("error", ERRORS)
def test_append_fails_once(copied, error, torn):
    for disk in every_call("appending", error=error, torn=torn):
        path = copied()
        with Store.open(path) as store:
            refusal = attempt(disk, NotSaved, store.journal.append, NEXT)
            assert refusal is None or "nothing has changed" in str(refusal)
            expected = DONE if refusal else [*DONE, NEXT]
            assert entries_of(store) == entries_on_disk(path) == expected
            assert not store.read_only
            store.journal.append({"after": 1})
            assert entries_on_disk(path) == [*expected, {"after": 1}]


@pytest.mark.parametrize("torn", [True, False])
@pytest.mark.parametrize("error", ERRORS)
def test_append_fails_and_so_does_all_that_follows(copied, error, torn):
    for disk in every_call("appending, for good", error=error, torn=torn, times=math.inf):
        path = copied()
        with Store.open(path) as store:
            refusal = attempt(disk, NotSaved, store.journal.append, NEXT)
            expected = DONE if refusal else [*DONE, NEXT]
            if refusal:
                assert "read-only from now on" in str(refusal)
                with refuses("path", "repair the disk, and open the session again", kind=NotSaved):
                    store.journal.append(NEXT)
            assert entries_of(store) == expected
            assert store.read_only == (expected == DONE)
        with Store.open(path) as store:  # once the disk is well
            assert entries_of(store)[: len(expected)] == expected
            assert store.report.lost == 0
            assert entries_of(store) in (DONE, [*DONE, NEXT])
            store.journal.append({"after": 1})


@pytest.mark.parametrize("times", range(2, 9))
def test_append_fails_and_so_do_some_calls_that_follow(copied, times):
    given_up = 0
    for disk in every_call(f"appending, {times} times", error=errno.EIO, times=times):
        path = copied()
        with Store.open(path) as store:
            refusal = attempt(disk, NotSaved, store.journal.append, NEXT)
            expected = DONE if refusal else [*DONE, NEXT]
            assert entries_of(store) == expected
            given_up += store.read_only
            if not store.read_only:
                assert entries_on_disk(path) == expected
                store.journal.append({"after": 1})
        assert entries_on_disk(path)[: len(expected)] == expected
    assert given_up > 0 or times < 4, "test invalid: there was always a way back"


def test_append_dies_at_every_call_and_the_power_goes_too(copied):
    cuts = 0
    for disk in every_call("appending, dies"):
        path = copied()
        store = Store.open(path)
        synced = (path / "journal.jsonl").stat().st_size
        died = attempt(disk, Died, store.journal.append, NEXT)
        acknowledged = DONE if died else [*DONE, NEXT]
        store.close()
        journal = path / "journal.jsonl"
        synced = max(synced, disk.synced.get(journal.stat().st_ino, 0))
        for length in reversed(range(synced, journal.stat().st_size + 1)):
            os.truncate(journal, length)  # what was not synchronised may be lost in part
            found = entries_on_disk(path)
            assert found in (acknowledged, [*DONE, NEXT])
            cuts += 1
    print(f"power cut: {cuts} journals")
    assert cuts > 100, "test invalid: nothing was cut"


@pytest.mark.parametrize("tail", [b"", b'{"sum":"torn', b"garbage\n"])
@pytest.mark.parametrize("error", [*ERRORS, None])
@pytest.mark.filterwarnings("ignore::napari_agglo.session._store.SessionDamage")
def test_opening_fails(copied, error, tail):
    for disk in every_call("opening", error=error):
        path = copied()
        with open(path / "journal.jsonl", "ab") as journal:
            journal.write(tail)
        with disk.in_use():
            try:
                store = Store.open(path)
            except (InvalidInput, Died):
                store = None
        if store is not None:
            assert entries_of(store) == DONE
            store.close()
        assert entries_on_disk(path) == DONE
        with Store.open(path) as store:
            assert store.journal.append(NEXT).seq == 4
        kept = b"".join(p.read_bytes() for p in path.glob("journal.damaged-*"))
        assert tail in kept, "what was taken out is there"


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit")
def test_the_system_itself_takes_only_a_part(copied):
    import resource

    path = copied()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Store.open(path) as store:
        size = (path / "journal.jsonl").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50, hard))
        try:
            with refuses("path", "check the disk and its connection, then", kind=NotSaved):
                store.journal.append(NEXT)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert (path / "journal.jsonl").stat().st_size == size
        assert entries_of(store) == DONE
        assert store.journal.append(NEXT).seq == 4
    assert entries_on_disk(path) == [*DONE, NEXT]


def test_a_read_only_disk(copied):
    path = copied(arrays=True)
    with Disk(0, errno.EROFS, times=math.inf).in_use() as disk:
        with refuses("path", "this disk is read-only: open the session", kind=NotSaved):
            Store.open(path)
        tried = disk.calls
        with Store.open(path, read_only=True) as store:
            assert entries_of(store) == DONE
            assert store.data.graph.n_regions == 5
        assert disk.calls == tried, "reading asks nothing of a disk that cannot be written"


@pytest.mark.parametrize("error", ERRORS)
def test_settings_fail(copied, error):
    for disk in every_call("saving settings", error=error):
        path = copied()
        with Store.open(path) as store:
            refusal = attempt(disk, NotSaved, store.save_settings, {"threshold": 0.75})
            expected = {"threshold": 0.25 if refusal else 0.75}
            assert store.settings == expected
        with Store.open(path, read_only=True) as store:
            assert store.settings == expected
        assert not list(path.glob(".*")), "no temporary is left"


def test_settings_die(copied):
    for disk in every_call("saving settings, dies"):
        path = copied()
        store = Store.open(path)
        attempt(disk, Died, store.save_settings, {"threshold": 0.75})
        store.close()
        with Store.open(path, read_only=True) as store:
            assert store.settings["threshold"] in (0.25, 0.75)


@pytest.mark.parametrize("error", [*ERRORS, None])
def test_snapshots_fail_without_harm(copied, error):
    for disk in every_call("a snapshot", error=error):
        path = copied()
        store = Store.open(path)
        with disk.in_use():
            try:
                kept = store.snapshot("state", {"lut": np.arange(9)})
            except Died:
                kept = None
        store.close()
        with Store.open(path, read_only=True) as store:
            length = len(store.load_snapshot("state").arrays["lut"])
            assert entries_of(store) == DONE
        assert length == {True: 9, False: 3}.get(kept, length)
        assert length in (3, 9)


def create_with(tmp_path, disks):
    """Create a session on each of the disks: whole, or not there."""
    graph, target, failed = small_graph(), tmp_path / "new.agglo", 0
    for disk in disks:
        error = attempt(disk, (AggloError, Died), lambda: Store.create(target, graph).close())
        failed += error is not None
        assert error is None or disk.failed
        if isinstance(error, NotSaved):
            assert "nothing has changed" in str(error)
        if target.exists():
            assert entries_on_disk(target) == []
            shutil.rmtree(target)
        if disk.error is not None:
            assert not list(tmp_path.iterdir()), "no temporary is left"
        for left in tmp_path.iterdir():
            shutil.rmtree(left)
    return failed


def calls_of_create(tmp_path):
    with Disk().in_use() as disk:
        Store.create(tmp_path / "counted.agglo", small_graph()).close()
    shutil.rmtree(tmp_path / "counted.agglo")
    return disk.calls


def test_creating_fails(tmp_path):
    calls = calls_of_create(tmp_path)
    some = range(3, calls, 17)
    disks = [Disk(at, (*ERRORS, None)[at % 4]) for at in [0, 1, 2, *some, *range(calls - 8, calls)]]
    assert create_with(tmp_path, disks) > 10


@pytest.mark.slow
@pytest.mark.parametrize("errors", [ERRORS, [None]])
def test_creating_fails_at_every_call(tmp_path, errors):
    calls = calls_of_create(tmp_path)
    failed = create_with(tmp_path, [Disk(at, errors[at % len(errors)]) for at in range(calls)])
    print(f"\ncreating: {calls} calls, each failed once; told {failed} times")
    assert failed > calls // 2


def recover_with(copied, disks):
    """Recover a session with three kinds of damage on each of the disks, then on a good one."""
    for disk in disks:
        path = copied(arrays=True)
        (path / "manifest.json").write_bytes(b"{")
        (path / "arrays.zarr" / "edges" / "zarr.json").write_bytes(b"{}")
        with open(path / "journal.jsonl", "ab") as journal:
            journal.write(b"garbage")
        assert attempt(disk, (InvalidInput, Died), Store.recover, path) is None or disk.failed
        assert not Store.recover(path).unmended
        assert entries_on_disk(path) == DONE
        kept = tree_of(path).values()
        assert {b"{", b"{}", b"garbage"} <= set(kept), "something damaged is not kept"


def test_recovering_fails_and_is_repeated(copied):
    recover_with(copied, [Disk(at, (*ERRORS, None)[at % 4]) for at in range(0, 70, 5)])


@pytest.mark.slow
@pytest.mark.parametrize("error", [errno.ENOSPC, None])
def test_recovering_fails_at_every_call(copied, error):
    recover_with(copied, every_call("recovering", error=error))
