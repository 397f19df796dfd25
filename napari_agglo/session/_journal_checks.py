"""Whether what a journal says can be done: kernels trust it, and anyone may have written it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.graph import Division, RegionGraph
from napari_agglo.session._edits import Cut, Edit, Lock, Merge, Unlock
from napari_agglo.session._repair._hierarchy import Hierarchy


def check_ids(graph: RegionGraph, ids: ArrayLike) -> None:
    """Refuse ids that are not those of superpixels, and none at all."""
    named = np.asarray(ids)
    if named.size == 0 or named.min() < 1 or named.max() > graph.n_regions:
        raise InvalidInput("The journal names superpixels that there are not.")


def check_named(graph: RegionGraph, edit: Edit) -> NDArray[Any]:
    """Return the superpixels that an edit names, which there are."""
    if not np.isfinite(edit.scale):
        raise InvalidInput("The journal has an edit at no scale.")
    ids: NDArray[Any]
    if isinstance(edit, Merge):
        ids = np.array(edit.pairs, np.int64).reshape(-1)
    elif isinstance(edit, Cut):
        ids = np.concatenate([np.zeros(0, np.int32), *edit.parts])
    else:
        ids = edit.members if isinstance(edit, Lock) else np.array([edit.superpixel])
    check_ids(graph, ids)
    return ids


def check_edit(
    graph: RegionGraph, tree: Hierarchy, edit: Edit, divisions: Sequence[Division]
) -> None:
    """Refuse an edit that cannot be made of the tree as it is."""
    ids = check_named(graph, edit)
    locks = tree.record.constraints.lock_of
    if isinstance(edit, Merge):
        allowed = not locks[ids].any()
    elif isinstance(edit, Cut):
        allowed = all(map(len, edit.parts)) and not locks[ids[ids < len(locks)]].any()
        allowed &= all((ids == division.superpixel).any() for division in divisions)
    elif isinstance(edit, Lock):
        node = tree.region(int(edit.members[0]), edit.scale)
        same = np.array_equal(tree.members(node), edit.members)
        allowed = same and not locks[edit.members].any()
    else:
        assert isinstance(edit, Unlock)
        allowed = bool(locks[edit.superpixel])
    if not allowed:
        raise InvalidInput("The journal has an edit of something that is not as it says.")
