"""A hierarchy as plain arrays, with all that undoing needs; and the hierarchy again.

What can be had from the graph and from the edits themselves is not among the arrays. Everything is
checked when it comes back, since kernels trust it; `InvalidInput` says that it cannot be used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.agglomeration import Merges
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import Division, RegionGraph
from napari_agglo.policy import Policy
from napari_agglo.session._edits import Cut, Edit, Ids, Unlock, as_ids
from napari_agglo.session._hierarchy.fences import Constraints, Entered
from napari_agglo.session._hierarchy.hierarchy import Hierarchy
from napari_agglo.session._hierarchy.nodes import (
    EDIT,
    FIRST,
    LOG_UNTIL,
    LOW,
    MARK,
    PARENT,
    PEAK,
    SECOND,
)
from napari_agglo.session._hierarchy.record import Divided, Record, Step, resize
from napari_agglo.session._hierarchy.replay import Changes, Known

# Whether arrays that were read again can be a hierarchy: kernels check nothing.


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
