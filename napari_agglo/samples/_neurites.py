"""Geometry of neuropil: tortuous processes of very different calibres, packed densely.

Strategy: a process is a random walk with a radius at each point. Walks are grown from the thickest
to the thinnest, each steered into free space, which packs them side by side like axons. A pixel
belongs to the process whose surface is nearest (distance to a point of the walk, less its radius),
measured in smoothly warped coordinates and flattened along one axis per process, so that no outline
is a circle and no border a plane. Everything is n-D.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_agglo.samples._random_fields import Floats, smooth_noise

Labels = NDArray[np.int32]


@dataclass(frozen=True)
class Calibre:
    """Class of processes.

    `share` is the part of the space to fill, `radius` and `length` ranges in pixels, `turn` the
    bend of a walk at a step, `pinch` the number of necks in 100 pixels of length.
    """

    share: float
    radius: tuple[float, float]
    length: tuple[float, float]
    turn: float
    pinch: float


@dataclass(frozen=True)
class Walk:
    """Process: points (n, ndim) in warped coordinates, their radii, and the label.

    `flatten` stretches distances along each axis, which makes the process oval.
    """

    label: int
    points: NDArray[np.float64]
    radii: NDArray[np.float64]
    flatten: NDArray[np.float64]


@dataclass(frozen=True)
class Packing:
    """Walks packed into a space.

    `labels` is 0 where no process reaches, `clearance` the distance to the nearest surface
    (negative inside), `coordinates` the warped coordinates, an array for each axis.
    """

    labels: Labels
    clearance: Floats
    walks: list[Walk]
    coordinates: list[Floats]


# Distance beyond its surface up to which a process claims pixels; neighbours grow into the rest.
_REACH = 5.0
_NECK = 1.7  # radius of a pinch: two or three pixels of cytoplasm between the membranes
_DIRECTIONS = 6  # candidate steps, of which the one with most free space is taken
SLACK = 6  # pixels by which the warp moves a coordinate at most, nearly always


def pack(
    shape: tuple[int, ...],
    calibres: tuple[Calibre, ...],
    rng: np.random.Generator,
    *,
    warp: float = 2.0,
) -> Packing:
    """Pack processes into `shape`, one class of calibre after the other."""
    coordinates = [
        np.arange(n, dtype=np.float32).reshape((-1,) + (1,) * (len(shape) - 1 - axis))
        + np.float32(warp) * smooth_noise(shape, 9.0, rng)
        for axis, n in enumerate(shape)
    ]
    clearance = np.full(shape, _REACH, dtype=np.float32)
    labels = np.zeros(shape, dtype=np.int32)
    walks: list[Walk] = []
    for calibre in calibres:
        to_fill = calibre.share * clearance.size
        while to_fill > 0 and len(walks) < clearance.size:  # the second ends tiny shapes
            walk = _walk(len(walks) + 1, clearance, calibre, rng)
            if walk is None:
                break  # the earlier classes fill the space
            walks.append(walk)
            for surface, box in _stamps(walk, coordinates, shape):
                known = clearance[box]
                closer = surface < known
                to_fill -= np.count_nonzero((surface < 0) & (known >= 0))
                known[closer] = surface[closer]
                labels[box][closer] = walk.label
    return Packing(labels, clearance, walks, coordinates)


def _walk(label: int, clearance: Floats, calibre: Calibre, rng: np.random.Generator) -> Walk | None:
    """Return a random walk of the class from a free place; None when there is none."""
    shape = np.array(clearance.shape)
    ndim = len(shape)
    radius = float(np.exp(rng.uniform(*np.log(calibre.radius))))
    starts = (rng.random((60, ndim)) * shape).astype(np.int64)
    room = clearance[tuple(starts.T)]
    if room.max() < 0.3 * min(radius, _REACH):
        return None
    start = starts[int(np.argmax(room + 0.5 * rng.random(60)))].astype(np.float64)
    step = float(np.clip(radius / 2.2, 1.2, 5.0))
    direction = _unit(rng.standard_normal(ndim))
    half = rng.uniform(*calibre.length) / 2
    arms = []
    for sign in (1.0, -1.0):
        point, heading = start, sign * direction
        arm: list[NDArray[np.float64]] = []
        for _ in range(int(half / step)):
            turns = heading + calibre.turn * rng.standard_normal((_DIRECTIONS, ndim))
            turns /= np.linalg.norm(turns, axis=1, keepdims=True)
            ahead = point + turns * (step + 0.7 * radius)
            room = _look_up(clearance, ahead)
            choice = int(np.argmax(room))
            if room[choice] < -0.6 * radius:
                break  # the process ends here
            heading = turns[choice]
            point = point + step * heading
            if np.any(point < -radius) or np.any(point > shape + radius):
                break
            arm.append(point)
        arms.append(arm)
    points = np.array([*arms[1][::-1], start, *arms[0]])
    radii = _radii(len(points), radius, step, calibre, rng)
    flatten = np.exp(0.22 * rng.standard_normal(ndim))
    return Walk(label, points, radii, flatten / flatten.prod() ** (1 / ndim))


def _radii(
    count: int, radius: float, step: float, calibre: Calibre, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return the radius along a walk: varicosities everywhere, and a neck at some places."""
    at = np.arange(count) * step
    swell = np.interp(at / (3 * radius + 6), np.arange(count + 2), rng.standard_normal(count + 2))
    radii = radius * np.exp(0.28 * swell)
    for centre in at[rng.random(count) < calibre.pinch * step / 100]:
        depth = np.exp(-(((at - centre) / (0.6 * radius + 2)) ** 2))
        radii = radii * (1 - depth) + np.minimum(radii, _NECK) * depth
    return np.asarray(np.maximum(radii, _NECK))


def _stamps(
    walk: Walk, coordinates: list[Floats], shape: tuple[int, ...]
) -> Iterator[tuple[Floats, tuple[slice, ...]]]:
    """Yield the distance to the surface of `walk` in a box around each of its points."""
    for point, radius in zip(walk.points, walk.radii, strict=True):
        box = box_around(point, (radius + _REACH) / walk.flatten + SLACK, shape)
        if box is not None:
            distance = warped_distance(coordinates, point, box, walk.flatten)
            yield distance - np.float32(radius), box


def box_around(
    centre: NDArray[np.float64], half: NDArray[np.float64] | float, shape: tuple[int, ...]
) -> tuple[slice, ...] | None:
    """Return the box of pixels within `half` of `centre` along each axis; None if it is empty."""
    low = np.maximum(np.floor(centre - half), 0).astype(int).tolist()
    high = np.minimum(np.ceil(centre + half) + 1, shape).astype(int).tolist()
    if any(a >= b for a, b in zip(low, high, strict=True)):
        return None
    return tuple(slice(a, b) for a, b in zip(low, high, strict=True))


def warped_distance(
    coordinates: list[Floats],
    point: NDArray[np.float64],
    box: tuple[slice, ...],
    flatten: NDArray[np.float64],
) -> Floats:
    """Return the distance from `point` of the pixels in `box`, in warped coordinates."""
    squared: Floats | np.float32 = np.float32(0)
    for warped, centre, stretch in zip(coordinates, point, flatten, strict=True):
        offset = warped[box] - np.float32(centre)
        offset *= np.float32(stretch)
        squared = squared + offset * offset
    return np.asarray(np.sqrt(squared))


def _look_up(field: Floats, points: NDArray[np.float64]) -> Floats:
    """Return `field` at the nearest pixels, those at the border for points outside."""
    index = np.clip(np.rint(points).astype(np.int64), 0, np.array(field.shape) - 1)
    return np.asarray(field[tuple(index.T)])


def _unit(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(vector / np.linalg.norm(vector))
