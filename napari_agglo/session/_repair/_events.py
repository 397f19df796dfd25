"""Edits that happen again during a repair: merges between two superpixels, and parts made whole."""

from __future__ import annotations

from typing import Any

import numpy as np

from napari_agglo._jit import inlined
from napari_agglo.agglomeration import HEAD, NEXT
from napari_agglo.session._repair._bags import CUT, FIRST_CUT, NEXT_CUT
from napari_agglo.session._repair._moves import apart, tie_of_edge
from napari_agglo.session._repair._nodes import LAST
from napari_agglo.session._repair._working import (
    BAG,
    GROUP,
    JOINED,
    LOCKED,
    STAMP,
    find_slot,
)

# Columns of `events`: which edit, what it does, and to whom: two superpixels, or a range of the
# members of parts; and whether more of that part lies where this repair does not look.
WHICH, KIND, FROM, TO, PARTIAL = 0, 1, 2, 3, 4
JOIN, ASSEMBLE = 0, 1


@inlined
def may_join(u: Any, v: Any, scale: Any, edit: Any, nodes: Any, work: Any, cuts: Any) -> Any:
    """Whether an edit may join two slots: no newer cut and no lock keeps them apart."""
    slots = work[0]
    if slots[u, LOCKED] != 0 or slots[v, LOCKED] != 0 or slots[u, GROUP] != slots[v, GROUP]:
        return False
    return apart(u, v, scale, edit, nodes, work, cuts) <= scale


@inlined
def list_inside(event: Any, stamp: Any, events: Any, members: Any, work: Any, inside: Any) -> Any:
    """Stamp and list the slots that reach into the part of an event, by their ids; return how many.

    `inside` has room for all of them.
    """
    slots, _, ids, slot_of, _ = work
    n = 0
    for k in range(events[event, FROM], events[event, TO]):
        slot = find_slot(slot_of[members[k]], slots)
        if slots[slot, STAMP] != stamp:
            slots[slot, STAMP] = stamp
            inside[n] = np.int64(ids[slot]) << 32 | slot
            n += 1
    inside[:n].sort()
    for k in range(n):
        inside[k] &= 0xFFFFFFFF
    return n


@inlined
def _has_newer(slot: Any, edit: Any, work: Any, cuts: Any) -> Any:
    """Whether a slot reaches into a part of a cut newer than `edit`."""
    bags, entries = cuts[0], cuts[1]
    cut = bags[work[0][slot, BAG], FIRST_CUT]
    while cut >= 0:
        if entries[cut, CUT] > edit:
            return True
        cut = entries[cut, NEXT_CUT]
    return False


@inlined
def are_free(inside: Any, n: Any, scale: Any, edit: Any, nodes: Any, work: Any, cuts: Any) -> Any:
    """Whether an edit may join all of these slots."""
    slots = work[0]
    concerned = False
    for k in range(n):
        slot = inside[k]
        concerned |= slots[slot, LOCKED] != 0 or slots[slot, GROUP] != slots[inside[0], GROUP]
        concerned |= _has_newer(slot, edit, work, cuts)
    if concerned:
        for k in range(n):
            for other in range(k):
                if not may_join(inside[k], inside[other], scale, edit, nodes, work, cuts):
                    return False
    return True


@inlined
def want_within(
    inside: Any, n: Any, stamp: Any, scale: Any, edit: Any, nodes: Any, work: Any, graph: Any,
    cuts: Any, wanted: Any,
) -> Any:  # fmt: skip
    """List the boundaries within a part across which an edit may join; return how many."""
    slots = work[0]
    ends, links, lists = graph[0], graph[1], graph[2]
    m = 0
    for k in range(n):
        slot = inside[k]
        if slots[slot, JOINED] != slot:
            continue
        half = np.int64(lists[slot, HEAD])
        while half >= 0:
            edge = half >> 1
            other = np.int64(ends[edge, 1 - (half & 1)])
            within = half & 1 == 0 and slots[other, STAMP] == stamp
            if within and may_join(slot, other, scale, edit, nodes, work, cuts):
                wanted[m] = edge
                m += 1
            half = np.int64(links[edge, half & 1, NEXT])
    return m


@inlined
def first_of(wanted: Any, m: Any, work: Any, graph: Any, priority: Any) -> Any:
    """Return the edge that the policy puts first, or -1 if there is none."""
    best = np.int64(-1)
    best_priority = np.inf
    best_tie = LAST
    for k in range(m):
        edge = wanted[k]
        tie = tie_of_edge(edge, work, graph)
        first = best < 0 or priority[edge] < best_priority
        if first or (priority[edge] == best_priority and tie < best_tie):
            best = np.int64(edge)
            best_priority = priority[edge]
            best_tie = tie
    return best
