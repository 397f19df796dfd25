"""Superpixels: speed on a generated volume, and the best segmentation that they allow.

    python -m benchmarks superpixels
    python -m benchmarks.bench_superpixels [DATA]

The first compares the speed with scikit-image and bioimage-cpp. The second prints the best VI for
several settings, on the volumes of the folder DATA (or of `AGGLO_DATA`).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage

from benchmarks import peers
from benchmarks.results import OURS, Table
from benchmarks.timing import cpu_seconds, interleaved, least
from benchmarks.volumes import data_folder
from napari_agglo.superpixels import oversegment
from napari_agglo.superpixels._flood_queue import flood, label_minima, make_grid

Array = np.ndarray[Any, Any]


def volume(side: int, seed: int = 0) -> Array:
    """Return sheets between random blobs, mirror-tiled to `side`, with noise."""
    rng = np.random.default_rng(seed)
    small = max(16, side // 4)
    blobs = ndimage.gaussian_filter(rng.random((small,) * 3).astype(np.float32), 3)
    blobs = (blobs - blobs.min()) / np.ptp(blobs)
    sheets = np.clip(1 - 6 * np.abs(blobs - 0.5), 0, 1)
    tiled = np.pad(sheets, [(0, side - small)] * 3, mode="symmetric")
    return np.clip(tiled + rng.normal(0, 0.05, tiled.shape), 0, 1).astype(np.float32)


def run(table: Table, small: bool = False) -> None:
    """Measure the whole of `oversegment`, its seeds, and its watershed beside those of peers."""
    from skimage.metrics import variation_of_information
    from skimage.segmentation import watershed

    side = 64 if small else 256
    image = volume(side)
    amount = image.size / 1e6
    for words, options in {
        "defaults": {},
        "min_size=1 (smooth, seeds, flood)": {"min_size": 1},
        "sigma=1, min_size=1": {"sigma": 1, "min_size": 1},
        "per_plane=True": {"per_plane": True},
    }.items():
        took = least(lambda options=options: oversegment(image, **options))
        table.add(f"oversegment {side}^3, {words}", took, f"{amount / took:.3g} Mvox/s")

    smooth = ndimage.gaussian_filter(image, 1.0, mode="nearest")
    heights = np.rint(smooth * 65535).astype(np.uint16)
    grid = make_grid(image.shape, [True] * 3)
    levels = np.zeros(grid.size, np.uint16)
    grid.view(levels)[...] = heights
    dry = np.zeros(grid.size, grid.index_dtype)
    grid.view(dry)[...] = -1 - heights.astype(np.int32)
    took = least(lambda: label_minima(dry.copy(), grid, lambda *_: None))
    table.add("seeds alone, sigma 1", took, f"{amount / took:.3g} Mvox/s")
    label_minima(dry, grid, lambda *_: None)
    seeds = np.maximum(grid.view(dry), 0).astype(np.uint32)

    def ours() -> Array:
        state = dry.copy()
        flood(state, levels, grid, lambda *_: None)
        return grid.view(state)

    entries = {OURS: ours}
    if peers.bic:
        entries["bioimage-cpp"] = lambda: peers.bic.segmentation.watershed(smooth, seeds)
    times = interleaved(entries)
    slow: list[Array] = []
    times["scikit-image"] = cpu_seconds(lambda: slow.append(watershed(heights, seeds)))
    table.compare(f"watershed alone, {seeds.max():,} seeds", times, amount, "Mvox")
    table.note(f"`oversegment` makes {oversegment(image).max():,} superpixels by default here.")
    for name, work in entries.items():
        vi = variation_of_information(slow[0], work()).sum()
        table.note(f"Watershed: VI of {name} to scikit-image {vi:.4f} bits.")


def best_vi(labels: Array, gold: Array) -> Array:
    """Return VI (false merge, false split), each superpixel in the gold it overlaps most."""
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
        for sigma, size, chosen in settings:
            _line(name, sigma, size, oversegment(boundary, **options, **chosen), gold)
        if given is not None:
            _line(name, "came with the data", "", given, gold)


def _line(name: str, sigma: str, size: str, labels: Array, gold: Array) -> None:
    count = np.unique(labels[labels > 0]).size
    merge, split = best_vi(labels, gold)
    print(
        f"| {name} | {sigma} | {size} | {count} | {labels.size / count:.0f} | "
        f"{merge + split:.3f} | {merge:.3f} | {split:.3f} |",
        flush=True,
    )


def main() -> None:
    """Print the quality of the volumes in a folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="?", type=Path, default=data_folder())
    data = parser.parse_args().data
    if data is None or not data.is_dir():
        parser.error("give the folder of the volumes as DATA or in AGGLO_DATA")
    quality(data)


if __name__ == "__main__":
    main()
