"""What regions wait for: their recorded end, or the end of what is recorded of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from napari_agglo._jit import inlined, kernel
from napari_agglo.session._repair._nodes import (
    BIRTH,
    EDIT,
    FIRST,
    LAST,
    LEVEL,
    LOW,
    PARENT,
    PRIORITY,
    SECOND,
    UNTIL,
    peak_of,
    tie_of,
)
from napari_agglo.session._repair._queue import put_item
from napari_agglo.session._repair._working import (
    CLEAN,
    GROUP,
    LOCKED,
    NODE,
    STATUS,
    find_slot,
)


@inlined
def slot_item(slot: Any, edges: Any) -> Any:
    """Return the item of the queue that stands for a slot; the edges come first."""
    return edges[0].shape[0] + slot


@inlined
def partner_of(slot: Any, nodes: Any, work: Any) -> Any:
    """Return the slot with which a clean one is recorded to merge, or -1 if that is not there."""
    links, scales, _ = nodes
    slots, _, _, slot_of, _ = work
    node = slots[slot, NODE]
    up = np.int64(links[node, PARENT])
    nowhere = np.int64(-1)
    if up < 0 or scales[node, UNTIL] < np.inf or links[up, EDIT] >= 0:
        return nowhere
    partner = np.int64(links[up, FIRST] if links[up, SECOND] == node else links[up, SECOND])
    start = slot_of[links[partner, LOW]]
    if links[partner, PARENT] != up or scales[partner, UNTIL] < np.inf or start < 0:
        return nowhere
    other = find_slot(start, slots)
    if slots[other, NODE] != partner or slots[other, STATUS] != CLEAN:
        return nowhere
    if slots[other, LOCKED] != 0 or slots[other, GROUP] != slots[slot, GROUP]:
        return nowhere
    return other


@kernel
def wait_for(slot: Any, node: Any, present: Any, nodes: Any, edges: Any, queue: Any) -> None:
    """Let a slot wait for the moment at which a node was made.

    If its regions are not both `present`, that is the last moment at which they can be: merges of
    one peak hold one another, and the outer may have the smaller key.
    """
    links, scales, _ = nodes
    item = slot_item(slot, edges)
    if links[node, EDIT] >= 0:
        put_item(item, scales[node, BIRTH], np.inf, LAST, np.inf, LAST, queue)
        return
    peak, peak_tie = peak_of(node, links, scales)
    priority = scales[node, PRIORITY] if present else np.inf
    put_item(item, scales[node, LEVEL], peak, peak_tie, priority, tie_of(node, links), queue)


@kernel
def expect(slot: Any, nodes: Any, work: Any, edges: Any, queue: Any) -> None:
    """Let a recorded region wait for its recorded end, or for the end of what is recorded.

    Where an edit made that end, it happens anew; then it shows whether it is one again.
    """
    links, scales, _ = nodes
    node = work[0][slot, NODE]
    up = np.int64(links[node, PARENT])
    if scales[node, UNTIL] < np.inf:
        put_item(slot_item(slot, edges), scales[node, UNTIL], np.inf, LAST, np.inf, LAST, queue)
    elif up >= 0:
        wait_for(slot, up, partner_of(slot, nodes, work) >= 0, nodes, edges, queue)
