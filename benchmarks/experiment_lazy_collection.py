"""Share of a training that the collection of examples takes, and the gain of lazy priorities in it.

    python -m benchmarks.experiment_lazy_collection [VOLUME ...]

Agglomeration keeps lower bounds in its queue and evaluates the rest of the trees only for what
comes to the top. Here the same is done in the epochs of a training, by kernels that the package
does not have. The command prints the CPU seconds of a training and the shares in it of the
collection and of walking trees; the share of the trees that lazy priorities spare; and the seconds
that they save, as a share of the training.

The policies of all epochs are those of a training with the defaults, and each collection is
repeated with them by both loops, in turn. The examples must be the same, in the same order, but for
the boundaries that are left at the end of an epoch of agglo: their order is that of the heap, which
depends on every exact priority.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import napari_agglo as agglo
from benchmarks.bench_learning import sample_2d
from benchmarks.lessons import Lesson as Volume
from benchmarks.lessons import lessons
from benchmarks.timing import cpu_seconds, interleaved
from napari_agglo._numba import inlined, kernel, subroutine
from napari_agglo._numba.heaps import heap_settle
from napari_agglo.agglomeration import (
    Adjacency,
    EdgeQueue,
    link,
    merge_pair,
    policy_scoring,
    remove_edge,
)
from napari_agglo.agglomeration._merge_order import comes_before
from napari_agglo.agglomeration._rescoring import edge_queue, put_edge
from napari_agglo.features import FeatureState, assemble, feature_state
from napari_agglo.learning._collect_examples import (
    AT_ONCE,
    EXAMPLES,
    LEFT,
    MERGES,
    Cells,
    Room,
    _label,
    _note,
    merge_cells,
    rand_gain,
)
from napari_agglo.learning._fit import Examples
from napari_agglo.learning._training_volume import TrainingVolume, boundary_labels
from napari_agglo.policy import CHUNK, Trees, owner_of, walk_row, walk_rows

# Trees between two looks at the bound of a chunk; for the boundary on top, all of the rest. Groups
# of 4 with 8 for the one on top spare more trees and took more time; 8 with 16 took about as long.
_GROUP = 16
_STEPS = 20_000  # boundaries scored or refined between two returns to Python
ALL, WALKED, LEFT_OVER = 0, 1, 2  # places in `Lazy.counted`
WAYS: dict[str, dict[str, Any]] = {
    "agglo": {},
    "agglo, no near misses": {"near_misses": False},
    "lash": {"strategy": "lash"},
}


class Lazy(NamedTuple):
    """A forest, buffers for a chunk, and the trees that have been evaluated for each edge."""

    trees: Trees
    in_bag: NDArray[np.uint8]  # (trees, owners)
    group: NDArray[np.int64]
    rows: NDArray[np.float32]  # buffers: features of a chunk, ...
    owners: NDArray[np.int64]
    which: NDArray[np.uint32]  # ... rows that are walked further, ...
    chosen: NDArray[np.uint32]  # ... those of them whose owner one tree does not know, ...
    totals: NDArray[np.float64]  # ... and their sums
    walked: NDArray[np.int32]  # of each edge: trees so far, those that know its owner included, ...
    sums: NDArray[np.float64]  # ... the sum of the values of the others, ...
    most: NDArray[np.int64]  # ... and the number that the sum will be divided by
    unknown: NDArray[np.int64]  # of each owner: trees that do not know the owner
    top: NDArray[np.int64]  # buffer: the edge on top of the queue
    counted: NDArray[np.int64]  # trees to evaluate in full, trees evaluated, examples left over
    eager: int  # whether all trees are evaluated at once
    rounds: int  # times that a chunk is walked: twice, to measure the cost of walking


@inlined
def _value(edge: Any, total: Any, lazy: Lazy) -> Any:
    """Return the bound of an edge, which is the priority once all trees are in the total."""
    return total / lazy.most[edge] if lazy.most[edge] > 0 else 0.5


@subroutine
def _finish_row(row: Any, edge: Any, owner: Any, total: Any, lazy: Lazy) -> Any:
    """Return the total of a row with the trees that are left."""
    n_trees = np.int64(lazy.trees.roots.size)
    for tree in range(np.int64(lazy.walked[edge]), n_trees):
        if lazy.in_bag[tree, owner] == 0:
            total = walk_row(np.uint32(row), tree, tree + 1, total, lazy.rows, lazy.trees)
            lazy.counted[WALKED] += 1
    lazy.walked[edge] = n_trees
    return total


@subroutine
def _walk_chunk(edges: Any, start: Any, m: Any, limit: Any, lazy: Lazy) -> None:
    """Walk the rows of a chunk, a group of trees at a time, until their bounds exceed a limit."""
    trees, in_bag, which, chosen = lazy.trees, lazy.in_bag, lazy.which, lazy.chosen
    totals, owners = lazy.totals, lazy.owners
    n_trees: Any = np.int64(trees.roots.size)
    active: Any = np.int64(0)
    for row in range(m):
        edge = edges[start + row]
        totals[row] = 0.0
        which[active] = row
        active += np.int64(lazy.most[edge] > 0)
        lazy.walked[edge] = 0 if lazy.most[edge] > 0 else n_trees
    tree: Any = np.int64(0)
    while active > 0 and tree < n_trees:
        stop = n_trees if lazy.eager else min(tree + _GROUP, n_trees)
        for one in range(tree, stop):
            n: Any = np.int64(0)
            for at in range(active):
                chosen[n] = which[at]
                n += np.int64(in_bag[one, owners[which[at]]] == 0)
            walk_rows(lazy.rows, chosen, n, one, one + 1, trees, totals)
            lazy.counted[WALKED] += n
        tree = stop
        left: Any = np.int64(0)
        for at in range(active):
            row = which[at]
            edge = edges[start + row]
            lazy.walked[edge] = tree
            which[left] = row
            left += np.int64(totals[row] <= limit * lazy.most[edge])
        active = left


@subroutine
def _enter(
    edges: Any, n: Any, limit: Any, near: Any, labels: Any, lazy: Lazy, queue: EdgeQueue,
    ends: Any, ids: Any, features: FeatureState,
) -> Any:  # fmt: skip
    """Queue edges by bounds; return the first of those labelled +1 with the lowest priority.

    Without `near`, and if no edge has that label, -1 is returned.
    """
    priority, ties, heap, place, size = queue
    group, totals, owners = lazy.group, lazy.totals, lazy.owners
    n_trees = lazy.trees.roots.size
    nearest: Any = np.int64(-1)
    best = np.inf
    for start in range(0, n, CHUNK):
        m = min(CHUNK, n - start)
        assemble(edges, start, m, ends, ids, 0, lazy.rows, features)
        for k in range(m):
            edge = edges[start + k]
            owners[k] = owner_of(group[np.int64(ends[edge, 0])], group[np.int64(ends[edge, 1])])
            lazy.most[edge] = lazy.unknown[owners[k]]
            lazy.counted[ALL] += lazy.most[edge]
        for _ in range(lazy.rounds):
            _walk_chunk(edges, start, m, limit, lazy)
        # Of the boundaries to keep, those are evaluated in full whose bounds do not exceed the
        # lowest priority: first the one of the lowest bound.
        lowest: Any = np.int64(-1)
        least = np.inf
        for k in range(m if near else 0):
            edge = edges[start + k]
            bound = _value(edge, totals[k], lazy)
            if labels[edge] > 0 and bound < least:
                lowest = k
                least = bound
        bar = best
        for turn in range(-1, m if lowest >= 0 else -1):
            k = lowest if turn < 0 else np.int64(turn)
            edge = edges[start + k]
            # Not the total with the product of the bar, which may be rounded to below the total.
            if labels[edge] > 0 and _value(edge, totals[k], lazy) <= bar:
                totals[k] = _finish_row(k, edge, owners[k], totals[k], lazy)
                bar = min(bar, _value(edge, totals[k], lazy))
        for k in range(m):
            edge = edges[start + k]
            value = _value(edge, totals[k], lazy)
            if near and labels[edge] > 0 and lazy.walked[edge] == n_trees and value < best:
                best = value
                nearest = edge
            lazy.sums[edge] = totals[k]
            put_edge(edge, value, ends, ids, priority, ties, heap, place, size)
    return nearest


@kernel
def _fill(
    edges: Any, labels: Any, lazy: Lazy, queue: EdgeQueue, ends: Any, ids: Any,
    features: FeatureState,
) -> None:  # fmt: skip
    """Queue all `edges`. No bounds checking."""
    limit = np.inf if lazy.eager else 0.0
    _enter(edges, edges.size, limit, False, labels, lazy, queue, ends, ids, features)


@subroutine
def _finish_top(
    edge: Any, lazy: Lazy, queue: EdgeQueue, ends: Any, ids: Any, features: FeatureState
) -> None:
    """Evaluate the rest of the trees for the edge on top of the queue."""
    priority, ties, heap, place, size = queue
    lazy.top[0] = edge
    assemble(lazy.top, 0, 1, ends, ids, 0, lazy.rows, features)
    owner = owner_of(lazy.group[np.int64(ends[edge, 0])], lazy.group[np.int64(ends[edge, 1])])
    lazy.sums[edge] = _finish_row(0, edge, owner, lazy.sums[edge], lazy)
    priority[edge] = _value(edge, lazy.sums[edge], lazy)
    heap_settle(edge, np.int64(0), comes_before, priority, ties, heap, place, size[0])


@kernel
def _strict(
    adjacency: Adjacency, queue: EdgeQueue, touched: Any, lazy: Lazy, features: FeatureState,
    ids: Any, assigned: Any, labels: Any, near_misses: Any, room: Room,
) -> Any:  # fmt: skip
    """Do the same as `collect_strict`, but for the order of what is left. No bounds checking."""
    ends, absorbed = adjacency.ends, adjacency.absorbed
    heap, size, tally = queue.heap, queue.size, room.tally
    n_trees = lazy.trees.roots.size
    scored = 0
    while tally[LEFT] > 0:
        if tally[EXAMPLES] + AT_ONCE > room.labels.size or scored > _STEPS:
            return False
        edge = np.int64(heap[0])
        if lazy.walked[edge] < n_trees:
            scored += 1
            _finish_top(edge, lazy, queue, ends, ids, features)
            continue
        limit = np.inf if lazy.eager else queue.priority[edge]
        remove_edge(edge, queue)
        _note(edge, np.int64(labels[edge]), room, ends, ids, lazy.group, features)
        if labels[edge] > 0:
            continue
        winner = np.int64(min(ids[ends[edge, 0]], ids[ends[edge, 1]]))
        survivor, gone, n_parallel, n = merge_pair(
            edge, winner, touched, adjacency, queue, ids, features
        )
        tally[MERGES] += 1
        tally[LEFT] -= 1
        for k in range(n_parallel):
            tally[LEFT] -= labels[absorbed[k]] < 0
        for gold in range(assigned.shape[0]):
            if assigned[gold, survivor] != assigned[gold, gone]:
                assigned[gold, survivor] = 0
        known: Any = np.int64(0)
        for k in range(n):
            other = touched[k]
            label = _label(np.int64(ends[other, 0]), np.int64(ends[other, 1]), assigned)
            tally[LEFT] += np.int64(label < 0) - np.int64(labels[other] < 0)
            labels[other] = label
            touched[known] = other
            known += label != 0
            if label == 0:
                remove_edge(other, queue)
        scored += known
        nearest = _enter(
            touched, known, limit, near_misses, labels, lazy, queue, ends, ids, features
        )
        if nearest >= 0:
            _note(nearest, np.int64(1), room, ends, ids, lazy.group, features)
    lazy.counted[LEFT_OVER] = max(lazy.counted[LEFT_OVER], size[0])
    while size[0] > 0:
        if tally[EXAMPLES] + AT_ONCE > room.labels.size:
            return False
        edge = np.int64(heap[size[0] - 1])
        remove_edge(edge, queue)
        _note(edge, np.int64(labels[edge]), room, ends, ids, lazy.group, features)
    return True


@kernel
def _loose(
    adjacency: Adjacency, queue: EdgeQueue, touched: Any, lazy: Lazy, features: FeatureState,
    ids: Any, labels: Any, cells: Cells, room: Room,
) -> Any:  # fmt: skip
    """Do the same as `collect_loose`. No bounds checking."""
    ends, tally = adjacency.ends, room.tally
    n_trees = lazy.trees.roots.size
    scored = 0
    while queue.size[0] > 0:
        if tally[EXAMPLES] + AT_ONCE > room.labels.size or scored > _STEPS:
            return False
        edge = np.int64(queue.heap[0])
        if lazy.walked[edge] < n_trees:
            scored += 1
            _finish_top(edge, lazy, queue, ends, ids, features)
            continue
        limit = np.inf if lazy.eager else queue.priority[edge]
        remove_edge(edge, queue)
        u = np.int64(ends[edge, 0])
        v = np.int64(ends[edge, 1])
        gain = rand_gain(u, v, cells)
        if gain != 0:
            label = np.int64(-1 if gain > 0 else 1)
            _note(edge, label, room, ends, ids, lazy.group, features)
        winner = np.int64(min(ids[u], ids[v]))
        survivor, gone, _, n = merge_pair(edge, winner, touched, adjacency, queue, ids, features)
        merge_cells(survivor, gone, cells)
        tally[MERGES] += 1
        scored += n
        _enter(touched, n, limit, False, labels, lazy, queue, ends, ids, features)
    return True


class Call(NamedTuple):
    """One collection of a training: a volume, a policy, and the owners that its trees know."""

    volume: TrainingVolume
    features: Any
    policy: Any
    in_bag: NDArray[np.uint8]
    near_misses: bool | None  # None for lash

    def by_package(self) -> Examples:
        """Return the examples by the loop of the package."""
        what = self.features, self.policy, self.in_bag, _silent
        if self.near_misses is None:
            return LOOSE(self.volume, *what)
        return STRICT(self.volume, *what, near_misses=self.near_misses)

    def by_bounds(self, eager: bool = False, rounds: int = 1) -> tuple[Examples, NDArray[np.int64]]:
        """Return the examples by the loop with bounds, and its counts."""
        volume, graph = self.volume, self.volume.graph
        if self.near_misses is None:
            known = np.any(volume.assigned > 0, axis=0)
            usable = known[graph.edges].all(axis=1)
            forbidden, labels, most = ~usable, np.zeros(len(usable), np.int8), int(known.sum())
        else:
            labels = boundary_labels(graph.edges, volume.assigned)
            usable, forbidden = labels != 0, np.zeros(len(labels), bool)
            most = int((labels < 0).sum())
        scoring = policy_scoring(graph, self.policy, self.in_bag, volume.group, self.features.width)
        state = feature_state(graph, self.features)
        bag = scoring.in_bag
        if not bag.size:  # every tree scores every boundary
            bag = np.zeros((len(scoring.trees.roots), int(volume.group.max()) + 1), np.uint8)
        n_nodes, n_edges = len(state.regions), len(graph.edges)
        lazy = Lazy(
            trees=scoring.trees, in_bag=bag, group=scoring.group, rows=scoring.rows,
            owners=scoring.owners, which=scoring.which, chosen=scoring.which.copy(),
            totals=scoring.scores, walked=np.zeros(n_edges, np.int32), sums=np.zeros(n_edges),
            most=np.zeros(n_edges, np.int64), unknown=(bag == 0).sum(axis=0),
            top=np.zeros(1, np.int64), counted=np.zeros(3, np.int64), eager=int(eager),
            rounds=rounds,
        )  # fmt: skip
        adjacency, queue = link(graph.edges, n_nodes), edge_queue(forbidden)
        ids, touched = np.arange(n_nodes, dtype=np.int32), np.empty(n_nodes, np.int64)
        _fill(np.flatnonzero(usable), labels, lazy, queue, adjacency.ends, ids, state)
        tally = np.array([0, 0, most], np.int64)
        loop = adjacency, queue, touched, lazy, state, ids
        if self.near_misses is None:
            cells = volume._cells()
            step: Callable[[Room], bool] = lambda room: bool(_loose(*loop, labels, cells, room))  # noqa: E731
        else:
            assigned, near = volume.assigned.copy(), self.near_misses
            step = lambda room: bool(_strict(*loop, assigned, labels, near, room))  # noqa: E731
        return volume._run(self.features, step, tally, most, _silent), lazy.counted


STRICT, LOOSE = TrainingVolume.strict, TrainingVolume.loose


def _silent(merges: int, most: int, examples: int) -> None:
    """Report no progress."""


def recorded(volume: Volume, options: dict[str, Any]) -> tuple[list[Call], float, float]:
    """Return the collections of a training; its CPU seconds, and those of the collections."""
    calls: list[Call] = []
    spent = 0.0

    def collect(near_misses: bool | None, *what: Any) -> Examples:
        nonlocal spent
        start = time.process_time()
        calls.append(Call(*what[:4], near_misses))
        examples = calls[-1].by_package()
        spent += time.process_time() - start
        return examples

    TrainingVolume.strict = lambda *what, near_misses: collect(near_misses, *what)  # type: ignore
    TrainingVolume.loose = lambda *what: collect(None, *what)  # type: ignore
    try:
        took = cpu_seconds(lambda: agglo.train(*volume, **options))
    finally:
        TrainingVolume.strict, TrainingVolume.loose = STRICT, LOOSE  # type: ignore
    return calls, took, spent


def check(call: Call) -> NDArray[np.int64]:
    """Compare the examples of both loops; return the counts of the lazy one."""
    expected = call.by_package()
    examples, counted = call.by_bounds()
    first = len(expected) - int(counted[LEFT_OVER])
    tables = [
        np.column_stack([one.rows, one.labels, one.owners]).astype(np.float64)
        for one in (expected, examples)
    ]
    assert np.array_equal(tables[0][:first], tables[1][:first]), "not the same examples"
    left = [table[first:][np.lexsort(table[first:].T)] for table in tables]
    assert np.array_equal(*left), "not the same boundaries are left"
    return counted


def measure(volume: Volume, options: dict[str, Any], runs: int = 5) -> dict[str, float]:
    """Return seconds and shares of a training."""
    calls, *_ = recorded(volume, options)
    counted = np.sum([check(call) for call in calls], axis=0)
    trainings = [recorded(volume, options)[1:] for _ in range(runs)]
    times = interleaved(
        {
            "package": lambda: [call.by_package() for call in calls],
            "lazy": lambda: [call.by_bounds() for call in calls],
            "all trees": lambda: [call.by_bounds(eager=True) for call in calls],
            "all trees twice": lambda: [call.by_bounds(eager=True, rounds=2) for call in calls],
        },
        runs=runs,
    )
    took = min(seconds for seconds, _ in trainings)
    return {
        "training": took,
        "collection": min(spent for _, spent in trainings) / took,
        "walks": (times["all trees twice"] - times["all trees"]) / took,
        "spared": 1 - counted[WALKED] / counted[ALL],
        "saved": (times["package"] - times["lazy"]) / took,
    }


def main(names: list[str]) -> None:
    """Print a row for each volume and way of collecting."""
    for options in WAYS.values():
        agglo.train(*sample_2d(64), epochs=1, **options)  # compiles
    volumes: dict[str, Callable[[], Volume]] = {"neuropil2d": lambda: sample_2d(None)}
    volumes |= {name: lambda make=make: make()[0] for name, make in lessons().items()}  # type: ignore
    columns = "volume", "examples by", "training", "collection", "walks", "trees spared", "saved"
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    for name in names or volumes:
        volume = volumes[name]()
        for way, options in WAYS.items():
            of = measure(volume, options)
            print(
                f"| {name} | {way} | {of['training']:.2f} s | {of['collection']:.0%} | "
                f"{of['walks']:.1%} | {of['spared']:.0%} | {of['saved']:.1%} |", flush=True,
            )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
