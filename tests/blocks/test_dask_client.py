"""Runs with a dask.distributed client: budget, futures, killed workers, cancel; progress."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import zarr
from block_runs import check_exact, content, finished, volumes
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import blocks
from napari_agglo.blocks import _budget, _dask_client, _engine, _stage_progress
from napari_agglo.blocks._dask_client import Workers
from napari_agglo.errors import Cancelled, DataWarning

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")
MB = 10**6
ROOT = str(Path(__file__).parents[2])


@pytest.fixture(scope="module")
def cluster():
    """Give a client of three worker processes with a thread each."""
    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with (
        distributed.LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as made,
        distributed.Client(made) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Give a folder with a plan of twelve blocks and a budget of 2 GB, and its boundary map."""
    where = tmp_path_factory.mktemp("client")
    boundary = agglo.sample("neuropil2d").cues["boundary"][:160, :200]
    zarr.create_array(str(where / "boundary.zarr"), data=boundary, chunks=(40, 50))
    return where


def planned(place, name, **options):
    source = str(place / "boundary.zarr")
    return blocks.plan(place / name, source, block=(60, 50), memory="2GB", **options)


def work(number, folder, together):
    """Take a while, until so many have begun; return the process and when it began and ended."""
    began = time.time()
    with open(os.path.join(folder, str(number)), "x"):
        pass
    while len(os.listdir(folder)) < together and time.time() < began + 60:
        time.sleep(0.02)
    time.sleep(0.3)  # in which more than these could begin
    return os.getpid(), began, time.time()


def at_a_time(intervals):
    """Return the most intervals that have a moment in common."""
    return max(sum(a <= began < b for a, b in intervals) for began, _ in intervals)


def in_flight(client, plan, task_bytes, together, most=None, tasks=9):
    """Return how many tasks of some bytes are done at a time, and in how many processes.

    `together` of them can be: a busy machine may otherwise begin one after the other.
    """
    workers = Workers(client, plan, most)
    with tempfile.TemporaryDirectory() as folder:
        given = (work, range(tasks), lambda n: (n, folder, together))
        done = list(workers.results(*given, "t", task_bytes, lambda: False, print))
    assert sorted(index for index, _ in done) == list(range(tasks))
    together = at_a_time([(began, ended) for _, (_, began, ended) in done])
    return together, len({process for _, (process, _, _) in done}), workers.others


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task_bytes", "expected"),
    [
        (500 * MB, 1),  # three processes of 350 MB, this one included, leave room for one task
        (400 * MB, 2),  # and here for two
        (10 * MB, 3),  # as many as there are workers
    ],
)
def test_processes_here_share_the_budget(cluster, place, task_bytes, expected):
    plan = planned(place, "shared")
    together, processes, others = in_flight(cluster, plan, task_bytes, expected)
    assert together == expected
    assert processes <= others == expected, "and no other process is used"


def test_a_task_that_does_not_fit_beside_this_process_is_refused(cluster, place):
    plan = planned(place, "refused")
    with refuses("client", "leave out") as refused:
        in_flight(cluster, plan, 1400 * MB, 1)
    assert "2.1 GB" in str(refused.value)
    assert _budget.tasks_that_fit(plan, 1400 * MB) == 1, "test invalid: a thread could do it"


@pytest.mark.slow
def test_workers_of_other_machines_have_a_budget_each(cluster, place, monkeypatch):
    plan = planned(place, "elsewhere")
    monkeypatch.setattr(_dask_client, "_this_process", machine_of_another)
    monkeypatch.setattr(_dask_client.os, "getpid", lambda: -1)
    assert in_flight(cluster, plan, 1400 * MB, 3) == (3, 3, 0)


def machine_of_another():
    """Return where a process is; the process of the client is on another machine than workers."""
    pid = os.getpid()
    return ("client" if pid == -1 else "worker"), 1, pid


@pytest.mark.slow
def test_fewer_tasks_are_done_at_a_time_if_that_is_asked(cluster, place):
    assert in_flight(cluster, planned(place, "fewer"), 10 * MB, 2, most=2)[0] == 2


def test_threads_of_this_process_share_the_budget_too(place):
    plan = planned(place, "threads")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=4, processes=False, dashboard_address=None
        ) as made,
        distributed.Client(made) as client,
    ):
        assert in_flight(client, plan, 500 * MB, 3) == (3, 1, 0)


def intervals(folder, stage):
    """Return when each task of a stage began and ended, from the logs of all processes."""
    lines = [
        json.loads(line)
        for log in (folder / "logs").glob("*.jsonl")
        for line in log.read_text().splitlines()
    ]
    return [
        (line["at"] - line["seconds"] + 0.002, line["at"])  # the log is written a little later
        for line in lines
        if line["stage"] == stage
    ]


@pytest.fixture(scope="module")
def alone(place):
    """Give the folder of a run in threads, without a disturbance."""
    planned(place, "alone")
    blocks.run(place / "alone")
    return place / "alone"


def test_a_run_with_a_client_keeps_the_budget(cluster, place, alone, monkeypatch):
    planned(place, "result")
    monkeypatch.setattr(_engine, "block_bytes", lambda plan, block: 500 * MB)
    assert blocks.run(place / "result", client=cluster).is_complete
    for stage in ("cut", "statistics", "labels"):
        times = intervals(place / "result", stage)
        assert len(times) == 12
        assert at_a_time(times) == 1
    assert content(place / "result") == content(alone)


@given(volumes(), st.booleans(), st.sampled_from(["all", "mean"]))
@examples(8, few=2, deadline=None)
def test_worker_processes_give_what_the_whole_gives(cluster, volume, dams, statistics):
    check_exact(volume, dams, statistics, client=cluster)


def test_a_worker_that_is_killed_loses_no_finished_block(cluster, place, alone):
    folder = place / "killed"
    planned(place, "killed")
    victims = []

    def kill(progress):
        if progress.stage == "cut" and progress.done >= 5 and not victims:
            pids = cluster.run(os.getpid)
            victims.append(next(iter(pids.values())))
            os.kill(victims[0], signal.SIGKILL)

    assert blocks.run(folder, client=cluster, progress=kill).is_complete
    assert victims, "test invalid"
    tasks = finished(folder)
    assert len(set(tasks)) == len(tasks), "no finished block was done again"
    assert content(folder) == content(alone)
    cluster.wait_for_workers(3)  # one of them new, for the next test


def held_at_once(cluster, folder, most):
    """Run; return the tasks of `cut` that the scheduler still holds after most are done.

    It is asked again while these are more than `most`, as it hears of a release a little later.
    """
    scheduler, held = cluster.cluster.scheduler, []

    def count(progress):
        if progress.stage == "cut" and progress.done == 10:
            until = time.monotonic() + (10 if most else 0.5)
            while len(held_now := list(scheduler.tasks)) > most and time.monotonic() < until:
                time.sleep(0.02)
            held.append(len(held_now))

    blocks.run(folder, client=cluster, progress=count)
    assert held, "test invalid"
    return held[0]


def test_futures_of_finished_tasks_are_released(cluster, place, monkeypatch):
    planned(place, "released")
    assert held_at_once(cluster, place / "released", 3) <= 3, "those in flight, one a worker"
    planned(place, "kept")
    kept = []
    with monkeypatch.context() as patched:
        patched.setattr(distributed.Future, "release", lambda self: kept.append(self))
        assert held_at_once(cluster, place / "kept", 0) >= 10, "test invalid: all would be held"
    for future in kept:
        future.release()


RUN_TASK = _engine.run_task


def deadly(folder, stage, index, *rest):
    """Do a task, or end the process before the fourth of `cut`."""
    if (stage, index) == ("cut", 3):
        os.kill(os.getpid(), signal.SIGKILL)
    return RUN_TASK(folder, stage, index, *rest)


def test_a_task_whose_worker_dies_too_often_has_a_log(cluster, place, alone, monkeypatch):
    folder = place / "deadly"
    planned(place, "deadly")
    with monkeypatch.context() as patched:
        patched.setattr(_engine, "run_task", deadly)
        patched.setattr(cluster.cluster.scheduler, "allowed_failures", 0)
        with refuses("folder", "cut-000003.log") as refused:
            blocks.run(folder, client=cluster, workers=1)
    assert "KilledWorker" in str(refused.value)
    state = blocks.status(folder).stages[0]
    assert (state.name, state.done, state.failed) == ("cut", 11, 1)
    log = (folder / "failures" / "cut-000003.log").read_text()
    assert "--stage cut --block 3" in log
    assert str(place / "boundary.zarr") in log
    assert "KilledWorker" in log
    cluster.wait_for_workers(3)
    assert blocks.run(folder, client=cluster).is_complete
    assert content(folder) == content(alone)
    assert not any((folder / "failures").iterdir())


def test_a_task_whose_worker_dies_after_it_was_done_is_done(cluster, place, alone, monkeypatch):
    def results(self, work, tasks, arguments, *rest):
        for index in tasks:
            work(*arguments(index))
            yield index, distributed.KilledWorker(index, None, 3)

    planned(place, "late")
    monkeypatch.setattr(Workers, "results", results)
    assert blocks.run(place / "late", client=cluster).is_complete
    assert content(place / "late") == content(alone)
    assert not (place / "late" / "failures").exists()


def patient(folder, stage, index, *rest):
    """Do a task; all but the first wait for a file beside the results folder."""
    Path(f"{folder}-begun-{index}").touch()
    until = time.time() + 60
    while index and not Path(f"{folder}-go").exists() and time.time() < until:
        time.sleep(0.02)
    notes = RUN_TASK(folder, stage, index, *rest)
    Path(f"{folder}-ended-{index}").touch()
    return notes


def test_a_cancel_waits_for_tasks_that_run(cluster, place, alone, monkeypatch):
    """The lock is held until no worker does a task of the run; none is begun meanwhile."""
    folder, waited = place / "waiting", []
    planned(place, "waiting")

    def cancel(progress):
        if progress.done == 1:
            while len(list(place.glob("waiting-begun-*"))) < 3:
                time.sleep(0.02)
            if "waiting" in progress.detail:
                waited.append(progress.detail)
                with refuses("folder", "wait for it"):
                    blocks.run(folder)
                (place / "waiting-go").touch()
            raise Cancelled("Cancelled.")

    try:
        with monkeypatch.context() as patched:
            patched.setattr(_engine, "run_task", patient)
            with pytest.raises(Cancelled):
                blocks.run(folder, client=cluster, progress=cancel)
        assert "2 tasks" in waited[0]
        begun, ended = (sorted(place.glob(f"waiting-{what}-*")) for what in ("begun", "ended"))
        assert len(begun) == len(ended) == 3
        assert not any(cluster.run(at_work).values())
    finally:
        (place / "waiting-go").touch()
    assert blocks.run(folder, client=cluster).is_complete
    assert content(folder) == content(alone)


def test_tasks_that_run_for_long_are_not_waited_for_without_end(cluster, place, monkeypatch):
    monkeypatch.setattr(_dask_client, "_PATIENCE", 0.0)
    future = cluster.submit(time.sleep, 2)
    while not any(cluster.run(at_work).values()):
        time.sleep(0.02)
    workers = Workers(cluster, planned(place, "patience"), None)
    with pytest.warns(DataWarning, match="1 task") as warned:
        workers._wait([future.key], print)
    assert warned[0].message.argument == "client"
    future.release()


CLIENT = """
import os, signal, sys
import distributed
from napari_agglo import blocks

def die(progress):
    if progress.stage == "statistics" and progress.done >= 4:
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    client = distributed.Client(sys.argv[2])
    blocks.run(sys.argv[1], client=client, progress=die)
"""


def at_work(dask_worker):
    """Return how many tasks a worker does or is about to, also of a client that has gone."""
    return len(dask_worker.state.executing) + len(dask_worker.state.ready)


def test_a_client_that_dies_is_started_again(cluster, place, alone, tmp_path):
    folder = place / "client"
    planned(place, "client")
    (tmp_path / "client.py").write_text(CLIENT)
    words = [tmp_path / "client.py", folder, cluster.scheduler.address]
    died = subprocess.run(
        [sys.executable, *map(str, words)], env={**os.environ, "PYTHONPATH": ROOT}, check=False
    )
    assert died.returncode == -signal.SIGKILL
    state = {one.name: one for one in blocks.status(folder).stages}
    assert state["statistics"].done > 0, "test invalid"
    while any(cluster.processing().values()) or any(cluster.run(at_work).values()):
        time.sleep(0.05)
    assert blocks.run(folder, client=cluster).is_complete
    tasks = finished(folder)
    assert len(set(tasks)) == len(tasks), "no finished block was done again"
    assert content(folder) == content(alone)


def test_the_graph_has_what_worker_processes_leave(place):
    plan = planned(place, "graph")
    regions = (plan.memory - 2 * _budget.BASE) // _budget.graph_bytes(plan, 1, 0)
    _budget.check_memory(plan, regions, 0, others=1)
    with refuses("memory", "memory='2.4GB'") as refused:
        _budget.check_memory(plan, regions, 0, others=2)
    assert "with 2 worker processes" in str(refused.value)


def test_more_threads_than_the_budget_allows_are_refused(tmp_path):
    source = str(tmp_path / "boundary.zarr")
    zarr.create_array(source, shape=(2000, 2000, 2000), chunks=(500,) * 3, dtype="u1")
    plan = blocks.plan(tmp_path / "r", source, ranges=(0, 255), memory="4GB", workers=2)
    fitting = (plan.memory - _budget.BASE) // blocks.estimate(plan).block_bytes
    with refuses("workers", f"workers={fitting}") as refused:
        blocks.run(tmp_path / "r", workers=fitting + 1)
    assert "`memory` is 4.0 GB" in str(refused.value)


def test_progress_never_goes_back(place, monkeypatch):
    monkeypatch.setattr(_stage_progress, "_PAUSE", 0.0)
    gold = agglo.sample("neuropil2d").gold[:160, :200]
    zarr.save_array(str(place / "gold.zarr"), gold)
    planned(place, "progress", gold=str(place / "gold.zarr"))
    seen = []
    blocks.run(place / "progress", progress=seen.append)
    for stage in {state.stage for state in seen}:
        shares = [state.fraction for state in seen if state.stage == stage]
        assert shares == sorted(shares), stage
        assert (shares[0], shares[-1]) == (0, 1), "the first before any task is done"
        assert len({state.total for state in seen if state.stage == stage}) == 1
    cut = [state for state in seen if state.stage == "cut"]
    assert {state.detail.partition(",")[0] for state in cut} == {f"{n}/12" for n in range(13)}
    for state in cut:  # rate and remaining time are known as soon as a task is done
        known = state.done > 0
        assert ("Mvoxel/s" in state.detail, state.seconds_left is not None) == (known, known)
        assert state.done in (0, 12) or state.seconds_left > 0
    assert cut[-1].seconds_left == 0
    inside = [state for state in seen if state.total == 1000 and 0 < state.fraction < 1]
    assert inside, "test invalid: no task told of its progress"


def test_parts_of_a_task_do_not_move_its_progress_back(place):
    from napari_agglo import Progress
    from napari_agglo.blocks._stages import stages_of

    plan = planned(place, "parts")
    tree = next(stage for stage in stages_of(plan) if stage.name == "tree")
    seen = []
    count = _stage_progress.StageProgress(_engine.Job(place, plan), tree, [0], seen.append)
    count._last = -1.0
    with ThreadPoolExecutor(1) as pool:
        for share in (0, 8, 2, 10):
            pool.submit(count.inner, Progress("any", share, 10)).result()
            count._last = -1.0
    count.add(0)
    assert [state.fraction for state in seen] == [0, 0.8, 0.8, 1, 1]
