"""Memory of each stage of a run, measured in a process of its own, beside that of the plan."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr

import napari_agglo as agglo
from napari_agglo import blocks
from napari_agglo.blocks import _budget
from napari_agglo.blocks._stages import stages_of

ROOT = Path(__file__).parents[2]
MEASURE = '''
"""Print the resident memory before each stage of a run, and its peak in the stage."""

import gc, json, shutil, sys
from napari_agglo import blocks
from napari_agglo.blocks._budget import give_back_memory

def resident(name):
    with open("/proc/self/status") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))

def measured(folder, stage):
    gc.collect()
    give_back_memory()
    with open("/proc/self/clear_refs", "w") as handle:
        handle.write("5")  # the peak begins anew
    before = resident("VmRSS")
    blocks.run(folder, stage=stage)
    return before, resident("VmHWM")

warm, folder, *stages = sys.argv[1:]
shutil.rmtree(warm + "/done", ignore_errors=True)
blocks.run(warm)  # imports and kernels, which are part of any process
print(json.dumps({stage: measured(folder, stage) for stage in stages}))
'''


CUES = ("boundary", "image", "gradient", "inverse")


def written(where, shape):
    """Write cues and gold of tissue, mirrored at its faces."""
    sample = agglo.sample("neuropil3d")
    boundary = sample.cues["boundary"]
    cues = (boundary, sample.image / 255, np.abs(np.gradient(boundary, axis=0)), 1 - boundary)
    arrays = {
        name: np.rint(255 * cue).astype(np.uint8) for name, cue in zip(CUES, cues, strict=True)
    }
    for name, array in (arrays | {"gold": sample.gold}).items():
        pads = [(0, max(0, n - m)) for n, m in zip(shape, array.shape, strict=True)]
        whole = np.pad(array, pads, mode="symmetric")[tuple(map(slice, shape))]
        zarr.create_array(str(where / f"{name}.zarr"), data=whole, chunks=(64, 64, 64))


def planned(where, folder, cues, block, **options):
    """Plan all stages on the volume of a folder, for two threads."""
    return blocks.plan(
        where / folder, {name: str(where / f"{name}.zarr") for name in cues}, ranges=(0, 255),
        gold=str(where / "gold.zarr"), precomputed=True, workers=2, block=block, memory="4GB",
        **options,
    )  # fmt: skip


def peaks(warm, folder, *stages):
    """Return the memory before each stage and its peak there, in one process for all of them."""
    blocks.run(warm)  # here, where kernels may have to be compiled, which takes memory
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(warm), str(folder), *stages],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def bytes_of_a_stage(plan, stage):
    """Return what the plan reckons with for a stage, beside the process."""
    cost, arrays = blocks.estimate(plan), _budget.stage_bytes(plan, plan.block)
    name = stage.name.partition("-")[0]
    name = {"overview": "pyramid"}.get(name, name)
    if name in arrays:
        return plan.workers * (_budget.TASK + arrays[name])
    if name == "reduce":
        return plan.workers * (_budget.TASK + cost.reduction_bytes)
    if stage.tasks == 1:
        return _budget.TASK + max(cost.graph_bytes, cost.reduction_bytes)
    return plan.workers * cost.block_bytes


needs_proc = pytest.mark.skipif(
    not os.path.exists("/proc/self/clear_refs"), reason="the peak of a stage is known on Linux only"
)


@needs_proc
def test_no_stage_takes_more_memory_than_the_plan_says(tmp_path):
    written(tmp_path, (96, 160, 160))
    planned(tmp_path, "warm", CUES[:1], (96, 80, 80))
    plan = planned(tmp_path, "result", CUES[:1], (96, 80, 160))
    stages = {stage.name: stage for stage in stages_of(plan)}
    found = peaks(tmp_path / "warm", tmp_path / "result", *stages)
    assert blocks.run(tmp_path / "result").done == {}, "test invalid: nothing is left"
    base = next(iter(found.values()))[0]
    # Of the process with its libraries, whose versions differ by some megabytes.
    assert base < 1.15 * _budget.BASE
    base = max(base, _budget.BASE)
    # What former stages freed and the allocator kept differs from run to run; it counts below.
    over = {
        name: (peak - before, most)
        for name, (before, peak) in found.items()
        if peak - before > (most := bytes_of_a_stage(plan, stages[name]))
    }
    assert over == {}
    most = blocks.estimate(plan).peak_bytes - _budget.BASE
    assert max(peak for _, peak in found.values()) < base + most
    before, peak = found["cut"]
    assert peak - before > _budget.stage_bytes(plan, plan.block)["cut"] / 2, "test invalid"


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize(("cues", "statistics"), [(1, "mean"), (4, "all")])
def test_each_stage_by_itself_takes_no_more_than_its_part_of_the_plan(tmp_path, cues, statistics):
    """In a larger volume, beside what a process has that did all stages of a small one."""
    (tmp_path / "small").mkdir()
    written(tmp_path / "small", (60, 80, 80))
    written(tmp_path, (192, 256, 256))
    options = {"cues": CUES[:cues], "statistics": statistics}
    planned(tmp_path / "small", "warm", block=(30, 40, 40), **options)
    plan = planned(tmp_path, "result", block=(96, 128, 256), **options)
    over, shares = {}, {}
    for stage in stages_of(plan):
        found = peaks(tmp_path / "small" / "warm", tmp_path / "result", stage.name)
        before, peak = found[stage.name]
        most = bytes_of_a_stage(plan, stage)
        shares[stage.name] = (peak - before) / most
        if peak - before > most:
            over[stage.name] = (peak - before, most)
    assert over == {}
    assert max(shares.values()) > 0.4, "test invalid: the plan reckons with far more"


# Rows of the tables of docs/scale.md, and the stages of the estimate that they measure.
MEASURED = {
    "superpixels: flood with a halo": "cut", "superpixels: write": "superpixels",
    "pyramid of the superpixels": "overview", "statistics": "statistics",
    "reduction to the graph": "reduce", "agglomeration": "tree", "labels": "labels",
    "pyramid of the labels": "pyramid",
}  # fmt: skip


@pytest.mark.parametrize(("name", "cues"), [("run-full", 1), ("run-four-full", 4)])
def test_the_minutes_are_those_of_the_measured_runs(tmp_path, name, cues):
    """The rates are refreshed when the tables are."""
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    table = page.split(f"<!-- bench-blocks {name}: begin -->")[1].split("<!-- bench-blocks")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    seconds = {row[0]: float(row[1].replace(",", "")) for row in rows[2:]}
    zarr.create_array(str(tmp_path / "c.zarr"), shape=(1024,) * 3, chunks=(512,) * 3, dtype="u1")
    names = ("boundary", *"abc")[:cues]
    plan = blocks.plan(
        None, dict.fromkeys(names, str(tmp_path / "c.zarr")), ranges=(0, 255), memory="5GB",
        block=(352, 512, 512), halo=16, statistics="mean", workers=1,
    )  # fmt: skip
    expected = _budget.stage_seconds(plan)
    for row, stage in MEASURED.items():
        assert 0.5 < expected[stage] / seconds[row] < 2, stage
    assert 60 * blocks.estimate(plan).minutes == pytest.approx(seconds["all"], rel=0.4)
