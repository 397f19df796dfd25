"""Error map: an image with its false merges and false splits painted.

A voxel of segment s and gold segment u is wrong by 1 - p(u|s), the share of its segment that
belongs to other gold segments (false merge), and by 1 - p(s|u), the share of its gold segment that
lies in other segments (false split). The mean of -log2 of both p over all voxels is the VI. Lines
mark borders of the segmentation that the gold standard does not have, and the reverse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput, is_whole
from napari_agglo.evaluate import Contingency, contingency
from napari_agglo.plots._figure_style import SMALL, colours_of, new_axes
from napari_agglo.plots._raster_pictures import (
    NEXT,
    RGB,
    enlarged,
    factors,
    grey,
    outlined,
    thickened,
    tinted,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_SAMPLED = 40  # planes among which the worst is chosen
MERGE: RGB = (1.0, 0.62, 0.0)  # brighter than in plots: they lie on dark images
SPLIT: RGB = (0.25, 0.72, 1.0)


def wrong_shares(
    table: Contingency, labels: NDArray[Any], gold: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the share of each pixel's segment, and of its gold segment, that is elsewhere.

    Parameters
    ----------
    table : Contingency
        Overlaps of the whole images.
    labels, gold : ndarray of int, same shape
        A part of the images. Where gold is 0, both shares are 0.

    Returns
    -------
    merge, split : ndarray of float, from 0 to 1

    Examples
    --------
    >>> from napari_agglo.evaluate import contingency
    >>> labels, gold = np.array([1, 1, 1, 2]), np.array([7, 7, 7, 7])
    >>> wrong_shares(contingency(labels, gold), labels, gold)[1].tolist()
    [0.25, 0.25, 0.25, 0.75]
    """
    row = np.searchsorted(table.row_ids, labels.astype(np.uint64))
    column = np.searchsorted(table.column_ids, gold.astype(np.uint64))
    width = table.column_ids.size
    keys = table.rows * width + table.columns
    known = gold != 0
    at = np.searchsorted(keys, (row * width + column)[known])
    shared = table.counts[at]
    merge, split = np.zeros(labels.shape), np.zeros(labels.shape)
    merge[known] = 1 - shared / table.row_sums()[row[known]]
    split[known] = 1 - shared / table.column_sums()[column[known]]
    return merge, split


def worst_plane(table: Contingency, labels: NDArray[Any], gold: NDArray[Any]) -> tuple[int, ...]:
    """Return the index of a plane with much error, along all axes but the last two.

    Parameters
    ----------
    table : Contingency
        The overlaps of the whole volume.
    labels, gold : ndarray of int
        The segmentation and the gold standard.

    Returns
    -------
    tuple of int
        The index; empty for a picture.

    Examples
    --------
    >>> from napari_agglo.evaluate import contingency
    >>> gold = np.ones((3, 2, 2), int)
    >>> labels = gold.copy()
    >>> labels[2, 0] = 5
    >>> worst_plane(contingency(labels, gold), labels, gold)
    (2,)
    """
    leading = labels.shape[:-2]
    planes = int(np.prod(leading))
    best, most = np.unravel_index(planes // 2, leading) if leading else (), 0.0
    n = min(planes, _SAMPLED)
    for k in ((np.arange(n) + 0.5) * planes / n).astype(int):
        index = np.unravel_index(k, leading) if leading else ()
        step = max(1, max(labels.shape[-2:]) // 256)
        some = (*index, slice(None, None, step), slice(None, None, step))
        merge, split = wrong_shares(table, labels[some], gold[some])
        amount = float(merge.sum() + split.sum())
        if amount > most:
            best, most = index, amount
    return tuple(int(i) for i in best)


def check_plane(plane: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """Return the index of a plane along all axes but the last two; refuse an invalid index.

    Parameters
    ----------
    plane : sequence of int
        An index along all axes but the last two.
    shape : sequence of int
        The shape of the volume.

    Returns
    -------
    tuple of int
        The index, as plain numbers.

    Examples
    --------
    >>> check_plane([4], (10, 64, 64))
    (4,)
    """
    leading = tuple(shape[:-2])
    index = tuple(plane)
    if len(index) != len(leading) or not all(
        is_whole(i) and 0 <= i < n for i, n in zip(index, leading, strict=True)
    ):
        ranges = "; ".join(f"0 to {n - 1} along axis {axis}" for axis, n in enumerate(leading))
        raise InvalidInput(
            f"`plane` must have {len(leading)} indices, one for each axis but the last two"
            f"{f' ({ranges})' if ranges else ''}, got {index}",
            argument="plane",
            remedy="leave it out for the default plane",
        )
    return tuple(int(i) for i in index)


def error_picture(
    backdrop: NDArray[Any],
    labels: NDArray[Any],
    gold: NDArray[Any],
    table: Contingency,
    *,
    spacing: Sequence[float] = (1.0, 1.0),
    side: int = 640,
) -> NDArray[np.float64]:
    """Return one plane as RGB, with its errors painted.

    Parameters
    ----------
    backdrop : ndarray
        The plane of the image.
    labels, gold : ndarray of int
        The same plane of the segmentation and of the gold standard.
    table : Contingency
        The overlaps of the whole volume.
    spacing : sequence of float
        Distance between pixels along rows and columns.
    side : int
        Pixels of the longer side of the picture, about.

    Returns
    -------
    ndarray of float, shape (rows, columns, 3)
        RGB from 0 to 1.

    Examples
    --------
    >>> labels, gold = np.array([[1, 1, 2, 2]]), np.array([[7, 7, 7, 7]])
    >>> error_picture(np.zeros((1, 4)), labels, gold, contingency(labels, gold), side=40).shape
    (10, 40, 3)
    """
    times = factors(labels.shape, side, spacing)
    merge, split = wrong_shares(table, labels, gold)
    picture = grey(backdrop)
    picture = tinted(picture, SPLIT, 0.55 * split)
    picture = tinted(picture, MERGE, 0.55 * merge)
    picture = enlarged(picture, times)
    for cut, joined, colour in ((labels, gold, SPLIT), (gold, labels, MERGE)):
        edge = np.zeros(picture.shape[:2], bool)
        one, two, truth = (enlarged(array, times) for array in (cut, joined, gold))
        for axis, (here, _) in enumerate(NEXT):
            edge[here] |= error_borders(one, two, truth, axis)
        picture = outlined(picture, thickened(edge, 2), colour)
    return picture


def error_borders(
    cut: NDArray[Any], joined: NDArray[Any], gold: NDArray[Any], axis: int
) -> NDArray[np.bool_]:
    """Return borders of `cut` within a segment of `joined`, both sides annotated.

    A border lies between a pixel and the next one: the result is one shorter along `axis`.

    Parameters
    ----------
    cut, joined : ndarray of int
        Two segmentations.
    gold : ndarray of int
        The gold standard; 0 is not annotated.
    axis : int
        The axis along which neighbours are compared.

    Returns
    -------
    ndarray of bool
        True at the borders.

    Examples
    --------
    >>> labels, gold = np.array([[1, 2, 3]]), np.array([[7, 7, 8]])
    >>> error_borders(labels, gold, gold, 1)
    array([[ True, False]])
    """
    here, there = NEXT[axis]
    annotated = (gold[here] != 0) & (gold[there] != 0)
    return np.asarray((cut[here] != cut[there]) & (joined[here] == joined[there]) & annotated)


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
        The image under the errors; an axis more than `labels` has is that of colours.
    labels, gold : array of int, same shape
        Any number of axes, two at least. Where gold is 0 nothing is painted.
    plane : sequence of int, optional
        Index along all axes but the last two; by default a plane with much error.
    spacing : sequence of float, optional
        Distance between pixels along each axis.
    axes : matplotlib Axes, optional
        Axes to draw on; by default on a new figure.

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
            "have two axes or more",
            argument="image",
            remedy="pass the same crop of both",
        )
    table = contingency(one, two)
    index = worst_plane(table, one, two) if plane is None else check_plane(plane, one.shape)
    distances = check_spacing(spacing, one.ndim)[-2:]
    picture = error_picture(backdrop[index], one[index], two[index], table, spacing=distances)
    axes = new_axes(5.2, 5.2) if axes is None else axes
    axes.imshow(picture, interpolation="antialiased")
    axes.set_axis_off()
    place = f"plane {', '.join(map(str, index))}    " if index else ""
    axes.set_title(
        f"{place}orange: false merge    blue: false split", loc="left", fontsize=SMALL,
        color=colours_of(axes).muted,
    )  # fmt: skip
    return axes
