"""Which edits happen in a repair, and in which order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_agglo.session._edits import Cut, Ids, Merge
from napari_agglo.session._repair._constraints import Constraints
from napari_agglo.session._repair._events import ASSEMBLE, JOIN


@dataclass(frozen=True, eq=False)
class Happening:
    """Edits that are to happen, by scale and then by age; see `_events` for the columns."""

    table: NDArray[np.int64]
    scales: NDArray[np.float64]
    members: Ids


def happening_between(constraints: Constraints, low: float, high: float) -> Happening:
    """Return what happens above the scale `low`, up to `high`."""
    names = []
    for index, edit in enumerate(constraints.edits):
        if low < edit.scale <= high:
            n = len(edit.pairs) if isinstance(edit, Merge) else len(constraints.parts[index])
            names += [(index, k) for k in range(n)]
    return _happening(constraints, names)


def happening_within(
    constraints: Constraints, members: Ids, slot_of: NDArray[np.int32], low: float, cut: Cut
) -> Happening:
    """Return what happens among `members`, which have slots, from `low` up to a cut and with it.

    A merge of which one end lies elsewhere sleeps: it would cross the border of what is cut.
    """
    return _happening(constraints, constraints.concerning(members, low, cut.scale), slot_of, cut)


def _happening(
    constraints: Constraints,
    names: list[tuple[int, int]],
    slot_of: NDArray[np.int32] | None = None,
    cut: Cut | None = None,
) -> Happening:
    rows: list[tuple[int, int, int, int, bool]] = []
    scales: list[float] = []
    lists: list[Ids] = []
    n = 0

    def assemble(index: int, part: Ids, partial: bool) -> None:
        nonlocal n
        rows.append((index, ASSEMBLE, n, n + len(part), partial))
        lists.append(part)
        n += len(part)

    for scale, index, k in sorted((constraints.scales[name[0]], *name) for name in names):
        edit = constraints.edits[index]
        if isinstance(edit, Merge):
            a, b = edit.pairs[k]
            if slot_of is not None and (slot_of[a] < 0 or slot_of[b] < 0):
                continue
            rows.append((index, JOIN, a, b, False))
        else:
            part = constraints.parts[index][k]
            inside = part if slot_of is None else part[slot_of[part] >= 0]
            assemble(index, inside, len(inside) < len(part))
        scales.append(scale)
    if cut is not None:
        for part in cut.parts:
            assemble(len(constraints.edits), part, False)
            scales.append(cut.scale)
    return Happening(
        table=np.array(rows, np.int64).reshape(-1, 5),
        scales=np.array(scales, np.float64),
        members=np.concatenate(lists) if lists else np.zeros(0, np.int32),
    )
