"""Block-wise runs: memory and speed of each stage, and what blocks cost; see docs/scale.md.

    python -m benchmarks.bench_blocks make FOLDER --shape 1024,1024,1024    the volume
    python -m benchmarks.bench_blocks run FOLDER --memory 4e9               end to end
    python -m benchmarks.bench_blocks memory FOLDER --shape 384,384,384     a piece, in memory
    python -m benchmarks.bench_blocks halo FOLDER                           superpixels by halo
    python -m benchmarks.bench_blocks hierarchical FOLDER                   final merges in groups
    python -m benchmarks.bench_blocks learned FOLDER                        learned policy in groups
    python -m benchmarks.bench_blocks peer FOLDER --name waterz             another tool
    python -m benchmarks.bench_blocks peer FOLDER --name volara --python P  one that is block-wise
    python -m benchmarks.bench_blocks client FOLDER --memory 1.5e9          worker processes
    python -m benchmarks.bench_blocks window FOLDER                         a window on 10^10 voxels
    python -m benchmarks.bench_blocks table FOLDER                          write docs/scale.md
    python -m benchmarks.bench_blocks all FOLDER                            all of it

``make bench-blocks`` does the last. The volume is one tile of the sample generator, 128 voxels
wide, mirrored at its faces, so that nothing ends there; it is written block by block. Memory is the
resident memory of the process and its children together, read every 50 ms from ``/proc``. Seconds
are CPU time of the process and its children where it says so: a machine that does other work
stretches only the time on the clock. A run that was interrupted goes on with ``--resume``, and the
figures of its parts are added. Each part writes its numbers to ``FOLDER/PART-NAME.json``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import zarr

TILE = 128
CHUNK = 128
CUES = ("boundary", "cytoplasm", "mitochondria", "image")
PARTS = (
    "make", "run", "memory", "halo", "hierarchical", "learned", "peer", "client", "window", "table",
    "all",
)  # fmt: skip


def tile(side: int) -> dict[str, Any]:
    """Return the cues and the gold standard of one tile, as bytes."""
    from napari_agglo.samples._sample import neuropil_sample

    sample = neuropil_sample("tile", (side,) * 3, 0)
    arrays = {name: np.rint(255 * cue).astype(np.uint8) for name, cue in sample.cues.items()}
    return arrays | {"image": sample.image, "gold": sample.gold}


def make(folder: Path, shape: tuple[int, ...], cues: int = len(CUES)) -> None:
    """Write the volumes of the first so many cues, chunk by chunk."""
    folder.mkdir(parents=True, exist_ok=True)
    side = min(TILE, min(shape))
    cache = folder.parent / f"tile-{side}.npz"
    if not cache.exists():
        np.savez(cache, **tile(side))
    arrays = dict(np.load(cache))
    step = (CHUNK,) * 3
    for name in CUES[:cues]:
        out = zarr.create_array(
            str(folder / f"{name}.zarr"), shape=shape, chunks=step, dtype="u1", overwrite=True
        )
        for start in np.ndindex(*(-(-n // c) for n, c in zip(shape, step, strict=True))):
            where = tuple(
                slice(k * c, min((k + 1) * c, n))
                for k, c, n in zip(start, step, shape, strict=True)
            )
            out[where] = mirrored(arrays[name], where)


def make_superpixels(folder: Path) -> None:
    """Write the superpixels of the tile, mirrored as the cues are, with other ids in each copy.

    They end at the faces of tiles, so that there are a few more than of the whole volume.
    """
    import napari_agglo as agglo

    whole = zarr.open_array(str(folder / "boundary.zarr"), mode="r")
    boundary = np.load(folder.parent / f"tile-{TILE}.npz")["boundary"]
    superpixels = agglo.oversegment(boundary, value_range=(0, 255)).astype(np.uint32)
    out = zarr.create_array(
        str(folder / "superpixels.zarr"), shape=whole.shape, chunks=(TILE,) * 3, dtype="u4",
        overwrite=True,
    )  # fmt: skip
    counts = [-(-n // TILE) for n in whole.shape]
    for number, start in enumerate(np.ndindex(*counts)):
        where = tuple(
            slice(k * TILE, min((k + 1) * TILE, n)) for k, n in zip(start, whole.shape, strict=True)
        )
        part = mirrored(superpixels, where)
        out[where] = np.where(part > 0, part + np.uint32(number * superpixels.max()), 0)


def mirrored(array: Any, where: tuple[slice, ...]) -> Any:
    """Return a part of the endless volume that mirrors a tile at its faces."""
    index = []
    for part, side in zip(where, array.shape, strict=True):
        at = np.arange(part.start, part.stop) % (2 * side)
        index.append(np.where(at < side, at, 2 * side - 1 - at))
    return array[np.ix_(*index)]


class Peak(threading.Thread):
    """Watches the resident memory of a process and all its children together."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.bytes, self.stop = pid, 0, False

    def run(self) -> None:
        while not self.stop:
            self.bytes = max(self.bytes, sum(map(_resident, [self.pid, *_children(self.pid)])))
            time.sleep(0.05)


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as handle:
            return int(handle.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _children(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(child) for child in task.read_text().split()]
        except OSError:
            continue
    return found + [grand for child in found for grand in _children(child)]


@contextmanager
def measured() -> Iterator[dict[str, float]]:
    """Measure the seconds on the clock, the CPU seconds and the peak memory of a block of code."""
    watch = Peak(os.getpid())
    watch.start()
    out: dict[str, float] = {}
    clock, cpu = time.monotonic(), _cpu()
    try:
        yield out
    finally:
        watch.stop = True
        out |= {
            "seconds": round(time.monotonic() - clock, 1),
            "cpu": round(_cpu() - cpu, 1),
            "peak_gb": round(watch.bytes / 1e9, 2),
        }


def _cpu() -> float:
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def end_to_end(
    folder: Path, output: Path, memory: int, cues: int, workers: int | None, **options: Any
) -> dict[str, Any]:
    """Segment a volume from its cues to labels with a pyramid, stage by stage.

    The figures of stages, also of earlier runs into the same folder, are kept in `output`.
    """
    from napari_agglo import blocks
    from napari_agglo.blocks._stages import stages_of

    sources = {name: str(folder / f"{name}.zarr") for name in CUES[:cues]}
    with measured() as planned:
        plan = blocks.plan(
            output, sources, ranges=(0, 255), memory=memory, workers=workers, **options
        )
    voxels = math.prod(plan.shape)
    kept = output / "bench.json"
    stages = json.loads(kept.read_text()) if kept.exists() else {"plan": planned}
    for stage in stages_of(plan):
        left = sum(s.tasks - s.done for s in blocks.status(output).stages if s.name == stage.name)
        if left == 0 and stage.name in stages:
            continue
        began, before = os.getloadavg()[0], stages.get(stage.name, {})
        try:
            with measured() as one:
                blocks.run(output, stage=stage.name, workers=workers)
        finally:  # also of a part that is interrupted, to which the rest is added
            one["load"] = round((began + os.getloadavg()[0]) / 2, 1)
            for name in ("seconds", "cpu"):
                one[name] = round(one[name] + before.get(name, 0.0), 1)
            one["peak_gb"] = max(one["peak_gb"], before.get("peak_gb", 0.0))
            one["mvoxel_per_cpu_second"] = round(voxels / 1e6 / max(one["cpu"], 1e-9), 2)
            stages[stage.name] = one
            kept.write_text(json.dumps(stages))
            print(f"{stage.name:14} {one}", flush=True)
    return {
        "shape": plan.shape, "block": plan.block, "halo": plan.halo, "workers": plan.workers,
        "cues": cues, "statistics": plan.statistics, "blocks": plan.grid.n_blocks,
        "hierarchical": plan.hierarchical,
        "superpixels_of": "" if plan.superpixels is None else Path(plan.superpixels.path).parts[-2],
        "stages": stages,
        "seconds": round(sum(one["seconds"] for one in stages.values()), 1),
        "cpu": round(sum(one["cpu"] for one in stages.values()), 1),
        "peak_gb": max(one["peak_gb"] for one in stages.values()),
        "superpixels": len(np.load(output / "graph" / "ids.npy", mmap_mode="r")) - 1,
        "boundaries": _marker(output, "graph")["boundaries"],
        "left": _marker(output, "graph")["regions"],
        "bytes": table_bytes(output), "disk_gb": round(_disk(output) / 1e9, 2),
    }  # fmt: skip


def _marker(output: Path, stage: str) -> dict[str, Any]:
    """Return the notes of a stage of one task."""
    notes: dict[str, Any] = json.loads((output / "done" / stage / "000000.json").read_text())
    return notes


def _disk(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def table_bytes(output: Path) -> dict[str, float]:
    """Return bytes a row on disk, of partial tables, and in memory, of the graph."""
    from napari_agglo import blocks
    from napari_agglo.blocks._tables import Table

    layout = blocks.open(output).plan.layout
    paths = sorted((output / "tables" / "statistics").glob("*.table"))
    tables = [Table(path) for path in paths]
    regions, boundaries = (sum(one.shape(name)[0] for one in tables) for name in ("ids", "edges"))
    return {
        "boundary_in_memory": 8 * layout.boundary_width + 16,
        "region_in_memory": 8 * layout.region_width + 8 * layout.ndim,
        "row_on_disk": round(_disk(paths[0].parent) / max(regions + boundaries, 1), 1),
        "regions": regions,
        "boundaries": boundaries,
    }


def in_memory(folder: Path, shape: tuple[int, ...], threshold: float) -> dict[str, float]:
    """Segment a piece by the functions of the library, in one thread."""
    import napari_agglo as agglo

    part = tuple(slice(0, n) for n in shape)
    with measured() as out:
        boundary = zarr.open_array(str(folder / "boundary.zarr"), mode="r")[part]
        superpixels = agglo.oversegment(boundary, value_range=(0, 255))
        graph = agglo.region_graph(
            superpixels, boundary, ranges=(0, 255), statistics="mean", keep_cues=False
        )
        labels = agglo.agglomerate(graph).segment(threshold)
        zarr.save_array(str(folder / "labels-in-memory.zarr"), labels)
    shutil.rmtree(folder / "labels-in-memory.zarr")
    return out


def by_halo(folder: Path) -> list[dict[str, Any]]:
    """Compare superpixels of blocks with those of the whole tile, for several halos."""
    import warnings

    import napari_agglo as agglo
    from napari_agglo import blocks

    boundary = np.load(folder.parent / f"tile-{TILE}.npz")["boundary"]
    path = folder / "tile.zarr"
    zarr.create_array(str(path), data=boundary, chunks=(64,) * 3, overwrite=True)
    rows = []
    for sigma, halos in ((0.5, (2, 4, 8, 12, 16)), (2.0, (8, 16, 24, 32))):
        whole = agglo.oversegment(boundary, value_range=(0, 255), sigma=sigma)
        chosen = blocks.plan(None, str(path), ranges=(0, 255), sigma=sigma).halo
        for halo in halos:
            output = folder / f"result-halo-{halo}"
            shutil.rmtree(output, ignore_errors=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                blocks.plan(
                    output, str(path), ranges=(0, 255), block=(48,) * 3, halo=halo, sigma=sigma
                )
            for stage in ("cut", "join", "number", "superpixels"):
                blocks.run(output, stage=stage)
            made = zarr.open_array(str(output / "superpixels.ome.zarr" / "0"), mode="r")[...]
            merge, split = agglo.split_vi(made, whole)
            rows.append({"sigma": sigma, "halo": halo, "superpixels": int(made.max()),
                         "of": int(whole.max()), "false_merge": merge, "false_split": split,
                         "disagreement": blocks.status(output).disagreement,
                         "chosen": chosen})  # fmt: skip
            print(rows[-1], flush=True)
            shutil.rmtree(output)
    return rows


def final_merges(folder: Path, name: str) -> list[dict[str, Any]]:
    """Count the superpixels and boundaries that are left by final merges in groups of blocks."""
    from napari_agglo import blocks

    source = folder / f"result-{name}"
    whole = blocks.open(source)
    superpixels = whole.superpixels_path
    rows = []
    for side in (min(whole.plan.shape) // 8, min(whole.plan.shape) // 4):
        output = folder / f"result-hierarchical-{side}"
        shutil.rmtree(output, ignore_errors=True)
        blocks.plan(
            output, str(folder / "boundary.zarr"), superpixels=str(superpixels), ranges=(0, 255),
            block=(side,) * 3, hierarchical=True,
        )  # fmt: skip
        for stage in [s.name for s in blocks.status(output).stages]:
            blocks.run(output, stage=stage)
            if stage == "tree":
                break
        result = blocks.open(output)
        marker = _marker(output, "graph")
        equal = all(
            np.array_equal(getattr(result.tree, part), getattr(whole.tree, part))
            for part in ("winners", "losers", "priorities")
        )
        rows.append({"block": side, "regions": marker["regions"],
                     "boundaries": marker["boundaries"], "of": whole.graph.n_regions,
                     "boundaries_of": whole.graph.n_boundaries, "equal": equal})  # fmt: skip
        print(rows[-1], flush=True)
    return rows


def learned_merges(folder: Path) -> list[dict[str, Any]]:
    """Compare a learned policy in groups of blocks with the same policy on the whole graph.

    The policy is trained on another volume of the sample; the errors are against the gold standard
    of the tile, each at its own best threshold.
    """
    import napari_agglo as agglo
    from napari_agglo import blocks
    from napari_agglo.samples._sample import neuropil_sample

    kept = folder / "policy.npz"
    if not kept.exists():
        sample = neuropil_sample("train", (64, 128, 128), 1)
        cue = np.rint(255 * sample.cues["boundary"]).astype(np.uint8)
        superpixels = agglo.oversegment(cue, value_range=(0, 255))
        graph = agglo.region_graph(superpixels, cue, ranges=(0, 255))
        agglo.train(graph, sample.gold, epochs=2).save(kept)
    arrays = np.load(folder.parent / f"tile-{TILE}.npz")
    superpixels = agglo.oversegment(arrays["boundary"], value_range=(0, 255))
    sources = {"boundary": arrays["boundary"], "superpixels": superpixels, "gold": arrays["gold"]}
    for name, array in sources.items():
        path = folder / f"tile-{name}.zarr"
        zarr.create_array(str(path), data=array, chunks=(64,) * 3, overwrite=True)
    rows: list[dict[str, Any]] = []
    whole: Any = None
    for below in (0.0, 0.02, 0.05, 0.1, 0.2, 0.3):
        output = folder / "result-learned"
        shutil.rmtree(output, ignore_errors=True)
        blocks.plan(
            output, str(folder / "tile-boundary.zarr"), ranges=(0, 255),
            superpixels=str(folder / "tile-superpixels.zarr"), gold=str(folder / "tile-gold.zarr"),
            policy=str(kept), block=(32,) * 3, hierarchical=below > 0, approximate=below,
        )  # fmt: skip
        blocks.run(output)
        result = blocks.open(output)
        best = result.curve.iloc[int(result.curve["vi"].to_numpy().argmin())]
        marker = _marker(output, "graph")
        labels = result.tree.segment(0.5)
        whole = labels if whole is None else whole
        rows.append({"below": below, "regions": marker["regions"], "of": int(superpixels.max()),
                     "boundaries": marker["boundaries"], "vi": float(best["vi"]),
                     "threshold": float(best["threshold"]),
                     "difference_at_half": float(sum(agglo.split_vi(labels, whole)))})  # fmt: skip
        print(rows[-1], flush=True)
    return rows


def with_client(
    folder: Path, shape: tuple[int, ...], memory: int, processes: int, workers: int | None
) -> dict[str, Any]:
    """Run a piece by the command line with worker processes; return their peak and the budget."""
    place = folder / "client"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    part = zarr.open_array(str(folder / "boundary.zarr"), mode="r")[tuple(map(slice, shape))]
    zarr.create_array(str(place / "boundary.zarr"), data=part, chunks=(CHUNK,) * 3)
    command = [sys.executable, "-m", "napari_agglo", "blocks"]
    plan = [str(place / "result"), "--cues", str(place / "boundary.zarr"), "--range", "0:255"]
    plan += ["--memory", str(memory)] + (["--workers", str(workers)] if workers else [])
    subprocess.run([*command, "plan", *plan], check=True)
    with measured() as out:
        run = [str(place / "result"), "--client", f"local:{processes}"]
        subprocess.run([*command, "run", *run], check=True)
    out["budget_gb"] = memory / 1e9
    result = {"shape": shape, "processes": processes, "workers": workers, **out}
    result["block"] = json.loads((place / "result" / "plan.json").read_text())["block"]
    shutil.rmtree(place)
    return result


def everything(folder: Path, python: str) -> dict[str, Any]:
    """Run all parts one after the other, each in a process of its own."""
    from benchmarks.blocks_peers import OTHERS, PEERS

    small, four = folder / "piece", folder / "four"
    part("make", small, "--shape", "384,384,384", "--cues", 1)
    part("memory", small, "--shape", "384,384,384", "--warm", "--name", "whole")
    part("run", small, "--workers", 1, "--warm", "--name", "one-block")
    for workers in (1, 2):
        part("run", small, "--block", "192,192,192", "--workers", workers, "--warm",
             "--name", f"workers-{workers}")  # fmt: skip
    others = OTHERS if python else ()
    for name in (*PEERS, *others):
        part("peer", small, "--name", name, "--shape", "192,192,192", "--warm",
             "--python", python)  # fmt: skip
    for workers in (2, 6):
        part("client", small, "--shape", "256,256,256", "--memory", 1.5e9, "--workers", workers,
             "--name", f"workers-{workers}")  # fmt: skip
    part("halo", small)
    part("hierarchical", small, "--name", "workers-1")
    part("learned", small)
    part("make", four, "--shape", "256,256,256")
    part("run", four, "--name", "four", "--cues", 4, "--block", "128,128,128", "--warm",
         "--statistics", "all")  # fmt: skip
    part("make", folder, "--shape", "1024,1024,1024")
    part("run", folder, "--memory", 4e9, "--name", "full", "--warm")
    given = ("--cues", 4, "--superpixels", "full", "--warm")
    part("run", folder, "--memory", 5e9, "--name", "four-full", *given)
    part("run", folder, "--memory", 14e9, "--name", "four-all", *given, "--statistics", "all",
         "--block", "128,128,128", "--hierarchical")  # fmt: skip
    part("table", folder)
    return {}


def main() -> int:
    """Run one part, and print and keep its numbers as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shape", default="1024,1024,1024")
    parser.add_argument("--memory", type=float, default=4e9)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--processes", type=int, default=2, help="of the part `client`")
    parser.add_argument("--cues", type=int, default=1)
    parser.add_argument("--block")
    parser.add_argument("--statistics", choices=("all", "mean"), default="mean")
    parser.add_argument("--superpixels", help="of the run of this name, or of `tile`")
    parser.add_argument("--hierarchical", action="store_true")
    parser.add_argument("--name", default="run")
    parser.add_argument("--python", default="", help="of an environment with volara, daisy, waterz")
    parser.add_argument("--warm", action="store_true", help="compile all kernels first")
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted run")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the figures so far are kept
    shape = tuple(int(n) for n in options.shape.split(","))
    if options.warm:
        warm()
    result: Any
    if options.part == "make":
        with measured() as result:
            make(options.folder, shape, options.cues)
    elif options.part == "memory":
        result = in_memory(options.folder, shape, 0.5)
    elif options.part == "halo":
        result = by_halo(options.folder)
    elif options.part == "hierarchical":
        result = final_merges(options.folder, options.name)
    elif options.part == "learned":
        result = learned_merges(options.folder)
    elif options.part == "peer":
        from benchmarks.blocks_peers import peer

        result = peer(options.folder, options.name, shape, options.python)
    elif options.part == "client":
        result = with_client(
            options.folder, shape, int(options.memory), options.processes, options.workers
        )
    elif options.part == "window":
        from benchmarks.blocks_window import sparse_run, window

        own = options.name == "run"
        run = sparse_run(options.folder) if own else options.folder / f"result-{options.name}"
        result = window(options.folder, run)
    elif options.part == "table":
        from benchmarks.blocks_tables import write_tables

        return write_tables(options.folder)
    elif options.part == "all":
        result = everything(options.folder, options.python)
    else:
        output = options.folder / f"result-{options.name}"
        if not options.resume:
            shutil.rmtree(output, ignore_errors=True)
        more: dict[str, Any] = {"statistics": options.statistics}
        if options.superpixels:
            made = options.folder / f"result-{options.superpixels}" / "superpixels.ome.zarr"
            if options.superpixels == "tile":
                made = options.folder / "superpixels.zarr"
                if not made.exists():
                    make_superpixels(options.folder)
            more["superpixels"] = str(made)
        if options.hierarchical:
            more["hierarchical"] = True
        if options.block:
            more["block"] = tuple(int(n) for n in options.block.split(","))
        result = end_to_end(
            options.folder, output, int(options.memory), options.cues, options.workers, **more
        )
    print(json.dumps(result))
    options.folder.joinpath(f"{options.part}-{options.name}.json").write_text(json.dumps(result))
    return 0


def warm() -> None:
    """Load every compiled kernel that a run uses, so that none is compiled while it is timed."""
    folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"agglo-bench-{os.getpid()}"
    make(folder / "v", (40, 40, 40))
    end_to_end(folder / "v", folder / "r", 10**9, 1, 1, block=(24, 40, 40))
    shutil.rmtree(folder)


def part(*words: object) -> None:
    """Run one part in a process of its own."""
    subprocess.run([sys.executable, "-m", "benchmarks.bench_blocks", *map(str, words)], check=True)


if __name__ == "__main__":
    sys.exit(main())
