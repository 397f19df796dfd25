"""What all frames have in common: the plane, the image below, the superpixels and their size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.plots import check_plane, grey
from napari_agglo.plots._pixels import enlarged, factors
from napari_agglo.tree import MergeTree
from napari_agglo.volumes import check_same_shape, unwrap


@dataclass(frozen=True, eq=False)
class Scene:
    """A plane of an image, as large as a panel shows it.

    Attributes
    ----------
    index : tuple of int
        Of the plane, along all axes but the last two.
    backdrop : ndarray of float32, shape (rows, columns, 3)
        The image below, 0 to 1.
    superpixels : ndarray of uint32, shape (rows, columns)
        Dense ids.
    areas : ndarray of int64, shape (n + 1,)
        Pixels of each superpixel in the plane.
    """

    index: tuple[int, ...]
    backdrop: NDArray[np.float32]
    superpixels: NDArray[np.uint32]
    areas: NDArray[np.int64]
    _stride: int
    _times: tuple[int, int]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of a panel."""
        return int(self.superpixels.shape[0]), int(self.superpixels.shape[1])

    def shown(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the plane of an array, in the size of a panel; an axis of colours stays."""
        return _sized(array[self.index], self._stride, self._times)


def scene(
    tree: MergeTree,
    image: Any = None,
    plane: Sequence[int] | None = None,
    spacing: Sequence[float] | None = None,
    size: int = 480,
) -> Scene:
    """Choose a plane and lay the image below it.

    Parameters
    ----------
    tree : MergeTree
        Of any of the panels: all have the same superpixels.
    image : array, optional
        Of the shape of the superpixels, with an axis of colours after them or without; grey if
        there is none.
    plane : sequence of int, optional
        Index along all axes but the last two; by default the middle.
    spacing : sequence of float, optional
        Of the superpixels: rows and columns are drawn in proportion.
    size : int
        About how many pixels the longer side of a panel should have.
    """
    dense = tree.superpixels.image
    if dense.ndim < 2:
        raise InvalidInput(f"A movie needs an image of two axes or more, got {dense.ndim}.")
    leading = dense.shape[:-2]
    index = tuple(n // 2 for n in leading) if plane is None else check_plane(plane, dense.shape)
    stride = max(1, -(-max(dense.shape[-2:]) // (2 * size)))
    aspect = (1.0, 1.0) if spacing is None else (float(spacing[-2]), float(spacing[-1]))
    small = dense[index][::stride, ::stride]
    times = factors(small.shape, size, aspect)
    if image is None:
        backdrop = np.full((*dense.shape[-2:], 3), 0.5)
    else:
        backdrop = grey(np.asarray(_checked(unwrap(image, "image"), dense)[index]))
    return Scene(
        index,
        _sized(backdrop, stride, times).astype(np.float32),
        _sized(dense[index], stride, times),
        np.bincount(dense[index].ravel(), minlength=tree.n_superpixels + 1),
        stride,
        times,
    )


def _sized(plane: NDArray[Any], stride: int, times: tuple[int, int]) -> NDArray[Any]:
    return enlarged(plane[::stride, ::stride], times)


def _checked(image: Any, dense: NDArray[Any]) -> Any:
    shape = tuple(np.shape(image))
    if len(shape) == dense.ndim + 1 and shape[:-1] == dense.shape and shape[-1] in (1, 3, 4):
        return image
    check_same_shape(image, dense, "image", "superpixels")
    return image
