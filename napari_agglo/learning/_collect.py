"""One epoch of collecting examples: agglomerate by a policy, and ask the gold standard each time.

``strict`` (agglo): what the gold calls wrong is noted but not done, until nothing is left that
should be merged; so every region stays within one gold segment. ``loose`` (lash): every merge is
done, and what it does to the Rand index is noted.

A good policy suggests hardly anything wrong before all that is right has been done. Then merges are
noted at every scale, but boundaries to keep only among superpixels and among whole objects, and the
forest takes a middling size for a reason to merge. So ``strict`` may also note *near misses*: of
the boundaries of a region just made that must stay, the one the policy came closest to merging.

The kernels return to Python when their room for examples is full and when they have asked the
policy about very many boundaries, so that progress is seen and a cancel is noticed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from napari_agglo._numba import inlined, kernel
from napari_agglo.agglomeration import enter_edges, merge_pair, remove_edge
from napari_agglo.features import assemble
from napari_agglo.policy import owner_of

# Boundaries to ask a policy about between two looks at the world: a twentieth of a second or so.
_ASKED = 20_000
# Examples that one turn of a loop may note.
AT_ONCE = 2
# Places in `tally`.
EXAMPLES, MERGES, LEFT = 0, 1, 2


@inlined
def _label(u: Any, v: Any, assigned: Any) -> Any:
    """Sign of the sum of what each gold standard says of a pair: -1 merge, +1 not, 0 don't know."""
    total = 0
    for gold in range(assigned.shape[0]):
        a = assigned[gold, u]
        b = assigned[gold, v]
        if a > 0 and b > 0:
            total += -1 if a == b else 1
    return min(max(total, -1), 1)


@inlined
def _note(
    edge: Any, said: Any, out_rows: Any, out_labels: Any, out_owners: Any, tally: Any,
    ends: Any, ids: Any, group: Any,
    regions: Any, boxes: Any, boundaries: Any, layout: Any, quantiles: Any, scale: Any,
    node_block: Any, edge_block: Any, entropy: Any, axis: Any,
) -> None:  # fmt: skip
    """Note the features of a boundary and what the gold standard says of it."""
    u = np.int64(ends[edge, 0])
    v = np.int64(ends[edge, 1])
    at = tally[EXAMPLES]
    assemble(
        edge, u, v, ids[u], ids[v], out_rows, at, regions, boxes, boundaries, layout, quantiles,
        scale, node_block, edge_block, entropy, axis,
    )  # fmt: skip
    out_labels[at] = said
    out_owners[at] = owner_of(group[u], group[v])
    tally[EXAMPLES] = at + 1


@kernel
def collect_strict(
    ends: Any, links: Any, lists: Any, table: Any, filled: Any, kept: Any, absorbed: Any,
    priority: Any, ties: Any, heap: Any, place: Any, size: Any, touched: Any,
    kind: Any, parameter: Any, roots: Any, nodes: Any, thresholds: Any, values: Any, weights: Any,
    in_bag: Any, group: Any, rows: Any, owners: Any, which: Any, counts: Any, scores: Any,
    regions: Any, boxes: Any, boundaries: Any, layout: Any, quantiles: Any, scale: Any,
    node_block: Any, edge_block: Any, entropy: Any, axis: Any,
    ids: Any, assigned: Any, labels: Any, near_misses: Any, out_rows: Any, out_labels: Any,
    out_owners: Any, tally: Any,
) -> Any:  # fmt: skip
    """Go on with an epoch of agglo; return whether it is over. No bounds checking.

    `assigned` is the gold segment of each node, by gold standard; `labels` what that says of each
    edge; `tally` the numbers of examples (in this room), of merges, and of edges labelled -1.
    Boundaries of which the gold standard knows nothing are not queued.
    """
    asked = 0
    room = out_labels.size
    while tally[LEFT] > 0:
        if tally[EXAMPLES] + AT_ONCE > room or asked > _ASKED:
            return False
        edge = np.int64(heap[0])
        remove_edge(edge, priority, ties, heap, place, size)
        _note(
            edge, labels[edge], out_rows, out_labels, out_owners, tally, ends, ids, group,
            regions, boxes, boundaries, layout, quantiles, scale,
            node_block, edge_block, entropy, axis,
        )  # fmt: skip
        if labels[edge] > 0:
            continue
        winner = min(ids[ends[edge, 0]], ids[ends[edge, 1]])
        survivor, gone, n_parallel, n = merge_pair(
            edge, winner, touched, ends, links, lists, table, filled, kept, absorbed,
            priority, ties, heap, place, size, ids,
            regions, boxes, boundaries, layout, quantiles, scale,
            node_block, edge_block, entropy, axis,
        )  # fmt: skip
        tally[MERGES] += 1
        tally[LEFT] -= 1
        for k in range(n_parallel):
            tally[LEFT] -= labels[absorbed[k]] < 0
        for gold in range(assigned.shape[0]):
            if assigned[gold, survivor] != assigned[gold, gone]:
                assigned[gold, survivor] = 0
        known = 0
        for k in range(n):
            other = touched[k]
            said = _label(np.int64(ends[other, 0]), np.int64(ends[other, 1]), assigned)
            tally[LEFT] += np.int64(said < 0) - np.int64(labels[other] < 0)
            labels[other] = said
            touched[known] = other
            known += said != 0
            if said == 0:
                remove_edge(other, priority, ties, heap, place, size)
        asked += known
        enter_edges(
            touched, known, priority, ties, heap, place, size, ends, ids,
            kind, parameter, roots, nodes, thresholds, values, weights,
            in_bag, group, rows, owners, which, counts, scores,
            regions, boxes, boundaries, layout, quantiles, scale,
            node_block, edge_block, entropy, axis,
        )  # fmt: skip
        nearest = np.int64(-1)
        for k in range(known if near_misses else 0):
            other = np.int64(touched[k])
            if labels[other] > 0 and (nearest < 0 or priority[other] < priority[nearest]):
                nearest = other
        if nearest >= 0:
            _note(
                nearest, 1, out_rows, out_labels, out_owners, tally, ends, ids, group,
                regions, boxes, boundaries, layout, quantiles, scale,
                node_block, edge_block, entropy, axis,
            )  # fmt: skip
    # What is left should not be merged; what waits in the queue has not been noted as it is now.
    while size[0] > 0:
        if tally[EXAMPLES] + AT_ONCE > room:
            return False
        edge = np.int64(heap[size[0] - 1])
        remove_edge(edge, priority, ties, heap, place, size)
        _note(
            edge, labels[edge], out_rows, out_labels, out_owners, tally, ends, ids, group,
            regions, boxes, boundaries, layout, quantiles, scale,
            node_block, edge_block, entropy, axis,
        )  # fmt: skip
    return True


@inlined
def rand_gain(u: Any, v: Any, cell_head: Any, cell_next: Any, cell_key: Any, cell_count: Any,
              gold_of: Any, sums: Any) -> Any:  # fmt: skip
    """Sign, summed over gold standards, of what merging two regions does to the Rand index.

    Pairs of pixels, one in each, come together: those of one gold segment rightly. `sums` is a
    buffer, (golds, 3).
    """
    sums[:] = 0.0
    a = cell_head[u]
    b = cell_head[v]
    while a >= 0 or b >= 0:
        if b < 0 or (a >= 0 and cell_key[a] < cell_key[b]):
            sums[gold_of[cell_key[a]], 0] += cell_count[a]
            a = cell_next[a]
        elif a < 0 or cell_key[b] < cell_key[a]:
            sums[gold_of[cell_key[b]], 1] += cell_count[b]
            b = cell_next[b]
        else:
            gold = gold_of[cell_key[a]]
            sums[gold, 0] += cell_count[a]
            sums[gold, 1] += cell_count[b]
            sums[gold, 2] += float(cell_count[a]) * float(cell_count[b])
            a = cell_next[a]
            b = cell_next[b]
    total: Any = 0
    for gold in range(sums.shape[0]):
        gain = 2.0 * sums[gold, 2] - sums[gold, 0] * sums[gold, 1]
        total += np.int64(gain > 0) - np.int64(gain < 0)
    return total


@inlined
def merge_cells(into: Any, other: Any, cell_head: Any, cell_next: Any, cell_key: Any,
                cell_count: Any) -> None:  # fmt: skip
    """Merge two sorted lists of overlaps into one."""
    a = cell_head[into]
    b = cell_head[other]
    last = -1
    while a >= 0 and b >= 0:
        if cell_key[a] == cell_key[b]:
            cell_count[a] += cell_count[b]
            b = cell_next[b]
            continue
        if cell_key[a] < cell_key[b]:
            chosen = a
            a = cell_next[a]
        else:
            chosen = b
            b = cell_next[b]
        if last < 0:
            cell_head[into] = chosen
        else:
            cell_next[last] = chosen
        last = chosen
    rest = a if a >= 0 else b
    if last < 0:
        cell_head[into] = rest
    else:
        cell_next[last] = rest
    cell_head[other] = -1


@kernel
def collect_loose(
    ends: Any, links: Any, lists: Any, table: Any, filled: Any, kept: Any, absorbed: Any,
    priority: Any, ties: Any, heap: Any, place: Any, size: Any, touched: Any,
    kind: Any, parameter: Any, roots: Any, nodes: Any, thresholds: Any, values: Any, weights: Any,
    in_bag: Any, group: Any, rows: Any, owners: Any, which: Any, counts: Any, scores: Any,
    regions: Any, boxes: Any, boundaries: Any, layout: Any, quantiles: Any, scale: Any,
    node_block: Any, edge_block: Any, entropy: Any, axis: Any,
    ids: Any, cell_head: Any, cell_next: Any, cell_key: Any, cell_count: Any, gold_of: Any,
    sums: Any, out_rows: Any, out_labels: Any, out_owners: Any, tally: Any,
) -> Any:  # fmt: skip
    """Go on with an epoch of lash; return whether it is over. No bounds checking.

    The cells are the overlaps of each node with each gold segment, sorted linked lists.
    """
    asked = 0
    room = out_labels.size
    while size[0] > 0:
        if tally[EXAMPLES] + AT_ONCE > room or asked > _ASKED:
            return False
        edge = np.int64(heap[0])
        remove_edge(edge, priority, ties, heap, place, size)
        u = np.int64(ends[edge, 0])
        v = np.int64(ends[edge, 1])
        gain = rand_gain(u, v, cell_head, cell_next, cell_key, cell_count, gold_of, sums)
        if gain != 0:
            _note(
                edge, -1 if gain > 0 else 1, out_rows, out_labels, out_owners, tally, ends, ids,
                group, regions, boxes, boundaries, layout, quantiles, scale,
                node_block, edge_block, entropy, axis,
            )  # fmt: skip
        winner = min(ids[u], ids[v])
        survivor, gone, _, n = merge_pair(
            edge, winner, touched, ends, links, lists, table, filled, kept, absorbed,
            priority, ties, heap, place, size, ids,
            regions, boxes, boundaries, layout, quantiles, scale,
            node_block, edge_block, entropy, axis,
        )  # fmt: skip
        merge_cells(survivor, gone, cell_head, cell_next, cell_key, cell_count)
        tally[MERGES] += 1
        asked += n
        enter_edges(
            touched, n, priority, ties, heap, place, size, ends, ids,
            kind, parameter, roots, nodes, thresholds, values, weights,
            in_bag, group, rows, owners, which, counts, scores,
            regions, boxes, boundaries, layout, quantiles, scale,
            node_block, edge_block, entropy, axis,
        )  # fmt: skip
    return True
