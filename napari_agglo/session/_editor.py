"""Plans of edits other than cuts: merge, lock, unlock, move along the branch, mark.

A planner looks at a view and returns a `Plan`, or raises `Refused`; it changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Literal

import numpy as np

from napari_agglo.session._actions import Action, Plan, Step
from napari_agglo.session._annotations import MarkChange
from napari_agglo.session._edits import Cut, Down, Lock, Merge, Unlock, Up, as_ids, fingerprint
from napari_agglo.session._relearn.examples import edit_examples
from napari_agglo.session._rules import (
    Refused,
    Segment,
    find,
    find_unlocked,
    is_locked,
    merge_pairs,
)
from napari_agglo.session._view import BranchEnds, View


def plan_merge(view: View, ids: Sequence[Any], *, force: bool) -> Plan:
    """Plan to merge segments; the first keeps its id."""
    if len(ids) < 2:
        raise Refused(
            "`others` is empty", argument="others", remedy=f"say what is to be merged with {ids[0]}"
        )
    arguments = ["first", *["others"] * (len(ids) - 1)]
    pairs = zip(ids, arguments, strict=True)
    segments = [find_unlocked(view, one, "merged", argument) for one, argument in pairs]
    nodes = [segment.node for segment in segments]
    if len(set(nodes)) < len(nodes):
        twice = next(segment.id for segment in segments if nodes.count(segment.node) > 1)
        raise Refused(
            f"Segment {twice} is named twice", argument="others", remedy="name each segment once"
        )
    anchors, forced = merge_pairs(view, segments, force)
    notes = _crossed_cuts(view, segments)
    if forced:
        notes = (*notes, "Some of them do not touch.")
    state = view.state
    members = combinations([segment.members for segment in segments], 2)
    action = Action(
        "merge",
        tuple(segment.id for segment in segments),
        view.threshold,
        (Step(Merge(view.threshold, anchors)),),
        examples=edit_examples(state.graph, state.policy, members, -1),
    )
    return Plan(action, notes=notes, where=segments[0].members[:1])


def plan_lock(view: View, segment: Any) -> Plan:
    """Plan to keep a segment whole and alone at every scale."""
    found = find_unlocked(view, segment, "locked again")
    step = Step(Lock(view.threshold, found.members))
    return Plan(Action("lock", (found.id,), view.threshold, (step,)))


def plan_unlock(view: View, segment: Any) -> Plan:
    """Plan to let go of a locked segment."""
    found = find(view, segment)
    if not is_locked(view, found):
        raise Refused(
            f"Segment {found.id} is not locked, so it cannot be unlocked.", argument="segment"
        )
    step = Step(Unlock(view.threshold, found.anchor))
    return Plan(Action("unlock", (found.id,), view.threshold, (step,)))


def plan_move(view: View, segment: Any, direction: Literal["up", "down"]) -> Plan:
    """Plan to show a segment's parent, or its children, in its place."""
    found = find_unlocked(view, segment, f"moved {direction} its branch")
    kind = Up if direction == "up" else Down
    override = kind(view.threshold, found.anchor, fingerprint(found.members))
    frontier = view.new_frontier()
    try:
        frontier.apply(override)
    except BranchEnds as end:
        raise Refused(f"Segment {found.id} {end}", argument="segment") from None
    # Up shows more than the segment, and down only the segment.
    shown = view.state.tree.members(frontier.shown(found.anchor))
    action = Action(direction, (found.id,), view.threshold, override=override)
    return Plan(action, where=as_ids(np.union1d(shown, found.members)))


def plan_mark(view: View, segment: Any, **marks: Any) -> Plan:
    """Plan to name a segment, comment on it, or mark it as reviewed."""
    found = find(view, segment)
    change = MarkChange(found.id, **marks)
    return Plan(Action("mark", (found.id,), view.threshold, mark=change))


def _crossed_cuts(view: View, segments: list[Segment]) -> tuple[str, ...]:
    """Return notes on the older cuts that a merge of these segments crosses."""
    constraints = view.state.tree.record.constraints
    reached: dict[int, list[set[int]]] = {}  # of each cut, the parts that each segment reaches into
    for segment in segments:
        own: dict[int, set[int]] = {}
        for edit, part in constraints.concerning(segment.members, -np.inf, np.inf):
            if isinstance(constraints.edits[edit], Cut):
                own.setdefault(edit, set()).add(part)
        for edit, parts in own.items():
            reached.setdefault(edit, []).append(parts)
    notes = []
    for edit, sets in sorted(reached.items()):
        if len(sets) > 1 and not set.intersection(*sets):
            entry = view.entry_of(edit)
            notes.append(
                f"This crosses an earlier cut ({entry.number}. {entry.action.words}), which no "
                "longer holds here from this threshold up."
            )
    return tuple(dict.fromkeys(notes))
