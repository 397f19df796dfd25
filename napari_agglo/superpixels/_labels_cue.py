"""Boundary map of label images: the borders of segmentations by other tools, as a cue."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import InvalidInput, SetOption, is_number
from napari_agglo.volumes import (
    check_labels,
    check_same_shape,
    check_same_spacing,
    check_spacing,
)


def boundary_from_labels(
    labels: Any,
    *,
    width: float | None = None,
    spacing: Sequence[float] | None = None,
    progress: ProgressCallback | None = None,
) -> NDArray[np.float32]:
    """Make a boundary map from the borders of one or several segmentations of an image.

    A pixel that touches another label has the value 1, and others ``exp(-(d / width)**2 / 2)``,
    where d is the distance to the nearest such pixel. Of several segmentations, as of several tools
    or settings, the map is the mean: high where they agree on a border.

    Parameters
    ----------
    labels : array of int, or list of arrays
        Label images of one shape. 0, background, has a border with other labels too.
    width : float, optional
        Distance over which the map falls off, in the unit of `spacing`; by default the smallest
        spacing. 0 leaves the pixels at a border alone.
    spacing : sequence of float, optional
        Size of a pixel along each axis; 1 by default, or that of a `Volume`.
    progress : callable, optional
        Called after each label image.

    Returns
    -------
    ndarray of float32
        From 0 to 1, high on borders.

    Examples
    --------
    >>> import numpy as np
    >>> boundary_from_labels(np.array([[1, 1, 1, 2, 2]])).round(2)
    array([[0.14, 0.61, 1.  , 1.  , 0.61]], dtype=float32)
    >>> boundary_from_labels([np.array([[1, 1, 2]]), np.array([[1, 1, 1]])], width=0)
    array([[0. , 0.5, 0.5]], dtype=float32)
    """
    from scipy import ndimage  # takes 0.1 s to import

    images = list(labels) if isinstance(labels, list | tuple) else [labels]
    if images and not hasattr(images[0], "shape"):  # one image as nested lists
        images = [np.asarray(labels)]
    if not images:
        raise InvalidInput(
            "`labels` has no label image", argument="labels", remedy="pass one, or a list of them"
        )
    names = [f"labels[{k}]" if len(images) > 1 else "labels" for k in range(len(images))]
    named = dict(zip(names, images, strict=True))
    first = check_labels(images[0], names[0], mask_ok=True)
    if spacing is None:
        spacing = check_same_spacing(named).spacing
    spacings = check_spacing(spacing, first.ndim)
    if width is None:
        width = min(spacings)
    if not is_number(width) or not 0 <= width < math.inf:
        raise InvalidInput(
            f"`width` must be a distance of 0 or more, got {width!r}",
            argument="width",
            remedy=SetOption("width", min(spacings)),
        )
    out = np.zeros(first.shape, np.float32)
    n_borders = 0
    for k, (name, image) in enumerate(named.items()):
        check_same_shape(image, first, name, names[0])
        border = _borders(first if k == 0 else check_labels(image, name, mask_ok=True))
        n_borders += int(border.sum())
        if width == 0 or not border.any():
            out += border
        else:
            distance = ndimage.distance_transform_edt(~border, sampling=spacings)
            out += np.exp(-0.5 * (distance / width) ** 2).astype(np.float32)
        report(progress, "borders of labels", k + 1, len(images))
    if out.size and n_borders == 0:
        raise InvalidInput(
            f"`{names[0]}` has one label, {int(first.flat[0])}, everywhere, and so no border",
            argument=names[0],
            remedy="choose another label image",
        )
    out /= np.float32(len(images))
    return out


def _borders(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the pixels that share a face with another label."""
    border = np.zeros(labels.shape, np.bool_)
    for axis in range(labels.ndim):
        low = (slice(None),) * axis + (slice(None, -1),)
        high = (slice(None),) * axis + (slice(1, None),)
        differs = labels[low] != labels[high]
        border[low] |= differs
        border[high] |= differs
    return border
