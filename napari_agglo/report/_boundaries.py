"""Boundaries along the thresholds, from as much of an image as can be matched in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.evaluate import boundary_curve

if TYPE_CHECKING:
    import pandas as pd

    from napari_agglo.tree import MergeTree

THRESHOLDS = (-np.inf, *(k / 20 for k in range(20)))  # the same for all images, so that they add
_COUNTS = ["drawn", "right", "true", "found"]
_PLANES = 5
_SIDE = 640  # pixels of a plane along each axis, from its middle


def sampled_boundaries(
    tree: MergeTree, golds: Sequence[NDArray[Any]], progress: ProgressCallback | None = None
) -> pd.DataFrame | None:
    """Return the boundary curve of some planes of an image; None if they are not annotated.

    Parameters
    ----------
    tree : MergeTree
    golds : sequence of ndarray
    progress : callable, optional
        Called with a `Progress` now and then; it may raise `Cancelled`.
    """
    image = tree.superpixels.image
    if image.ndim < 2:
        return None
    tables = [tree.lut(threshold) for threshold in THRESHOLDS]
    curves: list[pd.DataFrame | None] = []
    for plane in _planes(image.shape):
        truth = [np.asarray(one[plane]) for one in golds]
        if all(one.any() for one in truth):
            states = dict(zip(THRESHOLDS, (t[image[plane]] for t in tables), strict=True))
            gold = truth[0] if len(truth) == 1 else truth
            curves.append(boundary_curve(states, gold, progress=progress))
    return summed(curves)


def _planes(shape: Sequence[int]) -> list[tuple[Any, ...]]:
    """Return a few planes of the last two axes, evenly apart, and their middles."""
    middle = [
        slice(max(0, (n - _SIDE) // 2), max(0, (n - _SIDE) // 2) + min(n, _SIDE))
        for n in shape[-2:]
    ]
    leading = shape[:-2]
    planes = int(np.prod(leading))
    if planes <= 1:
        return [(*(0 for _ in leading), *middle)]
    n = min(_PLANES, planes)
    at = np.unique(((np.arange(n) + 0.5) * planes / n).astype(int))
    return [(*(int(i) for i in np.unravel_index(k, leading)), *middle) for k in at]


def summed(curves: Sequence[pd.DataFrame | None]) -> pd.DataFrame | None:
    """Return the curve of several images or planes together: their boundary pixels are added.

    Examples
    --------
    >>> import pandas as pd
    >>> one = pd.DataFrame({"threshold": [0.5], "drawn": [10], "right": [5], "true": [8],
    ...                     "found": [4], "precision": [0.5], "recall": [0.5], "f": [0.5]})
    >>> summed([one, None]) is None, summed([one, one])["drawn"].tolist()
    (True, [20])
    """
    known = [curve for curve in curves if curve is not None]
    if not known or len(known) < len(curves):
        return None
    out = known[0].copy()
    out[_COUNTS] = sum(curve[_COUNTS] for curve in known)
    with np.errstate(invalid="ignore", divide="ignore"):
        out["precision"] = np.where(out["drawn"] > 0, out["right"] / out["drawn"], 1.0)
        out["recall"] = np.where(out["true"] > 0, out["found"] / out["true"], 1.0)
        both = out["precision"] + out["recall"]
        out["f"] = np.where(both > 0, 2 * out["precision"] * out["recall"] / both, 0.0)
    return out
