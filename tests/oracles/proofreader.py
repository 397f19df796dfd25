"""Someone who edits at random what is on the screen, and notes what must have become of it."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from napari_agglo.graph import divide
from napari_agglo.session._actions import Cut, Lock, Merge, Unlock, as_ids

SCALES = st.sampled_from([0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875])


def connected_parts(draw, neighbours, segment):
    """Divide a connected segment into two or more connected parts, at random."""
    members = sorted(segment)
    n_parts = draw(st.integers(2, min(3, len(members))))
    seeds = draw(st.permutations(members))[:n_parts]
    owner = {seed: k for k, seed in enumerate(seeds)}
    while True:
        border = sorted(
            (s, t) for s in owner for t in neighbours[s] if t in segment and t not in owner
        )
        if not border:
            break
        s, t = draw(st.sampled_from(border))
        owner[t] = owner[s]
    # What a forced merge joined without touching goes with the first part.
    return [frozenset(s for s in members if owner.get(s, 0) == k) for k in range(n_parts)]


def draw_edit(draw, neighbours, partition, locks, scale):
    """Draw an edit of what is seen; return it with the partition that must come of it, or None."""
    free = sorted((r for r in partition if r not in locks), key=min)
    kinds = ["lock"] if free else []
    pairs = [
        (u, v) for u in free for v in free if min(u) < min(v) and any(neighbours[s] & v for s in u)
    ]
    far = [(u, v) for u in free for v in free if min(u) < min(v) and (u, v) not in pairs]
    large = [r for r in free if len(r) > 1]
    kinds = (
        ["merge"] * 3 * bool(pairs)
        + ["far"] * bool(far)
        + ["cut"] * 4 * bool(large)
        + ["lock"] * bool(free)
        + ["unlock"] * bool(locks)
    )
    if not kinds:
        return None
    kind = draw(st.sampled_from(kinds))
    if kind in ("merge", "far"):
        u, v = draw(st.sampled_from(pairs if kind == "merge" else far))
        joined = [u, v]
        others = [region for region in free if region not in joined]
        if others and draw(st.booleans()):  # one edit that joins three
            joined.append(draw(st.sampled_from(others)))
        first, *rest = (draw(st.sampled_from(sorted(region))) for region in joined)
        edit = Merge(scale, tuple((first, anchor) for anchor in rest))
        return edit, partition - {*joined} | {frozenset().union(*joined)}
    if kind == "cut":
        segment = draw(st.sampled_from(large))
        parts = connected_parts(draw, neighbours, segment)
        edit = Cut(scale, tuple(as_ids(part) for part in parts))
        return edit, partition - {segment} | set(parts)
    if kind == "lock":
        segment = draw(st.sampled_from(free))
        return Lock(scale, as_ids(segment)), partition
    lock = draw(st.sampled_from(sorted(locks, key=min)))
    return Unlock(scale, min(lock)), partition


def draw_cut_through(draw, graph, partition, locks, scale):
    """Draw a cut of a segment through some of its superpixels.

    Returns the cut, the partition that must come of it, and the divisions; or None.
    """
    pixels = graph.sizes
    free = [region for region in partition if region not in locks]
    segments = sorted((r for r in free if any(pixels[s] > 1 for s in r)), key=min)
    if not segments or graph.n_regions > 16:  # the run from scratch is slow
        return None
    segment = draw(st.sampled_from(segments))
    large = st.sampled_from(sorted(s for s in segment if pixels[s] > 1))
    divisions, owner = [], {}
    for superpixel in draw(st.lists(large, min_size=1, max_size=2, unique=True)):
        divisions.append(_draw_division(draw, graph, superpixel))
        owner |= {int(s): k % 2 for k, s in enumerate(divisions[-1].members)}
        graph = divisions[-1].apply(graph)
    owner |= {s: draw(st.integers(0, 1)) for s in sorted(segment - owner.keys())}
    parts = [frozenset(s for s, k in owner.items() if k == part) for part in (0, 1)]
    cut = Cut(scale, tuple(as_ids(part) for part in parts))
    return cut, partition - {segment} | set(parts), divisions


def _draw_division(draw, graph, superpixel):
    box = tuple(slice(*ends) for ends in graph.boxes[superpixel].T)
    pieces = np.where(graph.superpixels.image[box] == superpixel, 1, 0)
    inside = np.flatnonzero(pieces)
    n = draw(st.integers(2, min(3, len(inside))))
    numbers = [*range(1, n + 1)]
    numbers += [draw(st.integers(1, n)) for _ in range(len(inside) - n)]
    pieces.reshape(-1)[inside] = numbers
    return divide(graph, superpixel, pieces)
