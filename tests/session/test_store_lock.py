"""One writer at a time, in this process, in another, on another computer."""

from __future__ import annotations

import errno
import gc
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from oracles.disks import Disk, entries_of, small_graph

from napari_agglo.errors import SetOption, alternatives
from napari_agglo.session._store import SessionLocked, Store
from napari_agglo.session._store.lock import Owner

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path):
    Store.create(tmp_path / "cells.agglo", small_graph()).close()
    return tmp_path / "cells.agglo"


class NoLocks(Disk):
    """A disk whose system knows no locks, as some shared ones."""

    def __call__(self, what, function, *arguments):
        if what == "lock":
            raise OSError(errno.ENOLCK, "no locks available")
        return super().__call__(what, function, *arguments)


def leave_lock(path, **changes):
    said = {"pid": 2**22 + 1, "host": Owner.me().host, "since": "2031-01-01T00:00:00+00:00"}
    (path / "lock").write_text(json.dumps({**said, **changes}))


def test_a_second_writer_is_refused_and_told_who_is_the_first(path):
    with Store.open(path) as first:
        with pytest.raises(SessionLocked, match=rf"process {os.getpid()} on .*, since") as caught:
            Store.open(path)
        assert not caught.value.stale
        assert SetOption("read_only", True) in alternatives(caught.value.remedy)
        for opening in (Store.recover, lambda p: Store.open(p, steal_lock=True)):
            with pytest.raises(SessionLocked, match=r"already, in this program .*close it first"):
                opening(path)
        assert first.journal.append({"still": "mine"}).seq == 1
    assert not (path / "lock").exists(), "nothing is left"
    Store.open(path).close()


def test_another_process_and_its_death(path):
    program = (
        "import sys, time\nfrom napari_agglo.session._store import Store\n"
        "store = Store.open(sys.argv[1])\nstore.journal.append({'by': 'the other'})\n"
        "print('open', flush=True)\ntime.sleep(600)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)],
        stdout=subprocess.PIPE, text=True, env=environment,
    ) as other:  # fmt: skip
        assert other.stdout.readline() == "open\n"
        with pytest.raises(SessionLocked, match=f"process {other.pid} on"):
            Store.open(path)
        with Store.open(path, read_only=True) as reader:
            assert entries_of(reader) == [{"by": "the other"}]
        other.send_signal(signal.SIGKILL)
        other.wait()
    assert (path / "lock").exists(), "test invalid: it tidied up"
    with Store.open(path) as store:  # the system freed the lock of the dead
        assert store.journal.append({"by": "us"}).seq == 2


def test_the_lock_of_another_computer_is_offered_not_taken(path):
    leave_lock(path, host="microscope-pc", pid=77)
    with pytest.raises(SessionLocked, match=r"process 77 on microscope-pc, .*steal_lock") as caught:
        Store.open(path)
    assert caught.value.stale
    assert json.loads((path / "lock").read_text())["host"] == "microscope-pc", "it is untouched"
    with Store.open(path, read_only=True) as reader:
        assert reader.read_only
    with Store.open(path, steal_lock=True) as store:
        store.journal.append({"a": 1})
    leave_lock(path, host="microscope-pc")
    Store.open(path, steal_lock=True).close()
    Store.open(path).close()


def test_where_the_system_knows_no_locks(path):
    with NoLocks().in_use():
        with Store.open(path) as first:
            with pytest.raises(SessionLocked, match="steal_lock") as caught:
                Store.open(path)
            assert caught.value.stale
            first.journal.append({"a": 1})
        assert not (path / "lock").exists()
        assert not (path / "lock.only").exists()
        leave_lock(path)
        with pytest.raises(SessionLocked, match=r"that process is gone.*steal_lock"):
            Store.open(path)
        leave_lock(path, pid=os.getppid())
        with pytest.raises(SessionLocked, match="happens to have the number") as caught:
            Store.open(path)
        assert SetOption("steal_lock", True) in alternatives(caught.value.remedy)
        Store.open(path, steal_lock=True).close()
        (path / "lock.only").touch()  # of one who has not yet written its name
        with pytest.raises(SessionLocked, match="somebody unknown"):
            Store.open(path)
        Store.open(path, steal_lock=True).close()
        Store.open(path).close()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": -1}', "\0" * 9000, '{"pid": 1e999}'])
def test_a_garbled_lock_file_holds_nobody_up(path, text):
    (path / "lock").write_text(text)
    Store.open(path).close()


def test_the_lock_of_the_folder_that_took_our_place_is_left_alone(path, tmp_path):
    store = Store.open(path)
    path.rename(tmp_path / "moved.agglo")
    with Store.create(path, small_graph()):
        store.close()
        with pytest.raises(SessionLocked):
            Store.open(path)
    Store.open(tmp_path / "moved.agglo").close()


def test_a_forgotten_store_does_not_keep_the_lock(path):
    store = Store.open(path)
    store.journal.append({"a": 1})
    del store
    gc.collect()
    with Store.open(path) as again:
        assert entries_of(again) == [{"a": 1}]


def test_an_opening_that_fails_does_not_keep_the_lock(path):
    (path / "journal.jsonl").unlink()
    for _ in range(2):
        with pytest.raises(ValueError, match=r"has no journal.jsonl"):
            Store.open(path)
    assert not Store.recover(path).unmended
    Store.open(path).close()
