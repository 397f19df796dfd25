"""The pixel classifier: its features beside those of others, a stroke, and its precision.

    python -m benchmarks pixels

The features of all libraries are those that all have: smoothed value, length of the gradient,
Laplacian and eigenvalues of the Hessian, at scales 1, 2, 4 and 8 (scikit-image has no Laplacian).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import napari_agglo as agglo
from benchmarks.peers import bic
from benchmarks.results import OURS, Table, below, faster
from benchmarks.timing import interleaved, least
from benchmarks.volumes import data_folder
from napari_agglo.pixels import FilterBank, LiveTraining, check_classes
from napari_agglo.pixels._pixel_image import PixelImage, blocks, lines_of

Array = np.ndarray[Any, Any]
SCALES = (1.0, 2.0, 4.0, 8.0)
_BAND = 1 << 14


def run(table: Table, small: bool) -> None:
    """Time the features, a stroke, and measure the precision."""
    side = 64 if small else 256
    features(table, "512 x 512", noise((side * 2, side * 2)))
    features(table, "64 x 256 x 256", noise((side // 4, side, side)))
    stroke(table, noise((side * 2, side * 2)), "a plane of 512 x 512")
    stroke(table, noise((9 if small else 40, side * 2, side * 2)), "a plane of a volume")
    precision(table, small)


def noise(shape: tuple[int, ...]) -> Array:
    """Return a random image."""
    return np.random.default_rng(0).random(shape, np.float32)


def our_features(image: Array) -> None:
    """Compute all features block by block, as a prediction does, in one thread."""
    source = PixelImage.of(image)
    bank = FilterBank(SCALES, axes=2 if image.ndim == 2 else 3)
    with ThreadPoolExecutor(1) as pool:
        for box in blocks(source.grid, bank.axes):
            block = source.read(box, bank.reach(source.spacing))
            filtered = bank.apply(block, source.spacing, pool)
            rows = None
            for band in lines_of(box, _BAND):
                rows = filtered.features(*band, rows)


def skimage_features(image: Array) -> None:
    """Compute the features of scikit-image, which has no Laplacian."""
    from skimage.feature import multiscale_basic_features

    multiscale_basic_features(
        image, intensity=True, edges=True, texture=True, sigma_min=1, sigma_max=8, num_sigma=4,
        workers=1,
    )  # fmt: skip


def bic_features(image: Array) -> None:
    """Compute the same features by bioimage-cpp."""
    filters = bic.filters
    for scale in SCALES:
        filters.gaussian_smoothing(image, scale)
        filters.gaussian_gradient_magnitude(image, scale)
        filters.laplacian_of_gaussian(image, scale)
        filters.hessian_of_gaussian_eigenvalues(image, scale)


def features(table: Table, name: str, image: Array) -> None:
    """Compare the times of the features of an image."""
    entries = {OURS: lambda: our_features(image), "scikit-image": lambda: skimage_features(image)}
    if bic is not None:
        entries["bioimage-cpp"] = lambda: bic_features(image)
    times = interleaved(entries, runs=2 if image.ndim == 3 else 12)
    goals = (*faster(times, 5, "bioimage-cpp"), *faster(times, 8, "scikit-image"))
    table.compare(f"features of {name}", times, image.size, "voxels", goals)


def stroke(table: Table, image: Array, name: str) -> None:
    """Time a second stroke: the features of its pixels, a new forest, and the plane in view."""
    start = [0] * image.ndim
    stop = list(image.shape)
    if image.ndim == 3:
        start[0] = image.shape[0] // 2
        stop[0] = start[0] + 1
    labels = np.zeros(image.shape, np.uint8)
    plane = labels if image.ndim == 2 else labels[start[0]]
    classes = check_classes(None, 2)
    live = LiveTraining(image)
    rows = iter(range(4, 10_000, 2))

    def paint() -> None:
        line = next(rows) % (len(plane) - 2)
        plane[line, 10:110] = 1
        plane[line + 1, 10:110] = 2
        live.predict(live.train(labels, classes), start, stop)

    paint()
    seconds = least(paint, runs=3)
    table.add(f"stroke to probabilities of {name}", seconds, goals=below(seconds, 0.5))


def precision(table: Table, small: bool) -> None:
    """Measure the average precision on gala's FIBSEM volumes, from 600 pixels to all."""
    data = data_folder()
    if data is None:
        return
    from sklearn.metrics import average_precision_score
    from tifffile import imread

    from napari_agglo.pixels._train_pixels import gold_classes

    folder = data / "gala_fibsem"
    raw, gold, unseen = (imread(folder / f"{name}.tif") for name in
                         ("train_raw", "train_gt", "test_raw"))  # fmt: skip
    truth = gold_classes(imread(folder / "test_gt.tif"), False)
    known = truth > 0
    found = {}
    few: dict[str, Any] = {"examples": 300}
    trials = {
        "600 pixels": few,
        "20,000": {"examples": 10_000},
        "all of the boundary and as many others": {},
        "600, plane by plane": {**few, "per_plane": True},
        "600, with the structure tensor": {**few, "structure": True},
    }
    for name, options in trials.items():
        values = []
        for seed in range(1 if small else 3):
            classifier = agglo.train_pixels(raw, gold=gold, seed=seed, **options)
            probability = classifier.predict(unseen)["boundary"]
            values.append(average_precision_score(truth[known] == 1, probability[known]))
        found[name] = float(np.mean(values))
    listed = ", ".join(f"{value:.3f} from {name}" for name, value in found.items())
    table.note(f"Average precision of the boundary on gala_fibsem, train to test: {listed}.")
