"""Boundary precision against recall over the states of a tree, and the area under that curve."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import InvalidInput
from napari_agglo.evaluate._boundary import Matcher, boundary_scores, filled, match_all
from napari_agglo.evaluate._golds import dense_golds
from napari_agglo.tree import MergeTree

if TYPE_CHECKING:
    import pandas as pd

_STATES = 50


def boundary_curve(
    tree: MergeTree | Mapping[float, Any],
    gold: Any,
    *,
    tolerance: float = 2.0,
    fill: float = 3.0,
    spacing: Any = None,
    thresholds: Iterable[float] | None = None,
    progress: ProgressCallback | None = None,
) -> pd.DataFrame:
    """Return precision, recall and F of the boundaries at several thresholds.

    Parameters
    ----------
    tree : MergeTree, or dict of threshold to label image
        The hierarchy, or segmentations made by any other means.
    gold, tolerance, fill, spacing
        As for `boundary_scores`.
    thresholds : iterable of float, optional
        Where to cut the tree. By default the superpixels (-inf) and up to 50 states, whose numbers
        of segments fall by equal factors. Give the same ones for images that are to be compared by
        `over_set`.
    progress : callable, optional
        Called with a `Progress` at each threshold; it may raise `Cancelled`.

    Returns
    -------
    pandas.DataFrame
        ``threshold``, ascending, and the values of `boundary_scores`.

    Examples
    --------
    >>> import numpy as np
    >>> import napari_agglo as agglo
    >>> graph = agglo.region_graph(np.array([1, 2, 3, 4]), np.array([0.0, 0.0, 1.0, 1.0]))
    >>> curve = boundary_curve(agglo.agglomerate(graph), np.array([1, 1, 1, 2]), tolerance=0)
    >>> curve[["threshold", "precision", "recall"]].round(2)
       threshold  precision  recall
    0       -inf       0.33     1.0
    1        0.0       0.50     1.0
    2        0.5       1.00     1.0
    3        1.0       1.00     0.0
    """
    import pandas as pd

    rows = []
    if isinstance(tree, MergeTree):
        image = tree.superpixels.image
        golds = dense_golds(gold, image, "the superpixels of the tree")
        cuts = _spread(tree) if thresholds is None else _ascending(thresholds)
        watch = _within(progress, 0, len(cuts))
        matchers = [
            Matcher(filled(one.image, fill), image, tolerance, spacing, watch) for one in golds
        ]
        for done, threshold in enumerate(cuts):
            report(progress, "boundaries", done, len(cuts))
            labels, watch = tree.lut(threshold)[image], _within(progress, done, len(cuts))
            rows.append({"threshold": threshold} | match_all(matchers, labels, watch).row())
    else:
        if not isinstance(tree, Mapping) or thresholds is not None:
            raise InvalidInput(
                "`tree` must be a MergeTree, or a dict of threshold to label image and then no "
                f"`thresholds`; got {type(tree).__name__}."
            )
        cuts = _ascending(tree)
        for done, threshold in enumerate(cuts):
            report(progress, "boundaries", done, len(cuts))
            scores = boundary_scores(
                tree[threshold], gold, tolerance=tolerance, fill=fill, spacing=spacing,
                progress=_within(progress, done, len(cuts)),
            )  # fmt: skip
            rows.append({"threshold": threshold} | scores)
    report(progress, "boundaries", len(cuts), len(cuts))
    return pd.DataFrame(rows)


def average_precision(curve: pd.DataFrame) -> float:
    """Return the area under precision against recall.

    Between the points of the curve precision is interpolated; of several points of one recall the
    highest counts. What no point reaches, to the left of the lowest recall and to the right of the
    highest, adds nothing, as in the Berkeley benchmark.

    Examples
    --------
    >>> import pandas as pd
    >>> average_precision(pd.DataFrame({"precision": [0.5, 1.0, 1.0], "recall": [1.0, 0.5, 0.0]}))
    0.875
    """
    best = curve.groupby("recall")["precision"].max().sort_index()
    recall, precision = best.index.to_numpy(), best.to_numpy()
    return float((np.diff(recall) * (precision[1:] + precision[:-1])).sum() / 2)


def _within(progress: ProgressCallback | None, done: int, total: int) -> ProgressCallback | None:
    """Return a callback for work within one state: it can be cancelled, and tells of the whole."""
    if progress is None:
        return None
    return lambda inner: report(progress, "boundaries", done, total)


def _spread(tree: MergeTree) -> list[float]:
    """States of all scales: the numbers of segments fall by equal factors."""
    n = tree.n_superpixels
    if tree.n_merges == 0:
        return [-math.inf]
    left = np.geomspace(n, n - tree.n_merges, _STATES + 1)[1:]
    merges = np.clip(n - np.round(left).astype(np.int64), 1, tree.n_merges)
    found: NDArray[np.float64] = np.unique(tree.heights[merges - 1])
    return [-math.inf, *found.tolist()]


def _ascending(thresholds: Iterable[float]) -> list[float]:
    found = sorted({float(one) for one in thresholds})
    if not found or any(math.isnan(one) for one in found):
        raise InvalidInput("`thresholds` must be numbers, one at least; got none, or NaN.")
    return found
