"""Tasks for the whole volume: the reduction of tables, the numbering, the evaluation.

Sums of tables are equal to those in memory, and no task takes more memory than is planned for it.
The oracle adds rows in a dictionary, one at a time.
"""

from __future__ import annotations

import json
import threading
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import zarr
from refusals import refuses

from napari_agglo import blocks
from napari_agglo.blocks import _block_superpixels, _budget, _stages, _tables
from napari_agglo.blocks._block_graph import TableSum
from napari_agglo.blocks._block_grid import Grid, reduced_tasks, reduction_grids
from napari_agglo.blocks._budget import reduction_bytes
from napari_agglo.blocks._run_files import Job
from napari_agglo.blocks._tables import Table, write_table


@pytest.fixture
def plan(tmp_path):
    """Give a plan of 36 blocks, whose tables are reduced once before the graph is made."""
    values = np.random.default_rng(0).integers(0, 256, (72, 72)).astype(np.uint8)
    zarr.create_array(str(tmp_path / "boundary.zarr"), data=values, chunks=(12, 12))
    return blocks.plan(
        tmp_path / "result", str(tmp_path / "boundary.zarr"), ranges=(0, 255), block=(12, 12),
        statistics="all", workers=4, memory=10**9,
    )  # fmt: skip


def random_tables(plan, folder, n_tables, n_regions, n_boundaries):
    """Write tables whose regions and boundaries overlap; return their paths and arrays."""
    rng = np.random.default_rng(1)
    layout, made = plan.layout, []
    for k in range(n_tables):
        ids = np.unique(rng.integers(1, 3 * n_regions, n_regions)).astype(np.uint64) << 40
        pairs = np.sort(rng.integers(0, len(ids), (n_boundaries, 2)), axis=1)
        edges = np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0)
        low = rng.integers(0, 50, (len(ids), layout.ndim)).astype(np.int32)
        arrays = {
            "ids": ids, "low": low, "high": low + 3, "edges": edges,
            "regions": rng.integers(0, 300, (len(ids), layout.region_width)),
            "boundaries": rng.integers(0, 70_000, (len(edges), layout.boundary_width)),
        }  # fmt: skip
        path = folder / f"{k}.table"
        write_table(path, arrays)
        made.append((path, arrays))
    return made


def added_one_by_one(made):
    regions, boundaries, corners = {}, {}, {}
    for _, arrays in made:
        ids = arrays["ids"].tolist()
        for k, name in enumerate(ids):
            regions[name] = regions.get(name, 0) + arrays["regions"][k]
            low, high = corners.get(name, (arrays["low"][k], arrays["high"][k]))
            corners[name] = np.minimum(low, arrays["low"][k]), np.maximum(high, arrays["high"][k])
        for (u, v), row in zip(arrays["edges"].tolist(), arrays["boundaries"], strict=True):
            pair = ids[u], ids[v]
            boundaries[pair] = boundaries.get(pair, 0) + row
    return regions, boundaries, corners


@pytest.mark.parametrize("piece", [1, 700, 1 << 22])
@pytest.mark.parametrize("n_tables", [1, 5])
def test_tables_are_added_piece_by_piece(plan, tmp_path, monkeypatch, piece, n_tables):
    monkeypatch.setattr(_tables, "_PIECE", piece)
    made = random_tables(plan, tmp_path, n_tables, 40, 120)
    regions, boundaries, corners = added_one_by_one(made)
    total = TableSum([path for path, _ in made], plan.layout)
    write_table(tmp_path / "sum.table", total.arrays())
    table = Table(tmp_path / "sum.table")
    ids = table.read("ids").tolist()
    assert ids == sorted(regions)
    pairs = [(ids[u], ids[v]) for u, v in table.read("edges").tolist()]
    assert pairs == sorted(boundaries)
    assert np.array_equal(table.read("regions"), [regions[name] for name in ids])
    assert np.array_equal(table.read("boundaries"), [boundaries[pair] for pair in pairs])
    assert np.array_equal(table.read("low"), [corners[name][0] for name in ids])
    assert np.array_equal(table.read("high"), [corners[name][1] for name in ids])
    whole = total.whole()
    assert all(np.array_equal(table.read(name), array) for name, array in whole.items())


def test_a_sum_takes_the_memory_that_is_planned_for_it(plan, tmp_path, monkeypatch):
    monkeypatch.setattr(_tables, "_PIECE", 1 << 15)
    made = random_tables(plan, tmp_path, 8, 4_000, 20_000)
    sizes = [(len(arrays["ids"]), len(arrays["edges"])) for _, arrays in made]
    rows = sum(arrays["boundaries"].nbytes for _, arrays in made)
    paths = [path for path, _ in made]
    del made
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        total = TableSum(paths, plan.layout)
        for _ in total.boundaries().pieces:
            pass
        for _ in total.regions().pieces:
            pass
        total.corners(), total.edges()
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    planned = reduction_bytes(plan, sizes)
    assert peak < planned < rows / 2, "far less than the rows that are added"


def claim(folder, stage, **sizes):
    """Say in the markers of a stage that its tables are larger than they are."""
    for path in (folder / "done" / stage).iterdir():
        path.write_text(json.dumps(json.loads(path.read_text()) | sizes))


def test_no_more_tables_are_added_at_a_time_than_fit(plan, tmp_path, monkeypatch):
    folder = tmp_path / "result"
    for stage in ("cut", "join", "number", "superpixels", "statistics"):
        blocks.run(folder, stage=stage)
    running, most, state = [], [], threading.Condition()
    wanted, seconds = 4, 60.0
    add = _stages.TableSum

    def watched(*arguments):
        with state:
            running.append(1)
            most.append(len(running))
            state.notify_all()
            state.wait_for(lambda: max(most) >= wanted, seconds)
        total = add(*arguments)
        with state:
            running.pop()
        return total

    monkeypatch.setattr(_stages, "TableSum", watched)
    blocks.run(folder, stage="reduce-1")
    assert max(most) == 4, "small tables are added in all threads"
    # Tables of which the budget holds those of two groups, and not of three.
    room, group = plan.memory - 350_000_000, len(reduced_tasks(plan.grid, 1, 0))
    large = next(
        n for n in range(10**9, 0, -(10**5)) if 2 * reduction_bytes(plan, [(0, n)] * group) < room
    )
    claim(folder, "statistics", regions=0, boundaries=large)
    for marker in (folder / "done" / "reduce-1").iterdir():
        marker.unlink()
    most.clear()
    wanted, seconds = 3, 1.0
    blocks.run(folder, stage="reduce-1")
    assert max(most) == 2
    claim(folder, "statistics", boundaries=10 * large)
    for marker in (folder / "done" / "reduce-1").iterdir():
        marker.unlink()
    with refuses("memory", "plan again") as refused:
        blocks.run(folder, stage="reduce-1")
    assert "GB" in str(refused.value)


def test_the_estimate_of_a_plan_has_the_reduction(plan):
    cost = blocks.estimate(plan)
    assert cost.reduction_bytes > 0
    assert cost.peak_bytes >= 350_000_000 + cost.reduction_bytes


@pytest.mark.parametrize(
    ("shape", "block"),
    [((5, 4), (2, 4)), ((300,), (1,)), ((9, 8, 7), (2, 2, 2)), ((3,) * 4, (1,) * 4)],
)
def test_every_table_is_added_once_by_each_level_of_the_reduction(shape, block):
    grid = Grid(shape, block)
    grids = reduction_grids(grid)
    assert grids[-1].n_blocks <= 16
    for level, coarse in enumerate(grids[1:], start=1):
        tasks = [reduced_tasks(grid, level, index) for index in range(coarse.n_blocks)]
        stage = "statistics" if level == 1 else f"reduce-{level - 1}"
        every = [(stage, index) for index in range(grids[level - 1].n_blocks)]
        assert sorted(task for group in tasks for task in group) == every
        for index, group in enumerate(tasks):  # the blocks of a group are those within its box
            box = coarse.slices(index)
            parts = [grids[level - 1].slices(block) for _, block in group]
            for axis, side in enumerate(box):
                assert min(part[axis].start for part in parts) == side.start
                assert max(part[axis].stop for part in parts) == side.stop


@pytest.fixture
def job(tmp_path):
    """Give a complete run of a noisy image, in which each superpixel overlaps a few of gold."""
    rng = np.random.default_rng(0)
    for name, array in (
        ("boundary", rng.integers(0, 256, (300, 300)).astype(np.uint8)),
        ("gold", rng.integers(1, 400, (60, 60)).repeat(5, 0).repeat(5, 1).astype(np.uint32)),
    ):
        zarr.create_array(str(tmp_path / f"{name}.zarr"), data=array, chunks=(100, 100))
    plan = blocks.plan(
        tmp_path / "result", str(tmp_path / "boundary.zarr"), ranges=(0, 255), block=(100, 100),
        gold=str(tmp_path / "gold.zarr"), sigma=0, min_size=8, halo=8, memory=10**9,
    )  # fmt: skip
    blocks.run(tmp_path / "result")
    return Job(tmp_path / "result", plan)


@pytest.mark.parametrize("name", ["number", "evaluate"])
def test_a_task_for_the_whole_volume_takes_its_memory_or_is_refused(job, name, monkeypatch):
    work = getattr(_stages, f"_{name}")
    planned = []

    def check_room(plan, needed, *rest):
        planned.append(needed)

    with monkeypatch.context() as patch:
        patch.setattr(_stages, "check_room", check_room)
        # text is written some rows at a time, and all rows are so few here
        patch.setattr(pd.DataFrame, "to_csv", lambda table, path, **_: path.write_text(""))
        work(job, 0, None)  # imports and compiles
        tracemalloc.start()
        work(job, 0, None)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    n_pieces = len(np.load(job.folder / "number" / "superpixel.npy"))
    assert n_pieces > 2000, "test invalid"
    assert 0.3 * planned[0] < peak < planned[0] + 100_000
    monkeypatch.setattr(_budget, "BASE", job.plan.memory - planned[0] + 1)
    with refuses("memory") as refused:
        work(job, 0, None)
    assert f"{n_pieces:,} pieces" in str(refused.value) or name == "evaluate"
    assert "GB" in str(refused.value)
    monkeypatch.setattr(_budget, "BASE", job.plan.memory - planned[0])
    work(job, 0, None)


def test_more_superpixels_than_ids_are_refused(monkeypatch):
    counts, pairs = [3, 2], [(0, 1, np.array([[3, 1]]))]
    first, superpixel = _block_superpixels.number_superpixels(counts, iter(pairs))
    assert (first.tolist(), superpixel.tolist()) == ([0, 3, 5], [1, 2, 3, 3, 4])
    monkeypatch.setattr(_block_superpixels, "MOST_SUPERPIXELS", 4)
    _block_superpixels.number_superpixels(counts, pairs)
    monkeypatch.setattr(_block_superpixels, "MOST_SUPERPIXELS", 3)
    with refuses("min_size") as refused:
        _block_superpixels.number_superpixels(counts, pairs)
    assert "there are 4 superpixels" in str(refused.value)
