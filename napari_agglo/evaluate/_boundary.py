"""Boundary precision, recall and F, at one threshold or at many.

As in the Berkeley segmentation benchmark, the pixels of both boundaries are matched one to one, as
many as possible, within a distance. A boundary is one pixel thick: a pixel belongs to it if its
next neighbour along some axis is of another segment.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, part_of, report
from napari_agglo.agglomeration import MergeTree
from napari_agglo.errors import InvalidInput, SetOption, is_number
from napari_agglo.evaluate._metrics import dense_golds
from napari_agglo.evaluate._pixel_matching import maximum_matching, near_pairs
from napari_agglo.volumes import check_spacing, dense_labels, whole_image

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Matches:
    """Numbers of boundary pixels.

    Attributes
    ----------
    drawn, right
        Boundary pixels of the segmentation; those of them that have a partner.
    true, recalled
        Boundary pixels of the gold standard, or of all; those of them that have a partner.

    Examples
    --------
    >>> Matches(drawn=10, right=5, true=5, recalled=5).f
    0.6666666666666666
    """

    drawn: int
    right: int
    true: int
    recalled: int

    @property
    def precision(self) -> float:
        """Share of drawn pixels that are right; 1 if none is drawn."""
        return self.right / self.drawn if self.drawn else 1.0

    @property
    def recall(self) -> float:
        """Share of true pixels that are found; 1 if there is none."""
        return self.recalled / self.true if self.true else 1.0

    @property
    def f(self) -> float:
        """The harmonic mean of precision and recall."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0

    def row(self) -> dict[str, float]:
        """Return precision, recall, f and the four numbers."""
        scores = {"precision": self.precision, "recall": self.recall, "f": self.f}
        counts = ("drawn", "right", "true", "recalled")
        return scores | {name: getattr(self, name) for name in counts}


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
        The gold standard, 0 where it is not annotated: no boundary counts there. With several, a
        drawn pixel is right if it has a partner in any of them, and the true pixels are those of
        all of them.
    tolerance : float
        The largest distance of partners, in pixels, or in the unit of `spacing`.
    fill : float
        Many gold standards leave membranes at 0. A pixel of 0 at most this many pixels from a gold
        segment is assigned to the nearest one, so that the boundary is in the middle of the
        membrane; 0 changes nothing.
    spacing : sequence of float, optional
        Distance of pixels along each axis.
    progress : callable, optional
        Called with a `Progress` now and then; it may raise `Cancelled`.

    Returns
    -------
    dict
        ``precision``, ``recall``, ``f``, and numbers of pixels: ``drawn`` and of these ``right``,
        ``true`` and of these ``recalled``.

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
    one = dense_labels(labels, "labels")
    matchers = [
        Matcher(filled(truth.image, fill), one.image, tolerance, spacing, progress)
        for truth in dense_golds(gold, one.image, "labels")
    ]
    return match_all(matchers, one.image, progress).row()


def filled(gold: NDArray[np.uint32], distance: float) -> NDArray[np.uint32]:
    """Assign pixels of 0 to the nearest gold segment, if it is at most `distance` pixels away."""
    from skimage import segmentation

    if not (is_number(distance) and 0 <= distance < np.inf):
        raise InvalidInput(
            f"`fill` must be a distance in pixels, 0 or more, got {distance!r}",
            argument="fill",
            remedy="pass 0 to leave the gold standard as it is",
        )
    if distance == 0 or gold.all() or not gold.any():
        return gold
    out: NDArray[np.uint32] = segmentation.expand_labels(  # type: ignore[no-untyped-call, unused-ignore]
        gold, distance=distance
    )
    return out


class Matcher:
    """Boundary of one gold standard, prepared for matching with the states of one hierarchy.

    Every image to match must be a coarsening of the label image `finest`: pixels are paired once,
    for the boundary of `finest`, which contains the boundaries of all its coarsenings.
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
                f"`tolerance` must be a distance, 0 or more, got {tolerance!r}",
                argument="tolerance",
                remedy="pass a distance in pixels, or in the unit of `spacing`, such as 2",
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
        chosen = maximum_matching(self.near, self.back, drawn, progress)
        return self.places[drawn], self.places[drawn[chosen[drawn] >= 0]]


def match_all(
    matchers: list[Matcher],
    labels: NDArray[np.uint32],
    progress: ProgressCallback | None = None,
) -> Matches:
    """Match an image with every gold standard, joined as `boundary_scores` says."""
    drawn, right = np.zeros(labels.size, bool), np.zeros(labels.size, bool)
    n_matched = 0
    for one in matchers:
        all_drawn, matched = one.match(labels, progress)
        drawn[all_drawn] = True
        right[matched] = True
        n_matched += matched.size  # one to one: as many gold pixels have a partner
    return Matches(int(drawn.sum()), int(right.sum()), sum(one.true for one in matchers), n_matched)


def boundary_mask(labels: NDArray[Any], annotated: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the pixels whose next one along some axis has another label, both annotated.

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


_STATES = 50  # thresholds of a `boundary_curve` by default


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
        The hierarchy, or segmentations by another method.
    gold, tolerance, fill, spacing
        As for `boundary_scores`.
    thresholds : iterable of float, optional
        Thresholds to cut the tree at. By default the superpixels (-inf) and up to 50 states, whose
        numbers of segments fall by equal factors. Pass the same ones for all images of an
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

    if isinstance(tree, MergeTree):
        image = whole_image(tree.superpixels.image)
        golds = dense_golds(gold, image, "the superpixels of the tree")
        cuts = _spread(tree) if thresholds is None else _ascending(thresholds)
        begin = part_of(progress, 0.0, 0.0, "boundaries")
        matchers = [
            Matcher(filled(one.image, fill), image, tolerance, spacing, begin) for one in golds
        ]

        def scores(threshold: float, part: ProgressCallback | None) -> dict[str, float]:
            return match_all(matchers, tree.lut(threshold)[image], part).row()

    else:
        if not isinstance(tree, Mapping) or thresholds is not None:
            raise InvalidInput(
                "`tree` must be a MergeTree, or a dict of threshold to label image without "
                f"`thresholds`, got {type(tree).__name__}",
                argument="tree",
                remedy="for one label image, call boundary_scores(labels, gold)",
            )
        cuts = _ascending(tree)

        def scores(threshold: float, part: ProgressCallback | None) -> dict[str, float]:
            return boundary_scores(
                tree[threshold], gold, tolerance=tolerance, fill=fill, spacing=spacing,
                progress=part,
            )  # fmt: skip

    rows = []
    for done, threshold in enumerate(cuts):
        report(progress, "boundaries", done, len(cuts))
        part = part_of(progress, done / len(cuts), (done + 1) / len(cuts), "boundaries")
        rows.append({"threshold": threshold} | scores(threshold, part))
    report(progress, "boundaries", len(cuts), len(cuts))
    return pd.DataFrame(rows)


def average_precision(curve: pd.DataFrame) -> float:
    """Return the area under precision against recall.

    Precision is interpolated between the points of the curve; of several points of one recall the
    highest counts. Recalls below the lowest or above the highest point add nothing, as in the
    Berkeley benchmark.

    Parameters
    ----------
    curve : DataFrame
        With the columns ``precision`` and ``recall``, as `boundary_curve` returns it.

    Returns
    -------
    float
        From 0 to 1, the best.

    Examples
    --------
    >>> import pandas as pd
    >>> average_precision(pd.DataFrame({"precision": [0.5, 1.0, 1.0], "recall": [1.0, 0.5, 0.0]}))
    0.875
    """
    best = curve.groupby("recall")["precision"].max().sort_index()
    recall, precision = best.index.to_numpy(), best.to_numpy()
    return float((np.diff(recall) * (precision[1:] + precision[:-1])).sum() / 2)


def _spread(tree: MergeTree) -> list[float]:
    """Return thresholds of all scales: the numbers of segments fall by equal factors."""
    n = tree.n_superpixels
    if tree.n_merges == 0:
        return [-math.inf]
    left = np.geomspace(n, n - tree.n_merges, _STATES + 1)[1:]
    merges = np.clip(n - np.round(left).astype(np.int64), 1, tree.n_merges)
    heights: NDArray[np.float64] = np.unique(tree.heights[merges - 1])
    return [-math.inf, *heights.tolist()]


def _ascending(thresholds: Iterable[float]) -> list[float]:
    ascending = sorted({float(one) for one in thresholds})
    if not ascending or any(math.isnan(one) for one in ascending):
        raise InvalidInput(
            "`thresholds` must be one number or more, and none of them NaN",
            argument="thresholds",
            remedy=SetOption("thresholds", [0.5]),
        )
    return ascending
