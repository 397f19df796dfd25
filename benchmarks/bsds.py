"""The paper's Table 1 with our rows: photographs of BSDS500 against several people.

    python -m benchmarks.bsds [--rows "mean,oriented mean,flat,agglo"] [--no-boundaries]
        [--images 20] [--seeds 0,1,2,3,4] [--preset natural]

Policies are learned from the images of ``train`` and judged on those of ``test``, in the folder
``bsds500_subset`` of the data. The rows: from our own oriented map of the bare image, *mean*,
*oriented mean*, *flat* and *agglo*; from the map of gPb-owt-ucm (Arbelaez et al. 2011), which comes
with the data, *gPb mean*, which is gPb-owt-ucm itself, *gPb flat* and *gPb agglo*; and each person
against the others, *human*. Learned rows read textons too. Covering (ODS, OIS, Best), the Rand
index and VI (ODS, OIS) are means over images and people; F (ODS, OIS) and the average precision are
of boundaries, matched within 0.0075 of the diagonal.
Oriented maps and words are kept in bench-output/bsds, by the code that made them, and so is each
row, with its options: the table of the documentation has the last run of each. A learned row is the
mean over seeds of the training; seeds of the same options may be run one after the other.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import napari_agglo as agglo
from benchmarks.results import keep_text, line
from benchmarks.volumes import data_folder
from napari_agglo.evaluate import (
    average_precision,
    best_covering,
    boundary_curve,
    boundary_scores,
    human_agreement,
    over_set,
    vi_curve,
)
from napari_agglo.superpixels import textons
from napari_agglo.volumes import OrientedCue, oriented_map, word_cue

KEPT = Path("bench-output") / "bsds"
COLUMNS = ("covering", "OIS", "Best", "RI", "OIS", "VI", "OIS", "F", "OIS", "AP")
TOLERANCE = 0.0075  # of the diagonal, as in the Berkeley benchmark
_THRESHOLDS = 40  # of a boundary curve


class Photograph:
    """An image of the data with its annotations and its maps."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.golds = list(self._tiff("gt"))

    @property
    def name(self) -> str:
        return self.path.stem

    def image(self) -> Any:
        """Return the colours of the image."""
        from skimage import io

        return io.imread(self.path)

    def _tiff(self, what: str) -> Any:
        import tifffile

        return tifffile.imread(self.path.with_name(f"{self.path.stem}_{what}.tif"))

    def _kept(self, what: str, make: Callable[[], Any]) -> Any:
        file = KEPT / f"{_code()}_{what}_{self.name}.npy"
        if not file.exists():
            KEPT.mkdir(parents=True, exist_ok=True)
            np.save(file, make())
        return np.load(file)

    def graph(self, source: str) -> Any:
        """Return the graph of our own map, "own", or of that of gPb, "gPb"."""
        image = self.image()
        cues: dict[str, Any] = {}
        if source == "own":
            channels = self._kept("map", lambda: agglo.oriented_boundary(image).channels)
            cues["boundary"] = oriented_map(channels, value_range=(0, 255))
            superpixels = agglo.oversegment(cues["boundary"])
        else:
            cues["boundary"] = _at_corners(self._tiff("ucm"))
            superpixels = self._tiff("superpixels")
        words = self._kept("words", lambda: textons(image).words)
        cues["textons"] = word_cue(words, 100)
        return agglo.region_graph(superpixels, cues)


_MAKERS = (
    "_oriented_energy.py", "_eigenvectors.py", "_boundary_weights.py", "_half_discs.py",
    "_filter_bank.py",
)  # fmt: skip


def _at_corners(ucm: Any) -> OrientedCue:
    """Return a map of gPb, whose values are those of lower right corners of pixels, by faces.

    A corner has the highest value of the faces that meet in it, so that a face has the lower one of
    its two corners.
    """
    values = np.round(255 * np.clip(ucm, 0, 1)).astype(np.uint8)
    faces = []
    for axis in (0, 1):
        before = np.roll(values, 1, axis=1 - axis)
        first = (slice(None), slice(0, 1)) if axis == 0 else (slice(0, 1), slice(None))
        before[first] = values[first]
        faces.append(np.minimum(values, before))
    return OrientedCue(values, tuple(faces))


def _code() -> str:
    """Return a digest of the code that makes maps and words."""
    folder = Path(agglo.__file__).parent / "superpixels"
    text = b"".join((folder / name).read_bytes() for name in _MAKERS)
    return hashlib.sha256(text).hexdigest()[:10]


def photographs(part: str, most: int) -> list[Photograph]:
    """Return the images of a part of the data."""
    folder = data_folder()
    if folder is None:
        raise SystemExit("No data: set AGGLO_DATA to the folder that has bsds500_subset.")
    return [Photograph(path) for path in sorted((folder / "bsds500_subset" / part).glob("*.jpg"))][
        :most
    ]


def learned(strategy: str, source: str, images: list[Photograph], **options: Any) -> Any:
    """Return a policy learned from images."""
    volumes = [(one.graph(source), one.golds) for one in images]
    return agglo.train(volumes, strategy=strategy, **options)


def judged(
    policy: Any, source: str, images: Iterable[Photograph], boundaries: bool
) -> tuple[list[float], float]:
    """Return a row of the table, and the CPU seconds of merging."""
    seconds = 0.0
    curves: dict[str, Any] = {}
    best: dict[str, float] = {}
    lines: dict[str, Any] = {}
    trees: dict[str, Any] = {}
    for one in images:
        graph = one.graph(source)
        began = time.process_time()
        with warnings.catch_warnings():  # images differ in contrast from those of the training
            warnings.simplefilter("ignore", agglo.errors.DataWarning)
            tree = agglo.agglomerate(graph, policy)
        seconds += time.process_time() - began
        curves[one.name] = vi_curve(tree, one.golds)
        best[one.name] = float(np.mean([best_covering(tree, gold) for gold in one.golds]))
        if boundaries:
            trees[one.name] = tree, one.golds
    heights = np.concatenate([tree.heights for tree, _ in trees.values()] or [np.zeros(1)])
    # The same thresholds for all images, at which the numbers of segments fall by equal factors.
    cuts = np.unique(np.quantile(heights, 1 - np.geomspace(0.7, 5e-4, _THRESHOLDS)))
    for name, (tree, golds) in trees.items():
        tolerance = TOLERANCE * math.hypot(*golds[0].shape)
        lines[name] = boundary_curve(tree, golds, tolerance=tolerance, thresholds=cuts)
    covering = over_set(curves, "covering", best=best)
    rand, vi = over_set(curves, "rand"), over_set(curves, "vi")
    row = [
        covering.ods,
        covering.ois,
        float(covering.best or 0),
        rand.ods,
        rand.ois,
        vi.ods,
        vi.ois,
    ]
    if not boundaries:
        return [*row, math.nan, math.nan, math.nan], seconds
    f = over_set(lines, "f")
    return [*row, f.ods, f.ois, average_precision(_pooled(lines))], seconds


def _pooled(lines: dict[str, Any]) -> pd.DataFrame:
    """Return precision and recall of the pixels of all images together, at all thresholds."""
    from napari_agglo.evaluate import state_at

    grid = np.unique(np.concatenate([one["threshold"] for one in lines.values()]))
    rows = []
    for threshold in grid[:: max(1, len(grid) // 200)]:
        at = [state_at(one, threshold) for one in lines.values()]
        drawn, right, true, recalled = (
            sum(one[n] for one in at) for n in ("drawn", "right", "true", "recalled")
        )
        rows.append({"precision": right / max(drawn, 1), "recall": recalled / max(true, 1)})
    return pd.DataFrame(rows)


def human(images: Iterable[Photograph], boundaries: bool) -> list[float]:
    """Return the row of each person against the others."""
    regions, lines = [], []
    for one in images:
        regions.append(human_agreement(one.golds)[["covering", "rand", "vi"]].mean())
        if boundaries:
            tolerance = TOLERANCE * math.hypot(*one.golds[0].shape)
            for k, gold in enumerate(one.golds):
                others = [other for j, other in enumerate(one.golds) if j != k]
                lines.append(boundary_scores(gold, others, tolerance=tolerance))
    covering, rand, vi = pd.DataFrame(regions).mean()
    f = math.nan
    if lines:
        drawn, right, true, recalled = (
            sum(one[n] for one in lines) for n in ("drawn", "right", "true", "recalled")
        )
        precision, recall = right / drawn, recalled / true
        f = 2 * precision * recall / (precision + recall)
    return [covering, covering, math.nan, rand, rand, vi, vi, f, f, math.nan]


ROWS = ("mean", "oriented mean", "flat", "agglo", "gPb mean", "gPb flat", "gPb agglo", "human")


def keep(name: str, row: list[float], options: str, seed: int | None) -> None:
    """Keep a row, and the table of all rows that were kept."""
    file = KEPT / "rows.json"
    rows = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    former = rows.get(name, {})
    each = former["each"] if former.get("options") == options else {}
    each["" if seed is None else str(seed)] = [None if math.isnan(one) else one for one in row]
    rows[name] = {"each": each, "options": options}
    KEPT.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    keep_text("bsds", markdown(rows))


def mean(each: dict[str, list[float | None]]) -> list[float]:
    """Return the mean of the rows of all seeds."""
    out: list[float] = np.mean(np.array(list(each.values()), float), axis=0).tolist()
    return out


def markdown(rows: dict[str, Any]) -> str:
    """Return the table of rows, and under it the options, and the figures of each seed."""
    lines = [line(("", *COLUMNS)), "|---" * (1 + len(COLUMNS)) + "|"]
    shown = [one for one in reversed(ROWS) if one in rows]
    lines += [line((one, *cells(mean(rows[one]["each"])))) for one in shown]
    made: dict[str, list[str]] = {}
    for one in shown:
        made.setdefault(rows[one]["options"], []).append(one)
    lines += ["", *(f"- {', '.join(names)}: {how}." for how, names in made.items())]
    for one in shown:
        each = {int(seed): row for seed, row in rows[one]["each"].items() if seed}
        if len(each) > 1:
            seeds = sorted(each)
            covering, vi = (
                " ".join(f"{each[seed][COLUMNS.index(what)]:.3f}" for seed in seeds)
                for what in ("covering", "VI")
            )
            of = ", ".join(map(str, seeds))
            lines.append(f"- {one}, mean over the seeds {of}: covering {covering}, VI {vi}.")
    return "\n".join(lines)


def cells(row: list[float]) -> list[str]:
    """Return figures as texts."""
    return ["" if math.isnan(one) else f"{one:.3f}" for one in row]


def main() -> None:
    """Print the table as Markdown, and keep it for the documentation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--no-boundaries", action="store_true")
    parser.add_argument("--images", type=int, default=20, help="of each part, at most")
    parser.add_argument("--seeds", default="0", help="of the trainings, divided by commas")
    parser.add_argument("--preset", default="natural", help="of the features of learned rows")
    arguments = parser.parse_args()
    taught, tested = photographs("train", arguments.images), photographs("test", arguments.images)
    boundaries = not arguments.no_boundaries
    print(line(("", *COLUMNS)) + "\n" + "|---" * (1 + len(COLUMNS)) + "|", flush=True)
    for name in arguments.rows.split(","):
        source, policy = ("gPb", name[4:]) if name.startswith("gPb ") else ("own", name)
        learns = policy in ("flat", "agglo")
        for seed in map(int, arguments.seeds.split(",")) if learns else [None]:
            start = time.process_time()
            learning = merging = 0.0
            options = f"{len(tested)} test images"
            if policy == "human":
                row = human(tested, boundaries)
            else:
                rule: Any = policy
                if learns:
                    rule = learned(policy, source, taught, seed=seed, preset=arguments.preset)
                    learning = time.process_time() - start
                    options += f", learned from {len(taught)}, features `{arguments.preset}`"
                row, merging = judged(rule, source, tested, boundaries)
            whole = time.process_time() - start
            keep(name, row, options, seed)
            title = name if seed is None else f"{name}, seed {seed}"
            print(line((title, *cells(row))))
            print(f"  (CPU {whole:.0f} s: {learning:.0f} learning, {merging:.1f} merging)",
                  flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
