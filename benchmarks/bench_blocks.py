"""Block-wise runs: memory and speed of each stage, and what blocks cost; see docs/scale.md.

    python -m benchmarks.bench_blocks make FOLDER --shape 1024,1024,1024    the volume
    python -m benchmarks.bench_blocks run FOLDER --memory 4e9               end to end
    python -m benchmarks.bench_blocks overhead FOLDER/piece                 blocks beside memory
    python -m benchmarks.bench_blocks bytes FOLDER/piece                    bytes of a voxel
    python -m benchmarks.bench_blocks halo FOLDER                           superpixels by halo
    python -m benchmarks.bench_blocks hierarchical FOLDER                   final merges in groups
    python -m benchmarks.bench_blocks learned FOLDER                        learned policy in groups
    python -m benchmarks.bench_blocks peer FOLDER --name waterz             another tool
    python -m benchmarks.bench_blocks client FOLDER --memory 1.5e9          worker processes
    python -m benchmarks.bench_blocks kill FOLDER --shape 256,256,256       killed ones
    python -m benchmarks.bench_blocks plan FOLDER --cues 4                  what a plan says
    python -m benchmarks.bench_blocks window FOLDER                         a window on 10^10 voxels
    python -m benchmarks.bench_blocks table FOLDER                          write docs/scale.md
    python -m benchmarks.bench_blocks all FOLDER                            all of it

``make bench-blocks`` does the last; `everything` has the options of each table, and ``--large``
adds the run of 2048 x 2048 x 1024. The volume is one tile of the sample generator, 128 voxels
wide, mirrored at its faces, so that nothing ends there; it is written block by block. Memory is the
resident memory of the process and its children together, read every 50 ms from ``/proc``. Seconds
are CPU time of the process and its children where it says so: a machine that does other work
stretches only the time on the clock. A run that was interrupted goes on with ``--resume``, and the
figures of its parts are added. Each part writes its numbers, and its command, to
``FOLDER/PART-NAME.json``. A tool that is not installed is left out.
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
    "make", "run", "memory", "overhead", "bytes", "halo", "hierarchical", "learned", "peer",
    "client", "kill", "plan", "window", "table", "all",
)  # fmt: skip
LARGE = (2048, 2048, 1024)
# Sides of the volume, of the piece for costs, and of those for other figures.
SIDES, TINY = (1024, 384, 256), (192, 160, 128)
_FOLDERS = ("piece", "four", "large")  # of `everything`, below that of the volume


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
    cache = tile_path(folder, side)
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


def tile_path(folder: Path, side: int = TILE) -> Path:
    """Return the file of the tile, which the folders of `everything` share."""
    return (folder.parent if folder.name in _FOLDERS else folder) / f"tile-{side}.npz"


def make_superpixels(folder: Path) -> None:
    """Write the superpixels of the tile, mirrored as the cues are, with other ids in each copy.

    They end at the faces of tiles, so that there are a few more than of the whole volume.
    """
    import napari_agglo as agglo

    whole = zarr.open_array(str(folder / "boundary.zarr"), mode="r")
    boundary = np.load(tile_path(folder))["boundary"]
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

    def __init__(self, pid: int, every: float = 0.05) -> None:
        super().__init__(daemon=True)
        self.pid, self.every, self.bytes, self.stop = pid, every, 0, False

    def run(self) -> None:
        while not self.stop:
            self.bytes = max(self.bytes, sum(map(resident, [self.pid, *_children(self.pid)])))
            time.sleep(self.every)


def resident(pid: int) -> int:
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
            "seconds": round(time.monotonic() - clock, 2),
            "cpu": round(_cpu() - cpu, 2),
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
    """Segment a volume from its cues to labels, stage by stage.

    The figures of stages, also of earlier runs into the same folder, are kept in `output`.
    """
    from napari_agglo import blocks
    from napari_agglo.blocks._stages import stages_of

    with measured() as planned:
        plan = _plan(folder, output, memory, cues, workers, options)
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
    return _of_plan(plan, cues) | {
        "stages": stages,
        "seconds": round(sum(one["seconds"] for one in stages.values()), 1),
        "cpu": round(sum(one["cpu"] for one in stages.values()), 1),
        "peak_gb": max(one["peak_gb"] for one in stages.values()),
        "superpixels": len(np.load(output / "graph" / "ids.npy", mmap_mode="r")) - 1,
        "boundaries": marker_of(output, "graph")["boundaries"],
        "left": marker_of(output, "graph")["regions"], "number": numbering(output, plan),
        "bytes": table_bytes(output), "disk_gb": round(_disk(output) / 1e9, 2),
    }  # fmt: skip


def at_once(
    folder: Path, output: Path, memory: int, cues: int, workers: int | None, **options: Any
) -> dict[str, Any]:
    """Segment a volume as users do, by one plan and one run, which are measured together."""
    from napari_agglo import blocks

    began = os.getloadavg()[0]
    with measured() as out:
        clock = time.monotonic()
        plan = _plan(folder, output, memory, cues, workers, options)
        planned = time.monotonic() - clock
        run = blocks.run(output, workers=workers)
    load = round((began + os.getloadavg()[0]) / 2, 1)
    return _of_plan(plan, cues) | out | {
        "plan_seconds": round(planned, 2), "stage_seconds": run.seconds, "load": load,
    }  # fmt: skip


def _plan(
    folder: Path, output: Path, memory: int, cues: int, workers: int | None, options: dict[str, Any]
) -> Any:
    from napari_agglo import blocks

    sources = {name: str(folder / f"{name}.zarr") for name in CUES[:cues]}
    return blocks.plan(output, sources, ranges=(0, 255), memory=memory, workers=workers, **options)


def _of_plan(plan: Any, cues: int) -> dict[str, Any]:
    given = plan.superpixels
    return {
        "shape": plan.shape, "block": plan.block, "halo": plan.halo, "workers": plan.workers,
        "cues": cues, "statistics": plan.statistics, "blocks": plan.grid.n_blocks,
        "hierarchical": plan.hierarchical, "memory_gb": plan.memory / 1e9,
        "superpixels_of": "" if given is None else Path(given.path).parts[-2],
    }  # fmt: skip


def marker_of(output: Path, stage: str) -> dict[str, Any]:
    """Return the notes of a stage of one task."""
    notes: dict[str, Any] = json.loads((output / "done" / stage / "000000.json").read_text())
    return notes


def numbering(output: Path, plan: Any) -> dict[str, int]:
    """Return the pieces that the stage `number` numbers, and its bytes, if there is one."""
    from napari_agglo.blocks import _budget

    if plan.superpixels is not None:
        return {}
    pieces = marker_of(output, "number")["pieces"]
    needed = _budget.NUMBER_BYTES * pieces
    return {"pieces": pieces, "needed_bytes": needed, "disk_bytes": _disk(output / "number")}


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


def everything(folder: Path, python: str, large: bool, tiny: bool) -> dict[str, Any]:
    """Run all parts one after the other, each in a process of its own; quick ones first.

    Parts that need what may not be there, another tool or a display, may fail. With `tiny`, all
    volumes are small, to see that the parts work; their figures go to a page in the folder.
    """
    from benchmarks.blocks_peers import OTHERS, PEERS

    whole, long, short = (_words((side,) * 3) for side in (TINY if tiny else SIDES))
    small, four, failed = folder / "piece", folder / "four", []
    part("make", small, "--shape", long, "--cues", 1)
    part("overhead", small, "--repeats", 1 if tiny else 3)
    part("bytes", small)
    for name in (*PEERS, *OTHERS):
        shape = _words((128 if tiny else 192,) * 3)
        failed += part("peer", small, "--name", name, "--shape", shape, "--warm",
                       "--python", python, needed=False)  # fmt: skip
    for memory, workers in (("1e9", 2), ("1.5e9", 2), ("1.5e9", 6)):
        part("client", small, "--shape", short, "--memory", memory, "--workers", workers,
             "--name", f"{workers}-{memory}")  # fmt: skip
    part("kill", small, "--shape", short)
    part("halo", small)
    part("hierarchical", small, "--name", "cost-given-1-pyramid")
    part("learned", small)
    part("make", four, "--shape", short)
    part("run", four, "--name", "four", "--cues", 4, "--block", "128,128,128", "--warm",
         "--statistics", "all")  # fmt: skip
    failed += part("window", folder, needed=False)
    part("make", folder, "--shape", whole)
    part("run", folder, "--memory", "4e9", "--name", "full", "--warm")
    for workers in (1, 2):
        part("run", folder, "--memory", "4e9", "--name", f"once-{workers}", "--once", "--warm",
             "--workers", workers, "--block", "128,128,128" if tiny else "352,512,512")  # fmt: skip
    part("plan", folder, "--memory", "4e9", "--cues", 4, "--statistics", "all",
         "--name", "four-all")  # fmt: skip
    part("run", folder, "--memory", "5e9", "--name", "four-full", "--cues", 4, "--warm")
    if large:
        part("make", folder / "large", "--shape", whole if tiny else _words(LARGE), "--cues", 1)
        part("run", folder / "large", "--memory", "1.2e10", "--workers", 2, "--name", "large",
             "--block", "128,128,128" if tiny else "352,512,512", "--hierarchical",
             "--warm")  # fmt: skip
    page = ("--page", folder / "scale.md") if tiny else ()
    part("table", folder, *page)
    for words in failed:
        print(f"failed, and left out: {words}", flush=True)
    return {"failed": failed}


def _words(shape: tuple[int, ...]) -> str:
    return ",".join(map(str, shape))


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shape", default=_words(SIDES[:1] * 3))
    parser.add_argument("--memory", type=float, default=4e9)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--processes", type=int, default=2, help="of the part `client`")
    parser.add_argument("--cues", type=int, help="default: all four to make a volume, else one")
    parser.add_argument("--block")
    parser.add_argument("--side", type=int, default=256, help="of the block of the part `bytes`")
    parser.add_argument("--statistics", choices=("all", "mean"), default="mean")
    parser.add_argument("--superpixels", help="of the run of this name, or of `tile`")
    parser.add_argument("--hierarchical", action="store_true")
    parser.add_argument("--no-pyramid", action="store_true", help="the finest level only")
    parser.add_argument("--once", action="store_true", help="one run, not one for each stage")
    parser.add_argument("--repeats", type=int, default=3, help="of the part `overhead`")
    parser.add_argument("--name", default="run")
    parser.add_argument("--python", default="", help="of another environment with volara, daisy")
    parser.add_argument("--large", action="store_true", help="2048 x 2048 x 1024 too")
    parser.add_argument("--tiny", action="store_true", help="of `all`: only see that it works")
    parser.add_argument("--page", type=Path, help="for the tables, instead of docs/scale.md")
    parser.add_argument("--warm", action="store_true", help="compile all kernels first")
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted run")
    return parser


def main() -> int:
    """Run one part, and print and keep its numbers and its command as JSON."""
    options = parser().parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the figures so far are kept
    if options.warm:
        warm()
    if options.part == "table":
        from benchmarks.blocks_tables import write_tables

        return write_tables(options.folder, options.page)
    result = work(options)
    numbers = result if isinstance(result, dict) else {"rows": result}
    numbers["command"] = command_of(sys.argv[1:], options.folder)
    print(json.dumps(numbers))
    options.folder.joinpath(f"{options.part}-{options.name}.json").write_text(json.dumps(numbers))
    return 0


def work(options: argparse.Namespace) -> Any:
    """Run a part, and return its numbers."""
    from benchmarks import blocks_cost, blocks_exactness

    folder, name, memory = options.folder, options.name, int(options.memory)
    cues = options.cues or (len(CUES) if options.part == "make" else 1)
    shape = tuple(int(n) for n in options.shape.split(","))
    if options.part == "make":
        with measured() as out:
            make(folder, shape, cues)
        return out
    if options.part == "memory":
        return blocks_cost.in_memory(folder, shape, 0.5)
    if options.part == "overhead":
        return blocks_cost.overhead(folder, options.repeats)
    if options.part == "bytes":
        return blocks_cost.bytes_of_a_voxel(folder, options.side)
    if options.part == "plan":
        return blocks_cost.planned_for(folder, cues, memory, options.statistics)
    if options.part == "halo":
        return blocks_exactness.by_halo(folder)
    if options.part == "hierarchical":
        return blocks_exactness.final_merges(folder, name)
    if options.part == "learned":
        return blocks_exactness.learned_merges(folder)
    if options.part == "peer":
        from benchmarks.blocks_peers import peer

        return peer(folder, name, shape, options.python or sys.executable)
    if options.part == "client":
        return with_client(folder, shape, memory, options.processes, options.workers)
    if options.part == "kill":
        from benchmarks.blocks_kills import kills

        return kills(folder, shape)
    if options.part == "window":
        from benchmarks.blocks_window import sparse_run, window

        run = sparse_run(folder / "window") if name == "run" else folder / f"result-{name}"
        return window(run.parent, run)
    if options.part == "all":
        return everything(folder, options.python, options.large, options.tiny)
    output = folder / f"result-{name}"
    if not options.resume:
        shutil.rmtree(output, ignore_errors=True)
    more: dict[str, Any] = {"statistics": options.statistics}
    if options.superpixels:
        made = folder / f"result-{options.superpixels}" / "superpixels.ome.zarr"
        if options.superpixels == "tile":
            made = folder / "superpixels.zarr"
            if not made.exists():
                make_superpixels(folder)
        more["superpixels"] = str(made)
    if options.hierarchical:
        more["hierarchical"] = True
    if options.no_pyramid:
        more["pyramid"] = False
    if options.block:
        more["block"] = tuple(int(n) for n in options.block.split(","))
    run = at_once if options.once else end_to_end
    return run(folder, output, memory, cues, options.workers, **more)


def command_of(words: list[str], folder: Path) -> str:
    """Return the command of a part, in which the folder of the volume is called FOLDER.

    >>> command_of(["run", "/data/piece", "--memory", "4e9"], Path("/data/piece"))
    'python -m benchmarks.bench_blocks run FOLDER/piece --memory 4e9'
    """
    place = f"FOLDER/{folder.name}" if folder.name in _FOLDERS else "FOLDER"
    named = [place if Path(word) == folder else word for word in words]
    if "--python" in named:
        at = named.index("--python")
        named = named[:at] + (["--python", "PYTHON"] if named[at + 1] else []) + named[at + 2 :]
    return "python -m benchmarks.bench_blocks " + " ".join(named)


def warm() -> None:
    """Load every compiled kernel that a run uses, so that none is compiled while it is timed."""
    folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"agglo-bench-{os.getpid()}"
    make(folder / "v", (80, 80, 80))  # so large that it has a coarser level
    end_to_end(folder / "v", folder / "r", 10**9, 1, 1, block=(40, 80, 80))
    shutil.rmtree(folder)


def part(*words: object, needed: bool = True) -> list[str]:
    """Run one part in a process of its own; return its words in a list if it fails."""
    command = [sys.executable, "-m", "benchmarks.bench_blocks", *map(str, words)]
    if subprocess.run(command, check=needed).returncode:
        return [" ".join(map(str, words))]
    return []


if __name__ == "__main__":
    sys.exit(main())
