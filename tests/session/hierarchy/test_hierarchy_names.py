"""Names of segments: one each, and none changes but of what an edit touches."""

from __future__ import annotations

import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from oracles.edits import adjacency, constraints, policy_score, tree_of_edits
from oracles.proofreader import SCALES, draw_edit
from oracles.repairs import POLICIES, as_scores, graphs, partition

from napari_agglo import agglomerate, region_graph
from napari_agglo.policy import MeanPolicy
from napari_agglo.session._actions import Cut, Merge, as_ids
from napari_agglo.session._hierarchy.hierarchy import Hierarchy

ALL = (0.0, 0.25, 0.5, 0.75, 2.0)


def names(tree, scale):
    """Return the segments at a scale with their names."""
    table = tree.table(scale)
    assert table[0] == 0
    found = {segment: {int(table[s]) for s in segment} for segment in partition(tree, scale)}
    assert all(len(each) == 1 for each in found.values()), "a segment has one name"
    named = {segment: each.pop() for segment, each in found.items()}
    assert len(set(named.values())) == len(named), "no two segments have one name"
    for segment, name in named.items():
        assert name > 0
        node = tree.region(int(tree.names.superpixel_of[name]), scale)
        assert frozenset(tree.members(node).tolist()) == segment
        assert tree.name(node) == name
    return named


@examples(60)
@given(st.data(), graphs(), POLICIES)
def test_names_are_stable(data, graph, policy):
    policy, scores = as_scores(graph, *policy)
    score = policy_score(graph, scores)
    neighbours = adjacency(graph)
    tree = Hierarchy(graph, policy)
    sizes = graph.sizes
    edits = []
    for _ in range(data.draw(st.integers(1, 5))):
        scale = data.draw(SCALES)
        run = tree_of_edits(neighbours, score, edits)
        drawn = draw_edit(data.draw, neighbours, run.partition(scale), constraints(edits)[1], scale)
        if drawn is None:
            return
        edit, _ = drawn
        before = {at: names(tree, at) for at in (scale, *ALL)}
        tree.do(edit)
        after = {at: names(tree, at) for at in (scale, *ALL)}
        if isinstance(edit, Merge):
            (a, b) = edit.pairs[0]
            (active,) = [segment for segment in before[scale] if a in segment]
            (joined,) = [segment for segment in after[scale] if a in segment]
            assert after[scale][joined] == before[scale][active]
            touched = {a, b}
        elif isinstance(edit, Cut):
            whole = frozenset(np.concatenate(edit.parts).tolist())
            largest = max(edit.parts, key=lambda part: sizes[part].sum())
            assert after[scale][frozenset(largest.tolist())] == before[scale][whole]
            touched = whole
        else:
            assert after[scale] == before[scale]
            touched = set()
            if hasattr(edit, "superpixel"):
                touched = set(tree.members(tree.region(edit.superpixel, scale)).tolist())
        for at, were in before.items():
            for segment, name in were.items():
                if segment in after[at] and not segment & touched:
                    assert after[at][segment] == name
        edits.append(edit)
    while edits:
        tree.undo()
        edits.pop()
    assert {at: tree.table(at).tolist() for at in ALL} == {
        at: Hierarchy(graph, policy).table(at).tolist() for at in ALL
    }


@examples(60)
@given(graphs(), POLICIES)
def test_without_edits_names_are_those_of_the_merge_tree(graph, policy):
    policy, _ = as_scores(graph, *policy)
    merged = agglomerate(graph, policy)
    tree = Hierarchy(graph, policy)
    for scale in (-5e-324, *merged.thresholds(), *ALL):
        end = scale if scale <= 1 else np.inf  # no priority is above 1
        assert tree.table(scale).tolist() == merged.lut(end).tolist()


def test_a_part_that_a_cut_puts_together_goes_by_the_name_of_its_largest_region():
    labels = np.array([[1, 2, 2, 2], [3, 3, 3, 3], [3, 3, 3, 3]])
    graph = region_graph(labels, np.array([[0, 1.0, 0, 0], [0] * 4, [0] * 4]))
    tree = Hierarchy(graph, MeanPolicy())
    assert tree.table(0.3).tolist() == [0, 3, 3, 3], "test invalid"
    tree.do(Cut(0.3, (as_ids([3]), as_ids([1, 2]))))
    assert tree.table(0.3).tolist() == [0, 2, 2, 3]
    assert tree.table(0.2).tolist() == [0, 1, 2, 3]


def test_the_active_segment_and_the_largest_part_keep_their_names():
    graph = region_graph(np.array([[1, 2, 2, 3, 3, 3]]), np.ones((1, 6)))
    tree = Hierarchy(graph, MeanPolicy())
    tree.do(Merge(0.5, ((3, 2),)))
    assert tree.table(0.5).tolist() == [0, 1, 3, 3]
    assert tree.table(0.4).tolist() == [0, 1, 2, 3], "below, both keep theirs"
    tree.do(Merge(0.5, ((1, 2),)))
    assert tree.table(0.5).tolist() == [0, 1, 1, 1]
    tree.do(Cut(0.5, (as_ids([1, 2]), as_ids([3]))))
    assert tree.table(0.5).tolist() == [0, 1, 1, 3]
    tree.undo()
    tree.do(Cut(0.5, (as_ids([1]), as_ids([2, 3]))))
    assert tree.table(0.5)[2:].tolist() == [1, 1], "the larger part"
    assert tree.table(0.5)[1] != 1
