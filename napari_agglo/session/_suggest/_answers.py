"""Which decisions a person has answered, from the pairs of superpixels of the answers.

A suggestion goes by two superpixels, one on each side, because segments come and go. "Leave them
apart", "this is one" and "not now" are such pairs too, and hold as long as the two superpixels face
each other across the same boundary, or first meet in the same merge.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo.session._suggest._decisions import Apart, Made

Pairs = Sequence[tuple[int, int]] | NDArray[np.int64]


def apart_answered(apart: Apart, lut: ArrayLike, pairs: Pairs) -> NDArray[np.bool_]:
    """Return which boundaries lie between the segments that hold the superpixels of a pair.

    Examples
    --------
    >>> apart_answered(Apart.of([1, 1], [3, 4], [0.6, 0.7]), [0, 1, 1, 3, 4], [(4, 2)])
    array([False,  True])
    """
    if not len(pairs):
        return np.zeros(len(apart), np.bool_)
    table = np.asarray(lut, np.int64)
    said = np.sort(table[np.asarray(pairs, np.int64)], axis=1)
    asked = np.sort(np.stack([apart.first, apart.second], axis=1), axis=1)
    ids, number = np.unique(np.concatenate([said, asked]), return_inverse=True)
    keys = number.reshape(-1, 2) @ np.array([len(ids), 1])
    found: NDArray[np.bool_] = np.isin(keys[len(said) :], keys[: len(said)])
    return found


def made_answered(made: Made, pairs: Pairs) -> NDArray[np.bool_]:
    """Return which merges are those in which the superpixels of a pair first meet.

    Examples
    --------
    >>> made_answered(Made.of([1, 3, 1], [2, 4, 3], [0.1, 0.2, 0.3]), [(2, 4)])
    array([False, False,  True])
    """
    out = np.zeros(len(made), np.bool_)
    if not len(pairs):
        return out
    lost = {loser: k for k, loser in enumerate(made.second.tolist())}
    into = made.first.tolist()
    never = len(made)
    for u, v in pairs:
        k = -1
        while u != v:
            if lost.get(u, never) > lost.get(v, never):
                u, v = v, u
            k = lost.get(u, never)  # whoever is merged away first is followed
            if k == never:
                break
            u = into[k]
        if 0 <= k < never:
            out[k] = True
    return out
