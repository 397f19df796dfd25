"""What is as dark as membrane and is none: mitochondria, vesicles, reticulum."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_agglo.samples._noise import Floats, smooth_noise
from napari_agglo.samples._processes import SLACK, Packing, box_around, warped_distance


def reticulum(depth: Floats, rng: np.random.Generator) -> Floats:
    """Cover (0 to 1) of thin sheets inside fat processes: level sets of a field, in patches."""
    level = smooth_noise(depth.shape, 5.0, rng)
    patch = smooth_noise(depth.shape, 9.0, rng) - 0.9
    sheet = np.exp(-((level / 0.16) ** 2)) * np.clip(3 * patch, 0, 0.9)
    return np.asarray(sheet * (depth > 4))


def mitochondria(packing: Packing, depth: Floats, gap: float, rng: np.random.Generator) -> Floats:
    """Distance from the surface of a mitochondrion inside it, 0 elsewhere.

    A mitochondrion is a stretch of a walk with a radius of its own, `gap` pixels from the next one
    on average; `depth` (distance from the membrane) keeps it within its process.
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
    """Cover of clusters of small rings, and of the synapses there, where membrane is thick.

    Rings lie where `free` holds and in the process of their cluster's centre.
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
    """Maximum of `field` and a soft shell of `radius` and `width` around `centre`, in place."""
    box = box_around(centre, radius + 2 * width, field.shape)
    if box is None:
        return
    squared: Floats | np.float32 = np.float32(0)
    for axis, (side, middle) in enumerate(zip(box, centre, strict=True)):
        line = (np.arange(side.start, side.stop) - middle).astype(np.float32) ** 2
        squared = squared + line.reshape((-1,) + (1,) * (field.ndim - 1 - axis))
    shell = np.exp(-(((np.sqrt(squared) - np.float32(radius)) / np.float32(width)) ** 2))
    np.maximum(field[box], shell, out=field[box])
