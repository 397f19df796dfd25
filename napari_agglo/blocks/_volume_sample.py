"""Sample of a volume for its plan: the halo that superpixels need, and how dense they are.

Superpixels are made, or read, in a few boxes: one in the middle, and in a large volume others
around it. In its own file because a plan has neither blocks nor a budget yet while it is taken, and
because a change of where a volume is sampled is made here alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from napari_agglo.blocks._block_grid import Slices, lengths
from napari_agglo.blocks._block_superpixels import cut_block
from napari_agglo.blocks._face_cues import AFFINITY
from napari_agglo.blocks._piece_runs import Runs, fill
from napari_agglo.blocks._plan import Plan
from napari_agglo.blocks._run_files import Absent, Job, read_source
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import region_graph
from napari_agglo.superpixels._oversegment import sigmas_in_voxels, warn_if_inverted
from napari_agglo.volumes import ValueGate, dense_labels

_MIDDLE = 1 << 20  # voxels of the box in the middle
_OTHERS = 1 << 18  # of each other box
_BOXES = 8  # in a large volume, beside that in the middle
_LARGE = 32 * _MIDDLE  # voxels of a volume that has other boxes
_MARGIN = 16  # of a box that superpixels are made in, and that are not counted
_FEW = 20  # superpixels within the sample below which those that it cuts count too
_WIDEST = 64  # halo that is asked for


@dataclass(frozen=True)
class Sample:
    """Superpixels of a few boxes of a volume.

    Attributes
    ----------
    halo : int
        Halo that they ask for; 0 if that is not known.
    superpixels, boundaries : float
        Of a voxel; 0 if that is not known.
    """

    halo: int = 0
    superpixels: float = 0.0
    boundaries: float = 0.0


def take_sample(plan: Plan) -> Sample:
    """Return the sample of a volume; nothing is known of cues that are yet to be predicted.

    Warn of a boundary map of the wrong sign, as `oversegment` and `region_graph` do.
    """
    if plan.superpixels is None and plan.boundary in plan.predicted:
        return Sample()
    _check_values(plan)
    halo, densities = 0, []
    for k, box in enumerate(sample_boxes(plan.shape, plan.per_plane)):
        with suppress(InvalidInput):  # values that cannot be used are refused by the blocks
            if plan.superpixels is not None:
                labels = read_source(plan.superpixels, box, "superpixels", Absent(box))
                image = dense_labels(labels, "superpixels").image
                if k == 0:
                    _compare_sign(plan, box, image)
            else:
                image = _made(plan, box)
                halo = _needed_halo(plan, image) if k == 0 else halo
                image = image[_inside(plan, box)]
            *counts, voxels = owned(image, _cut_axes(plan, box), plan.dams)
            densities.append((counts[0] / voxels, counts[1] / voxels, counts[0]))
    if sum(counted for *_, counted in densities) < 2:  # nothing is there, or all is one
        return Sample(halo)
    # each box counts alike, as it stands for as much of the volume
    superpixels, boundaries, _ = np.mean(densities, axis=0).tolist()
    return Sample(halo, superpixels, boundaries)


def sample_boxes(whole: Sequence[int], per_plane: bool) -> list[Slices]:
    """Return a box in the middle of a volume, and of a large one eight others all over it.

    Their places are those of a Kronecker sequence, which are even along every axis but have no
    period that a volume may have too.

    Examples
    --------
    >>> sample_boxes((300, 2000), False)
    [(slice(0, 300, None), slice(488, 1512, None))]
    >>> len(sample_boxes((1024, 1024, 1024), False))
    9
    """
    boxes = [_box(whole, per_plane, _MIDDLE, [0.5] * len(whole))]
    return boxes + (_other_boxes(whole, per_plane) if math.prod(whole) >= _LARGE else [])


def _other_boxes(whole: Sequence[int], per_plane: bool) -> list[Slices]:
    """Return smaller boxes all over a volume."""
    ratio = 2.0  # the root of x ** (axes + 1) = x + 1
    for _ in range(30):
        ratio = (1 + ratio) ** (1 / (len(whole) + 1))
    steps = [ratio ** -(axis + 1) for axis in range(len(whole))]
    places = [[(0.5 + k * step) % 1 for step in steps] for k in range(1, 1 + _BOXES)]
    return [_box(whole, per_plane, _OTHERS, place) for place in places]


def _box(whole: Sequence[int], per_plane: bool, voxels: int, at: Sequence[float]) -> Slices:
    """Return a box of about so many voxels, at a place in shares of the room along each axis."""
    long = [n > 1 and not (per_plane and axis == 0) for axis, n in enumerate(whole)]
    side = int(voxels ** (1 / max(1, sum(long))))
    sides = [min(n, side if is_long else 1) for n, is_long in zip(whole, long, strict=True)]
    firsts = [int(share * (n - length)) for share, n, length in zip(at, whole, sides, strict=True)]
    return tuple(slice(a, a + length) for a, length in zip(firsts, sides, strict=True))


def _compare_sign(plan: Plan, box: Slices, image: NDArray[np.uint32]) -> None:
    """Warn of a cue "boundary" that is lower where superpixels of a box touch than inside."""
    if "boundary" not in plan.cues:
        return
    with suppress(InvalidInput):  # values that cannot be used are refused by the blocks
        cue = Job(Path(), plan).cue("boundary", box, Absent(box))
        region_graph(
            image, {"boundary": cue}, ranges=plan.ranges.get("boundary"), nan="boundary",
            statistics="mean", dams=plan.dams, keep_cues=False,
        )  # fmt: skip


def _check_values(plan: Plan) -> None:
    """Warn of the map that superpixels are made of if it is of the wrong sign or hardly varies.

    Boxes all over the volume tell: that in the middle may be in the middle of an object.
    """
    if plan.superpixels is not None or plan.boundary not in plan.cues:
        return
    boxes = sample_boxes(plan.shape, plan.per_plane)[:1]
    if math.prod(lengths(boxes[0])) < math.prod(plan.shape):
        boxes += _other_boxes(plan.shape, plan.per_plane)
    with suppress(InvalidInput):  # values that cannot be used are refused by the blocks
        parts = [Job(Path(), plan).boundary(box, Absent(box)) for box in boxes]
        name, limits = f"cues[{plan.boundary!r}]", plan.ranges.get(plan.boundary)
        gate = ValueGate.of(parts[0].dtype, limits, name, "ranges")
        gate.warn_if_narrow(parts)
        if plan.mask is None:
            warn_if_inverted(parts, gate)


def _made(plan: Plan, box: Slices) -> NDArray[np.uint32]:
    """Return the superpixels of a box by itself."""
    values = Job(Path(), plan).boundary(box, Absent(box))
    mask = None if plan.mask is None else read_source(plan.mask, box, "mask", Absent(box))
    everything = tuple(slice(0, n) for n in values.shape)
    limits = None if plan.boundary == AFFINITY else Job(Path(), plan).range(plan.boundary)
    cut = cut_block(
        values, mask, everything, everything, values.shape, spacing=plan.spacing, sigma=plan.sigma,
        min_size=plan.min_size, per_plane=plan.per_plane, value_range=limits, nan=plan.nan,
    )  # fmt: skip
    image = np.empty(values.shape, np.uint32)
    table = np.arange(cut["count"][0] + 1, dtype=np.uint32)
    fill(Runs(cut["values"], cut["begins"]), table, image)
    return image


def _cut_axes(plan: Plan, box: Slices) -> list[int]:
    """Return the axes along which a box ends where superpixels go on."""
    sides = enumerate(zip(lengths(box), plan.shape, strict=True))
    return [axis for axis, (side, n) in sides if side < n and not (plan.per_plane and axis == 0)]


def _inside(plan: Plan, box: Slices) -> Slices:
    """Return the part of a box whose superpixels are those of the volume, but for a few."""
    sides = lengths(box)
    cut_axes = _cut_axes(plan, box)
    margins = [min(_MARGIN, n // 8) if axis in cut_axes else 0 for axis, n in enumerate(sides)]
    return tuple(slice(m, n - m) for m, n in zip(margins, sides, strict=True))


def _needed_halo(plan: Plan, image: NDArray[np.uint32]) -> int:
    """Return the halo that superpixels of a box ask for, 0 if the box is one superpixel.

    It is as wide as the smoothing reaches, and a superpixel: docs/scale.md has the measurements. A
    superpixel is as long as its bounding box; those that the sample cuts do not count, unless there
    are few others.
    """
    connected = [n > 1 and not (plan.per_plane and axis == 0) for axis, n in enumerate(plan.shape)]
    reach = 4 * max(sigmas_in_voxels(plan.sigma, plan.spacing, connected, plan.shape))
    boxes = ndimage.find_objects(image.astype(np.int32))
    ends = np.array([[(s.start, s.stop) for s in box] for box in boxes]).reshape(len(boxes), -1, 2)
    sides = np.array(image.shape)
    inner = ((ends[:, :, 0] > 0) & (ends[:, :, 1] < sides))[:, sides > 1].all(axis=1)
    if len(boxes) < 2:
        return 0
    if inner.sum() < _FEW:
        inner = np.ones_like(inner)
    longest = (ends[inner, :, 1] - ends[inner, :, 0]).max(axis=1)
    return min(_WIDEST, math.ceil(reach + float(longest.mean())))


def owned(image: NDArray[np.uint32], cut_axes: Sequence[int], dams: bool) -> tuple[int, int, int]:
    """Return the numbers of superpixels and boundaries that begin in a box, and of its voxels.

    The lowest plane of an axis that is cut is that before the box: those that have voxels there
    belong to another box. Boxes that fill a volume then count each about once.

    Examples
    --------
    >>> image = np.array([[1, 1, 2, 2], [1, 1, 3, 3]], np.uint32)
    >>> owned(image, [], False), owned(image, [1], False)
    ((3, 3, 8), (2, 3, 6))
    """
    present = np.zeros(int(image.max(initial=0)) + 1, np.bool_)
    present[image.reshape(-1)] = True
    present[0] = False
    pairs = _pairs(image, dams)
    for axis in cut_axes:
        plane = image.take([0], axis)
        present[plane.reshape(-1)] = False
        pairs = np.setdiff1d(pairs, _pairs(plane, dams), assume_unique=True)
    voxels = math.prod(max(1, n - (axis in cut_axes)) for axis, n in enumerate(image.shape))
    return int(present.sum()), len(pairs), voxels


def _pairs(image: NDArray[np.uint32], dams: bool) -> NDArray[Any]:
    """Return each pair of labels that touch, as one number; with dams, across one voxel of 0."""
    pairs = [np.zeros(0, np.uint64)]
    for axis in range(image.ndim):
        lines = np.moveaxis(image, axis, 0)
        for step in (1, 2) if dams else (1,):
            a, b = lines[:-step], lines[step:]
            touch = (a != b) & (a > 0) & (b > 0)
            if step == 2:
                touch &= lines[1:-1] == 0
            one, other = a[touch].astype(np.uint64), b[touch].astype(np.uint64)
            low, high = np.minimum(one, other), np.maximum(one, other)
            pairs.append(np.unique(low << np.uint64(32) | high))
    return np.unique(np.concatenate(pairs))
