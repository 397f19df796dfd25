"""Preview of a cut, to the pixel: also of the line that it would draw through a superpixel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.graph import RegionGraph
from napari_agglo.session._cutting import Plan


@dataclass(frozen=True, eq=False)
class DividedSuperpixel:
    """A superpixel that a cut would divide.

    Attributes
    ----------
    superpixel : int
        Its id.
    box : tuple of slice
        Its bounding box.
    parts : ndarray of int, shape of the box
        The part that each of its pixels goes to, counted from 1; 0 elsewhere.
    """

    superpixel: int
    box: tuple[slice, ...]
    parts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CutPreview:
    """The parts that a cut would make, in the order of its seeds, parts or points.

    Attributes
    ----------
    parts : tuple of ndarray of uint64
        The superpixels of each part; pieces have the ids that they would get.
    whole : tuple of ndarray of uint64
        The superpixels of each part that would not be divided.
    divided : tuple of DividedSuperpixel
        The superpixels that would be divided.
    sizes : tuple of int
        The number of pixels of each part.
    """

    parts: tuple[NDArray[np.uint64], ...]
    whole: tuple[NDArray[np.uint64], ...]
    divided: tuple[DividedSuperpixel, ...]
    sizes: tuple[int, ...]

    def paint(self, superpixels: NDArray[Any]) -> NDArray[np.int64]:
        """Return the part of each pixel of a label image of superpixels, 0 outside the segment."""
        out = np.zeros(superpixels.shape, np.int64)
        for k, part in enumerate(self.whole, start=1):
            out[np.isin(superpixels, part)] = k
        for one in self.divided:
            inside = one.parts > 0
            out[one.box][inside] = one.parts[inside]
        return out


def preview_of(graph: RegionGraph, plan: Plan) -> CutPreview:
    """Return the preview of a planned cut."""
    members = [division.members for division in plan.divisions]
    every = np.concatenate([np.zeros(0, np.int64), *members])
    whole = [np.setdiff1d(part, every) for part in plan.parts]
    sizes = np.array([graph.sizes[part].sum() for part in whole], np.int64)
    divided = []
    for division in plan.divisions:
        part_of = np.zeros(len(division.members) + 1, np.int64)  # of each piece, from 1
        for k, part in enumerate(plan.parts, start=1):
            part_of[1:][np.isin(division.members, part)] = k
        parts = part_of[division.pieces]
        sizes += np.bincount(parts.reshape(-1), minlength=len(sizes) + 1)[1:]
        divided.append(DividedSuperpixel(int(graph.ids[division.superpixel]), division.box, parts))
    ids = np.concatenate([graph.ids, *(division.ids for division in plan.divisions)])
    return CutPreview(
        tuple(ids[part] for part in plan.parts),
        tuple(graph.ids[part] for part in whole),
        tuple(divided),
        tuple(sizes.tolist()),
    )
