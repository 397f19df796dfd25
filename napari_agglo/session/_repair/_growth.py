"""New nodes, the log that undoes them, and when one takes the place of a recorded one."""

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
    PEAK,
    PRIORITY,
    SECOND,
    UNTIL,
    highest_within,
    peak_of,
)

# Columns of `state`, the counters of a repair.
N_NODES, N_LOGGED, N_EVENTS, N_ASKED, N_KNOWN = 0, 1, 2, 3, 4
LOG_UNTIL = 5  # where the log has the columns of `links`


@inlined
def set_link(node: Any, column: Any, value: Any, links: Any, log: Any, state: Any) -> None:
    """Change a link and log what it was."""
    at = state[N_LOGGED]
    log[at, 0] = node
    log[at, 1] = column
    log[at, 2] = links[node, column]
    state[N_LOGGED] = at + 1
    links[node, column] = value


@inlined
def set_until(node: Any, value: Any, scales: Any, log: Any, logged: Any, state: Any) -> None:
    """Change up to where a node is known and log what it was."""
    at = state[N_LOGGED]
    log[at, 0] = node
    log[at, 1] = LOG_UNTIL
    logged[at] = scales[node, UNTIL]
    state[N_LOGGED] = at + 1
    scales[node, UNTIL] = value


@inlined
def _holder(node: Any, now: Any, links: Any, scales: Any) -> Any:
    """Return the smallest recorded region that holds `node`, or -1 if none is known at `now`.

    What holds a node of which no more is known is recorded only for the time from then on.
    """
    if now < scales[node, UNTIL] < np.inf:
        return np.int64(-1)
    return np.int64(links[node, PARENT])


@inlined
def common_holder(u: Any, v: Any, now: Any, links: Any, scales: Any, sizes: Any) -> Any:
    """Return the smallest recorded region that holds both, or -1; one is larger than the other."""
    u = _holder(u, now, links, scales)
    v = _holder(v, now, links, scales)
    while u != v and u >= 0 and v >= 0:
        smaller = sizes[u] <= sizes[v]
        if sizes[v] <= sizes[u]:
            v = _holder(v, now, links, scales)
        if smaller:
            u = _holder(u, now, links, scales)
    return u if u == v else np.int64(-1)


@inlined
def add_node(
    u: Any, v: Any, birth: Any, level: Any, priority: Any, edit: Any, is_active: Any, now: Any,
    links: Any, scales: Any, sizes: Any, log: Any, logged: Any, state: Any,
) -> Any:  # fmt: skip
    """Add the union of nodes `u` and `v` and return it.

    The first of the two is the larger one, but where a user merges the active one, `u`: the first
    superpixel of the first of the first ... names the region.
    """
    node = state[N_NODES]
    state[N_NODES] = node + 1
    low = min(links[u, LOW], links[v, LOW])
    if not is_active and (sizes[v], links[u, LOW]) > (sizes[u], links[v, LOW]):
        u, v = v, u
    links[node, PARENT] = common_holder(u, v, now, links, scales, sizes)
    links[node, FIRST] = u
    links[node, SECOND] = v
    links[node, LOW] = low
    links[node, EDIT] = edit
    scales[node, BIRTH] = birth
    scales[node, LEVEL] = level
    scales[node, PRIORITY] = priority
    scales[node, UNTIL] = np.inf
    sizes[node] = sizes[u] + sizes[v]
    links[node, PEAK] = node if edit >= 0 else highest_within(node, links, scales)
    set_link(u, PARENT, node, links, log, state)
    set_link(v, PARENT, node, links, log, state)
    set_until(u, np.inf, scales, log, logged, state)
    set_until(v, np.inf, scales, log, logged, state)
    return node


@inlined
def is_after(node: Any, level: Any, priority: Any, tie: Any, links: Any, scales: Any) -> Any:
    """Whether `node` came about after the moment of the peak (`level`, `priority`, `tie`)."""
    if links[node, EDIT] >= 0:
        return (scales[node, BIRTH], np.inf, LAST) > (level, priority, tie)
    top_priority, top_tie = peak_of(node, links, scales)
    return (scales[node, LEVEL], top_priority, top_tie) > (level, priority, tie)


@inlined
def is_past(node: Any, level: Any, priority: Any, tie: Any, links: Any, scales: Any) -> Any:
    """Whether `node`, if it has not come about by this moment, cannot any more.

    Merges of one peak hold one another, so that the outer ones are still to come. Of edits at one
    scale only those are to come that are newer, and these happen anew.
    """
    if links[node, EDIT] >= 0:
        return (scales[node, BIRTH], np.inf, LAST) <= (level, priority, tie)
    top_priority, top_tie = peak_of(node, links, scales)
    return (scales[node, LEVEL], top_priority, top_tie) < (level, priority, tie)


@inlined
def twin(
    node: Any, level: Any, priority: Any, tie: Any, links: Any, scales: Any, sizes: Any
) -> Any:
    """How `node` stands to its recorded holder: 1 it is just that, 2 it will be, 0 neither.

    It is that region while that region lives in the record: from then on, what the record knows of
    its future holds for `node`. Before, it will be, if it lives to see it.
    """
    other = np.int64(links[node, PARENT])
    if other < 0 or sizes[other] != sizes[node]:
        return 0
    if is_after(other, level, priority, tie, links, scales):
        return 2
    if scales[other, UNTIL] < np.inf:
        return 1 if level < scales[other, UNTIL] else 0
    up = np.int64(links[other, PARENT])
    if up < 0:
        return 1
    if links[up, FIRST] != other and links[up, SECOND] != other:
        return 0
    return 0 if is_past(up, level, priority, tie, links, scales) else 1


@inlined
def take_place(node: Any, links: Any, scales: Any, log: Any, logged: Any, state: Any) -> None:
    """Let `node` stand for its recorded twin from now on."""
    other = np.int64(links[node, PARENT])
    up = np.int64(links[other, PARENT])
    set_link(node, PARENT, up, links, log, state)
    set_until(node, scales[other, UNTIL], scales, log, logged, state)
    if up >= 0 and scales[other, UNTIL] == np.inf:
        column = FIRST if links[up, FIRST] == other else SECOND
        set_link(up, column, node, links, log, state)


@kernel
def join_nodes(
    u: Any, v: Any, scale: Any, edit: Any, is_active: Any, links: Any, scales: Any, sizes: Any,
    log: Any, logged: Any, state: Any,
) -> Any:  # fmt: skip
    """Join two regions that live at `scale` there, as a user does; return the node.

    No bounds checking is performed.
    """
    above = np.nextafter(scale, np.inf)
    node = add_node(
        u, v, scale, above, np.nan, edit, is_active, scale, links, scales, sizes,
        log, logged, state,
    )  # fmt: skip
    if twin(node, scale, np.inf, LAST, links, scales, sizes) == 1:
        take_place(node, links, scales, log, logged, state)
    else:
        set_until(node, scale, scales, log, logged, state)
    return node


@kernel
def roll_back(links: Any, scales: Any, log: Any, logged: Any, n: Any) -> None:
    """Put back what the first `n` entries of a log changed. No bounds checking."""
    for at in range(n - 1, -1, -1):
        if log[at, 1] == LOG_UNTIL:
            scales[log[at, 0], UNTIL] = logged[at]
        else:
            links[log[at, 0], log[at, 1]] = log[at, 2]


@kernel
def set_free(
    node: Any, scale: Any, links: Any, scales: Any, log: Any, logged: Any, state: Any
) -> None:
    """Let nothing be recorded of a node from `scale` on. No bounds checking."""
    set_link(node, PARENT, -1, links, log, state)
    set_until(node, scale, scales, log, logged, state)
