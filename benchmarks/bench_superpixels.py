"""Superpixels: how fast, and how much of the gold standard they can still express.

    python benchmarks/bench_superpixels.py speed [--side 256]
    python benchmarks/bench_superpixels.py quality [DATA]

`speed` makes its own volume and compares with scikit-image and bioimage-cpp, where these can be
imported, in one run, one thread, by CPU time. `quality` reads the volumes of the folder DATA (or of
the environment variable AGGLO_DATA); it needs tifffile.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage

from napari_agglo.superpixels import oversegment
from napari_agglo.superpixels._watershed import flood, label_minima, make_grid

Array = np.ndarray[Any, Any]


def volume(side: int, seed: int = 0) -> Array:
    """Sheets between random blobs, mirror-tiled to `side`; noise makes no two tiles equal."""
    rng = np.random.default_rng(seed)
    small = max(16, side // 4)
    blobs = ndimage.gaussian_filter(rng.random((small,) * 3).astype(np.float32), 3)
    blobs = (blobs - blobs.min()) / np.ptp(blobs)
    sheets = np.clip(1 - 6 * np.abs(blobs - 0.5), 0, 1)
    tiled = np.pad(sheets, [(0, side - small)] * 3, mode="symmetric")
    return np.clip(tiled + rng.normal(0, 0.05, tiled.shape), 0, 1).astype(np.float32)


def best_time(work: Callable[[], object], runs: int) -> float:
    """CPU seconds of the fastest of `runs`."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def optional(name: str) -> Any:
    """Import a module that may be absent."""
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"({name} is not installed: left out)")
        return None


def speed(side: int) -> None:
    """Print Mvox/s and ratios for the whole and for the watershed alone."""
    print("Making the volume ...", flush=True)
    image = volume(side)
    tiny = volume(32)
    for per_plane in (False, True):
        oversegment(tiny, per_plane=per_plane)  # compile
    rows: list[tuple[str, float]] = []

    def row(name: str, work: Callable[[], object], runs: int = 3) -> None:
        rows.append((name, best_time(work, runs)))
        print(f"{name:52s} {image.size / 1e6 / rows[-1][1]:6.2f} Mvox/s", flush=True)

    print(f"\n{side}^3 voxels, {oversegment(image).max()} superpixels by default")
    row("oversegment, defaults", lambda: oversegment(image))
    row("oversegment, min_size=1 (smooth, seeds, flood)", lambda: oversegment(image, min_size=1))
    row("oversegment, sigma=1, min_size=1", lambda: oversegment(image, sigma=1, min_size=1))
    row("oversegment, per_plane", lambda: oversegment(image, per_plane=True))

    smooth = ndimage.gaussian_filter(image, 1.0, mode="nearest")
    heights = np.rint(smooth * 65535).astype(np.uint16)
    grid = make_grid(image.shape, [True] * 3)
    levels = np.zeros(grid.size, np.uint16)
    grid.view(levels)[...] = heights
    dry = np.zeros(grid.size, grid.index_dtype)
    grid.view(dry)[...] = -1 - heights.astype(np.int32)
    row("seeds alone", lambda: label_minima(dry.copy(), grid, lambda *_: None))
    label_minima(dry, grid, lambda *_: None)
    seeds = np.maximum(grid.view(dry), 0).astype(np.uint32)

    def ours() -> Array:
        state = dry.copy()
        flood(state, levels, grid, lambda *_: None)
        return grid.view(state)

    print(f"\nWatershed alone, the same {seeds.max()} seeds, sigma 1")
    row("this", ours)
    mine = rows[-1][1]
    found = ours()
    compiled = optional("bioimage_cpp.segmentation")
    skimage = optional("skimage.segmentation")
    if compiled:
        row("bioimage-cpp", lambda: compiled.watershed(smooth, seeds))
        print(f"    this is {rows[-1][1] / mine:.1f} times as fast")
    if skimage:
        kept: list[Array] = []
        row("scikit-image", lambda: kept.append(skimage.watershed(heights, seeds)), runs=1)
        print(f"    this is {rows[-1][1] / mine:.1f} times as fast")
        from skimage.metrics import variation_of_information

        print("    VI to scikit-image:", _bits(variation_of_information(kept[0], found)))
        if compiled:
            theirs = compiled.watershed(smooth, seeds)
            print("    VI of bioimage-cpp to it:", _bits(variation_of_information(kept[0], theirs)))


def _bits(pair: Array) -> str:
    return f"{pair[0]:.4f} + {pair[1]:.4f} bits"


def best_vi(labels: Array, gold: Array) -> Array:
    """VI (false merge, false split) when each superpixel goes to the gold it overlaps most."""
    from skimage.metrics import variation_of_information

    kept = gold != 0
    one, two = labels[kept].astype(np.int64), gold[kept].astype(np.int64)
    pairs, counts = np.unique(one * (two.max() + 1) + two, return_counts=True)
    order = np.argsort(counts, kind="stable")  # the last assignment wins: the largest overlap
    table = np.zeros(one.max() + 1, np.int64)
    table[pairs[order] // (two.max() + 1)] = pairs[order] % (two.max() + 1)
    split, merge = variation_of_information(two, table[one])
    return np.array([merge, split])


def training_parts(data: Path) -> Iterator[tuple[str, Array, Array, Array | None, dict[str, Any]]]:
    """Yield name, boundary, gold, the superpixels that came with the data, and options."""
    from tifffile import imread

    def read(name: str) -> Array:
        return np.asarray(imread(data / name))

    if (data / "gala_fibsem").is_dir():
        yield (
            "gala_fibsem",
            read("gala_fibsem/train_prob.tif"),
            read("gala_fibsem/train_gt.tif"),
            read("gala_fibsem/train_superpixels.tif"),
            {},
        )
    if (data / "fib25_half").is_dir():
        yield (
            "fib25_half",
            read("fib25_half/derived_boundary_prob.tif")[:, :125],
            read("fib25_half/gt.tif")[:, :125],
            read("fib25_half/superpixels.tif")[:, :125],
            {"value_range": (0, 255)},
        )
    if (data / "gala_snemi_mini").is_dir():
        gold = read("gala_snemi_mini/gt.tif")[:16].astype(np.int64)
        yield (
            "gala_snemi_mini",
            read("gala_snemi_mini/prob_interior.tif")[:16],
            np.where(gold == 1, 0, gold),  # 1 is membrane
            read("gala_snemi_mini/superpixels.tif")[:16],
            {"value_range": (255, 0), "per_plane": True, "spacing": (30, 6, 6)},
        )
    if (data / "plant_ovule").is_dir():
        yield (
            "plant_ovule",
            read("plant_ovule/raw.tif")[..., :64],
            read("plant_ovule/gt.tif")[..., :64],
            None,
            {"value_range": (0, 255), "spacing": (0.235, 0.15, 0.15)},
        )


def quality(data: Path) -> None:
    """Print the table of docs/superpixels.md: training parts, several settings."""
    print("| volume | sigma | least size | superpixels | voxels each | best VI | merge | split |")
    print("|---|---|---|---|---|---|---|---|")
    for name, boundary, gold, given, options in training_parts(data):
        axes = boundary.ndim - options.get("per_plane", False)
        finest = min(options.get("spacing", (1,)))
        settings: list[tuple[str, str, dict[str, Any]]] = [("default", "default", {})]
        settings += [
            (f"{sigma:g}", f"{side}^{axes}", {"sigma": sigma * finest, "min_size": side**axes})
            for sigma in (0.0, 0.5, 0.7, 1.0, 1.5)
            for side in (1, 3, 5, 6)
        ]
        for sigma, least, chosen in settings:
            _line(name, sigma, least, oversegment(boundary, **options, **chosen), gold)
        if given is not None:
            _line(name, "came with the data", "", given, gold)


def _line(name: str, sigma: str, least: str, labels: Array, gold: Array) -> None:
    count = np.unique(labels[labels > 0]).size
    merge, split = best_vi(labels, gold)
    print(
        f"| {name} | {sigma} | {least} | {count} | {labels.size / count:.0f} | "
        f"{merge + split:.3f} | {merge:.3f} | {split:.3f} |",
        flush=True,
    )


def main() -> int:
    """Run one of the two."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode", choices=["speed", "quality"])
    parser.add_argument("data", nargs="?", default=os.environ.get("AGGLO_DATA", ""))
    parser.add_argument("--side", type=int, default=256)
    options = parser.parse_args()
    if options.mode == "speed":
        speed(options.side)
    elif not options.data or not Path(options.data).is_dir():
        print("Skipped: give the folder of the volumes as DATA or in AGGLO_DATA.")
    else:
        quality(Path(options.data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
