"""The recorded tree: every region that the current run has made, as rows of a table that grows.

A row is never changed but for whom it became part of, so an edit is undone by dropping the rows
that it added and putting back the few links that it changed.

Each node carries the scale from which it is seen (`BIRTH`), the level that its boundaries start
from (`LEVEL`, just above the birth where a user made it), and `UNTIL`: infinite if its parent is
known for good, else the scale up to which it is known to live; the parent is then only the smallest
recorded region that holds it, in case it grows to be just that.

When a merge happens is not told by its key, for keys fall after a merge. It is told by the largest
key among it and the merges within it, which `PEAK` names: of two merges that of the smaller peak
comes first, and those of one peak hold one another.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel

# Columns of `links` and of `scales`.
PARENT, FIRST, SECOND, LOW, EDIT, PEAK, MARK = 0, 1, 2, 3, 4, 5, 6  # 0 but while marks are used
BIRTH, LEVEL, PRIORITY, UNTIL = 0, 1, 2, 3
LAST = np.int64(2**63 - 1)  # the tie of what comes after all merges of its level


class Nodes:
    """The table of regions: `links`, `scales` and `sizes` (pixels), with room to grow.

    Leaves are rows 1..n in the order of their superpixels; `leaves` says where later ones are.
    """

    def __init__(self, pixels: NDArray[np.int64], n_merges: int) -> None:
        n = len(pixels) - 1
        room = 2 * (n + n_merges + 64)
        self.links = _no_links(room)
        self.scales = np.full((room, 4), np.inf)
        self.sizes = np.zeros(room, np.int64)
        self.count = n + 1
        self.leaves = np.arange(n + 1, dtype=np.int32)
        self.links[: n + 1, LOW] = self.links[: n + 1, PEAK] = self.leaves
        self.scales[: n + 1, :PRIORITY] = -np.inf
        self.sizes[: n + 1] = pixels

    @property
    def arrays(self) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.int64]]:
        """What kernels take."""
        return self.links, self.scales, self.sizes

    def record(
        self,
        winners: NDArray[np.int64],
        losers: NDArray[np.int64],
        priorities: NDArray[np.float64],
    ) -> None:
        """Add the merges of an agglomeration without edits."""
        self.make_room(len(winners))
        count = _record(winners, losers, priorities, self.leaves.copy(), self.count, *self.arrays)
        self.count = int(count)

    def make_room(self, n: int) -> None:
        """Make sure that `n` more nodes find room."""
        room = len(self.sizes)
        if self.count + n > room:
            more = max(room, n)
            self.links = np.concatenate([self.links, _no_links(more)])
            self.scales = np.concatenate([self.scales, np.full((more, 4), np.inf)])
            self.sizes = np.concatenate([self.sizes, np.zeros(more, np.int64)])


def _no_links(n: int) -> NDArray[np.int32]:
    links = np.full((n, 7), -1, np.int32)
    links[:, MARK] = 0
    return links


@kernel
def _record(
    winners: Any, losers: Any, priorities: Any, at: Any, count: Any, links: Any, scales: Any,
    sizes: Any,
) -> Any:  # fmt: skip
    """Enter merges, whose regions are found in `at`; return the new count. No bounds checking."""
    highest = -np.inf
    for k in range(winners.size):
        u = at[winners[k]]
        v = at[losers[k]]
        highest = max(highest, priorities[k])
        swapped = sizes[v] > sizes[u]  # the larger one passes its name on
        links[count, FIRST] = v if swapped else u
        links[count, SECOND] = u if swapped else v
        links[count, LOW] = winners[k]
        scales[count, BIRTH] = highest
        scales[count, LEVEL] = highest
        scales[count, PRIORITY] = priorities[k]
        sizes[count] = sizes[u] + sizes[v]
        links[u, PARENT] = count
        links[v, PARENT] = count
        links[count, PEAK] = highest_within(count, links, scales)
        at[winners[k]] = count
        count += 1
    return count


@inlined
def tie_of(node: Any, links: Any) -> Any:
    """Return the ids of the two regions of a merge as one number, the smaller first."""
    a = np.int64(links[links[node, FIRST], LOW])
    b = np.int64(links[links[node, SECOND], LOW])
    return min(a, b) << 32 | max(a, b)


@inlined
def peak_of(node: Any, links: Any, scales: Any) -> Any:
    """Return priority and tie of the largest key within a node; its level is that of the node.

    What a user made, and a superpixel, comes before all merges of its level.
    """
    peak = np.int64(links[node, PEAK])
    if links[peak, FIRST] < 0 or links[peak, EDIT] >= 0:
        return -np.inf, np.int64(-1)
    return scales[peak, PRIORITY], tie_of(peak, links)


@inlined
def highest_within(node: Any, links: Any, scales: Any) -> Any:
    """Return the peak of a new node: itself, or that of one of its regions."""
    highest = np.int64(node)
    key = (scales[node, LEVEL], scales[node, PRIORITY], tie_of(node, links))
    for side in range(2):
        region = np.int64(links[node, SECOND if side else FIRST])
        priority, tie = peak_of(region, links, scales)
        if (scales[region, LEVEL], priority, tie) > key:
            key = (scales[region, LEVEL], priority, tie)
            highest = np.int64(links[region, PEAK])
    return highest


@inlined
def parent_at(node: Any, scale: Any, links: Any, scales: Any) -> Any:
    """Return what `node` is part of at `scale`, if it is that already, else -1."""
    up = np.int64(links[node, PARENT])
    if up < 0 or scales[node, UNTIL] < np.inf or scales[up, BIRTH] > scale:
        return np.int64(-1)
    return up


@kernel
def region_at(node: Any, scale: Any, links: Any, scales: Any, sizes: Any) -> Any:
    """Return the region that holds `node` at `scale`. No bounds checking."""
    while True:
        up = parent_at(node, scale, links, scales)
        if up < 0:
            return node
        node = up


@kernel
def regions_at(leaves: Any, scale: Any, links: Any, scales: Any, top: Any, out: Any) -> None:
    """Write the region of each superpixel at `scale` to `out`; `top` is a buffer of nodes.

    No bounds checking. The table is read once, in order: a parent mostly comes after its children,
    so that going down the numbers finds its region known. Only what has taken the place of an older
    node comes after its parent, and is followed up.
    """
    for node in range(top.size):
        top[node] = node
        up = np.int64(links[node, PARENT])
        # As `parent_at`, whose return from a branch takes seven times as long here.
        if up >= 0 and scales[node, UNTIL] == np.inf and scales[up, BIRTH] <= scale:
            top[node] = up
    for node in range(top.size - 1, -1, -1):
        top[node] = top[top[node]]
    for superpixel in range(1, leaves.size):
        at = np.int64(leaves[superpixel])
        while top[at] != at:
            at = np.int64(top[at])
        top[leaves[superpixel]] = at
        out[superpixel] = at


@inlined
def naming_of(node: Any, links: Any) -> Any:
    """Return the superpixel that names a node: the first of the first of the first ..."""
    while links[node, FIRST] >= 0:
        node = np.int64(links[node, FIRST])
    return np.int64(links[node, LOW])


@kernel
def first_leaf(node: Any, links: Any) -> Any:
    """Return the superpixel that names a node. No bounds checking."""
    return naming_of(node, links)


@kernel
def names_of(regions: Any, links: Any, of_superpixel: Any, first: Any, out: Any) -> None:
    """Write the name of the region of each superpixel to `out`. No bounds checking.

    `first` is a buffer of nodes: the first of each, read once and in order, of a leaf the negative
    name, and so of a region once it is known.
    """
    for node in range(1, first.size):
        first[node] = links[node, FIRST]
        if first[node] < 0:
            first[node] = -np.int64(of_superpixel[links[node, LOW]])
    for superpixel in range(1, regions.size):
        node = regions[superpixel]
        at = first[node]
        while at >= 0:
            at = first[at]
        first[node] = at
        out[superpixel] = -at


@kernel
def subtree(node: Any, births_from: Any, links: Any, scales: Any, stack: Any, out: Any) -> Any:
    """Write `node` and what it is made of to `out`, parents first; return how many there are.

    What was born before `births_from` is not looked into. `stack` is a buffer as large as `out`; if
    these are too small, the number that is returned is larger, and `out` is not filled.
    """
    n = 0
    depth = 1
    stack[0] = node
    while depth > 0:
        if n + depth >= out.size:
            return out.size + 1
        depth -= 1
        at = np.int64(stack[depth])
        out[n] = at
        n += 1
        if links[at, FIRST] >= 0 and scales[at, BIRTH] >= births_from:
            stack[depth] = links[at, FIRST]
            stack[depth + 1] = links[at, SECOND]
            depth += 2
    return n


# New nodes, the log that undoes them, and when one takes the place of a recorded one.


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
