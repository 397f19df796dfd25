"""Which segments of two tables overlap, and by how much, in time proportional to the tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo._jit import kernel
from napari_agglo.errors import InvalidInput

# Arrays as long as the largest name are made; below this, sparse names cost nothing.
_SMALL = 1 << 16


@dataclass(frozen=True, eq=False)
class Overlaps:
    """The pairs of segments that overlap, in ascending order of (first, second).

    Attributes
    ----------
    first, second : ndarray of int64, shape (k,)
        Names of the segments of the one and the other segmentation, none of them 0.
    sizes : ndarray of int64, shape (k,)
        Pixels that they share.
    of_piece : ndarray of int64, shape (n,)
        The pair that each piece belongs to; -1 where a name is 0.
    n_first, n_second : int
        One more than the largest name.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    sizes: NDArray[np.int64]
    of_piece: NDArray[np.int64]
    n_first: int
    n_second: int

    def __len__(self) -> int:
        return len(self.first)


def overlaps(first: ArrayLike, second: ArrayLike, sizes: ArrayLike) -> Overlaps:
    """Add up what the segments of two tables share.

    Parameters
    ----------
    first, second : array of int, shape (n,)
        Name of the segment of each piece; 0 is no segment. The pieces are superpixels (`first` and
        `second` are tables as of `MergeTree.lut`), or whatever lies within one segment of each.
    sizes : array of int, shape (n,)
        Pixels of each piece. One of 0 is as if it were not there.

    Returns
    -------
    Overlaps

    Examples
    --------
    >>> found = overlaps([0, 1, 1, 3], [0, 1, 2, 2], [9, 10, 20, 30])
    >>> found.first, found.second, found.sizes
    (array([1, 1, 3]), array([1, 2, 2]), array([10, 20, 30]))
    """
    a, b, n = checked(first, "first"), checked(second, "second"), checked(sizes, "sizes", False)
    if not a.shape == b.shape == n.shape:
        raise InvalidInput(
            "`first`, `second` and `sizes` must have a value for each of the same pieces, got "
            f"{len(a)}, {len(b)} and {len(n)}; take all from one graph."
        )
    n_first, n_second = (int(names.max(initial=0)) + 1 for names in (a, b))
    begin = np.zeros(max(n_first, n_second) + 1, np.int32)  # half the bytes: caches hold it longer
    order, scratch = (np.empty(len(a), np.int32) for _ in range(2))
    of_piece = np.empty(len(a), np.int64)
    pairs = np.empty((3, len(a)), np.int64)
    k = int(_overlap_kernel(a, b, n, n_first, n_second, begin, scratch, order, pairs, of_piece))
    return Overlaps(pairs[0, :k], pairs[1, :k], pairs[2, :k], of_piece, n_first, n_second)


def checked(values: ArrayLike, name: str, names: bool = True) -> NDArray[Any]:
    """Return a table as int64, one of names as int32, or say what is wrong; kernels trust it."""
    given = np.asarray(values)
    if given.ndim != 1 or (given.dtype.kind not in "iu" and given.size):
        raise InvalidInput(
            f"`{name}` must be a table of whole numbers, one for each piece, got {given.dtype} of "
            f"shape {given.shape}; MergeTree.lut gives such a table."
        )
    if not given.size:
        given = np.zeros(0, np.int64)
    low, high = int(given.min(initial=0)), int(given.max(initial=0))
    if low < 0 or (names and high > min(max(8 * given.size, _SMALL), 2**31 - 2)):
        raise InvalidInput(
            f"`{name}` must have names from 0 to about the number of pieces ({given.size}), got "
            f"{low if low < 0 else high}; take dense names, as MergeTree.lut has, not ids."
        )
    return np.ascontiguousarray(given, np.int32 if names else np.int64)


@kernel
def _overlap_kernel(
    first: Any, second: Any, sizes: Any, n_first: Any, n_second: Any, begin: Any, scratch: Any,
    order: Any, pairs: Any, of_piece: Any,
) -> Any:  # fmt: skip
    """Sort pieces by (first, second), by counting; add up equal ones. Nothing is checked."""
    _by_counting(second, n_second, begin, scratch, order, False)
    scratch[:] = order
    _by_counting(first, n_first, begin, scratch, order, True)
    k = -1
    for i in order:
        of_piece[i] = -1
        if first[i] == 0 or second[i] == 0 or sizes[i] == 0:
            continue
        if k < 0 or pairs[0, k] != first[i] or pairs[1, k] != second[i]:
            k += 1
            pairs[0, k], pairs[1, k], pairs[2, k] = first[i], second[i], 0
        pairs[2, k] += sizes[i]
        of_piece[i] = k
    return k + 1


@kernel
def _by_counting(names: Any, n_names: Any, begin: Any, before: Any, order: Any, again: Any) -> None:
    """Write the order of pieces by name, of equal ones that of `before`. Nothing is checked."""
    begin[: n_names + 1] = 0
    for i in range(names.size):
        begin[names[i] + 1] += 1
    for name in range(n_names):
        begin[name + 1] += begin[name]
    for j in range(names.size):
        i = before[j] if again else j
        order[begin[names[i]]] = i
        begin[names[i]] += 1
