"""Runs of the pieces of a block: the number of each, and a bit for each voxel where one begins.

A piece has several voxels in a row, so that its runs are fewer than its voxels by far: they are
compressed, read and looked up in less time. A block is read again for its superpixels, its
statistics and its labels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import kernel


class Runs(NamedTuple):
    """Runs of equal numbers of an array in the order of memory.

    Attributes
    ----------
    values : ndarray of uint32
        The number of each run.
    begins : ndarray of uint8
        A bit for each voxel, eight in a byte and the lowest first: 1 where a run begins.
    """

    values: NDArray[np.uint32]
    begins: NDArray[np.uint8]


def runs_of(array: NDArray[np.uint32]) -> Runs:
    """Return the runs of an array.

    Examples
    --------
    >>> import numpy as np
    >>> runs_of(np.array([[7, 7, 7], [7, 0, 9]], np.uint32))
    Runs(values=array([7, 0, 9], dtype=uint32), begins=array([49], dtype=uint8))
    """
    flat = array.reshape(-1)
    # as long as there can be runs; pages that no run reaches take no memory
    values, begins = np.empty(flat.size + 1, np.uint32), np.empty(-(-flat.size // 8), np.uint8)
    n = int(_find_runs(flat, values, begins))
    return Runs(values[:n], begins)


def fill(runs: Runs, table: NDArray[np.uint32], out: NDArray[np.uint32]) -> None:
    """Write the entries of a table for an array of runs; `out` may be a box of a larger array.

    Examples
    --------
    >>> import numpy as np
    >>> runs = runs_of(np.array([[1, 1, 1], [1, 0, 2]], np.uint32))
    >>> out = np.zeros((2, 4), np.uint32)
    >>> fill(runs, np.array([0, 5, 6], np.uint32), out[:, :3])
    >>> out
    array([[5, 5, 5, 0],
           [5, 0, 6, 0]], dtype=uint32)
    """
    own = table[runs.values]
    run = -1
    for row, place in enumerate(np.ndindex(out.shape[:-2])):
        plane = out[place] if out.ndim > 1 else out[np.newaxis]
        run = int(_fill(own, runs.begins, row * plane.size, run, plane))


@kernel
def _find_runs(flat: Any, values: Any, begins: Any) -> Any:
    """Write the runs of an array and return their number. Checks no bounds.

    Without branches: a number that does not begin a run is overwritten by the next one.
    """
    n: Any = 0
    before = np.int64(-1)
    for first in range(0, flat.size, 8):
        bits: Any = 0
        for bit in range(min(8, flat.size - first)):
            value = np.int64(flat[first + bit])
            is_new = np.int64(value != before)
            values[n] = value
            n += is_new
            bits |= is_new << bit
            before = value
        begins[first // 8] = bits
    return n


@kernel
def _fill(own: Any, begins: Any, first: int, run: Any, out: Any) -> Any:
    """Write voxels from the `first` on to a plane; return the number of their last run.

    `own` has what is written for each run, and `run` is that of the voxel before. Checks no bounds.
    """
    voxel = first
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            run += (np.int64(begins[voxel >> 3]) >> (voxel & 7)) & 1
            out[i, j] = own[run]
            voxel += 1
    return run
