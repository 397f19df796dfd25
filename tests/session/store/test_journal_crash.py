"""SIGKILL, at random moments, of a program that appends to a session in a loop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from oracles.appender import entry
from oracles.disks import entries_of, small_graph

from napari_agglo.session._store import Store

TESTS = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")


def kill_again_and_again(path, times, seed):
    """Kill the appender so many times; return how many entries it had acknowledged by then."""
    rng = np.random.default_rng(seed)
    Store.create(path, small_graph()).close()
    command = [sys.executable, "-m", "oracles.appender", str(path)]
    paths = os.pathsep.join([str(TESTS.parent), str(TESTS)])
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONUNBUFFERED": "1"}
    there, acknowledged, torn = 0, 0, 0
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
        bufsize=1,
    ) as appender:
        for _ in range(times):
            last = there
            appender.stdin.write("start\n")
            words = appender.stdout.readline().split()
            while words[0] != "pid":  # the child may have spoken before its parent
                last = int(words[1])
                words = appender.stdout.readline().split()
            time.sleep(rng.uniform(0, 0.08))
            os.kill(int(words[1]), signal.SIGKILL)
            while (words := appender.stdout.readline().split())[0] != "ended":
                last = int(words[1])
            assert os.WTERMSIG(int(words[1])) == signal.SIGKILL, "test invalid: it ended by itself"
            with Store.open(path, read_only=True) as store:
                found = entries_of(store)
                assert store.report.lost == 0, store.report
                torn += bool(store.report.sentences)
            assert len(found) - last in (0, 1), "one may be there and not yet acknowledged"
            acknowledged += last - there
            there = len(found)
            assert found == [entry(number) for number in range(1, len(found) + 1)]
        appender.stdin.close()
    return acknowledged, torn


@pytest.mark.slow
def test_kill_nine(tmp_path):
    acknowledged, _ = kill_again_and_again(tmp_path / "killed.agglo", 15, seed=0)
    assert acknowledged > 15, "test invalid: hardly anything was appended"


@pytest.mark.slow
def test_kill_nine_two_hundred_times(tmp_path):
    acknowledged, torn = kill_again_and_again(tmp_path / "killed.agglo", 200, seed=1)
    print(f"\n200 kills: {acknowledged} entries acknowledged, none lost; {torn} lines torn")
    assert acknowledged > 200
