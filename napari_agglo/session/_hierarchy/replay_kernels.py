"""Kernels of the replay: heap, slots and the graph of boundaries.

The superpixels of a replay are its *leaves*, numbered from 0 on in ascending order. (In `merge_log`
a leaf is the row of a superpixel, in `forest_cells` the end of a tree of the forest.) A region is a
*slot*, which has the number of a leaf: at the start, that of its smallest superpixel. After a merge
the union has one of the two slots, which is the root of the other in `joined`.

Boundaries of regions are *edges* of a graph that contracts. A boundary between two superpixels
enters the graph when it is first needed, as part of the edge between their slots. A leaf is *open*
when all its boundaries are in the graph, and *closed* before. So the boundary of two closed leaves
is not in the graph.

A slot is *pending* when it has become clean or dirty, or has merged. `offer` then decides which of
its boundaries enter the heap, and lists them as *wanted*; Python asks the policy about these, and
`advance` enters them in the heap.

Lists are chains through arrays: leaves of a slot through `next` and `next_closed` of `leaves`, and
boundaries of superpixels that make up an edge through `chain`, whose rows are a boundary of the
graph and the place of the next one, -1 at the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from napari_agglo._numba import inlined, kernel, subroutine
from napari_agglo._numba.hash_tables import find_entry, find_or_enter
from napari_agglo._numba.heaps import heap_settle
from napari_agglo._numba.union_find import find_root
from napari_agglo.agglomeration import attach
from napari_agglo.agglomeration._adjacency import (
    DEGREE,
    HEAD,
    NEXT,
    contract_arrays,
    fill_table,
)
from napari_agglo.agglomeration._merge_order import tie_of
from napari_agglo.session._hierarchy.fences import N_CUTS, apart_until, merge_fence_sets
from napari_agglo.session._hierarchy.replay_arrays import (
    DIVERGED,
    IS_ACTIVE,
    JOIN_EDIT,
    JOIN_U,
    JOIN_V,
    JOINED,
    N_DONE,
    N_EDGES,
    N_GONE,
    N_LINKS,
    N_MADE,
    N_PENDING,
    N_WANTED,
    OFFER,
    PAUSED,
    STOPPED,
    TOP,
    Cuts,
    Dirty,
    KeyQueue,
    Limits,
    Run,
    Work,
)


@inlined
def _place_of(hash_a: Any, hash_b: Any, dirty: Dirty) -> Any:
    """Return the place of a region in the table of `_toggle`, or the empty place for it."""
    hashes, _, marks = dirty
    mask = marks.size - 1
    at = hash_a & mask
    while marks[at] != 0 and (hashes[at, 0] != hash_a or hashes[at, 1] != hash_b):
        at = (at + 1) & mask
    return at


@subroutine
def _toggle(hash_a: Any, hash_b: Any, node: Any, dirty: Dirty) -> None:
    """Note that one of the two runs has got a region, or has it no more.

    `dirty` is a table of regions with 3 where one run has it and the other has not, 2 where both or
    neither, and 0 in empty places.
    """
    hashes, nodes, marks = dirty
    at = _place_of(hash_a, hash_b, dirty)
    if marks[at] == 0:
        hashes[at, 0] = hash_a
        hashes[at, 1] = hash_b
        marks[at] = 2
    marks[at] ^= 1
    nodes[at] = node


@subroutine
def _is_dirty(slot: Any, slots: Any, dirty: Dirty) -> Any:
    """Tell whether only one of the two runs has the region of a slot."""
    _, _, marks = dirty
    return marks[_place_of(slots[slot]["hash_a"], slots[slot]["hash_b"], dirty)] == 3


@kernel
def toggle_rows(nodes: Any, rows: Any, dirty: Dirty) -> None:
    """Do `_toggle` for rows of the log. No bounds checking."""
    for k in range(nodes.size):
        row = np.int64(nodes[k])
        _toggle(rows[row]["hash_a"], rows[row]["hash_b"], row, dirty)


@inlined
def _comes_before(item: Any, other: Any, keys: Any, ties: Any) -> Any:
    """Tell whether an item of the queue has a smaller key than another one."""
    if keys[item, 0] != keys[other, 0]:
        return keys[item, 0] < keys[other, 0]
    if keys[item, 1] != keys[other, 1]:
        return keys[item, 1] < keys[other, 1]
    if ties[item] != ties[other]:
        return ties[item] < ties[other]
    return item > other  # a recorded merge precedes its own boundary


@subroutine
def _put(item: Any, level: Any, priority: Any, tie: Any, queue: KeyQueue) -> None:
    """Insert an item that is not in the queue."""
    keys, ties, heap, place, size = queue
    keys[item, 0] = level
    keys[item, 1] = priority
    ties[item] = tie
    size[0] += 1
    heap_settle(item, size[0] - 1, _comes_before, keys, ties, heap, place, size[0])


@subroutine
def _remove(item: Any, queue: KeyQueue) -> None:
    """Remove an item from the queue, if it is there."""
    keys, ties, heap, place, size = queue
    at = np.int64(place[item])
    if at >= 0:
        place[item] = -1
        size[0] -= 1
        if at < size[0]:
            last = np.int64(heap[size[0]])
            heap_settle(last, at, _comes_before, keys, ties, heap, place, size[0])


@inlined
def _want(edge: Any, edges: Any, wanted: Any, state: Any) -> None:
    """List an edge that is to enter the heap, once."""
    if edges[edge]["wanted"] == 0:
        edges[edge]["wanted"] = 1
        wanted[state[N_WANTED]] = edge
        state[N_WANTED] += 1


@subroutine
def _slot_of_row(node: Any, rows: Any, work: Work) -> Any:
    """Return the slot whose region equals that of a row and is not locked, or -1."""
    joined, slots, slot_of, _ = work
    slot = np.int64(slot_of[rows[node]["low"]])
    if slot >= 0:
        slot = np.int64(find_root(slot, joined))
        same = slots[slot]["hash_a"] == rows[node]["hash_a"]
        if not same or slots[slot]["hash_b"] != rows[node]["hash_b"] or slots[slot]["locked"] != 0:
            slot = np.int64(-1)
    return slot


@kernel
def start_slots(
    members: Any, nodes: Any, parts: Any, locks: Any, leaves: Any, rows: Any, work: Work
) -> None:
    """Put ``members[k]`` into the slot of row ``nodes[k]``. No bounds checking.

    Members ascend, so that the first of a region is its smallest, which is its slot.
    """
    joined, slots, slot_of, _ = work
    for k in range(members.size):
        slot_of[members[k]] = k
    for k in range(members.size):
        node = nodes[k]
        root = np.int64(slot_of[rows[node]["low"]])
        joined[k] = root
        leaves[k]["superpixel"] = members[k]
        leaves[k]["next"] = -1
        leaves[k]["next_closed"] = -1
        leaves[k]["home"] = -1
        if root == k:
            slots[k]["node"] = node
            slots[k]["low"] = members[k]
            slots[k]["part"] = parts[k]
            slots[k]["locked"] = locks[members[k]]
            slots[k]["fence_set"] = k
            slots[k]["first"] = k
            slots[k]["unsummed"] = k
            slots[k]["closed"] = k
            slots[k]["size"] = rows[node]["size"]
            slots[k]["level"] = rows[node]["birth"]
            if rows[node]["edit"] >= 0:
                slots[k]["level"] = np.nextafter(rows[node]["birth"], np.inf)
            slots[k]["hash_a"] = rows[node]["hash_a"]
            slots[k]["hash_b"] = rows[node]["hash_b"]
        else:
            leaves[slots[root]["last"]]["next"] = k
            leaves[slots[root]["last"]]["next_closed"] = k
        slots[root]["last"] = k
        slots[root]["last_closed"] = k


@inlined
def _wait_for_record(k: Any, n_edges: Any, stream: Any, rows: Any, queue: KeyQueue) -> None:
    """Enter a recorded merge in the heap, whose two regions the record has made; edits last."""
    row = np.int64(stream[k]["row"])
    edit = np.int64(rows[row]["edit"])
    if edit >= 0:
        _put(n_edges + k, rows[row]["birth"], np.inf, edit << 32 | k, queue)
    else:
        a = rows[rows[row]["first"]]["low"]
        b = rows[rows[row]["second"]]["low"]
        _put(n_edges + k, rows[row]["birth"], rows[row]["priority"], tie_of(a, b), queue)


@kernel
def start_stream(n_edges: Any, stream: Any, rows: Any, queue: KeyQueue) -> None:
    """Enter the first recorded merges in the heap. No bounds checking."""
    for k in range(stream.size):
        if stream[k]["waiting"] == 0:
            _wait_for_record(np.int64(k), n_edges, stream, rows, queue)


@kernel
def advance(limits: Limits, n_rows: Any, run: Run) -> Any:
    """Do merges until something else is needed, and return the reason.

    STOPPED: the next key is not below that of `limits`. OFFER: boundaries of `pending` slots must
    enter the heap. PAUSED: as many merges as allowed are done. DIVERGED: while all of the record
    is believed, a merge comes that crosses parts. JOINED: the merge in `state` is done.

    The log has `n_rows` rows without those made. By a steady policy, as the mean, the priority of a
    boundary depends on its own faces alone, and the boundary keeps its place in the heap when one
    of its regions merges elsewhere. So a merge of a region with very many neighbours, a hub, need
    not go through all of them. No bounds checking.
    """
    target, stop, stop_tie, holds, believes, steady, most = limits
    state, rows, stream, work, graph, edges, chain, queue, dirty, cuts, results = run
    joined, slots, _, leaves = work
    ends, links, lists, table, filled, kept, absorbed = graph
    keys, ties, heap, _, size = queue
    made, done, gone, pending, wanted = results
    fence_sets, entries, places, tops, used, scales = cuts
    n_edges = np.int64(edges.size)
    for k in range(state[N_WANTED]):
        edge = np.int64(wanted[k])
        priority = edges[edge]["priority"]
        level = max(priority, edges[edge]["floor"])
        tie = tie_of(slots[ends[edge, 0]]["low"], slots[ends[edge, 1]]["low"])
        if level <= target:
            _put(edge, level, priority, tie, queue)
    state[N_WANTED] = 0
    steps = 0
    while True:
        row = np.int64(-1)
        edit = np.int64(state[JOIN_EDIT])
        level = stop
        priority = np.nan
        if edit >= 0:
            u = state[JOIN_U]
            v = state[JOIN_V]
        else:
            if state[N_PENDING] > 0 and not holds:
                return OFFER
            if size[0] == 0:
                return STOPPED
            item = np.int64(heap[0])
            level = keys[item, 0]
            priority = keys[item, 1]
            if level > stop or (level == stop and priority == np.inf and ties[item] >= stop_tie):
                return STOPPED
            if steps == most:
                return PAUSED
            steps += 1
            at = item - n_edges  # in the stream
            if at >= 0 and believes and stream[at]["crosses"] != 0:
                state[TOP] = item
                return DIVERGED
            _remove(item, queue)
            if at < 0:
                u = np.int64(ends[item, 0])
                v = np.int64(ends[item, 1])
                # The record has the boundaries of clean regions, and here some may be incomplete.
                if not (_is_dirty(u, slots, dirty) or _is_dirty(v, slots, dirty)):
                    continue
            else:
                row = np.int64(stream[at]["row"])
                above = np.int64(stream[at]["above"])
                if above >= 0:
                    stream[above]["waiting"] -= 1
                    if stream[above]["waiting"] == 0:
                        _wait_for_record(above, n_edges, stream, rows, queue)
                first = np.int64(rows[row]["first"])
                second = np.int64(rows[row]["second"])
                u = _slot_of_row(first, rows, work)
                v = _slot_of_row(second, rows, work)
                there = u >= 0 and v >= 0 and slots[u]["part"] == slots[v]["part"]
                # In a look, a cut that is newer than the record may keep the two apart. All cuts
                # are tried: an older one did not prevent the merge, and does not now.
                if there and rows[row]["edit"] < 0:
                    fence_set = np.int64(slots[u]["fence_set"])
                    less = np.int64(slots[v]["fence_set"])
                    none = np.int64(0)  # whatever the sizes, does any cut part them for ever?
                    there = np.inf > apart_until(
                        fence_set, less, none, none, np.inf, none - 1,
                        scales, fence_sets, entries, places, tops,
                    )  # fmt: skip
                if not there or (rows[row]["edit"] >= 0 and not believes):
                    gone[state[N_GONE]] = row
                    state[N_GONE] += 1
                    for node in (first, second, row):
                        _toggle(rows[node]["hash_a"], rows[node]["hash_b"], node, dirty)
                    for slot in (u, v):
                        if slot >= 0:
                            pending[state[N_PENDING]] = slot
                            state[N_PENDING] += 1
                    continue
        # Unite two slots.
        by_edit = edit >= 0 or (row >= 0 and rows[row]["edit"] >= 0)
        node_u = np.int64(slots[u]["node"])
        node_v = np.int64(slots[v]["node"])
        hash_a = slots[u]["hash_a"] ^ slots[v]["hash_a"]
        hash_b = slots[u]["hash_b"] ^ slots[v]["hash_b"]
        if row >= 0:
            node = row
            at = np.int64(state[N_DONE])
            if (
                node_u != rows[row]["first"]
                or node_v != rows[row]["second"]
                or rows[node_u]["parent"] != row
                or rows[node_v]["parent"] != row
            ):
                done[at, 0] = row
                done[at, 1] = node_u
                done[at, 2] = node_v
                state[N_DONE] += 1
        else:
            swaps = (slots[v]["size"], slots[u]["low"]) > (slots[u]["size"], slots[v]["low"])
            if swaps and not (edit >= 0 and state[IS_ACTIVE] != 0):
                node_u, node_v = node_v, node_u
            k = state[N_MADE]
            node = n_rows + k
            state[N_MADE] += 1
            made[k]["parent"] = -1
            made[k]["first"] = node_u
            made[k]["second"] = node_v
            made[k]["low"] = min(slots[u]["low"], slots[v]["low"])
            made[k]["edit"] = edit
            made[k]["live"] = 1
            made[k]["size"] = slots[u]["size"] + slots[v]["size"]
            made[k]["birth"] = level
            made[k]["priority"] = priority
            made[k]["hash_a"] = hash_a
            made[k]["hash_b"] = hash_b
            done[state[N_DONE], 0] = node
            done[state[N_DONE], 1] = node_u
            done[state[N_DONE], 2] = node_v
            state[N_DONE] += 1
            for slot in (u, v):
                known = np.int64(slots[slot]["node"])
                _toggle(slots[slot]["hash_a"], slots[slot]["hash_b"], known, dirty)
            _toggle(hash_a, hash_b, node, dirty)
        into = u
        other = v
        n = 0
        n_moved = 0
        if lists[u, HEAD] >= 0 or lists[v, HEAD] >= 0:
            used_ends = ends[: state[N_EDGES]]
            edge = find_entry(u, v, True, used_ends, table)
            if edge < 0:
                edge = np.int64(0)  # is reserved for this
                attach(edge, u, v, graph)
            _remove(edge, queue)
            degree_u = lists[u, DEGREE]
            degree_v = lists[v, DEGREE]
            into, other, n = contract_arrays(
                edge, used_ends, links, lists, table, filled, kept, absorbed
            )
            n_moved = lists[into, DEGREE] + 1 - (degree_u if into == u else degree_v)
            for k in range(n):
                edge = np.int64(absorbed[k])
                _remove(edge, queue)
                chain[edges[kept[k]]["last"], 1] = edges[edge]["first"]
                edges[kept[k]]["last"] = edges[edge]["last"]
                edges[kept[k]]["known"] = 0
        fence_set = np.int64(slots[into]["fence_set"])
        less = np.int64(slots[other]["fence_set"])
        # Whether all boundaries of `into` need new keys: the level of an edit, the id of the region
        # or a cut changed them; or none of them is in the heap yet, as `into` was clean before this
        # merge. The merge has toggled its mark above: a region that counts as dirty here was clean.
        entirely = not steady or holds or by_edit or slots[other]["low"] < slots[into]["low"]
        entirely = entirely or fence_sets[less, N_CUTS] > 0 or tops[fence_set] >= level
        entirely = entirely or (row < 0 and _is_dirty(into, slots, dirty))
        # A dirty region needs all its boundaries in the heap, a clean one those with dirty regions.
        offers: Any = row < 0
        n_listed = np.int64(lists[into, DEGREE] if entirely else n_moved)  # these are the first
        half = np.int64(lists[into, HEAD])
        for k in range(n_listed if entirely else n_listed + n):
            if k < n_listed:
                edge = half >> 1
                half = np.int64(links[edge, half & 1, NEXT])
            else:
                edge = np.int64(kept[k - n_listed])
            _remove(edge, queue)
            if not steady:
                edges[edge]["known"] = 0
            if offers and entirely:
                continue
            slot = np.int64(ends[edge, 0]) + ends[edge, 1] - into
            if row < 0 or _is_dirty(slot, slots, dirty):
                offers = True
                if not entirely:
                    _want(edge, edges, wanted, state)
        if offers:
            pending[state[N_PENDING]] = into if entirely else -1 - into
            state[N_PENDING] += 1
        joined[other] = into
        leaves[slots[into]["last"]]["next"] = slots[other]["first"]
        slots[into]["last"] = slots[other]["last"]
        if slots[into]["unsummed"] < 0:
            slots[into]["unsummed"] = slots[other]["first"]
        if slots[into]["closed"] < 0:
            slots[into]["closed"] = slots[other]["closed"]
            slots[into]["last_closed"] = slots[other]["last_closed"]
        elif slots[other]["closed"] >= 0:
            leaves[slots[into]["last_closed"]]["next_closed"] = slots[other]["closed"]
            slots[into]["last_closed"] = slots[other]["last_closed"]
        slots[into]["node"] = node
        slots[into]["low"] = min(slots[into]["low"], slots[other]["low"])
        slots[into]["size"] += slots[other]["size"]
        slots[into]["hash_a"] = hash_a
        slots[into]["hash_b"] = hash_b
        slots[into]["level"] = level
        if by_edit:
            slots[into]["level"] = np.nextafter(level, np.inf)
        if fence_sets[fence_set, N_CUTS] < fence_sets[less, N_CUTS]:
            fence_set, less = less, fence_set
        if fence_sets[less, N_CUTS] > 0:
            merge_fence_sets(fence_set, less, fence_sets, entries, places, tops, used)
        slots[into]["fence_set"] = fence_set
        if edit >= 0:
            state[JOIN_EDIT] = -1
            return JOINED


@kernel
def offer(
    within: Any, newer_than: Any, scale: Any, inside: Any, run: Run, start: Any, stop: Any,
    adjacent: Any,
) -> None:  # fmt: skip
    """List the boundaries of `pending` slots that are to enter the heap in `wanted`.

    Of a dirty slot these are all boundaries, of a clean slot those with dirty slots. Boundaries of
    regions that a cut keeps apart for ever are left out. A pending slot may be given as -1 - slot:
    `advance` has then listed the boundaries in the graph that need it, and only boundaries of
    closed leaves are added, if the slot is dirty.

    With `within`, for an edit that makes a part whole at `scale`, they are the boundaries between
    slots that are `inside`, unless a cut that is newer than the edit keeps the two apart there. No
    bounds checking.
    """
    state, _, _, work, graph, edges, chain, queue, dirty, cuts, results = run
    joined, slots, slot_of, leaves = work
    ends, links, lists, table, filled, _, _ = graph
    place, pending, wanted = queue.place, results.pending, results.wanted
    fence_sets, entries, places, tops, _, scales = cuts
    for p in range(state[N_PENDING]):
        slot = np.int64(pending[p])
        entirely = slot >= 0
        slot = max(slot, -1 - slot)
        if joined[slot] != slot or slots[slot]["locked"] != 0:
            continue
        is_dirty = within or _is_dirty(slot, slots, dirty)
        leaf = np.int64(slots[slot]["closed"]) if is_dirty else np.int64(-1)
        while leaf >= 0:
            leaves[leaf]["is_open"] = 1
            superpixel = leaves[leaf]["superpixel"]
            for at in range(start[superpixel], stop[superpixel]):
                neighbour = np.int64(slot_of[adjacent[at, 0]])
                if neighbour < 0:
                    continue
                other = np.int64(find_root(neighbour, joined))
                if other == slot or leaves[neighbour]["is_open"] != 0:
                    continue
                if slots[other]["locked"] != 0 or slots[other]["part"] != slots[slot]["part"]:
                    continue
                if 4 * (filled[0] + 1) > 3 * table.size:
                    fill_table(ends[: state[N_EDGES]], table, filled)
                new = state[N_EDGES]
                used_ends = ends[: new + 1]
                edge = find_or_enter(new, slot, other, True, used_ends, table)
                link = state[N_LINKS]
                state[N_LINKS] += 1
                chain[link, 0] = adjacent[at, 1]
                chain[link, 1] = -1
                if edge < 0:
                    edge = new
                    state[N_EDGES] += 1
                    filled[0] += 1
                    attach(edge, slot, other, graph)
                    edges[edge]["first"] = link
                    edges[edge]["summed"] = -1
                else:
                    chain[edges[edge]["last"], 1] = link
                    _remove(edge, queue)
                    edges[edge]["known"] = 0
                edges[edge]["last"] = link
                if not within:
                    _want(edge, edges, wanted, state)
            leaf = np.int64(leaves[leaf]["next_closed"])
        if is_dirty:
            slots[slot]["closed"] = -1
        half = np.int64(lists[slot, HEAD]) if entirely else np.int64(-1)
        while half >= 0:
            edge = half >> 1
            side = half & 1
            half = np.int64(links[edge, side, NEXT])
            other = np.int64(ends[edge, 1 - side])
            if within:
                if side == 0 and inside[other] != 0:
                    _want(edge, edges, wanted, state)
            elif place[edge] < 0 and (is_dirty or _is_dirty(other, slots, dirty)):
                _want(edge, edges, wanted, state)
    n = state[N_WANTED]
    state[N_WANTED] = state[N_PENDING] = 0
    for k in range(n):
        edge = np.int64(wanted[k])
        edges[edge]["wanted"] = 0
        slot = np.int64(ends[edge, 0])
        other = np.int64(ends[edge, 1])
        level = scale if within else max(slots[slot]["level"], slots[other]["level"])
        end = apart_until(
            np.int64(slots[slot]["fence_set"]), np.int64(slots[other]["fence_set"]),
            slots[slot]["size"], slots[other]["size"],
            level, newer_than, scales, fence_sets, entries, places, tops,
        )  # fmt: skip
        if end > scale if within else end == np.inf:
            continue
        edges[edge]["floor"] = max(level, end)
        wanted[state[N_WANTED]] = edge
        state[N_WANTED] += 1


@kernel
def may_join(inside: Any, scale: Any, edit: Any, slots: Any, cuts: Cuts) -> Any:
    """Tell whether an edit may join slots at `scale`: no lock or newer cut keeps two apart."""
    fence_sets, entries, places, tops, _, scales = cuts
    for k in range(inside.size):
        u = inside[k]
        for other in range(k):
            v = inside[other]
            if slots[u]["locked"] != 0 or slots[v]["locked"] != 0:
                return False
            if slots[u]["part"] != slots[v]["part"]:
                return False
            end = apart_until(
                np.int64(slots[u]["fence_set"]), np.int64(slots[v]["fence_set"]),
                slots[u]["size"], slots[v]["size"],
                scale, edit, scales, fence_sets, entries, places, tops,
            )  # fmt: skip
            if end > scale:
                return False
    return True
