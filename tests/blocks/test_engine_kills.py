"""Runs that are killed, as a whole or a worker of them, give the same bytes when run again."""

from __future__ import annotations

import pkgutil
import signal
import subprocess
import sys

import pytest
import zarr
from block_runs import STAGES, content, finished, plan_all

import napari_agglo as agglo
from napari_agglo import blocks
from napari_agglo.blocks import _engine

WRITERS = (  # of a chunk, an array, a table or marker
    "zarr.storage._local._put",
    "napari_agglo.blocks._run_files.write_array",
    "napari_agglo.blocks._stores.write_chunk",
    "napari_agglo.volumes._replace_file.write_new",
    "pandas.core.generic.NDFrame.to_csv",
)


class Killed(BaseException):
    """The end of a run, as by a signal: nothing catches it but to stop the other threads."""


def kill_once_in_every_stage(monkeypatch, n):
    """End the run before the n-th file that each stage writes; return the stages that are left."""
    left, now = dict.fromkeys(STAGES, n), []
    task = _engine.run_task

    def noted(folder, stage, *arguments):
        now[:] = [stage]
        return task(folder, stage, *arguments)

    def deadly(write):
        def call(*arguments, **options):
            if now and now[0] in left:
                left[now[0]] -= 1
                if not left[now[0]]:
                    left.pop(now[0])
                    raise Killed
            return write(*arguments, **options)

        return call

    monkeypatch.setattr(_engine, "run_task", noted)
    for name in WRITERS:
        monkeypatch.setattr(name, deadly(pkgutil.resolve_name(name)))
    return left


@pytest.mark.parametrize("n", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 4, 7))])
def test_a_run_killed_in_every_stage_gives_the_same_bytes(undisturbed, tmp_path, monkeypatch, n):
    """The n-th file is a chunk or array of several, a table, or the marker that it is written."""
    folder = tmp_path / "r"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("napari_agglo.volumes._ome_zarr_metadata._SMALL", 500)
        plan_all(undisturbed.where, folder)
    left = kill_once_in_every_stage(monkeypatch, n)
    kills = 0
    while not blocks.status(folder).is_complete:
        try:
            blocks.run(folder, workers=1)
        except Killed:
            kills += 1
    assert kills + len(left) == len(STAGES)
    # stages of one task, and the note that all is done, are few files
    few = {"evaluate", "precomputed-1", "precomputed-2", "reduce-1", "tree"}
    assert set(left) <= (few if n > 2 else set())
    assert content(folder) == undisturbed.content
    tasks = finished(folder)
    assert len(set(tasks)) == len(tasks), "no finished task was done again"


@pytest.fixture
def place(tmp_path):
    """Give a folder with a plan of twelve blocks, not yet run."""
    return planned(tmp_path)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    where = planned(tmp_path_factory.mktemp("expected"))
    blocks.run(where / "result")
    return content(where / "result")


def planned(where):
    boundary = agglo.sample("neuropil2d").cues["boundary"][:160, :200]
    zarr.create_array(str(where / "boundary.zarr"), data=boundary, chunks=(40, 50))
    blocks.plan(where / "result", str(where / "boundary.zarr"), block=(60, 50))
    return where


KILLED = """
import os, signal, sys
from napari_agglo import blocks

def die(progress):
    if progress.stage == sys.argv[2] and progress.done >= int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)

blocks.run(sys.argv[1], progress=die)
"""


@pytest.mark.parametrize(
    ("stage", "done"),
    [
        ("statistics", 7),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in [("cut", 5), ("labels", 3)]),
    ],
)
def test_a_killed_run_gives_the_same_bytes(place, expected, stage, done):
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(place / "result"), stage, str(done)], check=False
    )
    assert killed.returncode == -signal.SIGKILL
    state = {one.name: one.done for one in blocks.status(place / "result").stages}
    assert state[stage] >= done - 1
    assert blocks.run(place / "result").is_complete
    tasks = finished(place / "result")
    assert len(set(tasks)) >= len(tasks) - 2, "only those that were running are done again"
    assert content(place / "result") == expected
