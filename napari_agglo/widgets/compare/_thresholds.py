"""Where each panel is cut: one slider for all of them, in one of four ways."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from napari_agglo.evaluate import minimum
from napari_agglo.tree import MergeTree

if TYPE_CHECKING:
    import pandas as pd


class Mode(Enum):
    """What the panels have in common."""

    THRESHOLD = "same threshold"
    SEGMENTS = "same number of segments"
    BEST = "each at its least VI"
    HALF = "each at 0.5"


@dataclass(frozen=True)
class Cut:
    """A tree, and the errors at each of its thresholds if they are known."""

    tree: MergeTree
    curve: pd.DataFrame | None = None

    def at_segments(self, n: int) -> float:
        """Return the threshold at which there are `n` segments, or the nearest that there is."""
        merges = int(np.clip(self.tree.n_superpixels - n, 0, self.tree.n_merges))
        return -np.inf if merges == 0 else float(self.tree.heights[merges - 1])

    def best(self) -> float | None:
        """Return the threshold of the least VI, if the errors are known."""
        return None if self.curve is None else float(minimum(self.curve)["threshold"])


def thresholds(cuts: list[Cut], mode: Mode, position: float) -> list[float]:
    """Return the threshold of each panel.

    Parameters
    ----------
    cuts : list of Cut
        The panels that have a tree; the first leads.
    mode : Mode
        What they have in common.
    position : float
        The threshold of the first; not used by modes that fix it.

    Examples
    --------
    >>> import numpy as np, napari_agglo as agglo
    >>> superpixels = np.array([[1, 2, 3, 4]])
    >>> def cut(values):
    ...     graph = agglo.region_graph(superpixels, np.array([values]))
    ...     return Cut(agglo.agglomerate(graph))
    >>> two = [cut([0.0, 0.2, 0.6, 0.8]), cut([0.0, 0.1, 0.1, 0.3])]
    >>> [round(t, 2) for t in thresholds(two, Mode.SEGMENTS, 0.45)]
    [0.45, 0.1]
    """
    if mode is Mode.HALF:
        return [0.5] * len(cuts)
    if mode is Mode.BEST:
        return [0.5 if (best := cut.best()) is None else best for cut in cuts]
    if mode is Mode.SEGMENTS and cuts:
        n = cuts[0].tree.n_segments(position)
        return [position, *(cut.at_segments(n) for cut in cuts[1:])]
    return [position] * len(cuts)
