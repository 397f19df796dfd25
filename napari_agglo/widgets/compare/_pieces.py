"""What several segmentations are made of together: pieces within one label of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.graph import RegionGraph
from napari_agglo.volumes import DenseLabels, dense_labels


@dataclass(frozen=True, eq=False)
class Pieces:
    """Pieces of an image, each within one base label of all panels.

    Attributes
    ----------
    image : ndarray of uint32
        The piece of each pixel; 0 is none.
    of : list of ndarray of int64
        The base label of each piece, panel by panel.
    sizes : ndarray of int64
        Pixels of each piece.
    """

    image: NDArray[np.uint32]
    of: list[NDArray[np.int64]]
    sizes: NDArray[np.int64]

    @classmethod
    def common(cls, bases: Sequence[DenseLabels], graph: RegionGraph) -> Pieces:
        """Return those of all bases: the superpixels of the graph, if there are no others.

        Examples
        --------
        >>> import napari_agglo as agglo
        >>> graph = agglo.region_graph(np.array([[5, 5, 6]]), np.zeros((1, 3)))
        >>> pieces = Pieces.common([graph.superpixels, as_dense(np.array([[0, 2, 2]]))], graph)
        >>> pieces.image.tolist(), pieces.sizes.tolist()
        ([[1, 2, 3]], [0, 1, 1, 1])
        >>> [one.tolist() for one in pieces.of]
        [[0, 1, 1, 2], [0, 0, 1, 1]]
        """
        different = [graph.superpixels]
        for base in bases:
            if not any(base is one for one in different):
                different.append(base)
        image, of = graph.superpixels.image, [np.arange(graph.n_regions + 1)]
        for base in different[1:]:
            both = image.astype(np.uint64) * np.uint64(len(base.ids)) + base.image
            dense = dense_labels(both, "labels")
            before, own = np.divmod(dense.ids.astype(np.int64), len(base.ids))
            image, of = dense.image, [*(one[before] for one in of), own]
        sizes = np.bincount(image.reshape(-1), minlength=len(of[0]))
        sizes[0] = 0
        places = [next(k for k, one in enumerate(different) if one is base) for base in bases]
        return cls(image, [of[place] for place in places], sizes)


def as_dense(labels: Any) -> DenseLabels:
    """Return a label image with dense ids."""
    return dense_labels(labels, "labels")
