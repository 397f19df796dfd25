"""Edits transferred to the tree of another policy: each requirement holds, or is a conflict."""

from __future__ import annotations

import itertools

import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from oracles.edits import adjacency, constraints
from oracles.proofreader import SCALES, draw_edit
from oracles.repairs import POLICIES, as_scores, graphs, partition
from oracles.requirements import requirements

from napari_agglo import region_graph
from napari_agglo.graph import contracted
from napari_agglo.policy import MeanPolicy
from napari_agglo.session._actions import Cut, Lock, Merge, Unlock, as_ids
from napari_agglo.session._hierarchy.hierarchy import Hierarchy
from napari_agglo.session._relearn import transfer_edits


def draw_edits(data, graph, policy, most):
    """Let someone edit at random what is on the screen."""
    tree = Hierarchy(graph, policy)
    for _ in range(data.draw(st.integers(1, most), label="edits")):
        scale = data.draw(SCALES)
        locks = constraints(tree.edits)[1]
        drawn = draw_edit(data.draw, adjacency(graph), partition(tree, scale), locks, scale)
        if drawn is not None:
            tree.do(drawn[0])
    return tree


def check(graph, policy, old_edits, threshold):
    """Transfer edits, and check every requirement by itself; return the tree and the conflicts."""
    before = partition(Hierarchy(graph, policy), threshold)
    tree = Hierarchy(graph, policy)
    new_edits, conflicts = transfer_edits(tree, old_edits, threshold, policy=policy)
    assert tree.edits == new_edits
    assert {edit.scale for edit in new_edits} <= {threshold}
    together, apart, locks, aside = requirements(old_edits, graph.n_regions)
    assert {(one.index, one.which) for one in conflicts} == aside
    assert all(one.edit is old_edits[one.index] and one.words for one in conflicts)
    segments = partition(tree, threshold)
    of = {superpixel: segment for segment in segments for superpixel in segment}
    assert all(of[a] == of[b] for a, b in together)
    assert all(of[a] != of[b] for a, b in apart)
    assert set(locks) <= segments
    assert {frozenset(e.members.tolist()) for e in new_edits if isinstance(e, Lock)} == set(locks)
    # A segment of the new policy that no requirement is about comes out as it was.
    concerned = set(itertools.chain(*together, *apart))
    assert {segment for segment in before if not segment & concerned} <= segments
    return tree, conflicts


@examples(200)
@given(st.data(), graphs(), POLICIES, POLICIES, SCALES)
def test_every_constraint_holds_or_is_superseded_and_listed(data, graph, old, new, threshold):
    tree = draw_edits(data, graph, as_scores(graph, *old)[0], most=7)
    policy = as_scores(graph, *new)[0]
    again, _ = check(graph, policy, tree.edits, threshold)
    assert again.asleep() == [], "what was done again is awake, all of it"


@given(st.data(), graphs(), POLICIES, SCALES)
def test_edits_at_one_scale_make_the_same_constraints_as_the_tree_that_they_were_made_on(
    data, graph, policy, scale
):
    """Without relearning, whatever sleeps in the old tree is among what is listed."""
    chosen = as_scores(graph, *policy)[0]
    tree = Hierarchy(graph, chosen)
    for _ in range(data.draw(st.integers(1, 6))):
        locks = constraints(tree.edits)[1]
        drawn = draw_edit(data.draw, adjacency(graph), partition(tree, scale), locks, scale)
        if drawn is not None:
            tree.do(drawn[0])
    _, conflicts = check(graph, chosen, tree.edits, scale)
    listed = {(one.index, one.which) for one in conflicts}
    asleep = {(i, (k,)) for i, k in tree.asleep() if isinstance(tree.edits[i], Merge)}
    assert asleep <= listed


def row_of(*cue):
    """Superpixels 1, 2, ... in a row, with boundaries of the mean of two neighbours."""
    return region_graph(np.arange(1, len(cue) + 1)[None], np.array([cue], float))


def sets(tree, scale):
    return sorted(sorted(segment) for segment in partition(tree, scale))


def test_superpixels_of_no_part_go_with_the_tree():
    graph = row_of(0.0, 0.0, 0.3, 0.3, 0.0, 0.0)
    assert sets(Hierarchy(graph, MeanPolicy()), 0.5) == [[1, 2, 3, 4, 5, 6]], "test invalid"
    tree, _ = check(graph, MeanPolicy(), [Cut(0.1, (as_ids([2]), as_ids([6])))], 0.5)
    assert sets(tree, 0.5) == [[1, 2, 3], [4, 5, 6]]


def test_a_merge_of_what_now_holds_two_parts_takes_only_what_it_may():
    """1 is to be with 4; 2 beside 1 is of one part, and 3 beside 4 of the other."""
    graph = row_of(0.0, 0.4, 0.8, 0.1)
    edits = [Cut(0.9, (as_ids([2]), as_ids([3]))), Merge(0.9, ((1, 4),))]
    tree, conflicts = check(graph, MeanPolicy(), edits, 0.5)
    assert conflicts == []
    assert sets(Hierarchy(graph, MeanPolicy()), 0.5) == [[1, 2], [3, 4]], "test invalid"
    assert sets(tree, 0.5) == [[1, 2, 4], [3]]


def test_later_wins_pair_by_pair():
    graph = row_of(0.0, 0.0, 0.0)
    three = Cut(0.5, tuple(as_ids([k]) for k in (1, 2, 3)))
    tree, conflicts = check(graph, MeanPolicy(), [three, Merge(0.5, ((1, 2),))], 0.25)
    assert sets(tree, 0.25) == [[1, 2], [3]]
    assert [(one.index, one.which) for one in conflicts] == [(0, (0, 1))]
    assert "superpixels 1 and 2 are not cut apart" in conflicts[0].words
    tree, conflicts = check(graph, MeanPolicy(), [Merge(0.5, ((1, 2), (2, 3))), three], 0.25)
    assert sets(tree, 0.25) == [[1], [2], [3]]
    assert [one.which for one in conflicts] == [(0,), (1,)]


def test_a_locked_segment_is_whole_and_alone_and_an_unlocked_one_asks_for_nothing():
    graph = row_of(0.0, 0.0, 0.9, 0.0)
    lock = Lock(0.9, as_ids([2, 3]))
    tree, _ = check(graph, MeanPolicy(), [lock], 0.4)
    assert sets(tree, 0.4) == [[1], [2, 3], [4]]
    older = Merge(0.1, ((3, 4),))
    _, conflicts = check(graph, MeanPolicy(), [older, lock], 0.4)
    assert [one.words for one in conflicts] == [
        "Superpixels 3 and 4 are not merged: a newer lock forbids it."
    ]
    tree, _ = check(graph, MeanPolicy(), [lock, Unlock(0.9, 3)], 0.4)
    assert tree.edits == []


def test_words_are_in_the_ids_of_the_user():
    graph = contracted(region_graph(np.array([[70, 80, 90]]), np.zeros((1, 3))), np.arange(4))
    edits = [Merge(0.5, ((1, 3),)), Cut(0.5, (as_ids([1, 2]), as_ids([3])))]
    (one,) = transfer_edits(Hierarchy(graph, MeanPolicy()), edits, 0.5)[1]
    assert one.words == "Superpixels 70 and 90 are not merged: a newer cut forbids it."
