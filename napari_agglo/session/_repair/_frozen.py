"""A hierarchy as plain arrays, with all that undoing needs; and the hierarchy again.

What can be had from the graph and from the edits themselves is not among the arrays. Everything is
checked when it comes back, since kernels trust it; `InvalidInput` says that it cannot be used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.agglomeration import Merges
from napari_agglo.graph import Division, RegionGraph
from napari_agglo.policy import Policy
from napari_agglo.session._edits import Cut, Edit, Ids, Unlock, as_ids
from napari_agglo.session._repair._constraints import Constraints, Entered
from napari_agglo.session._repair._divide import Divided, resize
from napari_agglo.session._repair._frozen_checks import check_arrays, require
from napari_agglo.session._repair._hierarchy import Hierarchy
from napari_agglo.session._repair._record import Record, Step
from napari_agglo.session._repair._run import Changes, Known

Arrays = dict[str, NDArray[Any]]
# Columns of `steps`, a row a step ...
_IS_EDIT, _CHANGES, _KNOWN, _NAMED, _LOCKED, _POOLED, _SWAP_A, _SWAP_B, _DIVIDED = range(9)
# ... and of `divided`, a row a division.
_N, _SUPERPIXEL, _LEAF, _ROW, _ADJACENT, _REGIONS, _BOUNDARIES, _COUNT, _POOL, _AROUND = range(10)


def frozen(tree: Hierarchy) -> Arrays:
    """Return all that `thawed` needs, as arrays of numbers."""
    record, steps = tree.record, tree.steps
    nodes, constraints = record.nodes, record.constraints
    knowns = list({id(k): k for k in (*(step.known for step in steps), record.known)}.values())
    number = {id(known): k for k, known in enumerate(knowns)}
    changes = [change for step in steps for change in step.changes]
    entered = [step.entered for step in steps if step.entered is not None]
    divided = [one for step in steps for one in step.divided]
    return {
        "links": nodes.links[: nodes.count],
        "scales": nodes.scales[: nodes.count],
        "sizes": nodes.sizes[: nodes.count],
        "leaves": nodes.leaves,
        "heads": constraints.heads,
        "pool": constraints.pool[: constraints.pooled],
        "lock_of": constraints.lock_of,
        "names": record.names.of_superpixel,
        "horizons": np.array([*(step.horizon for step in steps), record.horizon]),
        "numbers": np.array([record.asked, number[id(record.known)]], np.int64),
        "known_pairs": _joined([known.pairs for known in knowns], (0, 2), np.int64),
        "known_priorities": _joined([known.priorities for known in knowns], 0, np.float64),
        "known_counts": np.array([len(known.pairs) for known in knowns], np.int64),
        "steps": np.array([_row(step, number) for step in steps], np.int64).reshape(-1, 9),
        "changes": np.array([(len(c.log), c.count) for c in changes], np.int64).reshape(-1, 2),
        "log": _joined([change.log for change in changes], (0, 3), np.int64),
        "logged": _joined([change.logged for change in changes], 0, np.float64),
        "named": _joined([one.superpixels for one in entered], 0, np.int32),
        "named_heads": _joined([one.heads for one in entered], 0, np.int32),
        "locked": _joined([one.locked for one in entered], 0, np.int32),
        "locks": _joined([one.locks for one in entered], 0, np.int32),
        "divided": np.array([_divided_row(one) for one in divided], np.int64).reshape(-1, 10),
        "around": _joined([_around(one) for one in divided], (0, 3), np.int64),
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
    cut = [division for several in divisions for division in several]
    n = graph.n_regions + sum(len(division.ids) for division in cut)
    check_arrays(arrays, n, len(edits), len(cut))
    nothing = np.zeros(0, np.int64)
    record = Record(graph, policy, Merges(nothing, nothing, np.zeros(0)))
    nodes = record.nodes
    nodes.make_room(len(arrays["sizes"]) - nodes.count)
    nodes.count = len(arrays["sizes"])
    for table, name in ((nodes.links, "links"), (nodes.scales, "scales"), (nodes.sizes, "sizes")):
        table[: nodes.count] = arrays[name]
    for one in cut:
        resize(record, one.n_regions + len(one.ids))
        record.ground.divide(one)
    nodes.leaves = arrays["leaves"].copy()
    record.names.of_superpixel = arrays["names"].copy()
    record.names.superpixel_of = np.argsort(arrays["names"]).astype(np.uint32)
    record.horizon = float(arrays["horizons"][-1])
    record.asked, last = arrays["numbers"].tolist()
    take = _Taker(arrays)
    knowns = [
        Known(take("known_pairs", k), take("known_priorities", k))
        for k in arrays["known_counts"].tolist()
    ]
    record.known = knowns[last]
    steps, waiting = [], list(zip(edits, divisions, strict=True))[::-1]
    for row, horizon in zip(arrays["steps"].tolist(), arrays["horizons"].tolist(), strict=False):
        step = Step(horizon, knowns[row[_KNOWN]])
        for length, count in take("changes", row[_CHANGES]).tolist():
            step.changes.append(Changes(take("log", length), take("logged", length), count))
        if row[_IS_EDIT]:
            edit, several = waiting.pop()
            require(len(several) == row[_DIVIDED])
            step.entered = _entered(row, take)
            step.divided = [_redivided(record.constraints, one, take) for one in several]
            _enter(record.constraints, edit, step.entered)
        if row[_SWAP_A] > 0:
            step.swap = row[_SWAP_A], row[_SWAP_B]
        steps.append(step)
    require(not waiting)
    _complete(record.constraints, arrays)
    return Hierarchy.of(record, steps)


def _joined(arrays: Sequence[NDArray[Any]], empty: Any, dtype: Any) -> NDArray[Any]:
    return np.concatenate([np.zeros(empty, dtype), *arrays]).astype(dtype, copy=False)


def _row(step: Step, number: dict[int, int]) -> tuple[int, ...]:
    entered = step.entered
    edit = (len(entered.superpixels), len(entered.locked), entered.pooled) if entered else (0, 0, 0)
    swap = step.swap or (0, 0)
    known = number[id(step.known)]
    is_edit, divided = int(entered is not None), len(step.divided)
    return is_edit, len(step.changes), known, *edit, int(swap[0]), int(swap[1]), divided


def _divided_row(divided: Divided) -> tuple[int, ...]:
    where = divided.n, divided.superpixel, divided.leaf, divided.row, divided.adjacent
    return *where, *divided.rows, divided.count, divided.pooled, len(divided.around)


def _around(divided: Divided) -> NDArray[np.int64]:
    return np.stack([divided.around, divided.start, divided.stop], axis=1)


class _Taker:
    """Takes pieces off arrays, one after the other."""

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays
        self._at = dict.fromkeys(arrays, 0)

    def __call__(self, name: str, n: int) -> NDArray[Any]:
        at = self._at[name]
        self._at[name] = at + n
        return self._arrays[name][at : at + n]


def _entered(row: list[int], take: Callable[[str, int], NDArray[Any]]) -> Entered:
    return Entered(
        superpixels=take("named", row[_NAMED]),
        heads=take("named_heads", row[_NAMED]),
        locked=take("locked", row[_LOCKED]),
        locks=take("locks", row[_LOCKED]),
        pooled=row[_POOLED],
    )


def _enter(constraints: Constraints, edit: Edit, entered: Entered) -> None:
    """Add an edit to the list, and what it says of superpixels."""
    parts: tuple[Ids, ...] = ()
    if isinstance(edit, Cut):
        parts = edit.parts
    elif isinstance(edit, Unlock):
        parts = (entered.locked,)
    constraints.edits.append(edit)
    constraints.parts.append(parts)


def _redivided(
    constraints: Constraints, division: Division, take: Callable[[str, int], NDArray[Any]]
) -> Divided:
    """Let older edits say of the pieces what they said of the whole, and return the way back."""
    (row,) = take("divided", 1).tolist()
    require(row[_SUPERPIXEL] == division.superpixel and row[_N] == division.n_regions)
    around, start, stop = take("around", row[_AROUND]).T.copy()
    old: dict[int, tuple[Ids, ...]] = {}
    for edit, parts in enumerate(constraints.parts):
        held = [division.superpixel in part for part in parts]
        if any(held):
            old[edit] = parts
            more = division.members[1:]
            constraints.parts[edit] = tuple(
                as_ids(np.concatenate([part, more])) if has else part
                for part, has in zip(parts, held, strict=True)
            )
    return Divided(
        n=row[_N],
        superpixel=row[_SUPERPIXEL],
        leaf=row[_LEAF],
        row=row[_ROW],
        around=around,
        start=start,
        stop=stop,
        adjacent=row[_ADJACENT],
        rows=(row[_REGIONS], row[_BOUNDARIES]),
        count=row[_COUNT],
        pooled=row[_POOL],
        parts=old,
    )


def _complete(constraints: Constraints, arrays: Arrays) -> None:
    n = len(constraints.edits)
    constraints.scales = np.zeros(max(16, 1 << n.bit_length()))
    constraints.scales[:n] = [edit.scale for edit in constraints.edits]
    constraints.heads = arrays["heads"].copy()
    constraints.lock_of = arrays["lock_of"].copy()
    constraints.pooled = len(arrays["pool"])
    constraints.pool = np.zeros((max(64, 2 * constraints.pooled), 3), np.int32)
    constraints.pool[: constraints.pooled] = arrays["pool"]
