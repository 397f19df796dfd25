"""Start from the segmentation of another tool: superpixels that respect it, and which is whose."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.volumes import check_same_shape, dense_labels, split_components


def divided(
    superpixels: Any, segmentation: Any, progress: ProgressCallback | None = None
) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """Return superpixels that cross no border of a segmentation, and the segment of each.

    Parameters
    ----------
    superpixels, segmentation : array of int
        Label images of one shape. Where the segmentation is 0 there is no segment to respect.

    Returns
    -------
    superpixels : ndarray of uint32
        1 to n, each connected; 0 where it was 0.
    segments : ndarray of uint64, shape (n + 1,)
        The id of the segment that holds each superpixel, 0 for none.

    Examples
    --------
    >>> pieces, whose = divided(np.array([[1, 1, 1, 2]]), np.array([[8, 8, 9, 9]]))
    >>> pieces.tolist(), whose.tolist()
    ([[1, 1, 2, 3]], [0, 8, 9, 9])
    """
    check_same_shape(segmentation, superpixels, "start from", "superpixels")
    fine = dense_labels(superpixels, "superpixels", progress=progress)
    coarse = dense_labels(segmentation, "start from", progress=progress)
    pairs = fine.image.astype(np.int64) * (coarse.n_labels + 1) + coarse.image
    pairs += 256  # a single label 1 or 255 would be taken for a mask
    pairs[fine.image == 0] = 0
    whole = dense_labels(split_components(pairs), "superpixels", progress=progress)
    segments = np.zeros(whole.n_labels + 1, np.uint64)
    segments[whole.image.reshape(-1)] = coarse.ids[coarse.image.reshape(-1)]
    segments[0] = 0
    return whole.image, segments
