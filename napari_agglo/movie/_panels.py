"""The panels of a movie: merge trees, which change, and label images, which do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.compare import Matching, match_tables
from napari_agglo.errors import InvalidInput
from napari_agglo.movie._flash import Flashes
from napari_agglo.movie._scene import Scene
from napari_agglo.tree import MergeTree
from napari_agglo.volumes import DenseLabels, check_same_shape, contingency, dense_labels

MOST = 4


class TreePanel:
    """A merge tree: labels and flashes after so many merges, in colours like the first panel's."""

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
        """Return the labels of superpixels, matched with the first panel's and those before it."""
        if reference is table:
            return table
        self._matching = match_tables(reference, table, self._sizes, self._matching, beside)
        return self._matching.renamed(table)

    def labels(self, matched: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return the labels of the plane."""
        return np.asarray(matched[self._scene.superpixels])

    def flashing(self, merges: int, table: NDArray[np.uint32]) -> NDArray[np.float32]:
        """Return how brightly each pixel of the plane flashes, 0 to 1; one call a frame."""
        return np.asarray(self._flashes.after(merges, table)[self._scene.superpixels])


class StillPanel:
    """A label image, such as the gold standard."""

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
        # Those that share no pixel with a superpixel have no label: any other will do.
        names[1:][names[1:] == 0] = 1 + int(max(names.max(), reference.max()))
        return np.asarray(names[self._plane])


def split_panels(panels: Any) -> tuple[dict[str, MergeTree], dict[str, DenseLabels]]:
    """Check the panels, and tell merge trees from label images; the keys keep their order."""
    if not isinstance(panels, Mapping) or not 1 <= len(panels) <= MOST:
        raise InvalidInput(
            f"`panels` must map 1 to {MOST} names to merge trees, or to label images beside them, "
            f"got {len(panels) if isinstance(panels, Mapping) else type(panels).__name__}."
        )
    trees = {str(name): one for name, one in panels.items() if isinstance(one, MergeTree)}
    if not trees:
        raise InvalidInput("`panels` must hold a merge tree; agglomerate(graph, policy) makes one.")
    first = next(iter(trees.values()))
    for name, tree in trees.items():
        ours, theirs = first.superpixels, tree.superpixels
        check_same_shape(theirs.image, ours.image, f"panels[{name!r}]", "panels")
        same = np.array_equal(ours.ids, theirs.ids) and (
            ours.image is theirs.image or np.array_equal(ours.image, theirs.image)
        )
        if not same:
            raise InvalidInput(
                f"`panels[{name!r}]` must be a tree of the same superpixels as the others; "
                "agglomerate the same graph by each policy."
            )
    stills = {}
    for name, one in panels.items():
        if not isinstance(one, MergeTree):
            stills[str(name)] = dense_labels(one, f"panels[{name!r}]")
            check_same_shape(
                stills[str(name)].image, first.superpixels.image, f"panels[{name!r}]", "superpixels"
            )
    return trees, stills
