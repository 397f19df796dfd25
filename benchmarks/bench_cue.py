"""A boundary cue from the bare image: errors beside those of a given map, and speed.

    python -m benchmarks.bench_cue quality
    python -m benchmarks.bench_cue speed

`quality` reads the volumes of the data folder (`AGGLO_DATA`, or ``../shared/data``) and the
embedded samples: superpixels with the defaults from either map, agglomerated by its mean, and the
least VI along the thresholds. Of natural images it is the mean over twenty images, each the mean
over those who drew it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import napari_agglo as agglo
from benchmarks.volumes import data_folder
from napari_agglo.superpixels import CueKind

Array = np.ndarray[Any, Any]
Case = tuple[str, Array, Array, list[Array], dict[str, Any]]  # name, image, map, golds, options


def samples() -> Iterator[Case]:
    """Yield the embedded samples."""
    for kind in ("neuropil3d", "neuropil2d", "cells2d"):
        one = agglo.sample(kind)
        yield kind, one.image, one.cues["boundary"], [one.gold], {"spacing": one.spacing}


def volumes(data: Path) -> Iterator[Case]:
    """Yield the real volumes, whole: the threshold is chosen by the gold in any case."""
    from tifffile import imread

    def read(name: str) -> Array:
        return np.asarray(imread(data / name))

    fib = "gala_fibsem/train_"
    yield "gala_fibsem", read(f"{fib}raw.tif"), read(f"{fib}prob.tif"), [read(f"{fib}gt.tif")], {}
    given = read("fib25_half/derived_boundary_prob.tif") / np.float32(255)
    yield "fib25_half", read("fib25_half/raw.tif"), given, [read("fib25_half/gt.tif")], {}
    gold = read("gala_snemi_mini/gt.tif").astype(np.int64)
    given = 1 - read("gala_snemi_mini/prob_interior.tif") / np.float32(255)
    options = {"spacing": (30, 6, 6), "per_plane": True}
    raw = read("gala_snemi_mini/raw.tif")
    yield "gala_snemi_mini", raw, given, [np.where(gold == 1, 0, gold)], options
    raw = read("plant_ovule/raw.tif")
    options = {"spacing": (0.235, 0.15, 0.15)}
    yield "plant_ovule", raw, raw / np.float32(255), [read("plant_ovule/gt.tif")], options


def pictures(data: Path) -> Iterator[Case]:
    """Yield the natural images of the training set."""
    import imageio.v3 as iio
    from tifffile import imread

    for path in sorted((data / "bsds500_subset" / "train").glob("*.jpg")):
        stem = str(path.with_suffix(""))
        golds = list(imread(f"{stem}_gt.tif"))
        yield "bsds500", iio.imread(path), imread(f"{stem}_ucm.tif"), golds, {}


def least_vi(cue: Array, golds: list[Array], options: dict[str, Any]) -> tuple[float, int]:
    """Return the least VI along the thresholds, the mean over the golds, and the superpixels."""
    superpixels = agglo.oversegment(cue.astype(np.float32), **options)
    spacing = options.get("spacing")
    graph = agglo.region_graph(superpixels, cue, spacing=spacing, statistics="mean")
    tree = agglo.agglomerate(graph)
    least = [float(agglo.vi_curve(tree, gold)["vi"].min()) for gold in golds]
    return float(np.mean(least)), graph.n_regions


def quality() -> None:
    """Print the table of docs/superpixels.md."""
    data = data_folder()
    cases = [*samples(), *(volumes(data) if data else ())]
    kinds: tuple[CueKind, ...] = ("auto", "dark_ridges", "bright_ridges", "dark", "bright")
    print("| image | map that came with it | auto | dark ridges | bright ridges | dark | bright |")
    print("|---|---|---|---|---|---|---|")
    for name, image, given, golds, options in cases:
        spacing = options.get("spacing")
        cues = [agglo.boundary_cue(image, kind, spacing=spacing) for kind in kinds]
        found = [least_vi(cue, golds, options) for cue in (given, *cues)]
        print(f"| {name} | {' | '.join(f'{vi:.2f} ({n})' for vi, n in found)} |", flush=True)
    if data is None:
        return
    print("\n| images | map that came with them | auto | gradient |\n|---|---|---|---|")
    rows = []
    for _, image, given, golds, options in pictures(data):
        edges = agglo.boundary_cue(image, "gradient")
        maps = (given, agglo.boundary_cue(image), edges)
        rows.append([least_vi(cue, golds, options) for cue in maps])
    means = np.mean(rows, axis=0)
    print(f"| {len(rows)} of BSDS500 | {' | '.join(f'{vi:.2f} ({n:.0f})' for vi, n in means)} |")


def speed() -> None:
    """Print the speed on a volume of 256 x 256 x 256, by CPU time."""
    image = agglo.sample("neuropil3d").image
    pad = [(0, 256 - n) for n in image.shape]
    volume = np.pad(image, pad, mode="symmetric")
    for kind in ("auto", "dark_ridges", "dark", "gradient"):
        agglo.boundary_cue(volume[:8], kind)  # kernels are compiled
        start = time.process_time()
        agglo.boundary_cue(volume, kind)
        took = time.process_time() - start
        print(f"{kind:12} {volume.size / 1e6 / took:5.1f} Mvox/s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode", choices=["quality", "speed"])
    {"quality": quality, "speed": speed}[parser.parse_args().mode]()
    sys.exit(0)
