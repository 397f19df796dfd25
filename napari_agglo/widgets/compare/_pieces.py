"""What two segmentations are made of together: the pieces that lie within one segment of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.graph import RegionGraph
from napari_agglo.volumes import DenseLabels, dense_labels


@dataclass(frozen=True, eq=False)
class Pieces:
    """Pieces of an image, each within one base label of both sides.

    Attributes
    ----------
    image : ndarray of uint32
        The piece of each pixel; 0 is none.
    first, second : ndarray of int64
        The base label of each piece, on either side.
    sizes : ndarray of int64
        Pixels of each piece.
    """

    image: NDArray[np.uint32]
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def of_superpixels(cls, graph: RegionGraph) -> Pieces:
        """Return those of two trees over the same superpixels: the superpixels."""
        numbers = np.arange(graph.n_regions + 1)
        sizes = np.asarray(graph.sizes, np.int64).copy()
        sizes[0] = 0
        return cls(graph.superpixels.image, numbers, numbers, sizes)

    @classmethod
    def of_two(cls, first: DenseLabels, second: DenseLabels) -> Pieces:
        """Return those of any two label images.

        Examples
        --------
        >>> one, two = (dense_labels(np.array(x), "x") for x in ([[5, 5, 6]], [[1, 2, 2]]))
        >>> pieces = Pieces.of_two(one, two)
        >>> pieces.image.tolist(), pieces.sizes.tolist()
        ([[1, 2, 3]], [0, 1, 1, 1])
        >>> pieces.first.tolist(), pieces.second.tolist()
        ([0, 1, 1, 2], [0, 1, 2, 2])
        """
        base = np.uint64(len(second.ids))
        both = first.image.astype(np.uint64) * base + second.image
        both[(first.image == 0) | (second.image == 0)] = 0
        dense = dense_labels(both, "labels")
        sizes = np.bincount(dense.image.reshape(-1), minlength=len(dense.ids))
        sizes[0] = 0
        ids = dense.ids.astype(np.int64)
        return cls(dense.image, ids // int(base), ids % int(base), sizes)


def as_dense(labels: Any) -> DenseLabels:
    """Return a label image with dense ids."""
    return dense_labels(labels, "labels")
