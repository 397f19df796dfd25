"""Panels of a movie: merge trees, which change, and label images, which do not.

In its own file because a panel has one tree or image; `_frames.py` synchronises all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.agglomeration import MergeTree
from napari_agglo.compare import Matching, match_tables
from napari_agglo.errors import InvalidInput
from napari_agglo.plots import check_plane, grey
from napari_agglo.plots._raster_pictures import enlarged, factors
from napari_agglo.volumes import DenseLabels, check_same_shape, contingency, dense_labels, unwrap

MOST = 4  # panels
DURATION = 4  # frames of the flash of a merge
_FLASHES = 8  # that begin in one frame, of the largest merges


class Flashes:
    """The flashes of one merge tree on a plane, frame by frame."""

    def __init__(self, tree: MergeTree, areas: NDArray[np.int64]) -> None:
        self._kept, dropped, _ = tree.name_inheritance
        self._visible = _visible_areas(self._kept, dropped, areas)
        self._left = np.zeros(len(areas), np.int64)
        self._merges: int | None = None

    def after(self, merges: int, table: NDArray[np.uint32]) -> NDArray[np.float32]:
        """Return the brightness of each superpixel's flash, 0 to 1, after `merges` merges.

        `table` has the segment of each superpixel in this frame. In the first one nothing flashes.
        """
        np.maximum(self._left - 1, 0, out=self._left)
        before = merges if self._merges is None else self._merges
        self._merges = merges
        new = np.arange(before, merges)
        new = new[self._visible[new] > 0]
        new = new[np.argsort(-self._visible[new], kind="stable")][:_FLASHES]
        flashing = np.zeros(len(table), np.bool_)
        flashing[table[self._kept[new]]] = True
        self._left[flashing[table]] = DURATION
        return (self._left / DURATION).astype(np.float32)


def _visible_areas(
    kept: NDArray[np.uint32], dropped: NDArray[np.uint32], areas: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the pixels in the plane of the smaller side of each merge."""
    size = areas.tolist()
    out = []
    for one, two in zip(kept.tolist(), dropped.tolist(), strict=True):
        out.append(min(size[one], size[two]))
        size[one] += size[two]
    return np.array(out, np.int64)


@dataclass(frozen=True, eq=False)
class Scene:
    """A plane of an image, as large as a panel shows it.

    Attributes
    ----------
    index : tuple of int
        Index of the plane along all axes but the last two.
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
    """Return the plane of a movie, with the image below it.

    Parameters
    ----------
    tree : MergeTree
        The tree of any panel: all have the same superpixels.
    image : array, optional
        Image of the shape of the superpixels, with or without an axis of colours after them; by
        default plain grey.
    plane : sequence of int, optional
        Index along all axes but the last two; by default the middle.
    spacing : sequence of float, optional
        Spacing of the superpixels: rows and columns are drawn in proportion.
    size : int
        Approximate number of pixels of the longer side of a panel.
    """
    dense = tree.superpixels.image
    if dense.ndim < 2:
        raise InvalidInput(
            f"`panels` must have superpixels of two axes or more, got {dense.ndim}",
            argument="panels",
            remedy="reshape the images to one row",
        )
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


class TreePanel:
    """Panel of a merge tree: labels matched with the first panel, and flashes."""

    def __init__(self, tree: MergeTree, scene: Scene, sizes: NDArray[np.int64]) -> None:
        self.tree = tree
        self._scene = scene
        self._sizes = sizes
        self._flashes = Flashes(tree, scene.areas)
        self._matching: Matching | None = None

    def table(self, merges: int) -> NDArray[np.uint32]:
        """Return the segment of each superpixel."""
        return self.tree.lut(merges=merges)

    def matched(
        self,
        table: NDArray[np.uint32],
        reference: NDArray[np.uint32],
        beside: Sequence[NDArray[np.uint32]],
    ) -> NDArray[np.uint32]:
        """Return the labels of superpixels, matched with the first panel and those before this."""
        if reference is table:
            return table
        self._matching = match_tables(reference, table, self._sizes, self._matching, beside)
        return self._matching.renamed(table)

    def labels(self, matched: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return the labels of the plane."""
        return np.asarray(matched[self._scene.superpixels])

    def flashing(self, merges: int, table: NDArray[np.uint32]) -> NDArray[np.float32]:
        """Return the brightness of the flash at each pixel, 0 to 1; call it once a frame."""
        return np.asarray(self._flashes.after(merges, table)[self._scene.superpixels])


class StillPanel:
    """Panel of a label image, such as the gold standard."""

    def __init__(
        self, labels: DenseLabels, tree: MergeTree, scene: Scene, progress: ProgressCallback | None
    ) -> None:
        self.n_segments = labels.n_labels
        self._pieces = contingency(tree.superpixels, labels, progress=progress)
        self._plane = scene.shown(labels.image)
        self._matching: Matching | None = None

    def labels(
        self, reference: NDArray[np.uint32], beside: Sequence[NDArray[np.uint32]]
    ) -> NDArray[np.uint32]:
        """Return the labels of the plane, matched with those of the trees."""
        pieces = self._pieces
        self._matching = match_tables(
            reference[pieces.rows], pieces.columns, pieces.counts, self._matching,
            [table[pieces.rows] for table in beside],
        )  # fmt: skip
        names = np.zeros(self.n_segments + 1, np.uint32)
        names[: len(self._matching.labels)] = self._matching.labels
        # A segment that shares no pixel with a superpixel has no label: use any free one.
        names[1:][names[1:] == 0] = 1 + int(max(names.max(), reference.max()))
        return np.asarray(names[self._plane])


def split_panels(panels: Any) -> tuple[dict[str, MergeTree], dict[str, DenseLabels]]:
    """Return the merge trees and the label images of checked panels, in their order."""
    if not isinstance(panels, Mapping) or not 1 <= len(panels) <= MOST:
        raise InvalidInput(
            f"`panels` must map 1 to {MOST} names to merge trees, or to label images beside them, "
            f"got {len(panels) if isinstance(panels, Mapping) else type(panels).__name__}",
            argument="panels",
            remedy="pass a dict such as {'mean': tree}",
        )
    trees = {str(name): one for name, one in panels.items() if isinstance(one, MergeTree)}
    if not trees:
        raise InvalidInput(
            "`panels` must have one merge tree or more",
            argument="panels",
            remedy="make one with agglomerate(graph, policy)",
        )
    first = next(iter(trees.values()))
    for name, tree in trees.items():
        ours, theirs = first.superpixels, tree.superpixels
        check_same_shape(theirs.image, ours.image, f"panels[{name!r}]", "panels")
        same = np.array_equal(ours.ids, theirs.ids) and (
            ours.image is theirs.image or np.array_equal(ours.image, theirs.image)
        )
        if not same:
            raise InvalidInput(
                f"`panels[{name!r}]` must be a tree of the same superpixels as the others",
                argument=f"panels[{name!r}]",
                remedy="agglomerate the same graph by each policy",
            )
    stills = {}
    for name, one in panels.items():
        if not isinstance(one, MergeTree):
            stills[str(name)] = dense_labels(one, f"panels[{name!r}]")
            check_same_shape(
                stills[str(name)].image, first.superpixels.image, f"panels[{name!r}]", "superpixels"
            )
    return trees, stills
