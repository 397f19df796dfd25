"""Boundaries: how many pixels of one drawing have a partner of their own in the other.

As in the Berkeley segmentation benchmark: pixels of both boundaries are matched one to one, as many
as possible, within a distance. A boundary is one pixel thick: a pixel belongs to it whose next
neighbour along some axis is of another segment.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.agglomeration import MergeTree
from napari_agglo.errors import InvalidInput, is_number
from napari_agglo.evaluate._bipartite import match_most, near_pairs
from napari_agglo.evaluate._metrics import dense_golds
from napari_agglo.volumes import DenseLabels, check_spacing, dense_labels

if TYPE_CHECKING:
    import pandas as pd


# How many boundary pixels have a partner, and what follows from it.


@dataclass(frozen=True)
class Matches:
    """Numbers of boundary pixels.

    Attributes
    ----------
    drawn, right
        Of the segmentation; those of them that have a partner.
    true, found
        Of the gold standard, or of all of them; those of them that have a partner.

    Examples
    --------
    >>> Matches(drawn=10, right=5, true=5, found=5).f
    0.6666666666666666
    """

    drawn: int
    right: int
    true: int
    found: int

    @property
    def precision(self) -> float:
        """Share of what is drawn that is right; 1 if nothing is drawn."""
        return self.right / self.drawn if self.drawn else 1.0

    @property
    def recall(self) -> float:
        """Share of what is true that is found; 1 if there is nothing to find."""
        return self.found / self.true if self.true else 1.0

    @property
    def f(self) -> float:
        """The harmonic mean of precision and recall."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0

    def row(self) -> dict[str, float]:
        """Return precision, recall, f and the numbers that they come from."""
        scores = {"precision": self.precision, "recall": self.recall, "f": self.f}
        return scores | {name: getattr(self, name) for name in ("drawn", "right", "true", "found")}


def boundary_scores(
    labels: Any,
    gold: Any,
    *,
    tolerance: float = 2.0,
    fill: float = 3.0,
    spacing: Any = None,
    progress: ProgressCallback | None = None,
) -> dict[str, float]:
    """Return precision, recall and F of the boundaries of a segmentation.

    Parameters
    ----------
    labels : array of int
        The segmentation, n-D; 0 is a segment like any other here.
    gold : array of int, same shape, or list of arrays
        The gold standard, 0 where it is not annotated: no boundary is looked for or counted there.
        Of several, a pixel that is drawn is right if any of them has a partner for it, and what is
        to be found is the boundaries of all.
    tolerance : float
        The largest distance of partners, in pixels, or in the unit of `spacing`.
    fill : float
        Many gold standards leave membranes at 0. A pixel of 0 that is at most so many pixels from
        a gold segment is given to the nearest, so that the boundary runs along the middle of the
        membrane; 0 to leave all as it is.
    spacing : sequence of float, optional
        Distance of pixels along each axis.
    progress : callable, optional
        Called with a `Progress` now and then; it may raise `Cancelled`.

    Returns
    -------
    dict
        ``precision``, ``recall``, ``f``, and in pixels ``drawn`` and those of them that are
        ``right``, ``true`` and those of them that are ``found``.

    Examples
    --------
    >>> import numpy as np
    >>> gold = np.repeat([[1, 1, 1, 2, 2, 2]], 4, axis=0)
    >>> shifted = np.repeat([[1, 1, 2, 2, 2, 2]], 4, axis=0)
    >>> boundary_scores(shifted, gold, tolerance=1)["f"]
    1.0
    >>> boundary_scores(shifted, gold, tolerance=0)["f"]
    0.0
    """
    one = labels if isinstance(labels, DenseLabels) else dense_labels(labels, "labels")
    matchers = [
        Matcher(filled(truth.image, fill), one.image, tolerance, spacing, progress)
        for truth in dense_golds(gold, one.image, "labels")
    ]
    return match_all(matchers, one.image, progress).row()


def filled(gold: NDArray[np.uint32], distance: float) -> NDArray[np.uint32]:
    """Give pixels of 0 to the nearest gold segment, if it is at most `distance` pixels away."""
    from skimage import segmentation

    if not (is_number(distance) and 0 <= distance < np.inf):
        raise InvalidInput(f"`fill` must be a distance in pixels, 0 or more, got {distance!r}.")
    if distance == 0 or gold.all() or not gold.any():
        return gold
    out: NDArray[np.uint32] = segmentation.expand_labels(  # type: ignore[no-untyped-call, unused-ignore]
        gold, distance=distance
    )
    return out


class Matcher:
    """The boundary of one gold standard, ready to be matched with the states of one hierarchy.

    `finest` is a label image that every image to come is a coarsening of: pixels are paired once,
    for its boundary, of which all others are parts.
    """

    def __init__(
        self,
        gold: NDArray[np.uint32],
        finest: NDArray[np.uint32],
        tolerance: float,
        spacing: Any = None,
        progress: ProgressCallback | None = None,
    ) -> None:
        if not (is_number(tolerance) and 0 <= tolerance < np.inf):
            raise InvalidInput(
                f"`tolerance` must be a distance in pixels, 0 or more, got {tolerance!r}."
            )
        self.annotated = gold > 0
        scale = check_spacing(spacing, gold.ndim)
        self.places = np.flatnonzero(boundary_mask(finest, self.annotated))
        true = np.flatnonzero(boundary_mask(gold, self.annotated))
        self.true = true.size
        self.near = near_pairs(self.places, true, gold.shape, tolerance, scale, progress)
        self.back = near_pairs(true, self.places, gold.shape, tolerance, scale, progress)

    def match(
        self, labels: NDArray[np.uint32], progress: ProgressCallback | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the flat indices of the boundary pixels of `labels`, and of those matched."""
        mask = boundary_mask(labels, self.annotated).reshape(-1)
        drawn = np.flatnonzero(mask[self.places])
        chosen = match_most(self.near, self.back, drawn, progress)
        return self.places[drawn], self.places[drawn[chosen[drawn] >= 0]]


def match_all(
    matchers: list[Matcher],
    labels: NDArray[np.uint32],
    progress: ProgressCallback | None = None,
) -> Matches:
    """Match an image with every gold standard; see `boundary_scores` for how they are joined."""
    drawn, right = np.zeros(labels.size, bool), np.zeros(labels.size, bool)
    found = 0
    for one in matchers:
        all_drawn, matched = one.match(labels, progress)
        drawn[all_drawn] = True
        right[matched] = True
        found += matched.size  # one to one: as many gold pixels have a partner
    return Matches(int(drawn.sum()), int(right.sum()), sum(one.true for one in matchers), found)


def boundary_mask(labels: NDArray[Any], annotated: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the pixels whose next one along some axis has another label, both being annotated.

    Examples
    --------
    >>> import numpy as np
    >>> boundary_mask(np.array([1, 1, 2, 2, 3]), np.array([1, 1, 1, 1, 0], bool)).astype(int)
    array([0, 1, 0, 0, 0])
    """
    mask = np.zeros(labels.shape, bool)
    for axis in range(labels.ndim):
        here = tuple(slice(0, -1) if a == axis else slice(None) for a in range(labels.ndim))
        after = tuple(slice(1, None) if a == axis else slice(None) for a in range(labels.ndim))
        differ = labels[here] != labels[after]
        differ &= annotated[here] & annotated[after]
        mask[here] |= differ
    return mask


# Boundary precision against recall over the states of a tree, and the area under that curve.


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
