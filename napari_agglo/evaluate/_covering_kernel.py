"""Kernels of the curve: the covering after each merge.

Strategy: a merge of a and b changes the overlap (intersection over union, IoU) of the new segment
with every gold segment that it meets. It can rise only where both met that gold segment, and falls
where the segment grew without gaining. So:

- Each gold segment keeps its overlaps in a heap whose keys are never too low. A key is raised at
  once, when two overlaps join; that others have fallen shows when they come to the top.
- Each segment keeps a list of the gold segments whose best overlap it is: after a merge only those
  of a and b are looked at, and those where an overlap rose above the best.
- A gold segment that lies wholly in one segment stays so. It overlaps nothing else, its IoU is the
  ratio of the sizes, and a segment of size n adds (sum of squared sizes of these) / n.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_agglo._jit import kernel
from napari_agglo.evaluate._covering_lists import link, rise, root, sink, unlink
from napari_agglo.evaluate._path_kernel import rounding


@kernel
def own_kernel(
    rows: NDArray[np.int64],
    counts: NDArray[np.int64],
    gold_sizes: NDArray[np.int64],
    heap: NDArray[np.int64],
    first: NDArray[np.int64],
    head: NDArray[np.int64],
    after: NDArray[np.int64],
    before: NDArray[np.int64],
    owner: NDArray[np.int64],
    inside: NDArray[np.float64],
) -> None:
    """Give each gold segment to the superpixel that it overlaps best. Nothing is checked."""
    for gold in range(gold_sizes.size):
        if first[gold] == first[gold + 1]:
            continue
        entry = heap[first[gold]]
        if counts[entry] == gold_sizes[gold]:
            inside[rows[entry]] += float(gold_sizes[gold]) ** 2
        else:
            link(gold, rows[entry], head, after, before, owner)


@kernel
def covering_kernel(
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    counts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    gold_sizes: NDArray[np.int64],
    winners: NDArray[np.int64],
    losers: NDArray[np.int64],
    start: int,
    budget: int,
    kept: NDArray[np.int64],
    gone: NDArray[np.int64],
    met: NDArray[np.int64],
    parent: NDArray[np.int64],
    keys: NDArray[np.float64],
    heap: NDArray[np.int64],
    first: NDArray[np.int64],
    place: NDArray[np.int64],
    head: NDArray[np.int64],
    after: NDArray[np.int64],
    before: NDArray[np.int64],
    owner: NDArray[np.int64],
    worth: NDArray[np.float64],
    inside: NDArray[np.float64],
    best: NDArray[np.float64],
    sums: NDArray[np.float64],
    total: int,
    covering: NDArray[np.float64],
) -> int:
    """Walk the merges from `start` on, write the covering after each; return where it stopped.

    It stops once about `budget` gold segments have been looked at. ``worth[j]`` is what gold
    segment j adds to the sum, `inside` the sum of squares of those that lie wholly in a segment,
    `best` the largest IoU so far. Nothing is checked.
    """
    covered, rest = sums[0], sums[1]
    step = start
    while step < winners.size and budget > 0:
        segment, loser = winners[step], losers[step]
        change = 0.0
        if inside[segment] > 0:
            change -= inside[segment] / sizes[segment]
        if inside[loser] > 0:
            change -= inside[loser] / sizes[loser]
        parent[loser] = segment
        sizes[segment] += sizes[loser]
        inside[segment] += inside[loser]
        # To be looked at: what both owned, as one list hanging from `pending`.
        pending = head[segment]
        if pending < 0:
            pending = head[loser]
        elif head[loser] >= 0:
            tail = head[loser]
            while after[tail] >= 0:
                tail = after[tail]
            after[tail] = pending
            pending = head[loser]
        head[segment] = -1
        head[loser] = -1
        for join in range(met[step], met[step + 1]):
            entry = kept[join]
            gold = columns[entry]
            counts[entry] += counts[gone[join]]
            counts[gone[join]] = 0
            union = sizes[segment] + gold_sizes[gold] - counts[entry]
            value = counts[entry] / union
            best[gold] = max(best[gold], value)
            if value > keys[entry]:
                keys[entry] = value
                rise(place[entry], first[gold], keys, heap, place)
            stranger = owner[gold] != segment and owner[gold] != loser
            if stranger and value * gold_sizes[gold] > worth[gold]:
                unlink(gold, head, after, before, owner)
                after[gold] = pending
                pending = gold
        budget -= met[step + 1] - met[step] + 1
        while pending >= 0:
            gold = pending
            pending = after[gold]
            budget -= 1
            low, high = first[gold], first[gold + 1]
            entry = heap[low]
            holder = root(rows[entry], parent)
            while True:
                value = -1.0
                if counts[entry] > 0:
                    union = sizes[holder] + gold_sizes[gold] - counts[entry]
                    value = counts[entry] / union
                if value >= keys[entry]:
                    break
                keys[entry] = value
                sink(low, high, keys, heap, place)
                entry = heap[low]
                holder = root(rows[entry], parent)
            change -= worth[gold]
            if counts[entry] == gold_sizes[gold]:
                inside[holder] += float(gold_sizes[gold]) ** 2
                owner[gold] = -1
                worth[gold] = 0.0
            else:
                worth[gold] = value * gold_sizes[gold]
                change += worth[gold]
                link(gold, holder, head, after, before, owner)
        if inside[segment] > 0:
            change += inside[segment] / sizes[segment]
        rest += rounding(covered, change)
        covered += change
        covering[step + 1] = (covered + rest) / total
        step += 1
    sums[0], sums[1] = covered, rest
    return step
