"""Segments shown one step up or down their branch, and overrides made real."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.repairs import POLICIES, as_scores, graphs, partition
from refusals import refuses

from napari_agglo import InvalidInput, Session, region_graph
from napari_agglo.policy import MeanPolicy
from napari_agglo.session._actions import Lock, Override, as_ids, from_json, to_json
from napari_agglo.session._hierarchy.hierarchy import Hierarchy
from napari_agglo.session._threshold_view import BranchEnds, Frontier

WAYS = st.sampled_from(["up", "down"])


def seen(view, n):
    members = view.tree.members
    return {frozenset(members(view.shown(s)).tolist()) for s in range(1, n + 1)}


@given(st.data(), graphs(), POLICIES)
def test_a_view_is_a_partition_and_can_be_made_real(data, graph, policy):
    tree = Hierarchy(graph, as_scores(graph, *policy)[0])
    n = graph.n_regions
    scale = data.draw(st.sampled_from([0.0, 0.25, 0.5]))
    superpixels = st.integers(1, n)
    overrides = []
    view = Frontier(tree, scale)
    for _ in range(data.draw(st.integers(1, 4))):
        override = Override(data.draw(WAYS), scale, data.draw(superpixels))
        before = seen(view, n)
        shown = frozenset(tree.members(view.shown(override.superpixel)).tolist())
        try:
            view.apply(override)
        except InvalidInput:
            assert seen(view, n) == before
            continue
        overrides.append(override)
        after = seen(view, n)
        assert sum(map(len, after)) == n, "every superpixel is shown once"
        if override.direction == "up":
            (now,) = [r for r in after if override.superpixel in r]
            assert shown < now
            assert {r for r in before if not r & now} == {r for r in after if not r & now}
        else:
            assert before - {shown} <= after
            assert frozenset().union(*(after - before)) == shown
    assert seen(Frontier(tree, scale, overrides), n) == after if overrides else True
    assert seen(Frontier(tree, scale + 1, overrides), n) == partition(tree, scale + 1)
    superpixel = data.draw(superpixels)
    view = Frontier(tree, scale, overrides)
    edit = view.edit_for(superpixel)
    before, frontier = seen(view, n), partition(tree, scale)
    assert (edit is None) == (
        {r for r in frontier if superpixel in r} <= before
        and view.shown(superpixel) == tree.region(superpixel, scale)
    )
    if edit is not None:
        (held,) = [r for r in frontier if superpixel in r]
        (shown,) = [r for r in before if superpixel in r]
        touched = held | shown
        tree.do(edit)
        real = partition(tree, scale)
        assert {r for r in real if r <= touched} == {r for r in before if r <= touched}
        assert {r for r in real if not r & touched} == {r for r in frontier if not r & touched}


def test_a_move_beyond_the_end_of_a_branch_is_refused():
    graph = region_graph(np.array([[1, 2, 3]]), np.array([[0.0, 0.0, 1.0]]))
    tree = Hierarchy(graph, MeanPolicy())
    view = Frontier(tree, 0.2)
    with refuses(None, "place points in it to cut it", kind=BranchEnds):
        view.apply(Override("down", 0.2, 3))
    view.apply(Override("up", 0.2, 3))
    assert seen(view, 3) == {frozenset([1, 2, 3])}
    with refuses(None, "merge it by hand", kind=BranchEnds):
        view.apply(Override("up", 0.2, 3))
    view.apply(Override("down", 0.2, 1))
    assert seen(view, 3) == {frozenset([1, 2]), frozenset([3])}
    tree.do(Lock(0.2, as_ids([1, 2])))
    with refuses(None, "unlock it first", kind=BranchEnds):
        Frontier(tree, 0.2).apply(Override("up", 0.2, 1))


@pytest.mark.parametrize("override", [Override("up", 0.5, 3), Override("down", 0.25, 8)])
def test_overrides_are_plain_data(override):
    assert from_json(to_json(override)) == override


def test_a_segment_without_a_parent_is_refused_after_a_few_looks(tmp_path, monkeypatch):
    graph = region_graph(np.array([[1, 2, 0, 3]]), np.array([[0.1, 0.2, 0.5, 0.9]], np.float32))
    looks = []
    look = Hierarchy.look

    def counted(self, *arguments):
        looks.append(arguments)
        look(self, *arguments)

    with Session.create(tmp_path / "a.agglo", graph) as session:
        session.threshold = 0.5
        session.merge(3, 1, force=True)
        session.undo()  # above the threshold nothing is known
        monkeypatch.setattr(Hierarchy, "look", counted)
        with refuses("segment", "merge it by hand"):
            session.up(1)
    assert 1 < len(looks) < 20
