"""Boundaries: how many pixels of one drawing have a partner of their own in the other.

As in the Berkeley segmentation benchmark: pixels of both boundaries are matched one to one, as many
as possible, within a distance. A boundary is one pixel thick: a pixel belongs to it whose next
neighbour along some axis is of another segment.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput, is_number
from napari_agglo.evaluate._golds import dense_golds
from napari_agglo.evaluate._matches import Matches
from napari_agglo.evaluate._matching import match_most
from napari_agglo.evaluate._near import near_pairs
from napari_agglo.volumes import DenseLabels, check_spacing, dense_labels


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
