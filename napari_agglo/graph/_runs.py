"""Pieces of a superpixel as plain whole numbers, for a journal: run lengths in C order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput, is_whole


def pieces_to_runs(labels: NDArray[Any]) -> list[int]:
    """Return a label array as label, length, label, length, ...

    Examples
    --------
    >>> import numpy as np
    >>> pieces_to_runs(np.array([[1, 1, 1], [0, 2, 2]]))
    [1, 3, 0, 1, 2, 2]
    """
    flat = np.asarray(labels).reshape(-1)
    if flat.size == 0:
        return []
    starts = np.concatenate([[0], np.flatnonzero(flat[1:] != flat[:-1]) + 1, [flat.size]])
    lengths = (stop - start for start, stop in pairwise(starts.tolist()))
    pairs = zip(flat[starts[:-1]].tolist(), lengths, strict=True)
    return [int(number) for pair in pairs for number in pair]


def runs_to_pieces(runs: Sequence[int], shape: Sequence[int]) -> NDArray[np.int64]:
    """Return the label array of `shape` that `pieces_to_runs` wrote; refuse what it cannot be.

    Examples
    --------
    >>> runs_to_pieces([1, 3, 0, 1, 2, 2], (2, 3))
    array([[1, 1, 1],
           [0, 2, 2]])
    """
    size = math.prod(shape)
    whole = all(is_whole(number) and 0 <= number < 2**63 for number in runs)
    if not whole or len(runs) % 2 or sum(runs[1::2]) != size:
        raise InvalidInput(
            f"`runs` must be pairs of a label and a length, {size} pixels in all, to fill the "
            f"shape {tuple(shape)}; got {len(runs)} numbers that do not."
        )
    labels = np.array(runs[0::2], np.int64)
    return np.repeat(labels, np.array(runs[1::2], np.int64)).reshape(tuple(shape))
