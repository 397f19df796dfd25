"""Compilation of the kernels on a new machine: CPU seconds by stage and by kernel.

    python -m benchmarks.bench_compile [--types]

Runs the stages in the order in which a person meets them, in a new process with an empty cache, and
lists the kernels from the slowest on, with ``--types`` the argument types of those that were
compiled more than once. A helper that is compiled for a kernel is listed by itself, and its seconds
are not counted again in those of the kernel.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core import event

from benchmarks.results import HEADER, Table, below, line

GOALS = {
    "demo by mean, evaluate": 12,
    "train and agglomerate by a forest": 14,
    "first merge": 2,
    "first cut": 8,
    "first undo": 0,
    "all of it": 45,
}


class Recorder(event.Listener):
    """Listener to the events of numba: the CPU seconds that each compilation took by itself."""

    def __init__(self) -> None:
        self.seconds: list[tuple[str, str, float]] = []  # kernel, argument types, seconds
        self._open: list[list[float]] = []  # begun at, seconds of what is compiled within

    def on_start(self, event: Any) -> None:
        """Note that a compilation begins."""
        self._open.append([time.process_time(), 0.0])

    def on_end(self, event: Any) -> None:
        """Keep the seconds of a compilation, less those of compilations within it."""
        begun, within = self._open.pop()
        took = time.process_time() - begun
        if self._open:
            self._open[-1][1] += took
        function = event.data["dispatcher"].py_func
        name = f"{function.__module__.removeprefix('napari_agglo.')}.{function.__name__}"
        self.seconds.append((name, str(event.data["args"]), took - within))


def stages(folder: Path) -> dict[str, Callable[[], object]]:
    """Return the stages, in their order."""
    import napari_agglo as agglo

    drawn = agglo.sample("neuropil2d")
    crop = (slice(0, 96), slice(0, 96))
    cues = {name: cue[crop] for name, cue in drawn.cues.items()}
    gold = drawn.gold[crop]
    made: dict[str, Any] = {}

    def demo() -> None:
        superpixels = agglo.oversegment(cues["boundary"])
        made["graph"] = agglo.region_graph(superpixels, cues)
        tree = agglo.agglomerate(made["graph"])
        curve = agglo.vi_curve(tree, gold)
        labels = tree.segment(float(curve.threshold[1]))
        agglo.split_vi(labels, gold)
        agglo.breakdown(labels, gold)

    def learn() -> None:
        made["policy"] = agglo.train(made["graph"], gold, epochs=2)
        agglo.agglomerate(made["graph"], made["policy"])

    def merge() -> None:
        session = agglo.Session.create(
            folder / "first.agglo", made["graph"], made["policy"], gold=gold
        )
        made["session"] = session
        session.threshold = 0.0
        first = int(session.segments.ids()[0])
        session.merge(first, int(session.segments.neighbours(first)[0]))

    def cut() -> None:
        session = made["session"]
        session.threshold = 0.5
        session.look()
        segment = max(
            map(int, session.segments.ids()), key=lambda one: session.segments.members(one).size
        )
        members = session.segments.members(segment)
        session.cut(segment, [[int(members[0])], [int(members[-1])]])

    def undo() -> None:
        made["session"].undo()
        made["session"].close()

    return {
        "demo by mean, evaluate": demo,
        "train and agglomerate by a forest": learn,
        "first merge": merge,
        "first cut": cut,
        "first undo": undo,
    }


def record() -> None:
    """Run the stages in this process and print a line for each kernel that was compiled."""
    recorder = Recorder()
    event.register("numba:compile", recorder)
    with tempfile.TemporaryDirectory() as folder:
        for stage, work in stages(Path(folder)).items():
            before = len(recorder.seconds)
            work()
            for name, types, seconds in recorder.seconds[before:]:
                print(stage, name, types, f"{seconds:.3f}", sep="\t")


def measure() -> list[tuple[str, str, str, float]]:
    """Return stage, kernel, argument types and CPU seconds of every compilation."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        code = "from benchmarks.bench_compile import record; record()"
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True,
            check=True,
        )  # fmt: skip
    lines = (line.split("\t") for line in done.stdout.splitlines())
    return [(stage, name, types, float(seconds)) for stage, name, types, seconds in lines]


def run(table: Table, small: bool = False) -> list[tuple[str, str, str, float]]:
    """Add a row for each stage; return the compilations."""
    kernels = measure()
    for stage, goal in GOALS.items():
        total = sum(k[3] for k in kernels if stage in (k[0], "all of it"))
        table.add(f"compiling: {stage}", total, goals=below(total, goal, relation="<="))
    return kernels


def main() -> None:
    """Print the stages, and the kernels from the slowest on."""
    print(line(HEADER) + "\n" + "|---" * len(HEADER) + "|")
    kernels = run(Table())
    print("\n| kernel | compiled | CPU time | first met in |\n|---|---|---|---|")
    by_name: dict[str, list[tuple[str, str, str, float]]] = {}
    for kernel in kernels:
        by_name.setdefault(kernel[1], []).append(kernel)
    for name, times in sorted(by_name.items(), key=lambda item: -sum(k[3] for k in item[1])):
        seconds = sum(k[3] for k in times)
        if seconds >= 0.3:
            print(f"| {name} | {len(times)} x | {seconds:.1f} s | {times[0][0]} |")
    if "--types" in sys.argv:
        for name, times in by_name.items():
            if len(times) > 1:
                print(f"\n{name}", *(f"  {k[3]:.1f} s {k[2]}" for k in times), sep="\n")


if __name__ == "__main__":
    main()
