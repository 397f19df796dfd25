"""Judge ways of training on data that they have not seen; the defaults are chosen with this.

    python -m benchmarks.judge [--seeds 3] [--only fib25,snemi] [--policies mean,flat,agglo]
        [--write-baseline] [--save NAME] [--against NAME] [--profiles] [--thresholds]
        [OPTION=VALUE ...]

Every volume with a gold standard is used both ways: one part teaches and the other judges, then the
other way round. An option is one of `train` or `ForestSettings`; ``cues=boundary+image`` adds the
image as a cue. The loss of a policy at threshold 0.5 has three parts: superpixels that cross gold
boundaries (A*), the order of merges (best - A*), and calibration (at 0.5 - best). The summary is
the mean over directions of the ratio to the baseline, `judge_baseline.json`: the defaults of
November 2026. A policy may have another way to choose segments, ``flat/multicut``, ``agglo/mutex``
or ``agglo/adaptive``: its result is that at 0.5 (docs/partitions.md). Results are kept in
bench-output/judge, by options and by the code that they ran.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

import napari_agglo as agglo
from benchmarks.choose_settings import settings_of, value
from benchmarks.lessons import Lesson
from benchmarks.volumes import data_folder
from napari_agglo.evaluate import best_point, best_together, metrics, state_at, vi_curve
from napari_agglo.partition import build_tree
from napari_agglo.policy import data_profile

BASELINE = Path(__file__).with_name("judge_baseline.json")
KEPT = Path("bench-output") / "judge"
# The folders whose code decides a result.
CODE = (
    "agglomeration", "features", "graph", "learning", "partition", "policy", "samples",
    "superpixels",
)  # fmt: skip
THRESHOLDS = np.arange(201) / 200
_SMOOTH = 21  # thresholds to a mean, when one is chosen
_NEAR = 0.08  # bit above the best VI: the goal of three quarters of the runs at 0.5
LARGE = 1000  # superpixels from which agglo must not be worse than flat, and flat than mean


@dataclass(frozen=True)
class Part:
    """Superpixels with cues, image and gold standard: one side of a direction."""

    superpixels: Any
    cues: dict[str, Any]
    image: Any
    gold: Any
    options: dict[str, Any]

    def lesson(self, cues: str) -> Lesson:
        """Return the graph with the named cues, and the gold standard."""
        chosen = {name: self.cues[name] for name in cues.split("+") if name in self.cues}
        if "all" in cues.split("+"):
            chosen = dict(self.cues)
        if "image" in cues.split("+") and self.image is not None:
            chosen["image"] = self.image
        ranges = self.options.get("ranges")
        options = {key: v for key, v in self.options.items() if key != "ranges"}
        if ranges:
            options["ranges"] = {"boundary": ranges} | (
                {"image": (0, 255)} if "image" in chosen else {}
            )
        return agglo.region_graph(self.superpixels, chosen, **options), self.gold


def _read(*names: str) -> list[Any]:
    import tifffile

    folder = data_folder()
    assert folder is not None
    return [tifffile.imread(folder / f"{name}.tif") for name in names]


def _halves(arrays: list[Any], axis: int, **options: Any) -> list[list[Part]]:
    """Return the two halves of superpixels, boundary, image and gold across an axis."""
    out = []
    for half in (slice(None, arrays[0].shape[axis] // 2), slice(arrays[0].shape[axis] // 2, None)):
        window = (slice(None),) * axis + (half,)
        superpixels, boundary, image, gold = (np.ascontiguousarray(a[window]) for a in arrays)
        out.append([Part(superpixels, {"boundary": boundary}, image, gold, options)])
    return out


def _fibsem() -> list[list[Part]]:
    out = []
    for part in ("train", "test"):
        names = [f"gala_fibsem/{part}_{what}" for what in ("superpixels", "prob", "raw", "gt")]
        superpixels, boundary, image, gold = _read(*names)
        out.append([Part(superpixels, {"boundary": boundary}, image / 255, gold, {})])
    return out


def _snemi() -> list[list[Part]]:
    names = ("superpixels", "prob_interior", "raw", "gt")
    arrays = _read(*(f"gala_snemi_mini/{what}" for what in names))
    return _halves(arrays, 1, ranges=(255, 0), spacing=(30, 6, 6))


def _fib25() -> list[list[Part]]:
    names = ("superpixels", "derived_boundary_prob", "raw", "gt")
    return _halves(_read(*(f"fib25_half/{what}" for what in names)), 1, ranges=(0, 255))


def _tinyfib() -> list[list[Part]]:
    image, gold = _read("gala_fibsem/tinyfib_raw", "gala_fibsem/tinyfib_gt")
    boundary = agglo.boundary_cue(image)
    superpixels = agglo.oversegment(boundary, min_size=50)
    return _halves([superpixels, boundary, image / 255, gold], 1)


def _ovule() -> list[list[Part]]:
    image, gold = _read("plant_ovule/raw", "plant_ovule/gt")
    boundary = image / np.float32(255)
    superpixels = agglo.oversegment(boundary, min_size=50)
    return _halves([superpixels, boundary, boundary, gold], 2, spacing=(0.235, 0.15, 0.15))


def _photographs() -> list[list[Part]]:
    import skimage.io

    folder = data_folder()
    assert folder is not None
    out = []
    for part in ("train", "test"):
        parts = []
        for path in sorted((folder / "bsds500_subset" / part).glob("*.jpg")):
            superpixels, boundary, gold = _read(
                *(
                    f"bsds500_subset/{part}/{path.stem}_{what}"
                    for what in ("superpixels", "ucm", "gt")
                )
            )
            grey = skimage.io.imread(path, as_gray=True)
            parts.append(Part(superpixels, {"boundary": boundary}, grey, list(gold), {}))
        out.append(parts)
    return out


def _generated(kind: str, min_size: int) -> list[list[Part]]:
    out = []
    for seed in (0, 1):
        sample = agglo.sample(kind, seed=seed)
        superpixels = agglo.oversegment(sample.cues["boundary"], min_size=min_size)
        options = {"spacing": sample.spacing}
        out.append([Part(superpixels, sample.cues, sample.image / 255, sample.gold, options)])
    return out


def sources() -> dict[str, Callable[[], list[list[Part]]]]:
    """Return name to a function that gives two lists of parts, which learn and judge in turn."""
    real = {
        "fibsem": _fibsem,
        "snemi": _snemi,
        "fib25": _fib25,
        "tinyfib": _tinyfib,
        "ovule": _ovule,
        "bsds": _photographs,
    }
    generated = {
        "neuropil3d": partial(_generated, "neuropil3d", 1000),
        "neuropil2d": partial(_generated, "neuropil2d", 10),
        "cells2d": partial(_generated, "cells2d", 10),
    }
    return {**(real if data_folder() else {}), **generated}


@cache
def sides(source: str, cues: str) -> list[list[Lesson]]:
    """Return the graphs and gold standards of the two sides of a source."""
    return [[part.lesson(cues) for part in side] for side in sources()[source]()]


@cache
def best_possible(source: str, side: int) -> float:
    """Return the VI of A*, the mean over the graphs of a side."""
    graphs = sides(source, "boundary")[side]
    return float(np.mean([best_point(graph, gold)["vi"] for graph, gold in graphs]))


def judge(lessons: list[Lesson], policy: Any, method: str = "threshold") -> dict[str, Any]:
    """Return errors at 0.5, at the best common threshold, and by threshold: means of lessons."""
    began = time.process_time()
    trees = [build_tree(graph, policy, method) for graph, _ in lessons]
    seconds = time.process_time() - began
    curves = {k: vi_curve(tree, lessons[k][1]) for k, tree in enumerate(trees)}
    best = best_together(curves)
    out: dict[str, Any] = {"threshold": shortest(best), "best": best.mean, "seconds": seconds}
    for name, threshold in (("half", 0.5), ("best", best.threshold)):
        states = [state_at(curve, threshold) for curve in curves.values()]
        out[f"merge_{name}"] = float(np.mean([state["false_merge"] for state in states]))
        out[f"split_{name}"] = float(np.mean([state["false_split"] for state in states]))
        out[f"rand_error_{name}"] = float(
            np.mean([
                metrics(tree.segment(threshold), gold)["adapted_rand_error"]
                for tree, (_, golds) in zip(trees, lessons, strict=True)
                for gold in (golds if isinstance(golds, list) else [golds])
            ])
        )  # fmt: skip
    out["half"] = out["merge_half"] + out["split_half"]
    out["curve"] = [
        round(float(np.mean([state_at(curve, t)["vi"] for curve in curves.values()])), 4)
        for t in THRESHOLDS
    ]
    return out


def shortest(best: Any) -> float:
    """Return a threshold of few digits within the best state."""
    return agglo.evaluate.shortest_threshold(best.threshold, best.following)


def run(source: str, side: int, name: str, options: dict[str, Any], seed: int) -> dict[str, Any]:
    """Train on one side, judge by the other; from the folder of results where it is known."""
    key = {"source": source, "side": side, "policy": name, "options": options, "seed": seed}
    digest = hashlib.sha256(json.dumps([key, code_version()], sort_keys=True).encode()).hexdigest()
    path = KEPT / f"{digest[:32]}.json"
    if path.exists():
        return dict(json.loads(path.read_text()))
    cues = options.get("cues", "boundary")
    given = {key: v for key, v in options.items() if key != "cues"}
    both = sides(source, cues)
    training, test = both[side], both[1 - side]
    began = time.process_time()
    strategy, _, method = name.partition("/")
    policy: Any = strategy
    if strategy != "mean":
        policy = agglo.train(training, strategy=strategy, seed=seed, **settings_of(given))
    seconds = time.process_time() - began
    row = {
        **key,
        "options": json.dumps(options, sort_keys=True),
        "train_seconds": seconds,
        "a_star": best_possible(source, 1 - side),
        "superpixels": sum(graph.n_regions for graph, _ in test),
        **judge(test, policy, method or "threshold"),
    }
    KEPT.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(row))
    return row


@cache
def code_version() -> str:
    """Return a digest of the code that decides a result, without docstrings and comments."""
    folder = Path(agglo.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(path for part in CODE for path in (folder / part).rglob("*.py")):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                node.value.value = ""
        digest.update(ast.dump(tree).encode())
    return digest.hexdigest()


def table_of(runs: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each direction and policy: means over seeds and the parts of the loss."""
    rows = []
    for (source, side, name), group in runs.groupby(["source", "side", "policy"], sort=False):
        mean = group.mean(numeric_only=True)
        rows.append({
            "direction": f"{source} {'swapped' if side else ''}".strip(), "policy": name,
            "at 0.5": mean["half"], "± seeds": group["half"].std(ddof=0), "best": mean["best"],
            "merge": mean["merge_best"], "split": mean["split_best"],
            "superpixels": mean["a_star"], "order": mean["best"] - mean["a_star"],
            "calibration": mean["half"] - mean["best"], "ARE": mean["rand_error_half"],
            "ARE best": mean["rand_error_best"], "s": mean["train_seconds"],
            "s merging": mean.get("seconds", np.nan),
        })  # fmt: skip
    return pd.DataFrame(rows)


def ratios(runs: pd.DataFrame, baseline: pd.DataFrame, column: str, draws: int = 2000) -> Any:
    """Return the ratio of each direction, their mean, and its 95 % interval.

    The interval is a bootstrap over directions and, within each, over the seeds of both.
    """
    mine = {key: g[column].to_numpy() for key, g in runs.groupby(["source", "side"])}
    theirs = {key: g[column].to_numpy() for key, g in baseline.groupby(["source", "side"])}
    shared = [key for key in mine if key in theirs]
    each = pd.Series({key: mine[key].mean() / theirs[key].mean() for key in shared})
    rng = np.random.default_rng(0)
    means = []
    for _ in range(draws):
        drawn = [shared[k] for k in rng.integers(len(shared), size=len(shared))]
        means.append(np.mean([
            rng.choice(mine[key], len(mine[key])).mean()
            / rng.choice(theirs[key], len(theirs[key])).mean() for key in drawn
        ]))  # fmt: skip
    return each, float(each.mean()), np.quantile(means, [0.025, 0.975])


def summary(runs: pd.DataFrame, baseline: pd.DataFrame | None) -> str:
    """Return the figures that the goals speak of."""
    lines = []
    learned = ~runs["policy"].str.startswith("mean")
    for name, mine in runs[learned].groupby("policy", sort=False):
        gap = mine["half"] - mine["best"]
        spread = mine.groupby(["source", "side"])["half"].std(ddof=0)
        lines.append(
            f"{name}: at 0.5 within {_NEAR} bit of the best in {(gap <= _NEAR).mean():.0%} of "
            f"{len(gap)} runs; deviation over seeds at 0.5 {spread.mean():.3f} bit in the mean, "
            f"{spread.max():.3f} at most"
        )
        theirs = None if baseline is None else baseline[baseline["policy"] == name]
        if theirs is not None and len(theirs):
            for column, words in (("best", "best VI"), ("half", "VI at 0.5")):
                each, mean, (low, high) = ratios(mine, theirs, column)
                worst = each.idxmax()
                lines.append(
                    f"    {words}: {mean:.3f} of the baseline ({low:.3f} to {high:.3f}); largest "
                    f"{each.max():.3f} ({worst[0]}{' swapped' if worst[1] else ''})"
                )
    best = runs.groupby(["source", "side", "policy"])["best"].mean().unstack()
    large = runs.groupby(["source", "side"])["superpixels"].max() >= LARGE
    if {"mean", "flat", "agglo"} <= set(best.columns):
        for key, row in best[large.reindex(best.index)].iterrows():
            if not row["agglo"] <= row["flat"] <= row["mean"]:
                lines.append(
                    f"order at the best on {key[0]}{' swapped' if key[1] else ''}: agglo "
                    f"{row['agglo']:.3f}, flat {row['flat']:.3f}, mean {row['mean']:.3f}"
                )
    return "\n".join(lines)


def thresholds(runs: pd.DataFrame) -> str:
    """Return how much another fixed threshold would give, chosen without the set that judges it.

    For each source: the threshold of the least mean distance from the best VI in the directions of
    all others, smoothed over 0.1, and the distance and the share of runs within 0.08 bit there and
    at 0.5.
    """
    runs = runs.reset_index(drop=True)
    gaps = np.stack(runs["curve"].to_list()) - runs["best"].to_numpy()[:, None]
    by_direction = pd.DataFrame(gaps).groupby([runs["source"], runs["side"]]).mean()

    def least(directions: pd.DataFrame) -> int:
        mean = np.pad(directions.mean().to_numpy(), _SMOOTH // 2, "edge")
        return int(np.argmin(np.convolve(mean, np.ones(_SMOOTH), "valid")))

    def row(source: str, at: int, there: Any, half: Any) -> dict[str, Any]:
        return {"source": source, "threshold": THRESHOLDS[at], "above best": there.mean(),
                "at 0.5": half.mean(), "within": (there <= _NEAR).mean(),
                "at 0.5 within": (half <= _NEAR).mean()}  # fmt: skip

    half = gaps[:, int(np.argmin(abs(THRESHOLDS - 0.5)))]
    rows, chosen = [], np.zeros(len(runs))
    for source in runs["source"].unique():
        at = least(by_direction[by_direction.index.get_level_values(0) != source])
        mine = (runs["source"] == source).to_numpy()
        chosen[mine] = gaps[mine, at]
        rows.append(row(source, at, chosen[mine], half[mine]))
    rows.append(row("all", least(by_direction), chosen, half))
    return pd.DataFrame(rows).to_string(index=False, float_format="%.3f")


def profiles(source: str) -> str:
    """Return what is said of each side after a training on the other, and of changed boundaries.

    The other side as it is, with its boundary cue inverted, and half as strong.
    """
    lines = []
    parts = [side[0] for side in sources()[source]()]
    graphs = [part.lesson("all")[0] for part in parts]
    for side in (0, 1):
        policy: Any = SimpleNamespace(record={"data": data_profile([graphs[side]])})
        other = graphs[1 - side]
        assert other.cues is not None
        kinds = {}
        for name, change in (("as it is", None), ("inverted", 255), ("half", 2)):
            values = {cue: other.cues[k].copy() for k, cue in enumerate(other.cue_names)}
            if change is not None:
                boundary = values["boundary"]
                values["boundary"] = 255 - boundary if name == "inverted" else boundary // change
            shaped = {c: v.reshape(parts[1 - side].superpixels.shape) for c, v in values.items()}
            graph = agglo.region_graph(
                parts[1 - side].superpixels,
                shaped,
                spacing=other.spacing,
                ranges=dict.fromkeys(shaped, (0, 255)),
            )
            differences = agglo.data_differences(policy, graph)
            kinds[name] = ", ".join(one.kind for one in differences) or "nothing"
        direction = f"{source}{' swapped' if side else ''}"
        lines.append(f"{direction}: " + "; ".join(f"{n}: {k}" for n, k in kinds.items()))
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, print the table and the summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default=",".join(sources()), help="sources, with commas")
    parser.add_argument("--policies", default="agglo")
    parser.add_argument("--write-baseline", action="store_true")
    parser.add_argument("--save", help="keep these runs under a name")
    parser.add_argument("--against", help="compare with runs kept under a name")
    parser.add_argument(
        "--profiles", action="store_true", help="only print what `data_differences` reports"
    )
    parser.add_argument(
        "--thresholds", action="store_true", help="also judge other thresholds than 0.5"
    )
    parser.add_argument("options", nargs="*", metavar="OPTION=VALUE")
    given = parser.parse_args()
    if unknown := set(given.only.split(",")) - set(sources()):
        parser.error(f"no data for {', '.join(unknown)}; there are {', '.join(sources())}")
    if given.profiles:
        for source in given.only.split(","):
            if source != "bsds":  # many images a side
                print(profiles(source), flush=True)
        return
    options = {name: value(v) for name, _, v in (one.partition("=") for one in given.options)}
    rows = []
    for source in given.only.split(","):
        for side in (0, 1):
            for name in given.policies.split(","):
                is_mean = name.partition("/")[0] == "mean"
                for seed in range(1 if is_mean else given.seeds):
                    rows.append(run(source, side, name, {} if is_mean else options, seed))
        table = table_of(pd.DataFrame([row for row in rows if row["source"] == source]))
        print(table.to_string(index=False, float_format="%.3f"), flush=True)
    runs = pd.DataFrame(rows)
    if given.write_baseline:
        kept = [{key: v for key, v in row.items() if key != "curve"} for row in rows]
        BASELINE.write_text(json.dumps(kept, indent=0) + "\n")
    if given.save:
        (KEPT / f"{given.save}.json").write_text(json.dumps(rows))
    against = KEPT / f"{given.against}.json" if given.against else BASELINE
    known = pd.DataFrame(json.loads(against.read_text())) if against.exists() else None
    print(summary(runs, known))
    for name, mine in runs.groupby("policy", sort=False) if given.thresholds else ():
        print(f"\n{name}, with a threshold chosen without the source:\n{thresholds(mine)}")


if __name__ == "__main__":
    main()
