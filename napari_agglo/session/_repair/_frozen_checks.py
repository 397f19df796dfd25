"""Whether arrays that were read again can be a hierarchy: kernels check nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.session._repair._growth import LOG_UNTIL
from napari_agglo.session._repair._nodes import EDIT, FIRST, LOW, MARK, PARENT, PEAK, SECOND

_KINDS: dict[str, tuple[type, tuple[int, ...]]] = {  # type, and columns
    "links": (np.int32, (7,)),
    "scales": (np.float64, (4,)),
    "sizes": (np.int64, ()),
    "leaves": (np.int32, ()),
    "heads": (np.int32, ()),
    "pool": (np.int32, (3,)),
    "lock_of": (np.int32, ()),
    "names": (np.uint32, ()),
    "horizons": (np.float64, ()),
    "numbers": (np.int64, ()),
    "known_pairs": (np.int64, (2,)),
    "known_priorities": (np.float64, ()),
    "known_counts": (np.int64, ()),
    "steps": (np.int64, (9,)),
    "changes": (np.int64, (2,)),
    "log": (np.int64, (3,)),
    "logged": (np.float64, ()),
    "named": (np.int32, ()),
    "named_heads": (np.int32, ()),
    "locked": (np.int32, ()),
    "locks": (np.int32, ()),
    "divided": (np.int64, (10,)),
    "around": (np.int64, (3,)),
}


def require(right: bool | np.bool_) -> None:
    """Refuse arrays that are not right."""
    if not right:
        raise InvalidInput("These arrays are no hierarchy.")


def check_arrays(
    arrays: Mapping[str, NDArray[Any]], n: int, n_edits: int, n_divisions: int
) -> None:
    """Refuse what cannot be the hierarchy of `n` superpixels with so many edits and divisions."""
    require(arrays.keys() == _KINDS.keys())
    for name, (dtype, columns) in _KINDS.items():
        require(arrays[name].dtype == dtype and arrays[name].shape[1:] == columns)
    for name in ("leaves", "heads", "lock_of", "names"):
        require(len(arrays[name]) == n + 1)
    _check_nodes(arrays, n, n_edits)
    _check_constraints(arrays, n, n_edits)
    _check_steps(arrays, n, n_edits, n_divisions)


def _within(array: NDArray[Any], low: int, high: int) -> None:
    """Refuse values that are not from `low` to below `high`."""
    require(array.size == 0 or (array.min() >= low and array.max() < high))


def _check_nodes(arrays: Mapping[str, NDArray[Any]], n: int, n_edits: int) -> None:
    links, sizes, leaves = arrays["links"], arrays["sizes"], arrays["leaves"]
    count = len(sizes)
    require(len(links) == len(arrays["scales"]) == count > n)
    for column in (PARENT, FIRST, SECOND):
        _within(links[:, column], -1, count)
    _within(links[:, PEAK], 0, count)
    _within(links[1:, LOW], 1, n + 1)
    _within(links[:, EDIT], -1, n_edits)
    require((links[:, MARK] == 0).all())
    inner = links[:, FIRST] >= 0
    require((inner == (links[:, SECOND] >= 0)).all() and (sizes[1:] > 0).all())
    # A region is larger than those that it is made of, so that no way down is endless ...
    parts = sizes[links[inner, FIRST]] + sizes[links[inner, SECOND]]
    require(not inner[0] and (parts == sizes[inner]).all())
    _within(leaves[1:], 1, count)
    require((links[leaves[1:], LOW] == np.arange(1, n + 1)).all() and not inner[leaves].any())
    # ... and no way up is: each jump is twice as far as the last.
    up = np.append(links[:, PARENT], np.int32(-1))
    for _ in range(count.bit_length() + 1):
        up = up[up]
    require((up == -1).all())


def _check_constraints(arrays: Mapping[str, NDArray[Any]], n: int, n_edits: int) -> None:
    pool = arrays["pool"]
    _within(arrays["heads"], -1, len(pool))
    _within(pool[:, 0], 0, n_edits)
    require((pool[:, 2] < np.arange(len(pool))).all() and (pool[:, 2] >= -1).all())
    _within(arrays["lock_of"], 0, len(arrays["sizes"]))
    require(np.array_equal(np.sort(arrays["names"]), np.arange(n + 1)) and arrays["names"][0] == 0)


def _check_steps(
    arrays: Mapping[str, NDArray[Any]], n: int, n_edits: int, n_divisions: int
) -> None:
    steps, changes, log = arrays["steps"], arrays["changes"], arrays["log"]
    count, pooled = len(arrays["sizes"]), len(arrays["pool"])
    n_known = len(arrays["known_counts"])
    require(len(arrays["horizons"]) == len(steps) + 1 and len(arrays["numbers"]) == 2)
    require(not np.isnan(arrays["horizons"]).any())
    _within(arrays["numbers"][1:], 0, n_known)
    _within(steps[:, 2], 0, n_known)
    for name, lengths in (
        ("known_pairs", arrays["known_counts"]),
        ("known_priorities", arrays["known_counts"]),
        ("changes", steps[:, 1]),
        ("log", changes[:, 0]),
        ("logged", changes[:, 0]),
        ("named", steps[:, 3]),
        ("named_heads", steps[:, 3]),
        ("locked", steps[:, 4]),
        ("locks", steps[:, 4]),
        ("around", arrays["divided"][:, 9]),
    ):
        require((lengths >= 0).all() and lengths.sum() == len(arrays[name]))
    require(steps[:, 0].sum() == n_edits and steps[:, 8].sum() == n_divisions)
    require(len(arrays["divided"]) == n_divisions)
    _within(arrays["known_pairs"], 1, count)
    _within(steps[:, 5], 0, pooled + 1)
    _within(steps[:, 6:8], 0, n + 1)
    # A log says what stood there before, when there were no more nodes than so many.
    before = np.repeat(changes[:, 1], changes[:, 0])
    require((np.diff(changes[:, 1]) >= 0).all())
    _within(changes[:, 1], 1, count + 1)
    _within(log[:, 0], 1, count)
    _within(log[:, 1], 0, LOG_UNTIL + 1)
    is_link = log[:, 1] < LOG_UNTIL
    require(np.isin(log[is_link, 1], (PARENT, FIRST, SECOND)).all())
    old = is_link & (log[:, 0] < before)
    require((log[old, 2] >= -1).all() and (log[old, 2] < before[old]).all())
    _within(log[is_link, 2], -1, count)
    _within(arrays["named"], 1, n + 1)
    _within(arrays["named_heads"], -1, pooled)
    _within(arrays["locked"], 1, n + 1)
    _within(arrays["locks"], 0, count)
    divided, around = arrays["divided"], arrays["around"]
    _within(divided[:, :2], 1, n + 1)
    _within(divided[:, [2, 7]], 1, count + 1)
    require((divided >= 0).all() and (around >= 0).all())
    _within(around[:, 0], 1, n + 1)
