"""Compare the speed and the results of the present tree with those of another revision.

    python -m benchmarks.compare_revisions REV [STAGE ...] [--runs 9] [--volume sample]

A worktree of REV is made in a temporary folder. In each tree a process prepares the same volume,
then the two run each stage in turn, `runs` times, in alternating order. A row has the median CPU
seconds of both, the median ratio of the pairs (below 1: the present tree is faster), and whether
the results are the same: of stages whose results depend on defaults that have changed (train,
edits, forest) they need not be. The table is kept for ``python -m benchmarks --write``. The first
run in each tree compiles the kernels, which is not timed.

Volumes: a generated sample; ``row``, several of them side by side, 31,000 superpixels; ``mini``,
the SNEMI3D mini; and ``tiled``, copies of it, 29,960 superpixels. The forest of the stages forest
and edits has 100 trees; the process of the older revision trains it, with the features that are the
default there.
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
from typing import Any, NamedTuple

import numpy as np

STAGES = (
    "mean", "forest", "graph", "features", "oversegment", "curve", "segment", "overlaps", "train",
    "edits", "open",
)  # fmt: skip
VOLUMES = ("sample", "row", "mini", "tiled")
HERE = Path(__file__).resolve()


class Data(NamedTuple):
    """A volume: boundary map, superpixels, and a gold standard to learn from."""

    boundary: np.ndarray
    superpixels: np.ndarray
    gold: np.ndarray


def prepare(volume: str, side: int, path: Path) -> None:
    """Compute a volume with the present tree, and write it for the processes of both."""
    import napari_agglo as agglo
    from benchmarks import experiment_growth, volumes

    sample = agglo.sample("neuropil3d")
    boundary = np.ascontiguousarray(sample.cues["boundary"][:side, :side, :side])
    gold = np.ascontiguousarray(sample.gold[:side, :side, :side])
    if volume == "sample":
        superpixels = agglo.oversegment(boundary, min_size=30)
    elif volume == "row":
        superpixels, boundary = experiment_growth.row_of_samples(31_000)
    elif volume == "mini":
        superpixels, boundary, _ = volumes.crop()
    else:
        superpixels, boundary = volumes.tiled((256, 256, 256))
    if volume != "sample":  # any gold will do to time a training
        tree = agglo.agglomerate(agglo.region_graph(superpixels, boundary))
        gold = tree.segment(float(np.quantile(tree.heights, 0.95)))
    np.savez(path, **Data(boundary, superpixels, gold)._asdict())


def stages(names: list[str], folder: Path) -> dict[str, Callable[[], list[Any]]]:
    """Return functions that run the stages; each returns arrays that tell the result.

    Only public functions are called, with arguments that older revisions have.
    """
    import napari_agglo as agglo
    from napari_agglo.features import feature_table

    with np.load(folder / "volume.npz") as arrays:
        boundary, superpixels, gold = Data(**arrays)
    graph = agglo.region_graph(superpixels, boundary)
    tree = agglo.agglomerate(graph)
    threshold = float(np.quantile(tree.heights, 0.8))
    policy = None
    if {"forest", "edits", "open"} & set(names):
        policy = trained_forest(folder / "forest.npz", graph, gold)

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
        "segment": lambda: [tree.segment(threshold)],
        "overlaps": lambda: list(map(np.asarray, agglo.split_vi(superpixels, gold))),
        "train": lambda: [agglo.train(graph, gold, epochs=3, seed=0).record["examples"]],
    }
    if {"edits", "open"} & set(names):
        works |= session_stages(graph, policy)
    return {name: works[name] for name in names}


def trained_forest(path: Path, graph: Any, gold: np.ndarray) -> Any:
    """Return the forest of a file; the first process, of the older revision, trains it."""
    import napari_agglo as agglo

    if not path.exists():
        try:
            from napari_agglo.learning import ForestSettings

            options: dict[str, Any] = {"settings": ForestSettings(trees=100)}
        except (ImportError, TypeError):  # a revision before these settings, with 100 trees
            options = {}
        agglo.train(graph, gold, strategy="flat", seed=0, **options).save(path)
    return agglo.load_policy(path)


def session_stages(graph: Any, policy: Any) -> dict[str, Callable[[], list[Any]]]:
    """Return the stages of a session: twenty merges and cuts, undone again; and opening it."""
    import napari_agglo as agglo

    path = Path(tempfile.mkdtemp()) / "a.agglo"
    session = agglo.Session.create(path, graph, policy)
    session.threshold = 0.3
    segments: Any = session.segments
    members = session if callable(segments) else segments  # as in revisions before 793869a
    ids = segments() if callable(segments) else segments.ids()
    counts = np.bincount(session.lut()[1:].astype(np.int64), minlength=int(ids.max()) + 1)[ids]
    large = ids[counts > 1]
    rng = np.random.default_rng(0)
    session.close()

    def edits() -> list[Any]:
        with agglo.Session.open(path) as again:
            found: Any = again if members is session else again.segments
            start = time.process_time()
            for first, cut in zip(rng.choice(ids, 20), rng.choice(large, 20), strict=True):
                near = found.neighbours(int(first))
                if len(near):
                    again.merge(int(first), int(near[0]))
                    again.undo()
                again.cut_children(int(cut))
                again.undo()
            Timed.seconds = time.process_time() - start
        return []

    def opened() -> list[Any]:
        with agglo.Session.open(path, read_only=True) as again:
            return [again.lut()]

    return {"edits": edits, "open": opened}


class Timed:
    """CPU seconds of the part of a stage that counts; None if all of it does."""

    seconds: float | None = None


def digest(arrays: list[Any]) -> str:
    """Return a hash of the values of arrays, whatever their integer types."""
    out = hashlib.sha256()
    for array in map(np.asarray, arrays):
        kind = np.float64 if array.dtype.kind == "f" else np.int64
        out.update(str(array.shape).encode() + array.astype(kind).tobytes())
    return out.hexdigest()


def serve(names: list[str], folder: Path) -> None:
    """Run stages as their names come in; print CPU seconds and a hash of the result."""
    works = stages(names, folder)
    for work in works.values():
        work()
    print("ready", flush=True)
    for request in sys.stdin:
        Timed.seconds = None
        start = time.process_time()
        result = works[request.strip()]()
        took = time.process_time() - start
        print(took if Timed.seconds is None else Timed.seconds, digest(result), flush=True)


class Worker:
    """A process that runs stages with the package of one tree."""

    def __init__(self, tree: Path, names: list[str], folder: Path) -> None:
        command = [sys.executable, "-P", str(HERE), "--serve", str(folder), *names]
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


def compare(before: Path, now: Path, names: list[str], runs: int) -> list[str]:
    """Run the stages alternately in two trees; print and return a line of a table for each."""
    lines: list[str] = []
    workers = [Worker(before, names, before.parent)]
    try:
        workers.append(Worker(now, names, before.parent))
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
            lines.append(f"| {name} | {old:.4f} | {new:.4f} | {ratio:.3f} | {same} |")
            print(lines[-1], flush=True)
    finally:
        for worker in workers:
            worker.close()
    return lines


def main() -> None:
    """Compare with a revision, or be the process of one tree."""
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[3:], Path(sys.argv[2]))
        return
    from benchmarks.results import keep_text  # not in the processes, which have older revisions

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("revision", metavar="REV")
    parser.add_argument("stages", nargs="*", choices=(*STAGES, []), metavar="STAGE",
                        help=f"{', '.join(STAGES)} (default: all)")  # fmt: skip
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--volume", choices=VOLUMES, default="sample")
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
            header = [f"| stage | {options.revision}, CPU s | now, CPU s | ratio | results |"]
            header.append("|---|---|---|---|---|")
            print("\n".join(header))
            prepare(options.volume, options.side, tree.parent / "volume.npz")
            lines = compare(tree, root, options.stages or list(STAGES), options.runs)
            keep_text(f"revisions-{options.volume}", "\n".join(header + lines))
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


if __name__ == "__main__":
    main()
