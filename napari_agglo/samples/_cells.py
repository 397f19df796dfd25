"""Cells under a fluorescence microscope: unlike in brightness and texture, lit unevenly.

Where two cells touch, the border may be a bright line, a step in brightness, or hardly there;
the nucleus has an outline too, which is no border.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_agglo.samples._noise import Floats, smooth_noise
from napari_agglo.samples._processes import Calibre, Packing, box_around, pack, warped_distance
from napari_agglo.samples._regions import edges, fill_unlabelled, separate

_CALIBRES = (
    Calibre(0.30, (17.0, 24.0), (4.0, 40.0), turn=0.3, pinch=0.0),
    Calibre(0.48, (8.0, 15.0), (4.0, 50.0), turn=0.4, pinch=0.3),
)
_MIN_SIZE = 80


def cells(
    shape: tuple[int, ...], rng: np.random.Generator
) -> tuple[NDArray[np.uint8], dict[str, Floats], NDArray[np.int32]]:
    """Image, cues and gold of a field of cells; the background is a region like the others."""
    packing = pack(shape, _CALIBRES, rng, warp=2.5)
    background = len(packing.walks) + 1
    labels = np.where(packing.clearance > 1, np.int32(background), packing.labels)
    fill_unlabelled(labels)
    image = _photograph(labels, background, packing, rng)
    return image, _cues(image), separate(labels, _MIN_SIZE)


def _photograph(
    labels: NDArray[np.int32], background: int, packing: Packing, rng: np.random.Generator
) -> NDArray[np.uint8]:
    from scipy import ndimage

    shape = labels.shape
    brightness = np.exp(0.32 * rng.standard_normal(background + 1, dtype=np.float32)) * 0.42
    roughness = rng.uniform(0.08, 0.34, background + 1).astype(np.float32)
    fibrous = rng.random(background + 1) < 0.4
    grain = smooth_noise(shape, 1.5, rng)
    fibres = np.cos(5 * smooth_noise(shape, 9.0, rng))
    texture = np.where(fibrous[labels], fibres, grain) + 0.4 * smooth_noise(shape, 5.0, rng)
    scene = brightness[labels] * (1 + roughness[labels] * texture)

    depth = ndimage.distance_transform_edt(~edges(labels)).astype(np.float32)
    nucleus = _nuclei(packing, depth, rng)
    scene *= 1 - np.float32(0.5) * np.clip(nucleus, 0, 1)
    scene = np.where(nucleus > 1, brightness[labels] * 0.5 * (1 + 0.04 * grain), scene)

    line = np.exp(-((depth / np.float32(1.2)) ** 2))
    line *= np.clip(0.35 + 0.5 * smooth_noise(shape, 14.0, rng), 0, 1)
    scene += 0.32 * line
    scene = np.where(labels == background, 0.07 + 0.35 * line, scene)

    scene = 0.9 * ndimage.gaussian_filter(scene, 1.0) + 0.1 * ndimage.gaussian_filter(scene, 8.0)
    scene *= np.exp(np.float32(0.35) * smooth_noise(shape, 70.0, rng))  # the lamp
    photons = 220 * np.maximum(scene, 0)
    scene = (photons + np.sqrt(photons + 4) * rng.standard_normal(shape, dtype=np.float32)) / 220
    return np.clip(np.rint(255 * scene), 0, 255).astype(np.uint8)


def _nuclei(packing: Packing, depth: Floats, rng: np.random.Generator) -> Floats:
    """Distance from the surface of a nucleus inside it, 0 elsewhere; most cells show one."""
    inside = np.zeros(depth.shape, dtype=np.float32)
    for walk in packing.walks:
        middle = len(walk.points) // 2
        centre, radius = walk.points[middle], 0.48 * float(walk.radii[middle])
        box = box_around(centre, 2 * radius + 6, depth.shape)
        if rng.random() < 0.85 and box is not None:
            distance = warped_distance(packing.coordinates, centre, box, walk.flatten)
            np.maximum(inside[box], np.float32(radius) - distance, out=inside[box])
    return np.minimum(inside, np.maximum(depth - 2, 0))


def _cues(image: NDArray[np.uint8]) -> dict[str, Floats]:
    """Boundary, brightness and texture, each from filters and a logistic with fixed weights.

    All three are relative to the brightness around, so that the lamp does not count. The boundary
    cue answers to lines and to steps and so, wrongly, to nuclei, fibres and coarse grain.
    """
    from scipy import ndimage

    value = image.astype(np.float32) / 255 + np.float32(0.04)
    fine = np.log(ndimage.gaussian_filter(value, 1.5))
    around = np.log(ndimage.gaussian_filter(value, 40.0))
    slope = np.sqrt(sum(component * component for component in np.gradient(fine)))
    ridge = np.maximum(-sum(np.gradient(c, axis=a) for a, c in enumerate(np.gradient(fine))), 0)
    evidence = ndimage.gaussian_filter(14 * slope + 22 * ridge, 0.8)
    flat = ndimage.gaussian_filter(value, 1.0) / ndimage.gaussian_filter(value, 4.0)
    rough = np.sqrt(ndimage.gaussian_filter((flat - 1) ** 2, 3.0))
    return {
        "boundary": _logistic(2.2 * (evidence - 1.9)),
        "brightness": _logistic(1.6 * (fine - around)),
        "texture": _logistic(30 * (rough - 0.1)),
    }


def _logistic(score: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-score)), dtype=np.float32)
