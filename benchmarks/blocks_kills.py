"""Runs by two worker processes, one of which is killed, or whose client is; see docs/scale.md.

The part `kill` of `bench_blocks`. All files of the results must be the same as those of a run that
nothing disturbs; the logs tell which finished tasks were done again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import zarr

from benchmarks.bench_blocks import CHUNK, measured

SIDE = 64  # of blocks, so that there are many
STAGE = "statistics"  # at half of which something dies
_NOT_COMPARED = ("done", "failures", "locks", "logs", "plan.json", "bench.json")


def kills(folder: Path, shape: tuple[int, ...]) -> dict[str, Any]:
    """Run a piece undisturbed, with a worker that is killed, and with a client that is."""
    from napari_agglo import blocks

    place = folder / "kill"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    values = zarr.open_array(str(folder / "boundary.zarr"), mode="r")[tuple(map(slice, shape))]
    zarr.create_array(str(place / "boundary.zarr"), data=values, chunks=(CHUNK,) * 3)
    rows, expected = [], ""
    for name in ("", "worker", "client"):
        result = place / f"result-{name}"
        plan = blocks.plan(
            result, str(place / "boundary.zarr"), ranges=(0, 255), block=(SIDE,) * 3, workers=2
        )
        with measured() as out:
            command = [sys.executable, "-m", "benchmarks.blocks_kills", str(result)]
            ended = subprocess.run([*command, name], check=False).returncode
            assert ended == (-signal.SIGKILL if name == "client" else 0), ended
            if name == "client":  # its workers end with it, and those of the next go on
                subprocess.run(command, check=True)
        tasks = _finished(result)
        found = _content(result)
        expected = expected or found
        rows.append({"killed": name, "tasks": len(set(tasks)),
                     "again": len(tasks) - len(set(tasks)), "same": found == expected,
                     "blocks": plan.grid.n_blocks, **out})  # fmt: skip
        print(rows[-1], flush=True)
    shutil.rmtree(place)
    return {"shape": shape, "block": [SIDE] * 3, "rows": rows}


def _finished(result: Path) -> list[tuple[str, int]]:
    """Return the tasks in the logs of all processes, each as often as it was done."""
    lines = [
        json.loads(line)
        for log in (result / "logs").glob("*.jsonl")
        for line in log.read_text().splitlines()
    ]
    return [(line["stage"], line["task"]) for line in lines]


def _content(result: Path) -> str:
    """Return a checksum of all files of results; attributes of stores have times of inputs."""
    digest = hashlib.sha256()
    for path in sorted(result.rglob("*")):
        name = path.relative_to(result)
        if path.is_file() and name.parts[0] not in _NOT_COMPARED and path.name != "zarr.json":
            if path.suffix == ".partial":  # half a file of a killed process, which nothing reads
                continue
            digest.update(str(name).encode() + path.read_bytes())
    return digest.hexdigest()


def run(result: Path, killed: str) -> None:
    """Run a plan by two worker processes, and kill one of them, or this process, in the middle."""
    import distributed

    from napari_agglo import blocks

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        waiting = [killed]

        def die(progress: Any) -> None:
            if progress.stage == STAGE and 2 * progress.done >= progress.total and waiting[0]:
                victim = os.getpid()
                if waiting[0] == "worker":
                    victim = next(iter(client.run(os.getpid).values()))
                waiting[0] = ""
                os.kill(victim, signal.SIGKILL)
                time.sleep(0.1)

        blocks.run(result, client=client, progress=die)


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
