"""The steps know how far they are, and what has become stale."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from windows import show

import napari_agglo as agglo
from napari_agglo.errors import InvalidInput
from napari_agglo.widgets._dataset import Material, Placement
from napari_agglo.widgets._project import Project, project_of
from napari_agglo.widgets._steps import Status, Step


def states(project):
    return [project.status(step).value for step in Step]


def test_one_project_for_each_viewer(make_napari_viewer):
    one, two = make_napari_viewer(), make_napari_viewer()
    assert project_of(one) is project_of(one)
    assert project_of(one) is not project_of(two)


def test_from_nothing_to_a_session(material, tmp_path):
    project = Project()
    assert states(project) == ["empty"] * 5
    bare = replace(material, superpixels=None)
    project.set_material(bare)
    assert states(project) == ["ready", "ready", "ready", "empty", "empty"]
    material = bare.oversegmented()
    graph = material.graph()
    project.set_graph(graph, material)
    assert states(project)[0] == "done"
    tree = agglo.agglomerate(graph, "mean")
    project.set_tree(tree, graph, project.policy, material.gold)
    assert states(project) == ["done", "ready", "done", "ready", "ready"]
    project.set_curve(agglo.vi_curve(tree, material.gold))
    assert states(project)[3] == "done"
    session = agglo.Session.create(tmp_path / "a.agglo", graph)
    project.set_session(session, tree, material.placement)
    assert states(project)[4] == "done"
    project.close()
    assert session.read_only


def test_other_data_make_the_graph_stale_and_another_policy_the_hierarchy(material):
    project = Project()
    show(project, material)
    policy = agglo.train(project.graph, material.gold, epochs=0, preset="minimal")
    project.set_policy(policy, project.graph_of)
    assert project.status(Step.TRAIN) is Status.DONE
    assert project.status(Step.HIERARCHY) is Status.STALE
    project.set_material(replace(material, per_plane=True))
    assert project.status(Step.DATA) is Status.STALE


def test_no_cue_is_said_in_words():
    bare = Material("bare", Placement.plain(2), image=np.zeros((4, 4)))
    with pytest.raises(InvalidInput, match="boundary cue"):
        bare.graph()
    with pytest.raises(InvalidInput, match="boundary cue"):
        bare.oversegmented()


def test_the_table_is_that_of_the_tree_and_of_the_session(material, tmp_path):
    project = Project()
    show(project, material, 0.3)
    np.testing.assert_array_equal(project.table(), project.tree.lut(0.3))
    before = project.n_segments
    session = agglo.Session.create(tmp_path / "a.agglo", project.graph)
    session.threshold = 0.3
    project.set_session(session, project.tree, material.placement)
    assert project.n_segments == before
    np.testing.assert_array_equal(project.table(), project.tree.lut(0.3))
    first = int(session.segments()[0])
    session.merge(first, int(session.neighbours(first)[0]))
    project.has_edited()
    assert project.n_segments == before - 1
    project.close()


def test_placements_match_where_pixels_lie_on_top_of_each_other():
    one = Placement((1.0, 0.5), (0.0, 3.0))
    assert one.matches(Placement((1.0, 0.5), (0.0, 3.0)))
    assert not one.matches(Placement((1.0, 0.5), (0.0, 2.0)))
    assert not one.matches(Placement((1.0, 0.6), (0.0, 3.0)))
    assert not one.matches(Placement.plain(3))
    assert one.to_world((2, 4)) == (2.0, 5.0)
