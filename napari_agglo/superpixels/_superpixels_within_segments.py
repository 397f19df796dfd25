"""Superpixels within the segments of another tool: none crosses a border of its segmentation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.volumes import check_same_shape, dense_labels, split_components


def divide_superpixels(
    superpixels: Any,
    segmentation: Any,
    *,
    name: str = "segmentation",
    progress: ProgressCallback | None = None,
) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """Divide superpixels at the borders of a segmentation; return them and the segment of each.

    Parameters
    ----------
    superpixels, segmentation : array of int
        Label images of one shape; 0 in the segmentation is no segment.
    name : str
        Name of the segmentation in messages.
    progress : callable, optional
        Called with the progress so far; raise `Cancelled` in it to stop.

    Returns
    -------
    pieces : ndarray of uint32
        New superpixels, 1 to n, each connected; 0 stays 0.
    segments : ndarray of uint64, shape (n + 1,)
        The segment of each.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.superpixels import divide_superpixels
    >>> pieces, segments = divide_superpixels(np.array([[1, 1, 1, 2]]), np.array([[8, 8, 9, 9]]))
    >>> pieces.tolist(), segments.tolist()
    ([[1, 1, 2, 3]], [0, 8, 9, 9])
    """
    check_same_shape(segmentation, superpixels, name, "superpixels")
    fine = dense_labels(superpixels, "superpixels", progress=progress)
    coarse = dense_labels(segmentation, name, progress=progress)
    pairs = fine.image.astype(np.int64) * (coarse.n_labels + 1) + coarse.image
    pairs += 256  # a single label 1 or 255 would be taken for a mask
    pairs[fine.image == 0] = 0
    whole = dense_labels(split_components(pairs), "superpixels", progress=progress)
    segments = np.zeros(whole.n_labels + 1, np.uint64)
    segments[whole.image.reshape(-1)] = coarse.ids[coarse.image.reshape(-1)]
    segments[0] = 0
    return whole.image, segments
