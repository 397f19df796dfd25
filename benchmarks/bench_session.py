"""Sessions: time and memory of an edit, an undo, a look at a threshold, and of opening.

``python -m benchmarks.bench_session`` runs all of it. Name parts (edits, cuts, looks, slider,
opening, memory) or sizes (10k, 120k, 1M) to run just these; ``--keep FOLDER`` makes the sessions
there once, and copies them from there the next time.

CPU seconds of the process; beside them the wall time, which includes the fsync of the journal. A
goal is for the larger of the two.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import napari_agglo as agglo
from benchmarks import volumes
from benchmarks.results import HEADER, Goal, Table, below, line
from napari_agglo.graph import RegionGraph
from napari_agglo.session._actions import Action, Cut, Merge, Plan, Step

PARTS = ("edits", "cuts", "looks", "slider", "opening", "memory")
SHAPES = {"10k": (128, 168, 272), "120k": (256, 512, 512), "1M": None}
EDITS = 100
LOOKS = 21
GOALS = {"merge": 1.6, "cut into children": 1.2, "undo": 0.5}  # ms


@cache
def learned() -> agglo.LearnedPolicy:
    """Return a forest of the usual size."""
    superpixels, boundary, _ = volumes.crop()
    graph = agglo.region_graph(superpixels, boundary)
    tree = agglo.agglomerate(graph)
    gold = tree.segment(float(np.quantile(tree.heights, 0.95)))
    return agglo.train(graph, gold, strategy="flat")


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Return the CPU and the wall seconds of a call."""
    busy, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - busy, time.perf_counter() - wall


def add(
    table: Table, work: str, times: list[tuple[float, float]], bound: float = 0, unit: str = "ms"
) -> None:
    """Add the median of CPU times, with the 99th percentile and the wall time.

    The bound is for the larger of the two medians.
    """
    busy, wall = np.array(times).T
    took, beside = float(np.median(busy)), float(np.median(wall))
    rate = f"99 %: {1e3 * np.percentile(busy, 99):.2f} ms; wall {1e3 * beside:.2f} ms"
    table.add(work, took, rate, goals=below(max(took, beside), bound, unit) if bound else ())


def edits(table: Table, session: agglo.Session, what: str) -> None:
    """Merge, cut into children, undo and redo at random places of the frontier."""
    rng = np.random.default_rng(0)
    session.look()
    names = ("merge", "cut into children", "undo", "redo")
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    ids = session.segments.ids()
    sizes = np.bincount(session.lut()[1:].astype(np.int64), minlength=int(ids.max()) + 1)[ids]
    large = ids[sizes > 1]

    def do(name: str, work: Callable[[], Any]) -> None:
        times[name].append(timed(work))

    for k in range(EDITS + 5):
        if k == 5:  # the first ones compile
            times = {name: [] for name in names}
        a = int(rng.choice(ids))
        near = session.segments.neighbours(a)
        if len(near):
            b = int(rng.choice(near))
            do("merge", lambda a=a, b=b: session.merge(a, b))
            do("undo", session.undo)
            do("redo", session.redo)
            session.undo()
        c = int(rng.choice(large))
        do("cut into children", lambda c=c: session.cut_children(c))
        do("undo", session.undo)
        do("redo", session.redo)
        session.undo()
    for name, found in times.items():
        add(table, f"{name}, {what}", found, GOALS.get(name, 0) if what.endswith("learned") else 0)


def cutting(table: Table, session: agglo.Session, what: str) -> None:
    """Preview a minimum cut of a segment of about a thousand superpixels."""
    seen = session.threshold
    found = None
    for threshold in np.linspace(seen, 1, 26):
        session.threshold = float(threshold)
        ids, counts = np.unique(session.lut()[1:], return_counts=True)
        near = int(np.argmin(np.abs(counts - 1000)))
        if found is None or abs(counts[near] - 1000) < abs(found[1] - 1000):
            found = float(threshold), int(counts[near]), int(ids[near])
    assert found is not None
    session.threshold, n, segment = found
    members = session.segments.members(segment)
    rng = np.random.default_rng(0)
    times = []
    for _ in range(23):
        seeds = [[int(s)] for s in rng.choice(members, 2, replace=False)]
        try:
            times.append(timed(lambda seeds=seeds: session.preview(segment, seeds)))
        except agglo.InvalidInput:
            continue
    add(table, f"minimum cut of {n:,} superpixels with preview, {what}", times[3:], 100)
    session.threshold = seen


def looking(table: Table, session: agglo.Session, what: str, looks: int = LOOKS) -> None:
    """Show a plane of labels after an edit, and look above one for the first time.

    The bounds of a look are for a learned policy.
    """
    shape = session.graph.superpixels.image.shape
    session.labels(0)
    times = []
    a = int(session.segments.ids()[0])
    for k in range(50):
        (session.lock if k % 2 == 0 else session.undo)(*([a] if k % 2 == 0 else []))
        plane = k % shape[0]
        times.append(timed(lambda plane=plane: session.labels(plane)))
    if len(shape) == 3:
        add(table, f"labels of a plane {shape[1]} x {shape[2]}, {what}", times, 5)
    seen, scorer = session.threshold, session._state.tree.scorer
    bounded = what.endswith("learned")
    for up, bound in ((0.2, 0.18 * bounded), (0.4, 1.5 * bounded)):
        rng = np.random.default_rng(0)
        session.threshold = seen + up
        session.look()
        times = []
        for k in range(looks + 1):
            if k == 0:  # the first one compiles, also what only a long look needs
                scorer.few = 0
            elif k == 1:
                scorer.few = type(scorer).few
                times, rng = [], np.random.default_rng(1)
            session.threshold = seen
            a = int(rng.choice(session.segments.ids()))
            session.merge(a, int(session.segments.neighbours(a)[0]))
            session.threshold = seen + up
            times.append(timed(session.look))
        add(table, f"first look {up} above an edit, {what}", times, bound, "s")
        slowest = f"first look {up} above an edit, the slowest of {looks}, {what}"
        add(table, slowest, [max(times)], bound if up == 0.4 else 0, "s")
        session.threshold = seen


def scrubbing(table: Table, session: agglo.Session, what: str) -> None:
    """Move the threshold below those seen before, after some edits, as a slider does."""
    seen = session.threshold
    rng = np.random.default_rng(3)
    for _ in range(20):
        a = int(rng.choice(session.segments.ids()))
        session.merge(a, int(session.segments.neighbours(a)[0]))
    times = []
    for threshold in rng.uniform(seen - 0.3, seen, 50):
        session.threshold = float(threshold)
        times.append(timed(lambda: session.lut(dense=True)))
    add(table, f"table at another threshold, {what}", times, 5)
    session.threshold = seen
    session.look()
    times = {"suggestions": [], "effort": []}
    for _ in range(6):
        one = session.queue.next(1, kind="false_split")[0]
        session.queue.accept(one)
        times["suggestions"].append(timed(lambda: session.queue.next(10)))
        times["effort"].append(timed(session.queue.effort))
    for name, found in times.items():
        add(table, f"{name} after an answer, {what}", found[1:], 100)


def opening(table: Table, session: agglo.Session, n: int, what: str) -> None:
    """Open a session of many edits: neighbours are merged, and large segments are cut."""
    path = session.path
    session.history.checkpoint()
    empty = _opened_anew(path)
    rng = np.random.default_rng(2)
    session.look()
    state, scale, graph = session._state, session.threshold, session.graph
    done = 0
    while done < n:
        u, v = graph.edges[rng.integers(len(graph.edges))].tolist()
        a, b = state.tree.region(u, scale), state.tree.region(v, scale)
        step = None
        if a != b and len(state.tree.members(a)) + len(state.tree.members(b)) < 100:
            step = Step(Merge(scale, ((u, v),)))
        elif a == b and len(state.tree.members(a)) < 1000:
            parts = (state.tree.members(child) for child in state.tree.children(a))
            step = Step(Cut(scale, tuple(parts)))
        if step is not None:
            ids = (int(graph.ids[state.tree.name(a)]), int(graph.ids[state.tree.name(b)]))
            kind = "merge" if isinstance(step.edit, Merge) else "cut"
            action = Action(kind, ids if kind == "merge" else ids[:1], scale, (step,))
            session._transactions._commit(Plan(action))
            done += 1
    session.close()
    for how in ("", ", journal replayed"):
        # A new process each time, as on the next day.
        runs = [_opened_anew(path) for _ in range(3 if how else 7)]
        busy, wall, entries, memory, _ = np.median(runs, axis=0)
        slowest = max(max(run[:2]) for run in runs)
        rate = f"at most {slowest:.2f} s; wall {wall:.2f} s"
        work = f"open, {int(entries):,} edits, {what}{how}"
        table.add(work, busy, rate, goals=() if how else below(slowest, 2))
        if not how:
            each = (memory - empty[3]) / n
            table.note(f"Memory of an edit, {what}: {each:,.0f} bytes.")
        shutil.rmtree(path / "snapshots", ignore_errors=True)


_OPEN = """
import sys, time
import napari_agglo as agglo
agglo.Session

def memory():
    return 4096 * int(open("/proc/self/statm").read().split()[1])

before = memory()
busy, wall = time.process_time(), time.perf_counter()
session = agglo.Session.open(sys.argv[1], read_only=True)
session.look()
print(time.process_time() - busy, time.perf_counter() - wall, len(session.history),
      memory() - before, memory())
"""


def _opened_anew(path: Path) -> list[float]:
    """Open a session in a new process.

    Return the CPU and wall seconds of opening after the imports, the edits, and the bytes of memory
    of the session and of the whole process.
    """
    command = [sys.executable, "-c", _OPEN, str(path)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [float(word) for word in printed.split()]


_LOOK = r"""
import re, sys
import numpy as np
import napari_agglo as agglo

session, rng = agglo.Session.open(sys.argv[1]), np.random.default_rng(1)
for _ in range(4):
    session.threshold = float(sys.argv[2])
    a = int(rng.choice(session.segments.ids()))
    session.merge(a, int(session.segments.neighbours(a)[0]))
    session.threshold += 0.4
    session.look()
session.close()
# Not `ru_maxrss`, which a process inherits from the one that has started it.
print(1024 * int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1]))
"""


def memory(table: Table, session: agglo.Session, what: str) -> None:
    """Measure the memory of a process that has just opened a session, and of one that edits it."""
    n, path, threshold = session.graph.n_regions, session.path, session.threshold
    session.close()
    busy, wall, _, own, process = _opened_anew(path)
    command = [sys.executable, "-c", _LOOK, str(path), str(threshold)]
    peak = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    goals = (Goal(peak / 1e9, "<", 2, "GB at the peak"),)
    table.add(f"open, no edits, {what}", busy, f"wall {wall:.2f} s", goals=goals)
    table.note(
        f"Memory, {what}: {own / n:,.0f} bytes a superpixel, graph and image included; "
        f"{process / 1e9:.2f} GB the process, at most {peak / 1e9:.2f} GB with edits and first "
        "looks 0.4 above them."
    )


@cache
def _graph(size: str) -> RegionGraph:
    if size == "1M":
        return volumes.eight_times(_graph("120k"))
    superpixels, boundary = volumes.tiled(SHAPES[size])
    return agglo.region_graph(superpixels, boundary)


@contextmanager
def opened(size: str, policy: str, keep: Path, folder: Path) -> Iterator[tuple[Any, str]]:
    """Yield a copy of a session of some size, made if there is none yet, and its description."""
    made, path = keep / f"{size}-{policy}.agglo", folder / "copy.agglo"
    if not made.exists():
        chosen = learned() if policy == "learned" else policy
        agglo.Session.create(made, _graph(size), chosen).close()
    shutil.copytree(made, path)
    session = agglo.Session.open(path)
    try:
        session.threshold = 0.5 if policy == "learned" else 0.3
        yield session, f"{session.graph.n_regions:,} superpixels, {policy}"
    finally:
        session.close()
        shutil.rmtree(path)


def run(table: Table, small: bool = False) -> None:
    """Measure everything at every size, or the quicker parts at the smallest."""
    if small:
        return measure(table, ("edits", "cuts", "memory"), ("10k",))
    measure(table)
    # The cost of an edit by the mean should not depend on the size of the volume.
    for name in ("merge", "cut into children", "undo", "redo"):
        rows = [
            row
            for row in table.rows
            if row.task.startswith(f"{name}, ") and row.task.endswith("mean")
        ]
        growth = Goal(rows[-1].seconds / rows[0].seconds, "<=", 2, f"x {rows[0].task}")
        table.rows[table.rows.index(rows[-1])] = replace(rows[-1], goals=(growth,))
        table.note(f"{name} by the mean: {growth.figure:.2f} x from 10k to a million superpixels.")


def measure(
    table: Table,
    parts: tuple[str, ...] = PARTS,
    sizes: tuple[str, ...] = tuple(SHAPES),
    keep: Path | None = None,
) -> None:
    """Measure some parts at some sizes; a million superpixels by the mean only."""
    folder = Path(tempfile.mkdtemp(prefix="bench-session-"))
    keep = keep or folder
    works: dict[str, Callable[..., None]] = {
        "edits": edits, "cuts": cutting, "looks": looking, "slider": scrubbing,
    }  # fmt: skip
    try:
        for size in sizes:
            if size != "1M":
                with opened(size, "learned", keep, folder) as (session, what):
                    for name in parts:
                        if name in works:
                            works[name](table, session, what)
                if "opening" in parts:
                    with opened(size, "learned", keep, folder) as (session, what):
                        opening(table, session, 10_000, what)
            for name in (part for part in ("edits", "memory") if part in parts):
                with opened(size, "mean", keep, folder) as (session, what):
                    (edits if name == "edits" else memory)(table, session, what)
            if size == "1M" and "looks" in parts:
                with opened(size, "mean", keep, folder) as (session, what):
                    looking(table, session, what, looks=4)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Run the parts and sizes that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", choices=(*PARTS, *SHAPES, []))
    parser.add_argument("--keep", type=Path)
    chosen = parser.parse_args()
    print(line(HEADER) + "\n" + "|---" * len(HEADER) + "|")
    parts = tuple(part for part in PARTS if part in chosen.what)
    sizes = tuple(size for size in SHAPES if size in chosen.what)
    table = Table()
    measure(table, parts or PARTS, sizes or tuple(SHAPES), chosen.keep)
    print("\n" + "\n".join(table.notes))


if __name__ == "__main__":
    main()
