"""Examples: rows of features, what should be done, and whose they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Examples:
    """What a classifier learns from.

    Parameters
    ----------
    rows : ndarray of float32, shape (k, features)
        Features of two regions and their boundary.
    labels : ndarray of int8, shape (k,)
        -1 should merge, +1 should not.
    owners : ndarray of int64, shape (k,)
        The gold segment that the example counts for, numbered across all volumes.
    """

    rows: NDArray[np.float32]
    labels: NDArray[np.int8]
    owners: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def first(self, n: int) -> Examples:
        """Return the first `n` examples."""
        return Examples(self.rows[:n], self.labels[:n], self.owners[:n])

    def unique(self) -> Examples:
        """Return the examples without exact duplicates, each at its first place."""
        both = np.concatenate([self.rows, self.labels[:, None].astype(np.float32)], axis=1)
        # -0.0 and 0.0 are equal and must be the same bytes.
        keys = np.ascontiguousarray(both + np.float32(0)).view(f"V{4 * both.shape[1]}").reshape(-1)
        _, first = np.unique(keys, return_index=True)
        first.sort()
        return Examples(self.rows[first], self.labels[first], self.owners[first])


def joined(parts: Iterable[Examples], width: int) -> Examples:
    """Return all examples, in order."""
    given = list(parts)
    return Examples(
        np.concatenate([np.zeros((0, width), np.float32), *(part.rows for part in given)]),
        np.concatenate([np.zeros(0, np.int8), *(part.labels for part in given)]),
        np.concatenate([np.zeros(0, np.int64), *(part.owners for part in given)]),
    )
