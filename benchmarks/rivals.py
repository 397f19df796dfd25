"""Compare greedy merging with adaptive cut, multicut and mutex watershed, on the same graphs.

    python -m benchmarks.rivals [--only fib25,snemi] [--seeds 1] [--affinities] [--steps 1]

Every source of `benchmarks.judge` is used both ways: one part teaches a flat and an agglo policy,
the other judges. A row of the table has the VI at 0.5, the mean over seeds of the training, and the
CPU seconds of the method on the scored graphs, for one seed. Each direction and seed that was
measured is kept in bench-output/rivals, and not measured again: remove that folder after a change
of the code. ``--steps`` stops after some new ones; the table so far is kept for the documentation.
With ``--affinities`` the evidence is affinities with long-range offsets, made of the boundary map
(`benchmarks.experiment_offsets`), which the mutex watershed reads.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import napari_agglo as agglo
from benchmarks.experiment_offsets import affinities_of
from benchmarks.judge import Part, sides, sources
from benchmarks.lessons import Lesson
from benchmarks.results import keep_text, line
from napari_agglo.partition import build_tree

KEPT = Path("bench-output") / "rivals"
ROWS = (
    ("mean", "threshold"),
    ("flat", "threshold"),
    ("agglo", "threshold"),
    ("flat", "adaptive"),
    ("agglo", "adaptive"),
    ("flat", "multicut"),
    ("agglo", "multicut"),
    ("mean", "mutex"),
    ("flat", "mutex"),
    ("agglo", "mutex"),
)


def with_affinities(part: Part) -> Lesson:
    """Return the graph of a part with affinities of its boundary map, and the gold standard."""
    low, high = part.options.get("ranges", (0, 1))
    boundary = ((part.cues["boundary"] - np.float32(low)) / (high - low)).astype("f4")
    cues = {"affinity": agglo.affinities(*affinities_of(boundary))}
    graph = agglo.region_graph(part.superpixels, cues, spacing=part.options.get("spacing"))
    return graph, part.gold


def judged(policies: dict[str, Any], tests: list[Lesson]) -> Iterator[dict[str, Any]]:
    """Yield each row of the table: its name, its VI on the tests, and its CPU seconds."""
    for name, method in ROWS:
        start, vi = time.process_time(), []
        trees = [build_tree(graph, policies.get(name, name), method) for graph, _ in tests]
        seconds = time.process_time() - start
        for tree, (_, gold) in zip(trees, tests, strict=True):
            labels = tree.segment(0.5)
            golds = gold if isinstance(gold, list) else [gold]
            vi += [sum(agglo.split_vi(labels, one)) for one in golds]
        yield {"row": f"{name}, {method}", "vi": float(np.mean(vi)), "seconds": seconds}


def measured(
    source: str, seeds: int, affinities: bool, known: set[tuple[str, int]]
) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of each direction and seed of a source that are not `known`."""
    orders = [
        (seed, way) for seed in range(seeds) for way in ("", "'")
        if (source + way, seed) not in known
    ]  # fmt: skip
    if not orders:
        return
    if affinities:
        first, second = ([with_affinities(part) for part in side] for side in sources()[source]())
    else:
        first, second = sides(source, "boundary")[:2]
    for seed, way in orders:
        lessons, tests = (second, first) if way else (first, second)
        policies = {
            name: agglo.train(lessons, strategy=name, seed=seed) for name in ("flat", "agglo")
        }
        yield [{"direction": source + way, "seed": seed, **row} for row in judged(policies, tests)]


def markdown(rows: list[dict[str, Any]]) -> str:
    """Return a table with a row for each policy and method, a column for each direction."""
    table = pd.DataFrame(rows)
    columns = [name for source in sources() for name in (source, source + "'")
               if name in set(table["direction"])]  # fmt: skip
    means = table.groupby(["row", "direction"])[["vi", "seconds"]].mean()
    lines = [line(("policy, method", *columns, "mean", "CPU s"))]
    lines.append("|---" * (len(columns) + 3) + "|")
    for name in (f"{policy}, {method}" for policy, method in ROWS):
        values = [float(means.loc[(name, one), "vi"]) for one in columns]
        figures = [f"{value:.3f}" for value in (*values, np.mean(values))]
        seconds = float(means.loc[name]["seconds"].sum())
        lines.append(line((name, *figures, f"{seconds:.2f}")))
    counts = table.groupby("direction")["seed"].nunique()
    seeds: dict[int, list[str]] = {}
    for name in columns:
        seeds.setdefault(int(counts[name]), []).append(name)
    notes = [
        f"- {n} seed{'s' if n > 1 else ''} of the training"
        + ("." if len(seeds) == 1 else f": {', '.join(names)}.")
        for n, names in seeds.items()
    ]
    return "\n".join([*lines, "", *notes])


def main() -> None:
    """Measure what is not known yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", help="sources, with commas between them")
    parser.add_argument("--seeds", type=int, default=1, help="of the training of each direction")
    parser.add_argument("--affinities", action="store_true", help="of volumes only")
    parser.add_argument("--steps", type=int, help="stop after so many directions and seeds")
    options = parser.parse_args()
    name = "mutex" if options.affinities else "rivals"
    file = KEPT / f"{name}.json"
    rows: list[dict[str, Any]] = (
        json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    )
    known = {(row["direction"], row["seed"]) for row in rows}
    new = (
        found
        for source in (options.only.split(",") if options.only else sources())
        for found in measured(source, options.seeds, options.affinities, known)
    )
    for found in islice(new, options.steps):
        rows += found
        KEPT.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(rows, indent=1), encoding="utf-8")
        keep_text(name, markdown(rows))
        print(found[0]["direction"], {row["row"]: round(row["vi"], 3) for row in found}, flush=True)
    if rows:
        print("\n" + markdown(rows))


if __name__ == "__main__":
    main()
