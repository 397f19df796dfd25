"""Superpixels are written while the graph is agglomerated: the same results, in less time."""

from __future__ import annotations

import threading

import pytest
from block_runs import content, plan_all

from napari_agglo import Cancelled, blocks
from napari_agglo.blocks import _engine
from tests.refusals import refuses

BESIDE, ALONE = ("superpixels", "overview"), ("graph", "tree", "table")


@pytest.fixture
def folder(undisturbed, tmp_path):
    """Give a folder with a plan of all stages for two threads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("napari_agglo.volumes._ome_zarr_metadata._SMALL", 500)
        plan_all(undisturbed.where, tmp_path / "r", workers=2)
    return tmp_path / "r"


class Tasks:
    """The tasks of a run, as they begin and end; a stage of one waits for one beside it."""

    def __init__(self, monkeypatch):
        self.events = []
        self.most = self.running = 0
        self.wait = False
        self.fail = ""
        self._begun = threading.Event()
        self._lock = threading.Lock()
        self._task = _engine.run_task
        monkeypatch.setattr(_engine, "run_task", self)

    def __call__(self, folder, stage, index, *arguments):
        with self._lock:
            self.events.append((stage, index))
            self.running += 1
            self.most = max(self.most, self.running)
        if stage.startswith(BESIDE):
            self._begun.set()
        if stage == "graph" and self.wait:
            assert self._begun.wait(20), "no superpixels are written meanwhile"
        try:
            if stage == self.fail:
                return {"failed": "the line is cut", "fatal": False}
            return self._task(folder, stage, index, *arguments)
        finally:
            with self._lock:
                self.running -= 1

    def first(self, *stages):
        """Return the place of the first task of any of these stages."""
        return min(k for k, (stage, _) in enumerate(self.events) if stage.startswith(stages))


def test_superpixels_are_written_beside_the_graph(undisturbed, folder, monkeypatch):
    tasks = Tasks(monkeypatch)
    tasks.wait = True
    run = blocks.run(folder)
    assert run.is_complete
    assert content(folder) == undisturbed.content
    assert tasks.first("statistics") < tasks.first(*BESIDE) < tasks.first("labels")
    assert [stage for stage, _ in tasks.events if stage in ALONE] == list(ALONE)
    assert tasks.most == 2, "as many tasks at a time as there are threads"
    assert len(tasks.events) == len(set(tasks.events)) == sum(run.done.values())


@pytest.mark.parametrize("options", [{"workers": 1}, {"part": (1, 1)}, {"stage": "superpixels"}])
def test_nothing_overlaps_in_one_thread_or_stage(folder, monkeypatch, options):
    if "stage" in options:
        for stage in ("cut", "join", "number"):
            blocks.run(folder, stage=stage)
    tasks = Tasks(monkeypatch)
    blocks.run(folder, **options)
    if "stage" not in options:
        while not blocks.status(folder).is_complete:
            blocks.run(folder, **options)
        assert tasks.first("superpixels") < tasks.first("statistics")


def test_nothing_overlaps_where_both_do_not_fit_in_the_budget(undisturbed, folder, monkeypatch):
    tasks = Tasks(monkeypatch)
    monkeypatch.setattr(_engine, "graph_bytes", lambda *_: 10**12)
    blocks.run(folder)
    last = max(k for k, (stage, _) in enumerate(tasks.events) if stage.startswith(BESIDE))
    assert last < tasks.first("graph")
    assert content(folder) == undisturbed.content


@pytest.mark.parametrize("stage", ["graph", "tree", "superpixels", "overview-2"])
def test_a_failed_stage_is_named_and_results_of_those_beside_are_kept(
    undisturbed, folder, monkeypatch, stage
):
    tasks = Tasks(monkeypatch)
    tasks.wait = True
    tasks.fail = stage
    with refuses("folder", "run again") as refused:
        blocks.run(folder)
    assert stage in str(refused.value)
    assert "the line is cut" in str(refused.value)
    done = {one.name: one.done for one in blocks.status(folder).stages}
    if stage in ALONE:
        assert done["superpixels"] > 0
    else:
        assert done["table"] == 1
    assert done["labels"] == 0
    tasks.fail = ""
    assert blocks.run(folder).is_complete
    assert content(folder) == undisturbed.content


@pytest.mark.parametrize("stage", ["tree", "superpixels"])
def test_a_cancel_stops_both(undisturbed, folder, stage):
    def cancel(state):
        if state.stage == stage:
            raise Cancelled

    with pytest.raises(Cancelled):
        blocks.run(folder, progress=cancel)
    assert not blocks.status(folder).is_complete
    assert blocks.run(folder).is_complete
    assert content(folder) == undisturbed.content


def test_progress_of_all_stages_is_told_to_its_end(folder):
    seen = []
    blocks.run(folder, progress=seen.append)
    for stage in {state.stage for state in seen}:
        shares = [state.fraction for state in seen if state.stage == stage]
        assert shares == sorted(shares), stage
        assert (shares[0], shares[-1]) == (0, 1), stage
