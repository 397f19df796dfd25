"""Paint processes as an electron microscope shows them.

Everything that makes real tissue hard is here on purpose: membrane whose contrast comes and goes,
organelles that are as dark as membrane, and cytoplasm of a different darkness and grain in each
process.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_agglo.samples._noise import Floats, smooth_noise
from napari_agglo.samples._organelles import mitochondria, reticulum, vesicles
from napari_agglo.samples._processes import Packing
from napari_agglo.samples._regions import edges

# Grey values before the noise, 0 (black) to 1 (white).
_CYTOPLASM, _MEMBRANE, _VESICLE, _SHEET, _MATRIX, _RIM = 0.66, 0.20, 0.26, 0.28, 0.44, 0.19
_NOISE = 0.05


@dataclass(frozen=True)
class Tissue:
    """The image (uint8) and what is painted there: 0 cytoplasm, 1 membrane, 2 mitochondrion."""

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
    """Draw the image of the processes in `labels`, whose walks are those of `packing`."""
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

    # The beam reaches a little deeper than it is wide.
    scene = ndimage.gaussian_filter(scene, (0.7,) + (0.6,) * (len(shape) - 1))
    scene += _NOISE * rng.standard_normal(shape, dtype=np.float32)
    scene += 0.02 * smooth_noise(shape, 1.0, rng) + 0.02 * smooth_noise(shape, 40.0, rng)
    image = np.clip(np.rint(255 * scene), 0, 255).astype(np.uint8)
    classes = np.where(edge, 1, np.where(inside > 0, 2, 0)).astype(np.uint8)
    return Tissue(image, classes)


def _cytoplasm(labels: NDArray[np.int32], rng: np.random.Generator) -> Floats:
    """Grey of a darkness and a grain that belong to the process."""
    count = int(labels.max()) + 1
    brightness = 1 + 0.07 * rng.standard_normal(count, dtype=np.float32)
    grain = 0.02 + 0.04 * rng.random(count, dtype=np.float32)
    texture = smooth_noise(labels.shape, 1.4, rng) + 0.6 * smooth_noise(labels.shape, 4.0, rng)
    return np.asarray(_CYTOPLASM * brightness[labels] + grain[labels] * texture)


def _membrane(depth: Floats, synapses: Floats, rng: np.random.Generator) -> Floats:
    """Cover of membrane: its contrast wanders from clear to hardly there, and it has gaps."""
    shape = depth.shape
    contrast = 1 / (1 + np.exp(-1.6 * smooth_noise(shape, 7.0, rng) - 3.0))
    contrast *= smooth_noise(shape, 2.5, rng) < 2.1  # the gaps
    width = np.clip(0.9 + 0.25 * smooth_noise(shape, 10.0, rng), 0.5, 1.8)
    thin = contrast * np.exp(-((depth / width) ** 2))
    thick = synapses * np.exp(-((depth / np.float32(2.2)) ** 2))
    return np.asarray(np.maximum(thin, thick))


def _paint_mitochondria(scene: Floats, inside: Floats, rng: np.random.Generator) -> None:
    """Grey matrix, dark cristae across it, and a dark rim, in place."""
    matrix = (inside > 0).astype(np.float32)
    _darken(scene, matrix, _MATRIX)
    scene -= 0.09 * np.cos(4.5 * smooth_noise(scene.shape, 4.0, rng)) * matrix
    rim = np.exp(-(((inside - np.float32(0.9)) / np.float32(0.9)) ** 2)) * matrix
    _darken(scene, 0.95 * rim, _RIM)


def _darken(scene: Floats, cover: Floats, grey: float) -> None:
    """Blend `scene` towards `grey` where `cover` (0 to 1) says so, in place."""
    scene += cover * (np.float32(grey) - scene)
