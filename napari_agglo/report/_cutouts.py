"""A picture of one error: the plane that shows it best, cut out around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.plots import LIGHT, grey, tinted
from napari_agglo.report._layers import label_path, layered

_LARGEST = 240  # pixels along a side; larger ones are thinned
_LEAST = 40
_TINTS = (*LIGHT.series[:4], "#f0e442", LIGHT.series[5])


@dataclass(frozen=True)
class Plane:
    """Two axes that are shown, and the index along the others (None for the shown ones)."""

    rows: int
    columns: int
    index: tuple[int | None, ...]

    def cut(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the plane of an array; an axis after those of the labels stays."""
        return np.asarray(array[tuple(slice(None) if i is None else i for i in self.index)])

    def __str__(self) -> str:
        """Say where it is: nothing for an image that is a plane."""
        fixed = [f"axis {axis} = {i}" for axis, i in enumerate(self.index) if i is not None]
        return ", ".join(fixed)


def best_plane(
    where: tuple[NDArray[np.int64], ...],
    minor: NDArray[np.bool_],
    shape: Sequence[int],
    spacing: Sequence[float] | None = None,
) -> Plane:
    """Return the plane with most of an error: of what is amiss, and of what it is amiss in.

    Parameters
    ----------
    where : tuple of ndarray
        The coordinates of the voxels of a segment, as of ``np.nonzero``.
    minor : ndarray of bool
        Whether each of them is not of its largest part.
    shape : sequence of int
        Of the image.
    spacing : sequence of float, optional
        Axes that are more than twice as coarse as the finest are not shown.

    Examples
    --------
    >>> labels = np.ones((3, 4, 5), int)
    >>> labels[1, :2] = 2
    >>> where = np.nonzero(labels)
    >>> best_plane(where, labels[where] == 2, labels.shape)
    Plane(rows=1, columns=2, index=(1, None, None))
    """
    best: tuple[int, Plane] | None = None
    for rows, columns in _pairs(len(shape), spacing):
        fixed = [axis for axis in range(len(shape)) if axis not in (rows, columns)]
        if fixed:
            key = np.ravel_multi_index([where[a] for a in fixed], [shape[a] for a in fixed])
        else:
            key = np.zeros(minor.size, np.int64)
        keys, back = np.unique(key, return_inverse=True)
        amiss = np.bincount(back[minor], minlength=keys.size)
        both = np.minimum(amiss, np.bincount(back[~minor], minlength=keys.size))
        at = int(np.lexsort([amiss, both])[-1])
        index: list[int | None] = [None] * len(shape)
        if fixed:
            places = np.unravel_index(int(keys[at]), [shape[a] for a in fixed])
            for axis, place in zip(fixed, places, strict=True):
                index[axis] = int(place)
        if best is None or int(both[at]) > best[0]:
            best = int(both[at]), Plane(rows, columns, tuple(index))
    assert best is not None
    return best[1]


def _pairs(ndim: int, spacing: Sequence[float] | None) -> list[tuple[int, int]]:
    """Return the pairs of axes that may be shown, the last two first, of the last three axes."""
    axes = range(max(0, ndim - 3), ndim)
    fine = [a for a in axes if spacing is None or spacing[a] <= 2 * min(spacing[b] for b in axes)]
    chosen = fine if len(fine) >= 2 else list(axes)
    return list(combinations(chosen, 2))[::-1]


def cut_out(
    backdrop: NDArray[Any],
    labels: NDArray[Any],
    gold: NDArray[Any],
    *,
    kind: str,
    one: int,
    partners: Sequence[int],
    spacing: Sequence[float] | None = None,
) -> tuple[str, Plane]:
    """Return the picture of an error as an SVG element, and which plane it is.

    The segment (or gold segment) is tinted by what it falls into; lines are the borders of the gold
    standard and of the segmentation.

    Parameters
    ----------
    backdrop : ndarray
        Grey or coloured image.
    labels, gold : ndarray of int
    kind : {"false split", "false merge"}
    one : int
        Id of the gold segment that is split, or of the segment that merges.
    partners : sequence of int
        What it falls into, the largest part first.
    spacing : sequence of float, optional
        Distance between pixels along each axis.
    """
    whole, parts = (gold, labels) if kind == "false split" else (labels, gold)
    found = (whole == one) & (gold != 0)
    where = np.nonzero(found)
    plane = best_plane(where, parts[where] != partners[0], gold.shape, spacing)
    shown = plane.cut(found)
    window = _window(shown)
    step = max(1, -(-max(s.stop - s.start for s in window) // _LARGEST))
    window = tuple(slice(s.start, s.stop, step) for s in window)
    picture = grey(plane.cut(backdrop)[window])
    inside, part = shown[window], plane.cut(parts)[window]
    outline = plane.cut(whole)[window] == one
    for k, partner in enumerate(partners[: len(_TINTS)]):
        picture = tinted(picture, _rgb(_TINTS[k]), 0.45 * (inside & (part == partner)))
    paths = {
        "gold": label_path(plane.cut(gold)[window]),
        "segmentation": label_path(plane.cut(labels)[window]),
        "whole": label_path(outline),
    }
    sides = (1.0, 1.0) if spacing is None else (spacing[plane.rows], spacing[plane.columns])
    return layered(picture, paths, f"{kind} {one}", sides), plane


def _rgb(colour: str) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return red, green, blue


def _window(shown: NDArray[np.bool_]) -> tuple[slice, ...]:
    """Return the part of a plane around a segment, with some of what lies beside it."""
    window = []
    spans = [np.flatnonzero(shown.any(axis=1 - axis)) for axis in (0, 1)]
    side = max(_LEAST, *(int(1.25 * (s[-1] - s[0] + 1)) + 8 for s in spans))
    for axis, span in enumerate(spans):
        # Square where the image allows, so that all cut-outs are of one shape.
        length = min(side, shown.shape[axis])
        begin = (int(span[0]) + int(span[-1]) + 1 - length) // 2
        begin = min(max(begin, 0), shown.shape[axis] - length)
        window.append(slice(begin, begin + length))
    return tuple(window)
