"""The lock of a session: one writer in this process, in another, on another computer."""

from __future__ import annotations

import errno
import gc
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from oracles.disks import Disk, small_graph
from refusals import refuses

from napari_agglo import Session
from napari_agglo.errors import SetOption
from napari_agglo.session import SessionLocked

ROOT = Path(__file__).parents[3]


@pytest.fixture
def path(tmp_path):
    Session.create(tmp_path / "cells.agglo", small_graph()).close()
    return tmp_path / "cells.agglo"


def names(session):
    """Return the kinds of the edits of a session."""
    return [item.words.split()[0] for item in session.history]


class NoLocks(Disk):
    """A disk whose system knows no locks, as some shared ones."""

    def __call__(self, what, function, *arguments):
        if what == "lock":
            raise OSError(errno.ENOLCK, "no locks available")
        return super().__call__(what, function, *arguments)


def leave_lock(path, **changes):
    message = {"pid": 2**22 + 1, "host": socket.gethostname(), "since": "2031-01-01T00:00:00+00:00"}
    (path / "lock").write_text(json.dumps({**message, **changes}))


def test_a_second_writer_is_refused_and_told_who_is_the_first(path):
    with Session.open(path) as first:
        with refuses("path", SetOption("read_only", True), kind=SessionLocked) as caught:
            Session.open(path)
        assert not caught.value.stale
        for opening in (Session.recover, lambda p: Session.open(p, steal_lock=True)):
            with refuses("path", SetOption("read_only", True), kind=SessionLocked):
                opening(path)
        first.lock(5)
        assert names(first) == ["locked"], "it can still be written to"
    assert not (path / "lock").exists(), "nothing is left"
    Session.open(path).close()


@pytest.mark.slow
def test_another_process_and_its_death(path):
    program = (
        "import sys, time\nfrom napari_agglo import Session\n"
        "session = Session.open(sys.argv[1])\nsession.lock(5)\n"
        "print('open', flush=True)\ntime.sleep(600)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)],
        stdout=subprocess.PIPE, text=True, env=environment,
    ) as other:  # fmt: skip
        assert other.stdout.readline() == "open\n"
        with refuses("path", SetOption("read_only", True), kind=SessionLocked):
            Session.open(path)
        with Session.open(path, read_only=True) as reader:
            assert names(reader) == ["locked"]
        other.send_signal(signal.SIGKILL)
        other.wait()
    assert (path / "lock").exists(), "test invalid: it tidied up"
    with Session.open(path) as session:  # the system freed the lock of the dead
        session.unlock(5)
        assert names(session) == ["locked", "unlocked"]


def test_the_lock_of_another_computer_is_offered_not_taken(path):
    leave_lock(path, host="microscope-pc", pid=77)
    with refuses("path", SetOption("read_only", True), kind=SessionLocked) as caught:
        Session.open(path)
    assert caught.value.stale
    assert json.loads((path / "lock").read_text())["host"] == "microscope-pc", "it is untouched"
    with Session.open(path, read_only=True) as reader:
        assert reader.read_only
    with Session.open(path, steal_lock=True) as session:
        session.lock(5)
    leave_lock(path, host="microscope-pc")
    Session.open(path, steal_lock=True).close()
    Session.open(path).close()


def test_a_system_without_locks(path):
    with NoLocks().in_use():
        with Session.open(path) as first:
            with refuses("path", "pass steal_lock=True", kind=SessionLocked) as caught:
                Session.open(path)
            assert caught.value.stale
            first.lock(5)
        assert not (path / "lock").exists()
        assert not (path / "lock.only").exists()
        leave_lock(path)
        with refuses("path", "pass steal_lock=True", kind=SessionLocked) as caught:
            Session.open(path)
        assert "that process has ended" in caught.value.problem
        leave_lock(path, pid=os.getppid())
        with refuses("path", SetOption("steal_lock", True), kind=SessionLocked):
            Session.open(path)
        Session.open(path, steal_lock=True).close()
        (path / "lock.only").touch()  # of one who has not yet written its name
        with refuses("path", "pass steal_lock=True", kind=SessionLocked) as caught:
            Session.open(path)
        assert "somebody unknown" in caught.value.problem
        Session.open(path, steal_lock=True).close()
        Session.open(path).close()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": -1}', "\0" * 9000, '{"pid": 1e999}'])
def test_a_garbled_lock_file_holds_nobody_up(path, text):
    (path / "lock").write_text(text)
    Session.open(path).close()


def test_the_lock_of_the_folder_that_took_our_place_is_left_alone(path, tmp_path):
    session = Session.open(path)
    path.rename(tmp_path / "moved.agglo")
    with Session.create(path, small_graph()):
        session.close()
        with pytest.raises(SessionLocked):
            Session.open(path)
    Session.open(tmp_path / "moved.agglo").close()


def test_a_forgotten_session_does_not_keep_the_lock(path):
    session = Session.open(path)
    session.lock(5)
    del session
    gc.collect()
    with Session.open(path) as again:
        assert names(again) == ["locked"]


def test_an_opening_that_fails_does_not_keep_the_lock(path):
    (path / "journal.jsonl").unlink()
    for _ in range(2):
        with refuses("path", "copy the file from a backup, or call recover()"):
            Session.open(path)
    assert not Session.recover(path).unmended
    Session.open(path).close()
