"""Compare greedy merging with adaptive cut, multicut and mutex watershed, on the same graphs.

    python -m benchmarks.rivals [--only fib25,snemi] [--policies mean,flat,agglo] [--seeds 1]
        [--affinities]

Every source of `benchmarks.judge` is used both ways: one part teaches a flat and an agglo policy,
the other judges. A row has the VI at 0.5, the mean over seeds of the training, and the CPU seconds
of the method on the scored graph, of all seeds together. After each direction the table so far is
kept for the documentation.
With ``--affinities`` the evidence is affinities with long-range offsets, made of the boundary map
(`benchmarks.experiment_offsets`), which the mutex watershed reads.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

import napari_agglo as agglo
from benchmarks.experiment_offsets import affinities_of
from benchmarks.judge import Part, sides, sources
from benchmarks.lessons import Lesson
from benchmarks.results import keep_text, line
from napari_agglo.partition import build_tree

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


def judged(
    policies: dict[str, Any], tests: list[Lesson], chosen: list[str]
) -> Iterator[tuple[str, float, float]]:
    """Yield each row's name, its VI on the tests, and its CPU seconds."""
    for name, method in ROWS:
        if name not in chosen:
            continue
        start, vi = time.process_time(), []
        for graph, gold in tests:
            labels = build_tree(graph, policies.get(name, name), method).segment(0.5)
            golds = gold if isinstance(gold, list) else [gold]
            vi += [sum(agglo.split_vi(labels, one)) for one in golds]
        yield f"{name}, {method}", float(np.mean(vi)), time.process_time() - start


def markdown(errors: pd.DataFrame, seconds: dict[str, float], note: str) -> str:
    """Return the table: `errors` has a row for each policy and method, a column a direction."""
    lines = [line(("policy, method", *errors.columns, "mean", "CPU s"))]
    lines.append("|---" * (len(errors.columns) + 3) + "|")
    for row, values in errors.iterrows():
        figures = [f"{value:.3f}" for value in (*values, values.mean())]
        lines.append(line((row, *figures, f"{seconds[str(row)]:.2f}")))
    return "\n".join([*lines, "", f"- {note}."])


def main() -> None:
    """Print a table with a row for each policy and method, a column for each direction."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", help="sources, with commas between them")
    parser.add_argument("--policies", default="mean,flat,agglo")
    parser.add_argument("--seeds", type=int, default=1, help="of the training of each direction")
    parser.add_argument("--affinities", action="store_true", help="of volumes only")
    options = parser.parse_args()
    chosen = options.policies.split(",")
    errors = pd.DataFrame()
    seconds: dict[str, float] = {}
    plural = "s" if options.seeds > 1 else ""
    for source in options.only.split(",") if options.only else sources():
        if options.affinities:
            first, second = (
                [with_affinities(part) for part in side] for side in sources()[source]()
            )
        else:
            first, second = sides(source, "boundary")[:2]
        for way, (lessons, tests) in {"": (first, second), "'": (second, first)}.items():
            each: dict[str, list[float]] = {}
            for seed in range(options.seeds):
                policies = {
                    name: agglo.train(lessons, strategy=name, seed=seed)
                    for name in ("flat", "agglo")
                    if name in chosen
                }
                for row, vi, cpu in judged(policies, tests, chosen):
                    each.setdefault(row, []).append(vi)
                    seconds[row] = seconds.get(row, 0.0) + cpu
            one = pd.Series({row: np.mean(values) for row, values in each.items()})
            errors = one.to_frame(source + way) if errors.empty else errors.assign(
                **{source + way: one}
            )  # fmt: skip
            print(source + way, one.round(3).to_dict(), flush=True)
            note = f"Mean of {options.seeds} seed{plural} of the training"
            keep_text("mutex" if options.affinities else "rivals", markdown(errors, seconds, note))
    print("\n" + markdown(errors, seconds, note))


if __name__ == "__main__":
    main()
