"""Cost of a repair: the policy scores dirty regions alone; a cancel costs nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from oracles.edits import adjacency, constraints, policy_score, tree_of_edits
from oracles.proofreader import SCALES, draw_edit
from oracles.repairs import POLICIES, as_scores, graphs, nodes_of, state_of

from napari_agglo import Cancelled, region_graph
from napari_agglo.policy import MeanPolicy
from napari_agglo.session._actions import Cut, Lock, Merge, Unlock
from napari_agglo.session._hierarchy import replay
from napari_agglo.session._hierarchy.hierarchy import Hierarchy


def lives(tree):
    """Return of each region of a tree how and when it came about, and how it ended.

    Within a plateau a merge comes when the largest key among it and those within it has come.
    """
    peaks = dict.fromkeys(tree.start, (-math.inf,))
    starts = dict.fromkeys(tree.start)
    ends = {}
    for merge in tree.merges:
        pair = frozenset((merge.first, merge.second))
        key = (merge.birth, merge.priority, min(merge.first), min(merge.second))
        if merge.edit is not None:
            key = (math.nextafter(merge.birth, math.inf),)
        peaks[merge.union] = max(key, peaks[merge.first], peaks[merge.second])
        starts[merge.union] = (pair, merge.birth, merge.priority, peaks[merge.union])
        ends[merge.first] = ends[merge.second] = pair
    return {region: (start, ends.get(region)) for region, start in starts.items()}


def dirty_contacts(before, after, neighbours, edits):
    """Count pairs of regions that live side by side in a run, one of them not as it was before."""
    was = lives(before)
    now = lives(after)
    dirty = {region for region in now if was.get(region) != now[region]}
    dirty |= set(constraints(edits[:-1])[1]) - set(constraints(edits)[1])  # unlocked
    parts = [part for _, _, parts in constraints(edits)[0] for part in parts]
    regions = set(after.start)
    found = set()
    for merge in [None, *after.merges]:
        if merge is not None:
            regions -= {merge.first, merge.second}
            regions.add(merge.union)
        for u in regions:
            for v in regions:
                # Where newer edits divide a part, the policy says in which order it is assembled.
                within = any(u & part and v & part for part in parts)
                touched = u in dirty or v in dirty or within
                if u != v and touched and any(neighbours[s] & v for s in u):
                    found.add(frozenset((u, v)))
    return len(found)


@examples(100)
@given(st.data(), graphs(), POLICIES)
def test_the_policy_is_asked_once_for_each_contact_of_a_dirty_region(data, graph, policy):
    policy, scores = as_scores(graph, *policy)
    score = policy_score(graph, scores)
    neighbours = adjacency(graph)
    tree = Hierarchy(graph, policy)
    before = tree_of_edits(neighbours, score)
    edits = []
    for _ in range(data.draw(st.integers(1, 4))):
        scale = data.draw(SCALES)
        seen = before.partition(scale)
        drawn = draw_edit(data.draw, neighbours, seen, constraints(edits)[1], scale)
        if drawn is None:
            return
        edits.append(drawn[0])
        after = tree_of_edits(neighbours, score, edits)
        asked = tree.n_scored
        tree.do(drawn[0])
        for look in sorted(data.draw(st.lists(SCALES, max_size=3))):
            tree.look(look)
        tree.look(math.inf)
        assert tree.n_scored - asked <= dirty_contacts(before, after, neighbours, edits)
        before = after


def grid(side):
    """Return a graph of side x side superpixels of one pixel, with few equal boundaries."""
    rng = np.random.default_rng(side)
    labels = np.arange(1, side * side + 1).reshape(side, side)
    return region_graph(labels, rng.random((side, side)))


def test_the_bound_is_worth_something():
    """An edit asks about less than a run from scratch asks before its first merge."""
    graph = grid(12)
    tree = Hierarchy(graph, MeanPolicy())
    scale = 0.2
    u, v = 1, 2
    assert tree.region(u, scale) != tree.region(v, scale), "test invalid"
    tree.do(Merge(scale, ((u, v),)))
    assert tree.n_scored == 0
    tree.look(math.inf)
    assert 0 < tree.n_scored < graph.n_boundaries


def changed(step):
    """Count what an edit has changed in the log."""
    return sum(map(len, step.changes)) + len(step.fresh)


@pytest.mark.parametrize("side", [8, 16, 32])
def test_rows_changed_by_an_edit_do_not_grow_with_the_image(side):
    tree = Hierarchy(grid(side), MeanPolicy())
    scale = 0.3
    regions = tree.regions(scale)
    u, v = next(
        (a, b) for a, b in tree.superpixels.graph.edges.tolist() if regions[a] != regions[b]
    )
    tree.do(Merge(scale, ((u, v),)))
    node = tree.region(u, scale)
    assert changed(tree.steps[-1]) <= 8
    tree.do(Cut(scale, tuple(map(tree.members, tree.children(node)))))
    assert changed(tree.steps[-1]) <= 8
    assert tree.n_scored == 0, "cutting into children asks nothing"
    tree.do(Lock(scale, tree.members(tree.region(u, scale))))
    tree.do(Unlock(scale, u))
    assert changed(tree.steps[-1]) <= 8


def cancel_after(allowed):
    """Return a progress callback that cancels after so many calls."""
    calls = iter(range(allowed))

    def tell(_):
        if next(calls, None) is None:
            raise Cancelled

    return tell


@examples(30)
@given(st.data(), graphs(), POLICIES, st.integers(1, 3))
def test_slices_do_not_show_and_a_cancel_leaves_no_trace(data, graph, policy, steps):
    policy, scores = as_scores(graph, *policy)
    neighbours = adjacency(graph)
    tree = Hierarchy(graph, policy)
    scale = data.draw(SCALES)
    seen = tree_of_edits(neighbours, policy_score(graph, scores)).partition(scale)
    drawn = draw_edit(data.draw, neighbours, seen, [], scale)
    if drawn is None:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay, "_STEPS", steps)
        for work in (lambda tell: tree.do(drawn[0], tell), lambda tell: tree.look(math.inf, tell)):
            before = state_of(tree)
            for allowed in range(50):
                try:
                    work(cancel_after(allowed))
                except Cancelled:
                    assert state_of(tree) == before
                else:
                    break
    assert (tree.superpixels.slot_of == -1).all()
    expected = tree_of_edits(neighbours, policy_score(graph, scores), [drawn[0]])
    assert nodes_of(tree) == expected.nodes()
