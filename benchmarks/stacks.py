"""Compare two ways to segment anisotropic stacks: superpixels in 3-D, and plane by plane.

    python -m benchmarks.stacks [--seeds 2] [--trainings 3] [--only snemi,generated] [--steps 1]
    python -m benchmarks.stacks --figure docs/images

Agglomeration is in 3-D in both. SNEMI-mini (30 x 6 x 6 nm) teaches with one half and judges with
the other, both ways; of the generated stacks (every fifth section of isotropic neuropil, the mean
of three planes, with a cue from each section alone) each teaches for the next, and the last for the
first: two stacks are both directions. The table has the adapted Rand error at 0.5 and at the best
threshold, means over directions and seeds of the training. Each row that was measured is kept in
bench-output/stacks, and not measured again: remove that folder after a change of the code, and
``--steps`` stops after some new ones. The figure shows the best merging of the superpixels of both
ways in sections of a generated stack.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import napari_agglo as agglo
from benchmarks.results import keep_text, line
from benchmarks.volumes import data_folder
from napari_agglo.evaluate import metrics
from napari_agglo.plots._raster_pictures import borders, grey, label_colours, outlined
from napari_agglo.samples._neuropil import neuropil_cues
from napari_agglo.samples._sample import neuropil_sample

KEPT = Path("bench-output") / "stacks"
STEP = 5  # planes from one section to the next
SHAPE = (150, 160, 160)
THRESHOLDS = np.arange(1, 40) / 40
WAYS = {"in 3-D": {}, "plane by plane": {"per_plane": True}}
# Policy and features; mean agglomeration has none.
ROWS = (("mean", ""), ("agglo", "stack"), ("agglo", "shape"))


@dataclass(frozen=True, eq=False)
class Stack:
    """Image, boundary map and gold standard of a stack, whose planes are far apart."""

    image: Any
    boundary: Any
    gold: Any
    spacing: tuple[float, ...]

    def lesson(self, way: str) -> tuple[Any, Any]:
        """Return the graph of superpixels made in one of `WAYS`, and the gold standard."""
        superpixels = agglo.oversegment(self.boundary, spacing=self.spacing, **WAYS[way])
        return agglo.region_graph(superpixels, self.boundary, spacing=self.spacing), self.gold


def snemi() -> list[Stack]:
    """Return the two halves of SNEMI-mini; its label 1 is membrane, and is not annotated here."""
    import tifffile

    folder = data_folder()
    assert folder is not None
    names = ("raw", "prob_interior", "gt")
    image, interior, gold = (
        tifffile.imread(folder / "gala_snemi_mini" / f"{name}.tif") for name in names
    )
    boundary = (1 - interior / np.float32(255)).astype(np.float32)
    gold = np.where(gold == 1, 0, gold)
    halves = [(slice(None), half) for half in (slice(0, 80), slice(80, 160))]
    return [Stack(image[at], boundary[at], gold[at], (30.0, 6.0, 6.0)) for at in halves]


def generated(seed: int) -> Stack:
    """Return a stack of sections of neuropil, from a file where it was made before."""
    path = KEPT / f"neuropil-{STEP}-{seed}.npz"
    if path.exists():
        kept = np.load(path)
        image, boundary, gold = kept["image"], kept["boundary"], kept["gold"]
    else:
        tissue = neuropil_sample("neuropil", SHAPE, seed)
        middle = STEP // 2
        each = tissue.image.reshape(SHAPE[0] // STEP, STEP, *SHAPE[1:])
        image = each[:, middle - 1 : middle + 2].mean(axis=1).round().astype(np.uint8)
        gold = tissue.gold[middle::STEP]
        boundary = np.stack([neuropil_cues(plane)["boundary"] for plane in image])
        KEPT.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, image=image, boundary=boundary, gold=gold)
    return Stack(image, boundary, gold, (0.008 * STEP, 0.008, 0.008))


def directions(source: str, seeds: int) -> Iterator[tuple[str, Stack, Stack]]:
    """Yield the name of a direction, the stack to learn from and the one to judge."""
    if source == "snemi":
        first, second = snemi()
        yield "SNEMI-mini", first, second
        yield "SNEMI-mini swapped", second, first
    else:
        stacks = [generated(seed) for seed in range(seeds)]
        for k in range(seeds):
            yield f"generated {k}", stacks[k], stacks[(k + 1) % seeds]


def judge(tree: Any, gold: Any) -> dict[str, float]:
    """Return the adapted Rand error and the VI of a tree at 0.5 and at the best threshold."""
    each = [metrics(tree.segment(float(t)), gold) for t in THRESHOLDS]
    errors = [one["adapted_rand_error"] for one in each]
    vi = [one["vi"] for one in each]
    half = int(np.argmin(abs(THRESHOLDS - 0.5)))
    return {"error at 0.5": float(errors[half]), "least error": float(min(errors)),
            "VI at 0.5": float(vi[half]), "least VI": float(min(vi))}  # fmt: skip


def coloured(labels: Any, gold: Any) -> Any:
    """Return a plane in the colours of the gold segments that the labels overlap most, outlined.

    Where a colour is not that of the gold standard, a segment is of several objects; a line within
    a colour divides one object.
    """
    gold_ids, truth = np.unique(gold, return_inverse=True)
    ids, of = np.unique(labels, return_inverse=True)
    counts = np.zeros((len(ids), len(gold_ids)), np.int64)
    np.add.at(counts, (of.ravel(), truth.ravel()), 1)
    colours = label_colours(len(gold_ids))
    colours[gold_ids == 0] = 0.6  # not annotated
    picture = colours[counts.argmax(axis=1)[of.reshape(labels.shape)]]
    return [outlined(plane, borders(own), (0.0, 0.0, 0.0)) for plane, own in
            zip(picture, labels, strict=True)]  # fmt: skip


def draw(stack: Stack, folder: Path) -> None:
    """Draw three successive sections: image, gold standard, and the best merging of both ways."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    at = slice(len(stack.image) // 2, len(stack.image) // 2 + 3)
    columns = {
        "image": [grey(plane) for plane in stack.image[at]],
        "gold standard": coloured(stack.gold[at], stack.gold[at]),
    }
    for way in WAYS:
        best = agglo.best_agglomeration(*stack.lesson(way))
        error = metrics(best, stack.gold)["adapted_rand_error"]
        title = f"superpixels {way}\nbest merging: error {error:.3f}"
        columns[title] = coloured(best[at], stack.gold[at])
    figure = Figure((2.6 * len(columns), 8.1), layout="constrained")
    FigureCanvasAgg(figure)
    for k, (name, planes) in enumerate(columns.items()):
        for row, plane in enumerate(planes):
            axes: Any = figure.add_subplot(3, len(columns), 1 + k + row * len(columns))
            axes.imshow(plane, interpolation="nearest")
            axes.set_xticks([])
            axes.set_yticks([])
            if row == 0:
                axes.set_title(name, fontsize=10)
            if k == 0:
                axes.set_ylabel(f"section {at.start + row}", fontsize=9)
    figure.savefig(folder / "stacks.png", dpi=80)


def measured(given: argparse.Namespace) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows so far, after each one; first all of the first seed of the training."""
    file = KEPT / "rows.json"
    rows: list[dict[str, Any]] = (
        json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    )
    known = {tuple(row[one] for one in KEYS) for row in rows}
    yield rows
    pairs = [
        (source, *one)
        for source in given.only.split(",")
        for one in directions(source, given.seeds)
    ]
    lesson = cache(Stack.lesson)
    orders = [
        (seed, rule, pair, way)
        for seed in range(given.trainings)
        for rule in ROWS
        for pair in pairs
        for way in WAYS
    ]
    for seed, (policy, preset), (source, name, teacher, test), way in orders:
        row = {"source": source, "direction": name, "superpixels": way,
               "policy": f"{policy} {preset}".strip(), "seed": seed}  # fmt: skip
        if tuple(row.values()) in known or (policy == "mean" and seed):
            continue
        began = time.process_time()
        rule = policy if policy == "mean" else agglo.train(
            *lesson(teacher, way), strategy=policy, preset=preset, seed=seed
        )  # fmt: skip
        seconds = time.process_time() - began
        graph, gold = lesson(test, way)
        best = metrics(agglo.best_agglomeration(graph, gold), gold)
        row |= judge(agglo.agglomerate(graph, rule), gold)
        row |= {"A* error": best["adapted_rand_error"], "training s": seconds}
        rows.append(row)
        KEPT.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(rows, indent=1), encoding="utf-8")
        print(row, flush=True)
        yield rows


KEYS = ("source", "direction", "superpixels", "policy", "seed")
TITLES = {"snemi": "SNEMI-mini", "generated": "generated"}


def markdown(rows: list[dict[str, Any]]) -> str:
    """Return the means as a table: a row for each policy, a column for each source and way."""
    table = pd.DataFrame(rows)
    columns = [(source, way) for source in TITLES for way in WAYS if source in set(table["source"])]
    lines = [line(("policy, features", *(f"{TITLES[s]}, {way}" for s, way in columns)))]
    lines.append("|---" * (1 + len(columns)) + "|")
    counts: dict[str, list[str]] = {}
    for policy in dict.fromkeys(table["policy"]):
        cells = []
        for source, way in columns:
            part = table[(table["source"] == source) & (table["superpixels"] == way)]
            part = part[part["policy"] == policy]
            if part.empty:
                cells.append("not measured")
                continue
            at, least = part["error at 0.5"], part["least error"]
            spread = "" if len(part) < 3 else f" ± {at.std(ddof=1):.3f}"
            cells.append(f"{at.mean():.3f}{spread} ({least.mean():.3f})")
            if policy != "mean":
                each = part.groupby("direction").size()
                counts.setdefault(f"{len(each)} directions, {len(part)} trainings", []).append(
                    f"{policy}, {TITLES[source]} {way}"
                )
        name, _, preset = policy.partition(" ")
        lines.append(line((f"{name}, `{preset}`" if preset else name, *cells)))
    best = []
    for source, way in columns:
        part = table[(table["source"] == source) & (table["superpixels"] == way)]
        best.append(f"{part.groupby('direction')['A* error'].first().mean():.3f}")
    lines.append(line(("A\\*", *best)))
    of = [next(iter(counts))] if len(counts) == 1 else [
        f"{one}: {'; '.join(names)}" for one, names in counts.items()
    ]  # fmt: skip
    lines += ["", *(f"- {one}." for one in of)]
    return "\n".join(lines)


def main() -> None:
    """Print a row for each direction, way and policy, then the means; or draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2, help="generated stacks")
    parser.add_argument("--trainings", type=int, default=3, help="seeds of each training")
    parser.add_argument("--only", default="snemi,generated" if data_folder() else "generated")
    parser.add_argument("--steps", type=int, help="stop after so many rows that were not kept")
    parser.add_argument("--figure", metavar="FOLDER", help="only draw stacks.png there")
    given = parser.parse_args()
    if given.figure:
        draw(generated(1), Path(given.figure))
        return
    rows: list[dict[str, Any]] = []
    for rows in islice(measured(given), None if given.steps is None else given.steps + 1):
        if rows:
            keep_text("stacks", markdown(rows))
    print(markdown(rows))
    each = pd.DataFrame(rows).pivot_table(
        "error at 0.5", ["source", "direction"], ["superpixels", "policy"], sort=False
    )
    print(each.round(3).to_string())


if __name__ == "__main__":
    main()
