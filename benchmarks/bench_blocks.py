"""Block-wise runs: memory and speed of each stage, and what blocks cost; see docs/scale.md.

    python -m benchmarks.bench_blocks make FOLDER --shape 1024,1024,1024    the volume
    python -m benchmarks.bench_blocks run FOLDER --memory 4e9               end to end
    python -m benchmarks.bench_blocks memory FOLDER --shape 384,384,384     a piece, in memory
    python -m benchmarks.bench_blocks halo FOLDER                           superpixels by halo
    python -m benchmarks.bench_blocks hierarchical FOLDER                   final merges in groups
    python -m benchmarks.bench_blocks all FOLDER                            all of it

``make bench-blocks`` does the last. The volume is one tile of the sample generator, 128 voxels
wide, mirrored at its faces, so that nothing ends there; it is written block by block. Memory is the
resident memory of the process and its children together, read every 50 ms from ``/proc``. Seconds
are CPU time of the process and its children where it says so: a machine that does other work
stretches only the time on the clock.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import shutil
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
    """Segment a volume from its cues to labels with a pyramid, stage by stage."""
    from napari_agglo import blocks
    from napari_agglo.blocks._stages import stages_of

    names = CUES[:cues]
    plan = blocks.plan(
        output,
        {name: str(folder / f"{name}.zarr") for name in names},
        ranges=(0, 255),
        memory=memory,
        workers=workers,
        **options,
    )
    voxels = math.prod(plan.shape)
    result: dict[str, Any] = {
        "shape": plan.shape, "block": plan.block, "workers": plan.workers, "cues": cues,
        "blocks": plan.grid.n_blocks, "stages": {},
    }  # fmt: skip
    with measured() as whole:
        for stage in stages_of(plan):
            with measured() as one:
                blocks.run(output, stage=stage.name)
            one["mvoxel_per_cpu_second"] = round(voxels / 1e6 / max(one["cpu"], 1e-9), 2)
            result["stages"][stage.name] = one
            print(f"{stage.name:14} {one}", flush=True)
    result |= whole
    graph = blocks.open(output).graph
    result |= {"superpixels": graph.n_regions, "boundaries": graph.n_boundaries}
    result["bytes"] = table_bytes(output)
    return result


def table_bytes(output: Path) -> dict[str, float]:
    """Return bytes a row on disk, of partial tables, and in memory, of the graph."""
    from napari_agglo import blocks
    from napari_agglo.blocks._tables import Table

    graph = blocks.open(output).graph
    paths = sorted((output / "tables" / "statistics").glob("*.table"))
    rows = [Table(path).shape("edges")[0] + Table(path).shape("ids")[0] for path in paths]
    return {
        "boundary_in_memory": graph.boundaries.dtype.itemsize * graph.boundaries.shape[1] + 16,
        "region_in_memory": graph.regions.dtype.itemsize * graph.regions.shape[1]
        + 8 * graph.layout.ndim,
        "row_on_disk": round(sum(path.stat().st_size for path in paths) / max(sum(rows), 1), 1),
        "rows": sum(rows),
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
    import napari_agglo as agglo
    from napari_agglo import blocks

    boundary = np.load(folder.parent / f"tile-{TILE}.npz")["boundary"]
    path = folder / "tile.zarr"
    zarr.create_array(str(path), data=boundary, chunks=(64,) * 3, overwrite=True)
    whole = agglo.oversegment(boundary, value_range=(0, 255))
    rows = []
    for halo in (2, 4, 8, 12, 16):
        output = folder / f"result-halo-{halo}"
        shutil.rmtree(output, ignore_errors=True)
        blocks.plan(output, str(path), ranges=(0, 255), block=(48,) * 3, halo=halo)
        for stage in ("cut", "join", "number", "superpixels"):
            blocks.run(output, stage=stage)
        made = zarr.open_array(str(output / "superpixels.ome.zarr" / "0"), mode="r")[...]
        merge, split = agglo.split_vi(made, whole)
        rows.append({"halo": halo, "superpixels": int(made.max()), "of": int(whole.max()),
                     "false_merge": merge, "false_split": split})  # fmt: skip
        print(rows[-1], flush=True)
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
        marker = json.loads((output / "done" / "graph" / "000000.json").read_text())
        equal = all(
            np.array_equal(getattr(result.tree, part), getattr(whole.tree, part))
            for part in ("winners", "losers", "priorities")
        )
        rows.append({"block": side, "regions": marker["regions"],
                     "boundaries": marker["boundaries"], "of": whole.graph.n_regions,
                     "boundaries_of": whole.graph.n_boundaries, "equal": equal})  # fmt: skip
        print(rows[-1], flush=True)
    return rows


def everything(folder: Path) -> dict[str, Any]:
    """Run all parts one after the other, each in a process of its own."""
    part("make", folder, "--shape", "1024,1024,1024")
    part("run", folder, "--memory", 4e9, "--name", "full", "--warm")
    part("run", folder, "--memory", 4e9, "--name", "full-4", "--cues", 4, "--warm")
    small = folder / "piece"
    part("make", small, "--shape", "384,384,384", "--cues", 1)
    part("memory", small, "--shape", "384,384,384", "--warm", "--name", "whole")
    for workers in (1, 2):
        part("run", small, "--block", "192,192,192", "--workers", workers, "--warm",
             "--name", f"workers-{workers}")  # fmt: skip
    part("halo", small)
    part("hierarchical", small, "--name", "workers-1")
    return {}


def main() -> int:
    """Run one part, and print and keep its numbers as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["make", "run", "memory", "halo", "hierarchical", "all"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shape", default="1024,1024,1024")
    parser.add_argument("--memory", type=float, default=4e9)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--cues", type=int, default=1)
    parser.add_argument("--block")
    parser.add_argument("--name", default="run")
    parser.add_argument("--warm", action="store_true", help="compile all kernels first")
    options = parser.parse_args()
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
    elif options.part == "all":
        result = everything(options.folder)
    else:
        output = options.folder / f"result-{options.name}"
        shutil.rmtree(output, ignore_errors=True)
        more = {"statistics": "all"} if options.cues > 1 else {}
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
