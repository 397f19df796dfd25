"""What each kind of edit does to the record. Whether a user may do it is decided elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import Division
from napari_agglo.session._edits import Cut, Edit, Lock, Merge, Unlock
from napari_agglo.session._repair._crossing import before_crossing
from napari_agglo.session._repair._divide import divide
from napari_agglo.session._repair._happening import happening_within
from napari_agglo.session._repair._nodes import BIRTH, FIRST, LOW
from napari_agglo.session._repair._record import Record, Step
from napari_agglo.session._repair._working import claim_leaves


def apply(
    record: Record,
    edit: Edit,
    step: Step,
    divisions: Sequence[Division] = (),
    progress: ProgressCallback | None = None,
) -> None:
    """Let an edit happen at its scale, which the horizon reaches; the horizon then ends there.

    A cut may come with `divisions` of superpixels of the segment that is cut, each made on the
    graph after the one before; its parts then name the pieces.
    """
    match edit:
        case Merge():
            _merge(record, edit, step)
        case Cut():
            _cut(record, edit, step, divisions, progress)
        case Lock():
            _lock(record, edit, step)
        case Unlock():
            _unlock(record, edit, step)
    record.horizon = min(record.horizon, edit.scale)


def _merge(record: Record, edit: Merge, step: Step) -> None:
    index = len(record.constraints.edits)
    for a, b in edit.pairs:
        u, v = (record.region(superpixel, edit.scale) for superpixel in (a, b))
        if u != v:
            record.join([u, v], edit.scale, index, step)
    step.entered = record.constraints.enter(edit)


def _cut(
    record: Record,
    edit: Cut,
    step: Step,
    divisions: Sequence[Division],
    progress: ProgressCallback | None,
) -> None:
    anchor = divisions[0].superpixel if divisions else int(edit.parts[0][0])
    node = record.region(anchor, edit.scale)
    naming = record.naming(node)
    members = np.concatenate(edit.parts)
    for division in divisions:
        step.divided.append(divide(record, division))
    slot_of = record.places.slot_of
    try:
        slot_of[members] = np.repeat(np.arange(len(edit.parts)), [len(p) for p in edit.parts])
        order = record.subtree(node)
        links = record.nodes.links
        leaves = links[order[links[order, FIRST] < 0], LOW]
        leaves = np.concatenate([leaves, *(division.members[1:] for division in divisions)])
        if len(leaves) != len(members) or (slot_of[leaves] < 0).any():
            raise InvalidInput(
                "`parts` must be disjoint and make up one segment: give each of its superpixels "
                "once."
            )
        if not divisions:
            alive, lowest = before_crossing(record.nodes, order, slot_of)
        else:  # all that holds the superpixels is gone, so the run begins where nothing is merged
            alive, lowest = record.nodes.leaves[members].astype(np.int64), -np.inf
        if lowest < np.inf:
            _run_within(record, edit, node, members, alive, lowest, step, progress)
    finally:
        slot_of[members] = -1
    step.entered = record.constraints.enter(edit, edit.parts)
    sizes, leaf_of = record.nodes.sizes, record.nodes.leaves
    heir = max(edit.parts, key=lambda part: sizes[leaf_of[part]].sum())
    if edit.heir is not None:
        heir = edit.parts[edit.heir]
    _pass_name(record, naming, record.region(int(heir[0]), edit.scale), step)


def _run_within(
    record: Record,
    cut: Cut,
    node: int,
    members: NDArray[np.int32],
    alive: NDArray[np.int64],
    lowest: float,
    step: Step,
    progress: ProgressCallback | None,
) -> None:
    """Run again within each part, from what lives before the first merge that crosses."""
    slot_of = record.places.slot_of
    groups = slot_of[record.nodes.links[alive, LOW]].astype(np.int64)
    inside = np.zeros(len(members), np.int32)
    stack = np.zeros(len(members) + 1, np.int64)
    claim_leaves(alive, record.nodes.links, stack, slot_of, inside)
    happening = happening_within(record.constraints, inside, slot_of, lowest, cut)
    work = record.working(inside, alive, groups)
    record.repair(work, happening, cut.scale, step, node, progress)


def _lock(record: Record, edit: Lock, step: Step) -> None:
    node = record.region(int(edit.members[0]), edit.scale)
    record.set_free(node, edit.scale, step)
    step.entered = record.constraints.enter(edit, locked=edit.members, lock=node)


def _unlock(record: Record, edit: Unlock, step: Step) -> None:
    node = int(record.constraints.lock_of[edit.superpixel])
    naming = record.naming(node)
    members = record.members(node)
    links, scales, _ = record.nodes.arrays
    if scales[node, BIRTH] > edit.scale:  # below, it is no more than its pieces: put together here
        order = record.subtree(node, np.nextafter(edit.scale, np.inf))
        pieces = order[(links[order, FIRST] < 0) | (scales[order, BIRTH] <= edit.scale)]
        pieces = pieces[np.argsort(links[pieces, LOW])]
        index = len(record.constraints.edits)
        node = record.join(pieces.tolist(), edit.scale, index, step, is_active=False)
    record.set_free(node, edit.scale, step)
    step.entered = record.constraints.enter(edit, (members,), locked=members)
    _pass_name(record, naming, node, step)


def _pass_name(record: Record, naming: int, heir: int, step: Step) -> None:
    """Let a region go on under the name of a superpixel of what it was part of."""
    own = record.naming(heir)
    if own != naming:
        step.swap = (naming, own)
        record.names.swap(step.swap)
