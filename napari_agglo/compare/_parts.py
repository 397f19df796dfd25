"""Which overlaps are parts split off from their segments, and what they contribute to the VI."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._jit import kernel
from napari_agglo.compare._overlaps import Overlaps


@dataclass(frozen=True, eq=False)
class Side:
    """What each overlap is to its segment on one side.

    Attributes
    ----------
    main : ndarray of int64, shape (k,)
        The largest overlap of the same segment; an overlap that is not its own main one is a part
        that the other segmentation has elsewhere. Of equals the first is the main one.
    bits : ndarray of float64, shape (k,)
        What the overlap contributes to the conditional entropy of the other side, with its share
        of what the main one does; that of main ones is 0, so that parts alone sum to the whole.
    """

    main: NDArray[np.int64]
    bits: NDArray[np.float64]

    def parts(self) -> NDArray[np.bool_]:
        """Return which overlaps are not the main ones of their segments."""
        return np.asarray(self.main != np.arange(len(self.main)))


def side(names: NDArray[np.int64], n_names: int, sizes: NDArray[np.int64]) -> Side:
    """Group overlaps by the segment they are of.

    Examples
    --------
    Segment 1 is halved: one half is the main part, the other accounts for the whole bit.

    >>> found = side(np.array([1, 1]), 2, np.array([8, 8]))
    >>> found.main, found.bits
    (array([0, 0]), array([0., 1.]))
    """
    best = np.full(n_names, -1, np.int64)
    total = np.zeros(n_names, np.int64)
    _main_kernel(names, sizes, best, total)
    main = best[names]
    own = sizes * np.log2(total[names] / sizes) if len(sizes) else np.zeros(0)
    rest = total[names] - sizes[main]
    bits = np.zeros(len(names))
    part = main != np.arange(len(names))
    bits[part] = own[part] + own[main[part]] * (sizes[part] / rest[part])
    return Side(main, bits / max(int(sizes.sum()), 1))


def codes_of(pairs: Overlaps) -> NDArray[np.uint8]:
    """Return the code of each overlap: 1 a part of its first segment, 2 of its second, 3 of both.

    Examples
    --------
    >>> from napari_agglo.compare import overlaps
    >>> codes_of(overlaps([1, 1, 2], [1, 2, 2], [5, 4, 3]))
    array([0, 1, 2], dtype=uint8)
    """
    codes = np.full(len(pairs), 3, np.uint8)
    for bit, names, n in ((1, pairs.first, pairs.n_first), (2, pairs.second, pairs.n_second)):
        best, total = np.full(n, -1, np.int64), np.zeros(n, np.int64)
        _main_kernel(names, pairs.sizes, best, total)
        codes[best[best >= 0]] &= np.uint8(3 - bit)  # main ones are no parts
    return codes


@kernel
def _main_kernel(names: Any, sizes: Any, best: Any, total: Any) -> None:
    """Find the largest overlap and the pixels of each name. Nothing is checked."""
    for i in range(names.size):
        name = names[i]
        total[name] += sizes[i]
        if best[name] < 0 or sizes[i] > sizes[best[name]]:
            best[name] = i
