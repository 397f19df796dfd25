"""Conversion of a hierarchy to plain arrays, and of such arrays to a hierarchy.

The arrays have the rows of the log, and the steps with the old values that undo needs. Kernels
trust these arrays, and anyone may have written them, so `thawed` checks them first. Edits and
divisions are those of the journal, and are entered again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.agglomeration import Merges
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import Division, RegionGraph
from napari_agglo.policy import Policy
from napari_agglo.session._actions import Cut, Edit, Ids, Lock, Unlock
from napari_agglo.session._hierarchy.hierarchy import Hierarchy
from napari_agglo.session._hierarchy.merge_log import CHANGING, ROW, Step

Arrays = dict[str, NDArray[Any]]
# Columns of `steps`, a row a step: whether it is an edit, rows before it, how many changes and
# fresh rows it has, and the superpixels that changed names.
_IS_EDIT, _COUNT, _CHANGES, _FRESH, _SWAP_A, _SWAP_B = range(6)
_LINKS = ("parent", "first", "second", "low", "edit", "live")
_TYPES = {
    "links": (np.int32, 2),
    "sizes": (np.int64, 1),
    "scales": (np.float64, 2),
    "hashes": (np.int64, 2),
    "steps": (np.int64, 2),
    "horizons": (np.float64, 1),
    "changes": (np.int32, 2),
    "fresh": (np.int32, 1),
    "asked": (np.int64, 1),
}


def frozen(tree: Hierarchy) -> Arrays:
    """Return all that `thawed` needs, as arrays of numbers."""
    rows, steps = tree.log.rows[: tree.log.count], tree.steps
    changes = [np.concatenate([np.zeros((0, 3), np.int32), *step.changes]) for step in steps]
    table = [
        (step.entered is not None, step.count, len(noted), len(step.fresh), *(step.swap or (0, 0)))
        for step, noted in zip(steps, changes, strict=True)
    ]
    return {
        "links": np.stack([rows[name] for name in _LINKS], axis=1),
        "sizes": rows["size"].copy(),
        "scales": np.stack([rows["birth"], rows["priority"]], axis=1),
        "hashes": np.stack([rows["hash_a"], rows["hash_b"]], axis=1),
        "steps": np.array(table, np.int64).reshape(-1, 6),
        "horizons": np.array([step.scale for step in steps], np.float64),
        "changes": np.concatenate([np.zeros((0, 3), np.int32), *changes]),
        "fresh": np.concatenate([np.zeros(0, np.int32), *(step.fresh for step in steps)]),
        "asked": np.array([tree.n_scored], np.int64),
    }


def thawed(
    graph: RegionGraph,
    policy: Policy,
    arrays: Arrays,
    edits: Sequence[Edit],
    divisions: Sequence[Sequence[Division]],
) -> Hierarchy:
    """Return the hierarchy that `frozen` made arrays of.

    Parameters
    ----------
    graph : RegionGraph
        What the tree was made on, before the `divisions`.
    policy : Policy
    arrays : dict of arrays
    edits, divisions
        The live edits, oldest first, and what each divides.
    """
    pieces = [len(division.members) for several in divisions for division in several]
    check_arrays(arrays, graph.n_regions + sum(pieces) - len(pieces), len(edits))
    nothing = np.zeros(0, np.int64)
    tree = Hierarchy(graph, policy, Merges(nothing, nothing, np.zeros(0)))
    _fill_rows(tree, arrays)
    tree.n_scored = int(arrays["asked"][0])
    waiting = list(zip(edits, divisions, strict=True))[::-1]
    locked: dict[int, Ids] = {}
    changes = arrays["changes"]
    ends = np.cumsum(arrays["steps"][:, _CHANGES])
    # Changes of one step to one field are one array of them.
    breaks = np.unique(np.concatenate([[0], np.flatnonzero(np.diff(changes[:, 0])) + 1, ends]))
    noted = [changes[start:stop] for start, stop in pairwise(breaks.tolist())]
    taken = np.searchsorted(breaks, ends).tolist()
    first = fresh = 0
    steps: list[Step] = []
    run: list[tuple[Step, Edit]] = []  # merges and cuts that are entered together

    def end_run() -> None:
        pairs = [(edit, edit.parts if isinstance(edit, Cut) else ()) for _, edit in run]
        for (step, _), entered in zip(run, tree.constraints.enter_all(pairs), strict=True):
            step.entered = entered
        run.clear()

    for row, scale, last in zip(
        arrays["steps"].tolist(), arrays["horizons"].tolist(), taken, strict=True
    ):
        step = Step(row[_COUNT], np.inf, (), scale, arrays["fresh"][fresh : fresh + row[_FRESH]])
        step.changes = noted[first:last]
        first, fresh = last, fresh + row[_FRESH]
        if row[_IS_EDIT]:
            edit, several = waiting.pop()
            _require(edit.scale == scale)
            if several or isinstance(edit, Lock | Unlock):
                end_run()
                at = step.count
                for division in several:
                    _divide(tree, division, at, step)
                    at += len(division.members)
                _enter(tree, edit, step, locked)
            else:
                run.append((step, edit))
        if row[_SWAP_A] > 0:
            step.swap = row[_SWAP_A], row[_SWAP_B]
            tree.names.swap(step.swap)
        steps.append(step)
    end_run()
    for step in steps:
        is_edit = step.entered is not None
        _require(step.scale <= tree.horizon if is_edit else step.scale > tree.horizon)
        step.horizon, step.seams = tree.horizon, tree.seams
        tree.end_step(step)
    return tree


def _fill_rows(tree: Hierarchy, arrays: Arrays) -> None:
    log, count = tree.log, len(arrays["sizes"])
    log.rows = np.zeros(2 * count + 64, ROW)
    log.count = count
    columns = dict(zip(_LINKS, arrays["links"].T, strict=True))
    columns["size"] = arrays["sizes"]
    columns["birth"], columns["priority"] = arrays["scales"].T
    columns["hash_a"], columns["hash_b"] = arrays["hashes"].T
    for name, values in columns.items():
        log.rows[name][:count] = values


def _divide(tree: Hierarchy, division: Division, first: int, step: Step) -> None:
    """Divide a superpixel, whose pieces have rows from `first` on."""
    s, members = division.superpixel, division.members
    _require(tree.superpixels.n == division.n_regions)
    rows = np.arange(first, first + len(members), dtype=np.int32)
    _require(rows[-1] < tree.log.count and (tree.log.rows["low"][rows] == members).all())
    leaf = int(tree.log.leaves[s])
    divided = tree.superpixels.divide(division)
    step.divided.append((leaf, divided, tree.constraints.divide(s, members[1:])))
    tree.log.resize(tree.superpixels.n)
    tree.log.leaves[members] = rows


def _enter(tree: Hierarchy, edit: Edit, step: Step, locked: dict[int, Ids]) -> None:
    """Enter an edit; `locked` are the superpixels of each locked row."""
    constraints = tree.constraints
    if isinstance(edit, Lock):
        _require(len(step.fresh) == 1)
        node = int(step.fresh[0])
        locked[node] = edit.members
        step.entered = constraints.enter(edit, locked=edit.members, lock=node)
    elif isinstance(edit, Unlock):
        members = locked[int(constraints.lock_of[edit.superpixel])]
        step.entered = constraints.enter(edit, (members,), locked=members)
    else:
        step.entered = constraints.enter(edit, edit.parts if isinstance(edit, Cut) else ())


def _require(right: Any) -> None:
    if not right:
        raise InvalidInput("The arrays of a tree do not fit together.")


def _within(array: NDArray[Any], low: int, stop: int) -> None:
    _require(array.size == 0 or (array.min() >= low and array.max() < stop))


def check_arrays(arrays: Mapping[str, NDArray[Any]], n: int, n_edits: int) -> None:
    """Refuse arrays that are not those of a tree of `n` superpixels under so many edits."""
    _require({*arrays} == {*_TYPES})
    for name, (dtype, ndim) in _TYPES.items():
        _require(arrays[name].dtype == dtype and arrays[name].ndim == ndim)
    links, sizes, steps = arrays["links"], arrays["sizes"], arrays["steps"]
    count = len(sizes)
    _require(links.shape == (count, len(_LINKS)) and arrays["scales"].shape == (count, 2))
    _require(arrays["hashes"].shape == (count, 2) and count > n and steps.shape[1:] == (6,))
    _require(arrays["changes"].shape[1:] == (3,) and arrays["asked"].shape == (1,))
    parent, first, second, low, edit, live = links.T
    for column in (parent, first, second):
        _within(column, -1, count)
    _within(low[1:], 1, n + 1)
    _within(edit, -1, n_edits)
    _within(live, 0, 2)
    inner = first >= 0
    _require((inner == (second >= 0)).all() and not inner[0] and (sizes[1:] > 0).all())
    _require(not np.isnan(arrays["scales"][:, 0]).any() and not live[~inner].any())
    # A region is larger than those that it is made of, so that no way down is endless, nor one up.
    _require((sizes[first[inner]] + sizes[second[inner]] == sizes[inner]).all())
    _require((low[inner] == np.minimum(low[first[inner]], low[second[inner]])).all())
    hashes = arrays["hashes"]
    _require((hashes[inner] == hashes[first[inner]] ^ hashes[second[inner]]).all())
    parts = np.flatnonzero(parent >= 0)
    _require((sizes[parent[parts]] > sizes[parts]).all())
    _require(len(arrays["horizons"]) == len(steps) and not np.isnan(arrays["horizons"]).any())
    _require(steps[:, _IS_EDIT].sum() == n_edits and np.isin(steps[:, _IS_EDIT], (0, 1)).all())
    counts = np.append(steps[:, _COUNT], count)
    _require((np.diff(counts) >= 0).all() and counts[0] > 0)
    for name, column in (("changes", _CHANGES), ("fresh", _FRESH)):
        _require((steps[:, column] >= 0).all() and steps[:, column].sum() == len(arrays[name]))
    _within(steps[:, _SWAP_A:], 0, n + 1)
    _within(arrays["fresh"], 1, count)
    kind, row, old = arrays["changes"].T
    _within(kind, 0, len(CHANGING))
    _within(row, 1, count)
    before = np.repeat(steps[:, _COUNT], steps[:, _CHANGES])  # rows that undo leaves
    kept = row < before
    _within(old, -1, max(count, 2))
    _require((old[kept] < np.maximum(before[kept], 2)).all())
