"""A cut that goes through a superpixel, against the run from scratch on the divided image."""

from __future__ import annotations

import math

import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from oracles.edits import adjacency, constraints, policy_score, tree_of_edits
from oracles.proofreader import SCALES, draw_edit
from oracles.repairs import POLICIES, as_scores, graphs, nodes_of, partition, state_of
from oracles.sessions import with_pieces

from napari_agglo.graph import divide
from napari_agglo.session._edits import Cut, as_ids
from napari_agglo.session._hierarchy.hierarchy import Hierarchy


def draw_cut(draw, graph, seen, scale):
    """Draw divisions of superpixels of a segment, and a cut of that between their pieces."""
    pixels = graph.sizes
    segments = sorted((r for r in seen if any(pixels[s] > 1 for s in r)), key=min)
    if not segments:
        return None
    segment = draw(st.sampled_from(segments))
    large = st.sampled_from(sorted(s for s in segment if pixels[s] > 1))
    divisions, owner = [], {}
    for superpixel in draw(st.lists(large, min_size=1, max_size=2, unique=True)):
        divisions.append(draw_division(draw, graph, superpixel))
        owner |= {int(s): k % 2 for k, s in enumerate(divisions[-1].members)}
        graph = divisions[-1].apply(graph)
    owner |= {s: draw(st.integers(0, 1)) for s in sorted(segment - owner.keys())}
    parts = [frozenset(s for s, k in owner.items() if k == part) for part in (0, 1)]
    expected = {r for r in seen if r != segment} | set(parts)
    return divisions, Cut(scale, tuple(as_ids(part) for part in parts)), expected


def draw_division(draw, graph, superpixel):
    """Draw a division of a superpixel."""
    box = tuple(slice(*ends) for ends in graph.boxes[superpixel].T)
    pieces = np.where(graph.superpixels.image[box] == superpixel, 1, 0)
    inside = np.flatnonzero(pieces)
    n = draw(st.integers(2, min(3, len(inside))))
    numbers = [*range(1, n + 1)]
    numbers += [draw(st.integers(1, n)) for _ in range(len(inside) - n)]
    pieces.reshape(-1)[inside] = numbers
    return divide(graph, superpixel, pieces)


@examples(80)
@given(st.data(), graphs(most=6), POLICIES)
def test_it_equals_the_run_on_the_divided_image(data, graph, policy):
    kind, seed = policy
    policy, _ = as_scores(graph, kind, seed)
    tree = Hierarchy(graph, policy)
    edits, past = [], []
    for _ in range(data.draw(st.integers(1, 5))):
        scores = as_scores(graph, kind, seed)[1]
        neighbours = adjacency(graph)
        run = tree_of_edits(neighbours, policy_score(graph, scores), edits)
        scale = data.draw(SCALES)
        seen = run.partition(scale)
        locks = constraints(edits)[1]
        tree.look(scale)
        before = state_of(tree)
        action = data.draw(st.sampled_from(["divide", "divide", "edit", "look", "undo"]))
        if action == "look":
            assert partition(tree, scale) == seen
        elif action == "undo" and past:
            tree.undo()
            expected, graph, edits = past.pop()
            assert state_of(tree) == expected
        elif action == "divide":
            drawn = draw_cut(data.draw, graph, seen - set(locks), scale)
            if drawn is None:
                continue
            divisions, cut, expected = drawn
            past.append((before, graph, edits))
            tree.do(cut, divisions=divisions)
            assert partition(tree, scale) == expected | set(locks)
            for division in divisions:
                graph = division.apply(graph)
                edits = [with_pieces(edit, division) for edit in edits]
            edits = [*edits, cut]
        elif action == "edit":
            drawn = draw_edit(data.draw, neighbours, seen, locks, scale)
            if drawn is not None:
                past.append((before, graph, edits))
                tree.do(drawn[0])
                edits = [*edits, drawn[0]]
    score = policy_score(graph, as_scores(graph, kind, seed)[1])
    run = tree_of_edits(adjacency(graph), score, edits)
    for scale in (0.0, 0.3, 0.6):
        assert partition(tree, scale) == run.partition(scale)
    tree.look(math.inf)
    assert nodes_of(tree) == run.nodes()
    for expected, *_ in reversed(past):
        tree.undo()
        assert state_of(tree) == expected
