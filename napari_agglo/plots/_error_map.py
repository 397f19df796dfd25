"""The error map: where an image has false merges and false splits.

A pixel is painted by the share of its segment, and of its gold segment, that is elsewhere. Where
labels part and gold does not, and the other way round, there is a line too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.evaluate import Contingency, contingency
from napari_agglo.plots._pixels import (
    RGB,
    enlarged,
    factors,
    grey,
    outlined,
    thickened,
    tinted,
)
from napari_agglo.plots._style import SMALL, colours_of, new_axes
from napari_agglo.plots._wrong import check_plane, worst_plane, wrong_shares

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MERGE: RGB = (1.0, 0.62, 0.0)  # brighter than in plots: they lie on dark images
SPLIT: RGB = (0.25, 0.72, 1.0)


def error_picture(
    backdrop: NDArray[Any],
    labels: NDArray[Any],
    gold: NDArray[Any],
    table: Contingency,
    *,
    spacing: Sequence[float] = (1.0, 1.0),
    wanted: int = 640,
) -> NDArray[np.float64]:
    """Return one plane as RGB, with its errors painted.

    Examples
    --------
    >>> labels, gold = np.array([[1, 1, 2, 2]]), np.array([[7, 7, 7, 7]])
    >>> error_picture(np.zeros((1, 4)), labels, gold, contingency(labels, gold), wanted=40).shape
    (10, 40, 3)
    """
    times = factors(labels.shape, wanted, spacing)
    merge, split = wrong_shares(table, labels, gold)
    picture = grey(backdrop)
    picture = tinted(picture, SPLIT, 0.55 * split)
    picture = tinted(picture, MERGE, 0.55 * merge)
    picture = enlarged(picture, times)
    for cut, joined, colour in ((labels, gold, SPLIT), (gold, labels, MERGE)):
        edge = _between(enlarged(cut, times), enlarged(joined, times), enlarged(gold != 0, times))
        picture = outlined(picture, thickened(edge, 2), colour)
    return picture


def _between(
    cut: NDArray[Any], joined: NDArray[Any], known: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return where `cut` has a border within a segment of `joined`, both sides being annotated."""
    edge = np.zeros(cut.shape, bool)
    for here, there in ((np.s_[:-1], np.s_[1:]), (np.s_[:, :-1], np.s_[:, 1:])):
        edge[here] |= (
            (cut[here] != cut[there]) & (joined[here] == joined[there]) & known[here] & known[there]
        )
    return edge


def plot_error_map(
    image: Any,
    labels: Any,
    gold: Any,
    *,
    plane: Sequence[int] | None = None,
    spacing: Sequence[float] | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draw a plane of an image with false merges (orange) and false splits (blue) painted on it.

    Parameters
    ----------
    image : array
        What lies under the errors; an axis more than `labels` has is that of colours.
    labels, gold : array of int, same shape
        Any number of axes, two at least. Where gold is 0 nothing is painted.
    plane : sequence of int, optional
        Index along all axes but the last two; by default a plane with much error.
    spacing : sequence of float, optional
        Distance between pixels along each axis.
    axes : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> gold = np.repeat([[1, 1, 2, 2]], 4, axis=0)
    >>> axes = plot_error_map(np.zeros((4, 4)), np.ones((4, 4), int), gold)
    >>> len(axes.images)
    1
    """
    from napari_agglo.volumes import check_labels, check_same_shape, check_spacing

    one, two = check_labels(labels, "labels"), check_labels(gold, "gold")
    check_same_shape(two, one, "gold", "labels")
    backdrop = np.asarray(image)
    if one.ndim < 2 or backdrop.shape[: one.ndim] != one.shape:
        raise InvalidInput(
            f"`image` (shape {backdrop.shape}) must match `labels` (shape {one.shape}), which must "
            "have two axes at least; pass the same crop of both."
        )
    table = contingency(one, two)
    index = worst_plane(table, one, two) if plane is None else check_plane(plane, one.shape)
    distances = check_spacing(spacing, one.ndim)[-2:]
    picture = error_picture(backdrop[index], one[index], two[index], table, spacing=distances)
    axes = new_axes(5.2, 5.2) if axes is None else axes
    axes.imshow(picture, interpolation="antialiased")
    axes.set_axis_off()
    where = f"plane {', '.join(map(str, index))}    " if index else ""
    axes.set_title(
        f"{where}orange: false merge    blue: false split", loc="left", fontsize=SMALL,
        color=colours_of(axes).muted,
    )  # fmt: skip
    return axes
