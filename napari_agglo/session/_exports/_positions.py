"""A pixel of each superpixel that stands for it: the one nearest to its centroid.

The centroid itself may lie outside of a bent superpixel, in another one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_agglo._jit import kernel
from napari_agglo._progress import ProgressCallback, report
from napari_agglo.graph import RegionGraph

# Pixels between two reports: about a tenth of a second of work.
_SLICE = 1 << 24


def representative_pixels(
    graph: RegionGraph, *, progress: ProgressCallback | None = None
) -> NDArray[np.int32]:
    """Return a pixel of each superpixel, as indices of shape (n + 1, ndim); row 0 is zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.graph import region_graph
    >>> graph = region_graph(np.array([[1, 1, 1], [1, 2, 2], [1, 1, 1]]), np.zeros((3, 3)))
    >>> representative_pixels(graph)[1:].tolist()  # the centroid of 1 would be (1, 0.86)
    [[1, 0], [1, 1]]
    """
    image = graph.superpixels.image
    centroids = np.nan_to_num(graph.centroids())
    best = np.full(graph.n_regions + 1, np.inf)
    at = np.zeros(graph.n_regions + 1, np.int64)
    flat = image.reshape(-1)
    index = np.zeros(image.ndim, np.int64)
    shape, spacing = np.array(image.shape, np.int64), np.array(graph.spacing)
    for start in range(0, flat.size, _SLICE):
        report(progress, "positions", start, flat.size)
        stop = min(start + _SLICE, flat.size)
        index[:] = np.unravel_index(start, image.shape)
        _nearest(flat, start, stop, index, shape, spacing, centroids, best, at)
    report(progress, "positions", flat.size, flat.size)
    places = np.stack(np.unravel_index(at, image.shape), axis=1).astype(np.int32)
    places[0] = 0
    return places


@kernel
def _nearest(
    image: NDArray[np.uint32],
    start: int,
    stop: int,
    index: NDArray[np.int64],
    shape: NDArray[np.int64],
    spacing: NDArray[np.float64],
    centroids: NDArray[np.float64],
    best: NDArray[np.float64],
    at: NDArray[np.int64],
) -> None:
    """Keep the pixel nearest to each centroid, the first of equals; `index` goes along.

    Checks nothing: `index` must be that of pixel `start`, and labels must be dense.
    """
    ndim = shape.size
    for i in range(start, stop):
        label = image[i]
        if label != 0:
            distance = 0.0
            for axis in range(ndim):
                step = (index[axis] - centroids[label, axis]) * spacing[axis]
                distance += step * step
            if distance < best[label]:
                best[label] = distance
                at[label] = i
        axis = ndim - 1
        index[axis] += 1
        while axis > 0 and index[axis] == shape[axis]:
            index[axis] = 0
            axis -= 1
            index[axis] += 1
