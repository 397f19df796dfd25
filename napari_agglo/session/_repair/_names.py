"""Names of regions: stable while one moves the threshold, merges and cuts.

A region is named by one of its superpixels, so no two regions of a partition have one name: that
of the larger of the two regions that it was made of, or where a user merged that of the one that
was active. A cut gives the name of the whole to its largest part, by letting two superpixels within
it change names.
"""

from __future__ import annotations

import numpy as np

Swap = tuple[int, int]


class Names:
    """The name of each superpixel, and the superpixel of each name.

    Examples
    --------
    >>> names = Names(3)
    >>> names.swap((1, 3))
    >>> names.of_superpixel.tolist(), int(names.superpixel_of[3])
    ([0, 3, 2, 1], 1)
    """

    def __init__(self, n: int) -> None:
        self.of_superpixel = np.arange(n + 1, dtype=np.uint32)
        self.superpixel_of = np.arange(n + 1, dtype=np.uint32)

    def extend(self, n: int) -> None:
        """Make it names of superpixels 1..`n`: further ones have their own, of the last none."""
        for attribute in ("of_superpixel", "superpixel_of"):
            names = getattr(self, attribute)
            more = np.arange(len(names), n + 1, dtype=np.uint32)
            setattr(self, attribute, np.concatenate([names[: n + 1], more]))

    def swap(self, swap: Swap) -> None:
        """Let two superpixels change names; again, and they have their own."""
        a, b = swap
        name_a, name_b = self.of_superpixel[a], self.of_superpixel[b]
        self.of_superpixel[a], self.of_superpixel[b] = name_b, name_a
        self.superpixel_of[name_a], self.superpixel_of[name_b] = b, a
