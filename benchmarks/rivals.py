"""Compare greedy merging with adaptive cut, multicut and mutex watershed, on the same graphs.

    python -m benchmarks.rivals [--only fib25,snemi] [--policies mean,flat,agglo] [--seed 0]
        [--affinities]

Every source of `benchmarks.judge` is used both ways: one part teaches a flat and an agglo policy,
the other judges. A row has the VI at 0.5 and the CPU seconds of the method on the scored graph.
With ``--affinities`` the evidence is affinities with long-range offsets, made of the boundary map
(`benchmarks.experiment_offsets`), which the mutex watershed reads.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import napari_agglo as agglo
from benchmarks.experiment_offsets import affinities_of
from benchmarks.judge import Part, sides, sources
from benchmarks.lessons import Lesson
from napari_agglo.partition import build_tree

ROWS = (
    ("mean", "threshold", {}),
    ("flat", "threshold", {}),
    ("agglo", "threshold", {}),
    ("flat", "adaptive", {}),
    ("agglo", "adaptive", {}),
    ("flat", "multicut", {}),
    ("agglo", "multicut", {}),
    ("mean", "mutex", {}),
    ("flat", "mutex", {}),
    ("agglo", "mutex", {}),
)


def with_affinities(part: Part) -> Lesson:
    """Return the graph of a part with affinities of its boundary map, and the gold standard."""
    low, high = part.options.get("ranges", (0, 1))
    boundary = ((part.cues["boundary"] - np.float32(low)) / (high - low)).astype("f4")
    cues = {"affinity": agglo.affinities(*affinities_of(boundary))}
    graph = agglo.region_graph(part.superpixels, cues, spacing=part.options.get("spacing"))
    return graph, part.gold


def main() -> None:
    """Print a table with a row for each policy and method, a column for each direction."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", help="sources, with commas between them")
    parser.add_argument("--policies", default="mean,flat,agglo")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--affinities", action="store_true", help="of volumes only")
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else list(sources())
    errors: dict[str, list[float]] = {}
    seconds: dict[str, float] = {}
    names = []
    for source in chosen:
        if options.affinities:
            first, second = (
                [with_affinities(part) for part in side] for side in sources()[source]()
            )
        else:
            first, second = sides(source, "boundary")[:2]
        for way, (lessons, tests) in {"": (first, second), "'": (second, first)}.items():
            names.append(source + way)
            policies = {
                name: agglo.train(lessons, strategy=name, seed=options.seed)
                for name in ("flat", "agglo")
                if name in options.policies.split(",")
            }
            for name, method, keywords in ROWS:
                if name not in options.policies.split(","):
                    continue
                row = f"{name}, {method}"
                start, vi = time.process_time(), []
                for graph, gold in tests:
                    tree = build_tree(graph, policies.get(name, "mean"), method, **keywords)
                    labels = tree.segment(0.5)
                    golds = gold if isinstance(gold, list) else [gold]
                    vi += [sum(agglo.split_vi(labels, one)) for one in golds]
                errors.setdefault(row, []).append(float(np.mean(vi)))
                seconds[row] = seconds.get(row, 0.0) + time.process_time() - start
            print(
                names[-1], {row: round(values[-1], 3) for row, values in errors.items()}, flush=True
            )
    print("\n| policy, method | " + " | ".join(names) + " | mean | CPU s |")
    print("|---" * (len(names) + 3) + "|")
    for row, values in errors.items():
        cells = [f"{value:.3f}" for value in (*values, np.mean(values))]
        print(f"| {row} | {' | '.join(cells)} | {seconds[row]:.2f} |")


if __name__ == "__main__":
    main()
