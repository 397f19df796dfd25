"""Compare greedy merging with the adaptive cut and the multicut, on the same graphs and policies.

    python -m benchmarks.rivals [--only fib25,snemi] [--seed 0]

Every source of `benchmarks.judge` is used both ways: one part teaches a flat and an agglo policy,
the other judges. A row has the VI at 0.5 and the CPU seconds of the method on the scored graph.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import napari_agglo as agglo
from benchmarks.judge import sides, sources
from napari_agglo.partition import build_tree

ROWS = (
    ("mean", "threshold", {}),
    ("flat", "threshold", {}),
    ("agglo", "threshold", {}),
    ("flat", "adaptive", {}),
    ("agglo", "adaptive", {}),
    ("flat", "multicut", {}),
    ("agglo", "multicut", {}),
)


def main() -> None:
    """Print a table with a row for each policy and method, a column for each direction."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", help="sources, with commas between them")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else list(sources())
    errors: dict[str, list[float]] = {}
    seconds: dict[str, float] = {}
    names = []
    for source in chosen:
        first, second = sides(source, "boundary")[:2]
        for way, (lessons, tests) in {"": (first, second), "'": (second, first)}.items():
            names.append(source + way)
            policies = {
                name: agglo.train(lessons, strategy=name, seed=options.seed)
                for name in ("flat", "agglo")
            }
            for name, method, keywords in ROWS:
                row = f"{name}, {method}"
                start, vi = time.process_time(), []
                for graph, gold in tests:
                    tree = build_tree(graph, policies.get(name, "mean"), method, **keywords)
                    labels = tree.segment(0.5)
                    golds = gold if isinstance(gold, list) else [gold]
                    vi += [sum(agglo.split_vi(labels, one)) for one in golds]
                errors.setdefault(row, []).append(float(np.mean(vi)))
                seconds[row] = seconds.get(row, 0.0) + time.process_time() - start
            print(names[-1], {row: round(values[-1], 3) for row, values in errors.items()})
    print("\n| policy, method | " + " | ".join(names) + " | mean | CPU s |")
    print("|---" * (len(names) + 3) + "|")
    for row, values in errors.items():
        cells = [f"{value:.3f}" for value in (*values, np.mean(values))]
        print(f"| {row} | {' | '.join(cells)} | {seconds[row]:.2f} |")


if __name__ == "__main__":
    main()
