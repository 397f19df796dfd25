"""Cells in fluorescence microscopy, of different brightness and texture, unevenly illuminated.

The border of two cells may be a bright line, a step in brightness, or hardly visible; the outline
of a nucleus is not a border. In its own file because it is one kind of sample, as `_neuropil.py`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_agglo.samples._classifier import CELLS, probabilities
from napari_agglo.samples._neurites import Calibre, Packing, box_around, pack, warped_distance
from napari_agglo.samples._neuropil import Tissue
from napari_agglo.samples._random_fields import (
    Floats,
    edges,
    fill_unlabelled,
    separate,
    smooth_noise,
)

_CALIBRES = (
    Calibre(0.30, (17.0, 24.0), (4.0, 40.0), turn=0.3, pinch=0.0),
    Calibre(0.48, (8.0, 15.0), (4.0, 50.0), turn=0.4, pinch=0.3),
)
_MIN_SIZE = 80


def cells(shape: tuple[int, ...], rng: np.random.Generator) -> tuple[Tissue, NDArray[np.int32]]:
    """Return a field of cells, and the label of every pixel; the background has labels too.

    The classes of the tissue are 0 inside of a cell or background, 1 border, 2 nucleus.
    """
    packing = pack(shape, _CALIBRES, rng, warp=2.5)
    background = len(packing.walks) + 1
    labels = np.where(packing.clearance > 1, np.int32(background), packing.labels)
    fill_unlabelled(labels)
    return _photograph(labels, background, packing, rng), separate(labels, _MIN_SIZE)


def _photograph(
    labels: NDArray[np.int32], background: int, packing: Packing, rng: np.random.Generator
) -> Tissue:
    from scipy import ndimage

    shape = labels.shape
    brightness = np.exp(0.32 * rng.standard_normal(background + 1, dtype=np.float32)) * 0.42
    roughness = rng.uniform(0.06, 0.22, background + 1).astype(np.float32)
    fibrous = rng.random(background + 1) < 0.4
    grain = smooth_noise(shape, 1.5, rng)
    fibres = np.cos(5 * smooth_noise(shape, 9.0, rng))
    texture = np.where(fibrous[labels], fibres, grain) + 0.4 * smooth_noise(shape, 5.0, rng)
    scene = brightness[labels] * (1 + roughness[labels] * texture)

    edge = edges(labels)
    depth = ndimage.distance_transform_edt(~edge).astype(np.float32)
    nucleus = _nuclei(packing, depth, rng)
    scene *= 1 - np.float32(0.5) * np.clip(nucleus, 0, 1)
    scene = np.where(nucleus > 1, brightness[labels] * 0.5 * (1 + 0.04 * grain), scene)

    line = np.exp(-((depth / np.float32(1.2)) ** 2))
    line *= np.clip(0.6 + 0.5 * smooth_noise(shape, 14.0, rng), 0, 1)
    scene += 0.35 * line
    scene = np.where(labels == background, 0.07 + 0.35 * line, scene)

    scene = 0.9 * ndimage.gaussian_filter(scene, 1.0) + 0.1 * ndimage.gaussian_filter(scene, 8.0)
    scene *= np.exp(np.float32(0.35) * smooth_noise(shape, 70.0, rng))  # illumination
    photons = 500 * np.maximum(scene, 0)
    scene = (photons + np.sqrt(photons + 4) * rng.standard_normal(shape, dtype=np.float32)) / 500
    image = np.asarray(np.clip(np.rint(255 * scene), 0, 255), dtype=np.uint8)
    classes = np.where(edge, 1, np.where(nucleus > 0, 2, 0)).astype(np.uint8)
    return Tissue(image, classes)


def _nuclei(packing: Packing, depth: Floats, rng: np.random.Generator) -> Floats:
    """Return the depth within a nucleus, 0 outside; most cells have one."""
    inside = np.zeros(depth.shape, dtype=np.float32)
    for walk in packing.walks:
        middle = len(walk.points) // 2
        centre, radius = walk.points[middle], 0.48 * float(walk.radii[middle])
        box = box_around(centre, 2 * radius + 6, depth.shape)
        if rng.random() < 0.85 and box is not None:
            distance = warped_distance(packing.coordinates, centre, box, walk.flatten)
            np.maximum(inside[box], np.float32(radius) - distance, out=inside[box])
    return np.minimum(inside, np.maximum(depth - 2, 0))


def cell_cues(image: NDArray[np.uint8]) -> dict[str, Floats]:
    """Return boundary and nucleus from the classifier, brightness and texture from filters."""
    from scipy import ndimage

    picture = flattened(image)
    _, boundary, nucleus = probabilities(picture, CELLS)
    smooth = ndimage.gaussian_filter(picture, 1.5)
    fluctuation = ndimage.gaussian_filter(picture, 1.0) - ndimage.gaussian_filter(picture, 4.0)
    roughness = np.sqrt(ndimage.gaussian_filter(fluctuation**2, 3.0))
    return {
        "boundary": boundary,
        "nucleus": nucleus,
        "brightness": np.clip(0.5 + smooth, 0, 1),
        "texture": np.clip(8 * roughness, 0, 1),
    }


def flattened(image: NDArray[np.uint8]) -> Floats:
    """Return the logarithm of the brightness relative to its surroundings: even illumination."""
    from scipy import ndimage

    value = image.astype(np.float32) / np.float32(255) + np.float32(0.1)
    around = ndimage.gaussian_filter(value, 40.0)
    return np.asarray(np.float32(0.4) * np.log(value / around))
