"""A picture of one error: the plane that shows it best, cut out around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.plots import LIGHT, grey, tinted
from napari_agglo.report._layers import label_path, layered
from napari_agglo.report._planes import Plane, best_plane
from napari_agglo.volumes import DenseLabels

_LARGEST = 240  # pixels along a side; larger ones are thinned
_LEAST = 40
_MEMBRANE = 3  # pixels: so far are gold segments drawn into what is left at 0 between them
_TINTS = (*LIGHT.series[:4], "#f0e442", LIGHT.series[5])


def boxes(labels: DenseLabels, ids: Sequence[int]) -> dict[int, tuple[slice, ...]]:
    """Return the part of the image that holds each of some labels, from one pass over it.

    Examples
    --------
    >>> from napari_agglo.volumes import dense_labels
    >>> boxes(dense_labels(np.array([5, 9, 9, 0])), [9, 0])
    {9: (slice(1, 3, None),), 0: (slice(3, 4, None),)}
    """
    from scipy.ndimage import find_objects

    wanted = list(dict.fromkeys(ids))
    numbers = np.zeros(labels.ids.size, np.min_scalar_type(len(wanted)))
    at = np.searchsorted(labels.ids, np.array(wanted, np.uint64))
    numbers[at] = np.arange(1, len(wanted) + 1)
    return dict(zip(wanted, find_objects(numbers[labels.image]), strict=True))


def cut_out(
    backdrop: NDArray[Any],
    labels: NDArray[Any],
    gold: NDArray[Any],
    *,
    kind: str,
    one: int,
    partners: Sequence[int],
    spacing: Sequence[float] | None = None,
    box: tuple[slice, ...] | None = None,
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
    box : tuple of slice, optional
        A part of the image that holds all of `one`: of a volume only this need be looked at.
    """
    whole, parts = (gold, labels) if kind == "false split" else (labels, gold)
    box = tuple(slice(0, n) for n in gold.shape) if box is None else box
    found = (whole[box] == one) & (gold[box] != 0)
    plane = best_plane(found, found & (parts[box] != partners[0]), spacing).moved(box)
    shown = (plane.cut(whole) == one) & (plane.cut(gold) != 0)
    window = _window(shown)
    step = max(1, -(-max(s.stop - s.start for s in window) // _LARGEST))
    window = tuple(slice(s.start, s.stop, step) for s in window)
    picture = grey(plane.cut(backdrop)[window])
    inside, part = shown[window], plane.cut(parts)[window]
    truth = _grown(plane.cut(gold)[window], _MEMBRANE / step)
    outline = (truth if kind == "false split" else plane.cut(whole)[window]) == one
    for k, partner in enumerate(partners[: len(_TINTS)]):
        picture = tinted(picture, _rgb(_TINTS[k]), 0.45 * (inside & (part == partner)))
    paths = {
        "gold": label_path(truth),
        "segmentation": label_path(plane.cut(labels)[window]),
        "whole": label_path(outline),
    }
    sides = (1.0, 1.0) if spacing is None else (spacing[plane.rows], spacing[plane.columns])
    return layered(picture, paths, f"{kind} {one}", sides), plane


def _grown(gold: NDArray[Any], distance: float) -> NDArray[Any]:
    """Give thin lines of 0 to the segments beside them: one border is seen then, and not two."""
    from skimage.segmentation import expand_labels

    if gold.all() or not gold.any():
        return gold
    return np.asarray(expand_labels(gold, max(1.0, distance)))  # type: ignore[no-untyped-call, unused-ignore]


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
