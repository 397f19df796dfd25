"""Neuropil: packed processes, their image, and their gold standard, in 2-D and 3-D alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_agglo.samples._classifier import probabilities
from napari_agglo.samples._noise import Floats, smooth_noise
from napari_agglo.samples._processes import Calibre, Packing, pack
from napari_agglo.samples._regions import fill_unlabelled, separate
from napari_agglo.samples._tissue import Tissue, paint
from napari_agglo.samples._weights import NEUROPIL


@dataclass(frozen=True)
class Recipe:
    """What goes into a piece of neuropil; sizes in pixels, densities per million pixels."""

    calibres: tuple[Calibre, ...]
    sheaths: int
    min_size: int
    vesicle_clusters: float
    mitochondria_gap: float


# A few fat processes, some of middling calibre, and thin ones in the room that is left. In the
# plane a process is seen for a short stretch only, and shapes must be larger to be as many-sided.
RECIPES = {
    3: Recipe(
        calibres=(
            Calibre(0.17, (14.0, 20.0), (150.0, 300.0), turn=0.25, pinch=1.0),
            Calibre(0.30, (7.0, 11.0), (100.0, 250.0), turn=0.35, pinch=1.5),
            Calibre(0.50, (4.3, 6.4), (80.0, 220.0), turn=0.4, pinch=1.5),
        ),
        sheaths=4,
        min_size=600,
        vesicle_clusters=28,
        mitochondria_gap=30.0,
    ),
    2: Recipe(
        calibres=(
            Calibre(0.17, (18.0, 28.0), (40.0, 120.0), turn=0.25, pinch=1.0),
            Calibre(0.30, (10.0, 15.0), (20.0, 90.0), turn=0.35, pinch=1.5),
            Calibre(0.50, (5.5, 8.0), (8.0, 90.0), turn=0.4, pinch=1.5),
        ),
        sheaths=4,
        min_size=60,
        vesicle_clusters=270,
        mitochondria_gap=50.0,
    ),
}


def neuropil(shape: tuple[int, ...], rng: np.random.Generator) -> tuple[Tissue, NDArray[np.int32]]:
    """Tissue of the given shape, and the label (1..n, each connected) of every pixel."""
    recipe = RECIPES[len(shape)]
    packing = pack(shape, recipe.calibres, rng)
    labels = packing.labels.copy()
    _wrap_fattest(labels, packing, recipe.sheaths, rng)
    fill_unlabelled(labels)
    labels = separate(labels, recipe.min_size)
    tissue = paint(
        labels,
        packing,
        rng,
        vesicle_clusters=round(recipe.vesicle_clusters * labels.size / 1e6),
        mitochondria_gap=recipe.mitochondria_gap,
    )
    return tissue, labels


def neuropil_cues(image: NDArray[np.uint8]) -> dict[str, Floats]:
    """Return the probability of each class of `Tissue.classes`, boundary first."""
    cytoplasm, boundary, mitochondria = probabilities(centred(image), NEUROPIL)
    return {"boundary": boundary, "cytoplasm": cytoplasm, "mitochondria": mitochondria}


def centred(image: NDArray[np.uint8]) -> Floats:
    """Grey values as the classifier takes them."""
    return image.astype(np.float32) / np.float32(255) - np.float32(0.55)


def _wrap_fattest(
    labels: NDArray[np.int32], packing: Packing, sheaths: int, rng: np.random.Generator
) -> None:
    hosts = sorted(packing.walks, key=lambda walk: -float(walk.radii.mean()))[:sheaths]
    for sheath, host in enumerate(hosts, start=len(packing.walks) + 1):
        _wrap(labels, host.label, sheath, rng)


def _wrap(labels: NDArray[np.int32], host: int, sheath: int, rng: np.random.Generator) -> None:
    """Lay a thin sheet around a part of the process `host`, as glia do."""
    from scipy import ndimage

    inside = labels == host
    boxes = ndimage.find_objects(inside.astype(np.int8))
    if not boxes:
        return
    box = tuple(
        slice(max(0, s.start - 8), min(n, s.stop + 8))
        for s, n in zip(boxes[0], labels.shape, strict=True)
    )
    crop = inside[box]
    outside = ndimage.distance_transform_edt(~crop).astype(np.float32)
    patch = smooth_noise(crop.shape, 14.0, rng)
    thickness = 5.0 + 1.5 * smooth_noise(crop.shape, 8.0, rng)
    labels[box][(outside > 0) & (outside < thickness) & (patch > 0.1)] = sheath
