"""Compare the speed and the results of the present tree with those of another revision.

    python -m benchmarks.compare_revisions REV [STAGE ...] [--runs 9]

A worktree of REV is made in a temporary folder. In each tree a process prepares the same volumes,
from generated samples, then the two run each stage in turn, `runs` times, in alternating order. A
row has the median CPU seconds of both, the median ratio of the pairs (below 1: the present tree is
faster), and whether the results are the same. Stages: mean, forest, graph, features, oversegment,
curve. The first run in each tree compiles the kernels, which is not timed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

STAGES = ("mean", "forest", "graph", "features", "oversegment", "curve")
HERE = Path(__file__).resolve()


def stages(names: list[str], side: int, forest: Path) -> dict[str, Callable[[], list[Any]]]:
    """Return functions that run the stages; each returns arrays that tell the result.

    Only public functions are called, with arguments that older revisions have. The forest is read
    from a file; the first process, of the older revision, trains it.
    """
    import napari_agglo as agglo
    from napari_agglo.features import feature_table

    sample = agglo.sample("neuropil3d")
    boundary = np.ascontiguousarray(sample.cues["boundary"][:side, :side, :side])
    gold = np.ascontiguousarray(sample.gold[:side, :side, :side])
    superpixels = agglo.oversegment(boundary, min_size=30)
    graph = agglo.region_graph(superpixels, boundary)
    tree = agglo.agglomerate(graph)
    if "forest" in names and not forest.exists():
        agglo.train(graph, gold, strategy="flat", seed=0).save(forest)
    policy = agglo.load_policy(forest) if "forest" in names else None

    def tree_of(merged: Any) -> list[Any]:
        return [merged.winners, merged.losers, merged.priorities]

    works: dict[str, Callable[[], list[Any]]] = {
        "mean": lambda: tree_of(agglo.agglomerate(graph)),
        "forest": lambda: tree_of(agglo.agglomerate(graph, policy)),
        "graph": lambda: [
            (made := agglo.region_graph(superpixels, boundary)).edges,
            made.boundaries,
            made.regions,
        ],
        "features": lambda: [feature_table(graph).to_numpy()],
        "oversegment": lambda: [agglo.oversegment(boundary)],
        "curve": lambda: [agglo.vi_curve(tree, gold)["vi"].to_numpy()],
    }
    return {name: works[name] for name in names}


def digest(arrays: list[Any]) -> str:
    """Return a hash of the values of arrays, whatever their integer types."""
    out = hashlib.sha256()
    for array in map(np.asarray, arrays):
        kind = np.float64 if array.dtype.kind == "f" else np.int64
        out.update(str(array.shape).encode() + array.astype(kind).tobytes())
    return out.hexdigest()


def serve(names: list[str], side: int, forest: Path) -> None:
    """Run stages as their names come in; print CPU seconds and a hash of the result."""
    works = stages(names, side, forest)
    for work in works.values():
        work()
    print("ready", flush=True)
    for request in sys.stdin:
        start = time.process_time()
        result = works[request.strip()]()
        print(time.process_time() - start, digest(result), flush=True)


class Worker:
    """A process that runs stages with the package of one tree."""

    def __init__(self, tree: Path, names: list[str], side: int, forest: Path) -> None:
        command = [sys.executable, "-P", str(HERE), "--serve", str(side), str(forest), *names]
        environment = {**os.environ, "PYTHONPATH": str(tree), "NUMBA_NUM_THREADS": "1",
                       "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # fmt: skip
        self.process = subprocess.Popen(
            command, cwd=tree, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self._read()

    def _read(self) -> str:
        assert self.process.stdout is not None
        if not (line := self.process.stdout.readline()):
            raise SystemExit("A revision cannot run these stages; its error is above.")
        return line

    def run(self, stage: str) -> tuple[float, str]:
        """Return the CPU seconds of a stage and a hash of its result."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{stage}\n")
        self.process.stdin.flush()
        seconds, result = self._read().split()
        return float(seconds), result

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def compare(before: Path, now: Path, names: list[str], runs: int, side: int) -> None:
    """Run the stages alternately in two trees; print a line of a table for each."""
    forest = before.parent / "forest.npz"
    workers = [Worker(before, names, side, forest)]
    try:
        workers.append(Worker(now, names, side, forest))
        for name in names:
            times: tuple[list[float], list[float]] = ([], [])
            found: set[str] = set()
            for k in range(runs):
                for one in (0, 1) if k % 2 == 0 else (1, 0):
                    seconds, result = workers[one].run(name)
                    times[one].append(seconds)
                    found.add(result)
            ratio = median(new / old for old, new in zip(*times, strict=True))
            same = "same" if len(found) == 1 else "different"
            old, new = map(median, times)
            print(f"| {name} | {old:.4f} | {new:.4f} | {ratio:.3f} | {same} |", flush=True)
    finally:
        for worker in workers:
            worker.close()


def main() -> None:
    """Compare with a revision, or be the process of one tree."""
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[4:], int(sys.argv[2]), Path(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("revision", metavar="REV")
    parser.add_argument("stages", nargs="*", choices=(*STAGES, []), metavar="STAGE",
                        help=f"{', '.join(STAGES)} (default: all)")  # fmt: skip
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--side", type=int, default=1000, help="crop the sample to this side")
    options = parser.parse_args()
    root = HERE.parent.parent
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        git = ["git", "-C", str(root), "worktree"]
        subprocess.run(
            [*git, "add", "--quiet", "--detach", str(tree), options.revision], check=True
        )
        try:
            print(f"| stage | {options.revision}, CPU s | now, CPU s | ratio | results |")
            print("|---|---|---|---|---|")
            compare(tree, root, options.stages or list(STAGES), options.runs, options.side)
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


if __name__ == "__main__":
    main()
