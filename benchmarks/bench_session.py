"""Sessions: what an edit, an undo and a look cost, the journal's fsync included.

``python -m benchmarks.bench_session`` runs all of it: 120k superpixels under a learned policy, then
10k and 100k, and a million under the mean. ``... quick`` takes the small ones only, ``... opening``
only opens the session of 120k.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import napari_agglo as agglo
from benchmarks import volumes
from benchmarks.timing import Table
from napari_agglo.graph import RegionGraph
from napari_agglo.session._edits import Action, Cut, Merge, Plan, Step

EDITS = 100


def learned() -> agglo.LearnedPolicy:
    """Return a forest of the usual size."""
    superpixels, boundary, _ = volumes.crop()
    graph = agglo.region_graph(superpixels, boundary)
    tree = agglo.agglomerate(graph)
    gold = tree.segment(float(np.quantile(tree.heights, 0.95)))
    return agglo.train(graph, gold, strategy="flat")


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Wall seconds of one call, and what it returned: an edit waits for the disk."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def add(table: Table, work: str, times: list[float], goal: str = "") -> None:
    """Add median and 99th percentile."""
    high = 1e3 * float(np.percentile(times, 99))
    table.add(work, "napari-agglo", float(np.median(times)), f"99 %: {high:.2f} ms", "", goal)


def edits(table: Table, session: agglo.Session, what: str, goal: str = "") -> None:
    """Merge, cut into children, undo and redo at random places of the frontier."""
    rng = np.random.default_rng(0)
    session.look()
    times: dict[str, list[float]] = {"merge": [], "cut into children": [], "undo": [], "redo": []}
    ids = session.segments.ids()
    sizes = np.bincount(session.lut()[1:].astype(np.int64), minlength=int(ids.max()) + 1)[ids]
    large = ids[sizes > 1]

    def do(name: str, work: Callable[[], Any]) -> None:
        times[name].append(timed(work)[0])

    for k in range(EDITS + 5):
        if k == 5:  # the first ones compile
            times = {name: [] for name in times}
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
        add(table, f"{name}, {what}", found, goal)


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
            times.append(timed(lambda seeds=seeds: session.preview(segment, seeds))[0])
        except agglo.InvalidInput:
            continue
    add(table, f"minimum cut of {n:,} superpixels with preview, {what}", times[3:], "< 100 ms")
    session.threshold = seen


def looking(table: Table, session: agglo.Session, what: str) -> None:
    """Show a plane of labels after an edit, and look above one for the first time."""
    shape = session.graph.superpixels.image.shape
    session.labels(0)
    times = []
    a = int(session.segments.ids()[0])
    for k in range(50):
        (session.lock if k % 2 == 0 else session.undo)(*([a] if k % 2 == 0 else []))
        plane = k % shape[0]
        times.append(timed(lambda plane=plane: session.labels(plane))[0])
    if len(shape) == 3:
        add(table, f"labels of a plane {shape[1]} x {shape[2]}, {what}", times, "< 5 ms")
    seen = session.threshold
    # Further up nearly all is one segment, which every merge changes, so that all of its boundaries
    # are asked about again: there is no goal for that.
    for up, goal in ((0.2, "< 1 s"), (0.4, "")):
        rng = np.random.default_rng(1)
        session.threshold = seen + up
        session.look()
        times = []
        for _ in range(5):
            session.threshold = seen
            a = int(rng.choice(session.segments.ids()))
            session.merge(a, int(session.segments.neighbours(a)[0]))
            session.threshold = seen + up
            times.append(timed(session.look)[0])
        add(table, f"first look {up} above an edit, {what}", times[1:], goal)
        session.threshold = seen


def scrubbing(table: Table, session: agglo.Session, what: str) -> None:
    """Move the threshold below what has been looked at, after some edits, as a slider does."""
    seen = session.threshold
    rng = np.random.default_rng(3)
    for _ in range(20):
        a = int(rng.choice(session.segments.ids()))
        session.merge(a, int(session.segments.neighbours(a)[0]))
    times = []
    for threshold in rng.uniform(seen - 0.3, seen, 50):
        session.threshold = float(threshold)
        times.append(timed(lambda: session.lut(dense=True))[0])
    add(table, f"table at another threshold, {what}", times, "< 5 ms")
    session.threshold = seen
    session.look()
    times = {"suggestions": [], "effort": []}
    for _ in range(6):
        one = session.queue.next(1, kind="false_split")[0]
        session.queue.accept(one)
        times["suggestions"].append(timed(lambda: session.queue.next(10))[0])
        times["effort"].append(timed(session.queue.effort)[0])
    for name, found in times.items():
        add(table, f"{name} after an answer, {what}", found[1:], "< 500 ms")


def opening(table: Table, session: agglo.Session, n: int, what: str) -> None:
    """Open a session of many edits: neighbours are merged, and what has grown large is cut."""
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
    path = session.path
    session.close()
    for how in ("", ", journal replayed"):
        # A new process each time, as for who goes on the next day.
        runs = [_opened_anew(path) for _ in range(3 if how else 7)]
        took, busy, entries = np.median(runs, axis=0)
        slowest = max(wall for wall, _, _ in runs)
        rate = f"wall {took:.2f} s, at most {slowest:.2f} s"
        work = f"open, {int(entries):,} edits, {what}{how}"
        table.add(work, "napari-agglo", busy, rate, "", "" if how else "< 2 s")
        shutil.rmtree(path / "snapshots", ignore_errors=True)


_OPEN = """
import sys, time
import napari_agglo as agglo
agglo.Session
wall, busy = time.perf_counter(), time.process_time()
session = agglo.Session.open(sys.argv[1], read_only=True)
print(time.perf_counter() - wall, time.process_time() - busy, len(session.history))
"""


def _opened_anew(path: Path) -> list[float]:
    """Return the wall and CPU seconds that opening takes after the imports, and the entries."""
    command = [sys.executable, "-c", _OPEN, str(path)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [float(word) for word in said.split()]


def made(graph: RegionGraph, policy: Any, folder: Path, threshold: float) -> agglo.Session:
    """Make a session of a graph."""
    path = folder / f"{len(list(folder.iterdir()))}.agglo"
    session = agglo.Session.create(path, graph, policy)
    session.threshold = threshold
    return session


def run(table: Table, quick: bool = False, only_opening: bool = False) -> None:
    """All of the above."""
    folder = Path(tempfile.mkdtemp(prefix="bench-session-"))
    policy = learned()
    shapes = {"10k": (128, 168, 272), "120k": (256, 512, 512)}
    try:
        for name, shape in shapes.items():
            if (quick and name != "10k") or (only_opening and name == "10k"):
                continue
            superpixels, boundary = volumes.tiled(shape)
            graph = agglo.region_graph(superpixels, boundary)
            what = f"{graph.n_regions:,} superpixels, learned"
            session = made(graph, policy, folder, 0.5)
            if only_opening:
                opening(table, session, 10_000, what)
                continue
            edits(table, session, what, "< 10 ms, 99 % < 50 ms")
            cutting(table, session, what)
            looking(table, session, what)
            scrubbing(table, session, what)
            opening(table, session, 1000 if quick else 10_000, what)
            # By one policy the cost can be compared from 10k to a million.
            session = made(graph, "mean", folder, 0.3)
            edits(table, session, f"{graph.n_regions:,} superpixels, mean")
            session.close()
            if name == "120k":
                big = volumes.eight_times(graph)
                del session, graph, superpixels, boundary
                what = f"{big.n_regions:,} superpixels, mean"
                session = made(big, "mean", folder, 0.3)
                edits(table, session, what)
                session.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    print(Table.header())
    run(Table(), quick="quick" in sys.argv, only_opening="opening" in sys.argv)
