"""What a cut would make, to the pixel: also the line that it would draw through a superpixel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.graph import RegionGraph
from napari_agglo.session import _cutting
from napari_agglo.session._cutting import Plan
from napari_agglo.session._learning_from import LearningFrom
from napari_agglo.session._rules import check_method


@dataclass(frozen=True, eq=False)
class DividedPixels:
    """A superpixel that a cut would divide.

    Attributes
    ----------
    superpixel : int
        Its id.
    box : tuple of slice
        Where it lies.
    parts : ndarray of int, shape of the box
        The part that each of its pixels goes to, counted from 1; 0 elsewhere.
    """

    superpixel: int
    box: tuple[slice, ...]
    parts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CutPixels:
    """The parts of a cut that is not made: superpixels that stay whole, and pixels of the others.

    Attributes
    ----------
    whole : list of ndarray of uint64
        Of each part, the ids of the superpixels that are wholly in it.
    divided : tuple of DividedPixels
        The superpixels that would be divided.
    sizes : tuple of int
        The number of pixels of each part.
    """

    whole: list[NDArray[np.uint64]]
    divided: tuple[DividedPixels, ...]
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


class Previewing(LearningFrom):
    """Looks at cuts that are not made."""

    def preview_pixels(
        self,
        segment: int,
        points: Sequence[Sequence[Sequence[int]]],
        method: str = "min_cut",
    ) -> CutPixels:
        """Return what `cut_points` would make, pixel for pixel, and change nothing.

        Only superpixels that would be divided are given by their pixels, so that it costs as little
        in a large segment as in a small one; all others by their ids.

        Parameters
        ----------
        segment, points, method
            As for `cut_points`.

        Returns
        -------
        CutPixels
            A part for each group of points, in their order.

        Examples
        --------
        >>> import tempfile, numpy as np, napari_agglo as agglo
        >>> superpixels = np.array([[7, 7, 7, 7, 9]])
        >>> graph = agglo.region_graph(superpixels, np.array([[0.0, 0.1, 0.6, 0.1, 0.9]]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with agglo.Session.create(f"{folder}/cells.agglo", graph) as session:
        ...         session.threshold = 0.3
        ...         found = session.preview_pixels(7, [[(0, 0)], [(0, 3)]])
        ...         found.sizes, found.paint(superpixels)
        ((2, 2), array([[1, 1, 2, 2, 0]]))
        """
        with self._lock:
            found = self._cuttable(segment)
            plan = _cutting.by_points(self._state, found, points, check_method(method))
            return _pixels(self._state.graph, plan)


def _pixels(graph: RegionGraph, plan: Plan) -> CutPixels:
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
        name = int(graph.ids[division.superpixel])
        divided.append(DividedPixels(name, division.box, parts))
    return CutPixels([graph.ids[part] for part in whole], tuple(divided), tuple(sizes.tolist()))
