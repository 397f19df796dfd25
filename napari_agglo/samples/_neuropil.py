"""Neuropil: packed processes, their image, and their gold standard, in 2-D and 3-D.

The image is hard in the ways of real tissue: membrane of varying contrast, organelles as dark as
membrane, and cytoplasm of a different darkness and grain in each process.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_agglo.samples._classifier import NEUROPIL, probabilities
from napari_agglo.samples._neurites import (
    SLACK,
    Calibre,
    Packing,
    box_around,
    pack,
    warped_distance,
)
from napari_agglo.samples._random_fields import (
    Floats,
    edges,
    fill_unlabelled,
    separate,
    smooth_noise,
)

# Grey values before the noise, 0 (black) to 1 (white).
_CYTOPLASM, _MEMBRANE, _VESICLE, _SHEET, _MATRIX, _RIM = 0.66, 0.20, 0.26, 0.28, 0.44, 0.19
_NOISE = 0.05


def reticulum(depth: Floats, rng: np.random.Generator) -> Floats:
    """Return the cover (0 to 1) of thin sheets inside fat processes: patches of level sets."""
    level = smooth_noise(depth.shape, 5.0, rng)
    patch = smooth_noise(depth.shape, 9.0, rng) - 0.9
    sheet = np.exp(-((level / 0.16) ** 2)) * np.clip(3 * patch, 0, 0.9)
    return np.asarray(sheet * (depth > 4))


def mitochondria(packing: Packing, depth: Floats, gap: float, rng: np.random.Generator) -> Floats:
    """Return the depth within a mitochondrion, 0 outside.

    A mitochondrion is a stretch of a walk with its own radius, `gap` pixels from the next one on
    average; `depth` (distance from the membrane) keeps it within its process.
    """
    inside = np.zeros(depth.shape, dtype=np.float32)
    for walk in packing.walks:
        points, radius = walk.points, float(np.median(walk.radii))
        if radius < 5.0 or len(points) < 2:
            continue  # too thin to hold one
        step = float(np.linalg.norm(points[1] - points[0]))
        at = int(rng.integers(0, 1 + int(gap / step)))
        while at < len(points):
            length = int(rng.uniform(14, 45) / step) + 1
            thick = min(float(rng.uniform(0.35, 0.6)) * radius, float(rng.uniform(5, 8.5)))
            shift = rng.standard_normal(points.shape[1])
            shift *= max(0.0, radius - thick - 2) * 0.6 / float(np.linalg.norm(shift))
            for point in points[at : at + length] + shift:
                box = box_around(point, thick + SLACK, depth.shape)
                if box is not None:
                    distance = warped_distance(packing.coordinates, point, box, walk.flatten)
                    np.maximum(inside[box], np.float32(thick) - distance, out=inside[box])
            at += length + int(rng.uniform(0.3, 1.7) * gap / step)
    return np.minimum(inside, np.maximum(depth - 2, 0))


def vesicles(
    labels: NDArray[np.int32], free: NDArray[np.bool_], clusters: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return the cover of clusters of small rings, and of the synapses there (thick membrane).

    Rings lie where `free` is true, in the process of their cluster's centre.
    """
    shape = labels.shape
    rings = np.zeros(shape, dtype=np.float32)
    synapses = np.zeros(shape, dtype=np.float32)
    places = np.flatnonzero(free.reshape(-1))
    if not places.size:
        return rings, synapses
    for place in places[rng.integers(0, places.size, clusters)]:
        middle = np.array(np.unravel_index(place, shape), dtype=np.float64)
        owner = labels.reshape(-1)[place]
        _stamp_shell(synapses, middle + rng.normal(0, 2, len(shape)), 0.0, 5.0)
        for centre in middle + rng.normal(0, 5.0, (16 * len(shape), len(shape))):
            pixel = tuple(np.rint(centre).astype(int).tolist())
            within = all(0 <= p < n for p, n in zip(pixel, shape, strict=True))
            if within and labels[pixel] == owner and free[pixel]:
                _stamp_shell(rings, centre, 1.5, 0.8)
    return rings, synapses


def _stamp_shell(field: Floats, centre: NDArray[np.float64], radius: float, width: float) -> None:
    """Draw a soft shell of `radius` and `width` around `centre` into `field`, as a maximum."""
    box = box_around(centre, radius + 2 * width, field.shape)
    if box is None:
        return
    squared: Floats | np.float32 = np.float32(0)
    for axis, (side, middle) in enumerate(zip(box, centre, strict=True)):
        line = (np.arange(side.start, side.stop) - middle).astype(np.float32) ** 2
        squared = squared + line.reshape((-1,) + (1,) * (field.ndim - 1 - axis))
    shell = np.exp(-(((np.sqrt(squared) - np.float32(radius)) / np.float32(width)) ** 2))
    np.maximum(field[box], shell, out=field[box])


@dataclass(frozen=True)
class Tissue:
    """Image (uint8) and class of each pixel: 0 cytoplasm, 1 membrane, 2 mitochondrion."""

    image: NDArray[np.uint8]
    classes: NDArray[np.uint8]


def paint(
    labels: NDArray[np.int32],
    packing: Packing,
    rng: np.random.Generator,
    *,
    vesicle_clusters: int,
    mitochondria_gap: float,
) -> Tissue:
    """Paint the processes in `labels`, with the walks of `packing`, as electron micrograph."""
    from scipy import ndimage

    shape = labels.shape
    edge = edges(labels)
    depth = ndimage.distance_transform_edt(~edge).astype(np.float32)
    scene = _cytoplasm(labels, rng)
    _darken(scene, reticulum(depth, rng), _SHEET)
    inside = mitochondria(packing, depth, mitochondria_gap, rng)
    _paint_mitochondria(scene, inside, rng)
    free = (depth > 2) & (inside == 0)
    rings, synapses = vesicles(labels, free, vesicle_clusters, rng)
    _darken(scene, rings, _VESICLE)
    _darken(scene, _membrane(depth, synapses, rng), _MEMBRANE)

    # the beam is a little deeper than wide
    scene = ndimage.gaussian_filter(scene, (0.7,) + (0.6,) * (len(shape) - 1))
    scene += _NOISE * rng.standard_normal(shape, dtype=np.float32)
    scene += 0.02 * smooth_noise(shape, 1.0, rng) + 0.02 * smooth_noise(shape, 40.0, rng)
    image = np.clip(np.rint(255 * scene), 0, 255).astype(np.uint8)
    classes = np.where(edge, 1, np.where(inside > 0, 2, 0)).astype(np.uint8)
    return Tissue(image, classes)


def _cytoplasm(labels: NDArray[np.int32], rng: np.random.Generator) -> Floats:
    """Return grey values of a different darkness and grain in each process."""
    count = int(labels.max()) + 1
    brightness = 1 + 0.07 * rng.standard_normal(count, dtype=np.float32)
    grain = 0.02 + 0.04 * rng.random(count, dtype=np.float32)
    texture = smooth_noise(labels.shape, 1.4, rng) + 0.6 * smooth_noise(labels.shape, 4.0, rng)
    return np.asarray(_CYTOPLASM * brightness[labels] + grain[labels] * texture)


def _membrane(depth: Floats, synapses: Floats, rng: np.random.Generator) -> Floats:
    """Return the cover of membrane, of varying contrast and with gaps."""
    shape = depth.shape
    contrast = 1 / (1 + np.exp(-1.6 * smooth_noise(shape, 7.0, rng) - 3.0))
    contrast *= smooth_noise(shape, 2.5, rng) < 2.1  # the gaps
    width = np.clip(0.9 + 0.25 * smooth_noise(shape, 10.0, rng), 0.5, 1.8)
    thin = contrast * np.exp(-((depth / width) ** 2))
    thick = synapses * np.exp(-((depth / np.float32(2.2)) ** 2))
    return np.asarray(np.maximum(thin, thick))


def _paint_mitochondria(scene: Floats, inside: Floats, rng: np.random.Generator) -> None:
    """Draw a grey matrix, dark cristae across it, and a dark rim, in place."""
    matrix = (inside > 0).astype(np.float32)
    _darken(scene, matrix, _MATRIX)
    scene -= 0.09 * np.cos(4.5 * smooth_noise(scene.shape, 4.0, rng)) * matrix
    rim = np.exp(-(((inside - np.float32(0.9)) / np.float32(0.9)) ** 2)) * matrix
    _darken(scene, 0.95 * rim, _RIM)


def _darken(scene: Floats, cover: Floats, grey: float) -> None:
    """Blend `scene` towards `grey` by `cover` (0 to 1), in place."""
    scene += cover * (np.float32(grey) - scene)


@dataclass(frozen=True)
class Recipe:
    """Contents of a piece of neuropil; sizes in pixels, densities per million pixels."""

    calibres: tuple[Calibre, ...]
    sheaths: int
    min_size: int
    vesicle_clusters: float
    mitochondria_gap: float


# A few fat processes, some of middling calibre, and thin ones in the remaining space. A plane shows
# a short stretch of each process, so shapes are larger there to be as varied.
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
    """Return tissue of a shape, and the label (1..n, each connected) of every pixel."""
    recipe = RECIPES[len(shape)]
    packing = pack(shape, recipe.calibres, rng)
    labels = packing.labels.copy()
    hosts = sorted(packing.walks, key=lambda walk: -float(walk.radii.mean()))[: recipe.sheaths]
    for sheath, host in enumerate(hosts, start=len(packing.walks) + 1):
        _wrap(labels, host.label, sheath, rng)
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
    """Return grey values in the range of the classifier."""
    return image.astype(np.float32) / np.float32(255) - np.float32(0.55)


def _wrap(labels: NDArray[np.int32], host: int, sheath: int, rng: np.random.Generator) -> None:
    """Label a thin sheet around a part of the process `host`, like glia."""
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
