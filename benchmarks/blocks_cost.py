"""Cost of blocks: beside the same piece in memory, with two workers, and in bytes of a voxel.

The parts `memory`, `overhead` and `bytes` of `bench_blocks`; see docs/scale.md.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import zarr

from benchmarks.bench_blocks import Peak, measured, part, resident

MEMORY = "4e9"  # budget of the runs beside the piece in memory
ALONE = ("number", "graph", "tree", "table")  # stages of one task


def in_memory(folder: Path, shape: tuple[int, ...], threshold: float) -> dict[str, float]:
    """Segment a piece by the functions of the library, in one thread, to one level of labels."""
    import napari_agglo as agglo

    where = tuple(slice(0, n) for n in shape)
    with measured() as out:
        boundary = zarr.open_array(str(folder / "boundary.zarr"), mode="r")[where]
        superpixels = agglo.oversegment(boundary, value_range=(0, 255))
        graph = agglo.region_graph(
            superpixels, boundary, ranges=(0, 255), statistics="mean", keep_cues=False
        )
        labels = agglo.agglomerate(graph).segment(threshold)
        zarr.save_array(str(folder / "labels-in-memory.zarr"), labels)
    shutil.rmtree(folder / "labels-in-memory.zarr")
    return out


def rows(side: int) -> dict[str, tuple[Any, ...]]:
    """Return the options of the runs that are compared, by the names of their results.

    Blocks are of `side` voxels where they are given.
    """
    made: dict[str, tuple[Any, ...]] = {}
    for workers in (1, 2):
        for block in ("planned", "given"):
            for pyramid in ("pyramid", "flat"):
                options: tuple[Any, ...] = ("--workers", workers, "--memory", MEMORY, "--once")
                options += ("--block", ",".join([str(side)] * 3)) if block == "given" else ()
                options += ("--no-pyramid",) if pyramid == "flat" else ()
                made[f"cost-{block}-{workers}-{pyramid}"] = options
    return made


def overhead(folder: Path, repeats: int) -> dict[str, Any]:
    """Run a piece in memory and in blocks in turn, so many times; each in a process of its own.

    The result of the last run of ``cost-given-1-pyramid`` is kept, for the part `hierarchical`.
    """
    shape = zarr.open_array(str(folder / "boundary.zarr"), mode="r").shape
    found: dict[str, list[dict[str, Any]]] = {}
    for _ in range(repeats):
        words = ("--shape", ",".join(map(str, shape)), "--warm", "--name", "cost")
        part("memory", folder, *words)
        found.setdefault("memory", []).append(_numbers(folder / "memory-cost.json"))
        for name, options in rows(shape[0] // 2).items():
            part("run", folder, "--name", name, *options, "--warm")
            found.setdefault(name, []).append(_numbers(folder / f"run-{name}.json"))
            (folder / f"run-{name}.json").unlink()
            if name != "cost-given-1-pyramid":
                shutil.rmtree(folder / f"result-{name}")
    out: dict[str, Any] = {"shape": shape, "repeats": repeats, "memory_gb": float(MEMORY) / 1e9}
    return out | {"rows": {name: _middle(runs) for name, runs in found.items()}}


def _numbers(path: Path) -> dict[str, Any]:
    numbers: dict[str, Any] = json.loads(path.read_text())
    return numbers


def _middle(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the medians of the figures of runs, and the lowest and the highest CPU seconds."""
    first = runs[0]
    out = {key: round(median(run[key] for run in runs), 2) for key in ("cpu", "seconds")}
    out["peak_gb"] = max(run["peak_gb"] for run in runs)
    out["cpus"] = sorted(run["cpu"] for run in runs)
    out["load"] = round(median(run["load"] for run in runs if "load" in run), 1) if any(
        "load" in run for run in runs
    ) else None  # fmt: skip
    if "stage_seconds" in first:
        alone = [
            (run["plan_seconds"] + sum(run["stage_seconds"].get(name, 0.0) for name in ALONE))
            / run["seconds"]
            for run in runs
        ]
        out |= {
            "alone": round(median(alone), 3),
            "blocks": first["blocks"],
            "block": first["block"],
        }
    return out


def bytes_of_a_voxel(folder: Path, side: int) -> list[dict[str, Any]]:
    """Measure the peak memory of the tasks of a block beside what they read, and of the merges.

    The map of the sample, and one of wide plateaus, whose flood has a queue.
    """
    from napari_agglo.blocks import _budget

    boundary = zarr.open_array(str(folder / "boundary.zarr"), mode="r")
    values = boundary[tuple(slice(0, min(side, n)) for n in boundary.shape)]
    size = values.size
    statistics = _budget.STATISTICS_BYTES + 1 + 4  # with a cue as bytes, and labels
    rows = []
    for work, peak, unit, planned in (
        ("superpixels of the sample", _of_cut(values) / size, "voxel, with its halo",
         _budget.CUT_BYTES),
        ("superpixels of a map of 8 levels", _of_cut(values & 224) / size, "voxel, with its halo",
         _budget.CUT_BYTES),
        ("statistics of one cue", _of_statistics(values) / size, "voxel", statistics),
        ("merges", _of_merges(values), "boundary", _budget.MERGE_BYTES),
        ("a process with all libraries and kernels", _of_process(), "process", _budget.BASE),
    ):  # fmt: skip
        rows.append({"work": work, "bytes": round(peak, 1), "unit": unit, "planned": planned})
        print(rows[-1], flush=True)
    return rows


def _cut(values: Any) -> dict[str, Any]:
    from napari_agglo.blocks._block_superpixels import cut_block

    everything = tuple(slice(0, n) for n in values.shape)
    return cut_block(
        values, None, everything, everything, values.shape, spacing=(1.0,) * values.ndim,
        sigma=None, min_size=None, per_plane=False, value_range=(0, 255), nan="refuse",
    )  # fmt: skip


def _of_cut(values: Any) -> int:
    _cut(values)
    return _peak(lambda: _cut(values))


def _of_statistics(values: Any) -> int:
    from napari_agglo.blocks._block_graph import partial_graph
    from napari_agglo.blocks._block_superpixels import dense_block
    from napari_agglo.blocks._piece_runs import Runs
    from napari_agglo.graph import Layout

    cut = _cut(values)
    pieces, ids = Runs(cut["values"], cut["begins"]), np.arange(cut["count"][0] + 1, dtype="u4")
    everything = tuple(slice(0, n) for n in values.shape)

    def count() -> None:
        partial_graph(
            dense_block(pieces, ids, values.shape, {}), {"boundary": values}, everything,
            values.shape, Layout(values.ndim, 1, 0, 1), ranges={"boundary": (0, 255)},
            nan="refuse", dams=False,
        )  # fmt: skip

    count()
    return _peak(count)


def _of_merges(values: Any) -> float:
    """Return the peak of a boundary, beside the 60 bytes of a region."""
    import napari_agglo as agglo

    superpixels = agglo.oversegment(values, value_range=(0, 255))
    graph = agglo.region_graph(
        superpixels, values, ranges=(0, 255), statistics="mean", keep_cues=False
    )
    few = superpixels[:32, :32, :32]
    agglo.agglomerate(agglo.region_graph(few, values[:32, :32, :32], ranges=(0, 255)))  # compiles
    # Not a second run: it would use the memory that the first has freed, and show no rise.
    peak = _peak(lambda: agglo.agglomerate(graph))
    return (peak - 60 * graph.n_regions) / graph.n_boundaries


def _of_process() -> int:
    gc.collect()
    return resident(os.getpid())


def _peak(work: Callable[[], object]) -> int:
    """Return by how much the resident memory of this process rises in some work."""
    gc.collect()
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)  # memory that was freed, and that the work would use again without a rise
    before = resident(os.getpid())
    watch = Peak(os.getpid(), every=0.002)
    watch.start()
    work()
    watch.stop = True
    watch.join()
    return watch.bytes - before


def planned_for(folder: Path, cues: int, memory: int, statistics: str) -> dict[str, Any]:
    """Return what a plan says of a volume before it runs, and of the graph that it would have.

    The graph is that of the run `full` of one cue, whose superpixels are the same.
    """
    from benchmarks.bench_blocks import CUES, marker_of
    from napari_agglo import blocks
    from napari_agglo.blocks import _budget
    from napari_agglo.errors import InvalidInput

    sources = {name: str(folder / f"{name}.zarr") for name in CUES[:cues]}
    words: dict[str, Any] = {"ranges": (0, 255), "memory": memory, "statistics": statistics}
    try:
        blocks.plan(None, sources, **words)
        refusal = ""
    except InvalidInput as error:
        refusal = str(error)
    plan = blocks.plan(None, sources, **words, force=True)
    graph = marker_of(folder / "result-full", "graph")
    found = _budget.estimate(plan)
    real = _budget.graph_bytes(plan, graph["regions"], graph["boundaries"])
    return {
        "shape": plan.shape, "block": plan.block, "blocks": found.blocks, "workers": plan.workers,
        "block_gb": found.block_bytes / 1e9, "graph_gb": found.graph_bytes / 1e9,
        "minutes": found.minutes, "cues": cues, "statistics": plan.statistics,
        "refusal": refusal, "expected_regions": found.superpixels,
        "expected_boundaries": found.boundaries, "memory_gb": memory / 1e9,
        "regions": graph["regions"], "boundaries": graph["boundaries"],
        "needed_gb": (_budget.BASE + real) / 1e9,
    }  # fmt: skip
