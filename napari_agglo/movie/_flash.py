"""What has just been merged flashes, and fades within a few frames."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_agglo.tree import MergeTree

LASTS = 4  # frames until a flash is gone
_MOST = 8  # flashes that begin in one frame: the largest; more of them tell nothing


class Flashes:
    """The flashes of one merge tree on a plane, frame by frame."""

    def __init__(self, tree: MergeTree, areas: NDArray[np.int64]) -> None:
        self._kept, given_up, _ = tree.heritage
        self._seen = _seen_merges(self._kept, given_up, areas)
        self._left = np.zeros(len(areas), np.int64)
        self._merges: int | None = None

    def after(self, merges: int, table: NDArray[np.uint32]) -> NDArray[np.float32]:
        """Return how brightly each superpixel flashes now, 0 to 1.

        Parameters
        ----------
        merges : int
            Done in this frame; in the first one nothing flashes.
        table : ndarray of uint32
            The segment of each superpixel in this frame.
        """
        np.maximum(self._left - 1, 0, out=self._left)
        before = merges if self._merges is None else self._merges
        self._merges = merges
        new = np.arange(before, merges)
        new = new[self._seen[new] > 0]
        new = new[np.argsort(-self._seen[new], kind="stable")][:_MOST]
        flashing = np.zeros(len(table), np.bool_)
        flashing[table[self._kept[new]]] = True
        self._left[flashing[table]] = LASTS
        return (self._left / LASTS).astype(np.float32)


def _seen_merges(
    kept: NDArray[np.uint32], given_up: NDArray[np.uint32], areas: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the pixels, in the plane, of the smaller side of each merge; 0 if it is not seen."""
    size = areas.tolist()
    out = []
    for one, two in zip(kept.tolist(), given_up.tolist(), strict=True):
        out.append(min(size[one], size[two]))
        size[one] += size[two]
    return np.array(out, np.int64)
