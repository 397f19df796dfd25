"""Compare settings of the training by cross-validation within the training parts.

    python -m benchmarks.choose_settings [--seeds 2] [--strategy agglo] [--only fib25] NAME=V,V ...

Each training volume is cut in two across each of its axes; one half is for training and the other
for testing, both ways. An option is one of `ForestSettings` or of `train`; all combinations are
tried. With ``--test-part`` the whole training part is for training and the test part for testing,
and the VI at 0.5 of each seed is printed. docs/learning.md gives the figures.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np

import napari_agglo as agglo
from benchmarks.lessons import Lesson, lessons, training_volumes
from napari_agglo.evaluate import state_at
from napari_agglo.learning import ForestSettings


def halves(volume: tuple[Any, ...], options: dict[str, Any], axis: int) -> list[Lesson]:
    """Return the two halves of a volume across an axis."""
    n = volume[0].shape[axis]
    out = []
    for part in (slice(0, n // 2), slice(n // 2, n)):
        window = tuple(part if a == axis else slice(None) for a in range(volume[0].ndim))
        superpixels, boundary, gold = (np.ascontiguousarray(array[window]) for array in volume)
        out.append((agglo.region_graph(superpixels, boundary, **options), gold))
    return out


def splits(name: str) -> list[tuple[Lesson, Lesson]]:
    """Return (training half, test half), both ways across each axis."""
    volume, options = training_volumes()[name]()
    out = []
    for axis in range(volume[0].ndim):
        first, second = halves(volume, options, axis)
        out += [(first, second), (second, first)]
    return out


def judge(lesson: Lesson, policy: Any) -> tuple[float, float]:
    """Return VI at 0.5 and at the best threshold."""
    graph, gold = lesson
    curve = agglo.vi_curve(agglo.agglomerate(graph, policy), gold)
    return float(state_at(curve, 0.5)["vi"]), float(curve["vi"].min())


def settings_of(chosen: dict[str, Any]) -> dict[str, Any]:
    """Return arguments of `train`: options of the forest go into its settings."""
    known = {field.name for field in fields(ForestSettings)}
    forest = {key: value for key, value in chosen.items() if key in known}
    rest = {key: value for key, value in chosen.items() if key not in known}
    return {**rest, "settings": ForestSettings(**forest)}


def combinations(options: list[str]) -> Iterator[dict[str, Any]]:
    """Return every combination of ``name=value,value`` options."""
    names, values = [], []
    for option in options:
        name, _, given = option.partition("=")
        names.append(name)
        values.append([value(one) for one in given.split(",")])
    for chosen in itertools.product(*values):
        yield dict(zip(names, chosen, strict=True))


def value(text: str) -> Any:
    """Return a number where it is one, else the word."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"none": None, "true": True, "false": False}.get(text, text)


def main() -> None:
    """Print a line for each volume and combination of options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("options", nargs="*", metavar="OPTION=V,V")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--strategy", default="agglo")
    parser.add_argument("--test-part", action="store_true", help="test on the test parts")
    parser.add_argument("--only", help="volumes, separated by commas")
    given = parser.parse_args()
    tried = list(combinations(given.options))
    known = lessons() if given.test_part else training_volumes()
    for name in given.only.split(",") if given.only else known:
        pairs = [lessons()[name]()] if given.test_part else splits(name)
        for chosen in tried:
            start = time.perf_counter()
            found = np.array([
                [judge(test, agglo.train(*training, strategy=given.strategy, seed=seed,
                                            **settings_of(chosen))) for seed in range(given.seeds)]
                for training, test in pairs
            ])  # fmt: skip
            took = (time.perf_counter() - start) / found.shape[0] / found.shape[1]
            half, best = found.mean(axis=(0, 1))
            spread = found.std(axis=1).mean(axis=0)  # over seeds, within a split
            words = " ".join(f"{key}={value}" for key, value in chosen.items()) or "defaults"
            print(
                f"{name:7} {given.strategy:5} {words:32} at 0.5 {half:.3f} ± {spread[0]:.3f}"
                f"  best {best:.3f} ± {spread[1]:.3f}  ({took:.1f} s)",
                flush=True,
            )
            if given.test_part:
                print("    seeds, at 0.5:", *(f"{vi:.3f}" for vi in found[0, :, 0]), flush=True)


if __name__ == "__main__":
    main()
