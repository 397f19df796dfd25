"""The steps know how far they are, and what has become stale."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from refusals import refuses
from windows import (
    STEPS,
    add_sample,
    build,
    give_policy,
    give_regions,
    project_of,
    selection_of,
    show,
    status,
)

import napari_agglo as agglo
from napari_agglo.widgets import (
    DataWidget,
    EvaluateWidget,
    HierarchyWidget,
    ProofreadWidget,
    TrainWidget,
)


@pytest.fixture
def project(layers_only):
    """Return a project without a window."""
    return project_of(layers_only)


def states(project):
    return [step.status(project).value for step in STEPS]


def test_one_project_for_each_viewer(make_napari_viewer):
    one, two = make_napari_viewer(), make_napari_viewer()
    assert project_of(one) is project_of(one)
    assert project_of(one) is not project_of(two)


def test_from_nothing_to_a_session(project, dataset, tmp_path):
    assert states(project) == ["empty"] * 5
    bare = replace(dataset, superpixels=None)
    project.set_dataset(bare)
    assert states(project) == ["ready", "ready", "ready", "empty", "empty"]
    dataset = bare.oversegmented()
    graph = dataset.graph()
    give_regions(project, dataset, graph)
    assert states(project)[0] == "done"
    tree = agglo.agglomerate(graph, "mean")
    project.built = build(project, tree)
    assert states(project) == ["done", "ready", "done", "ready", "ready"]
    project.set_curve(agglo.vi_curve(tree, dataset.gold))
    assert states(project)[3] == "done"
    session = agglo.Session.create(tmp_path / "a.agglo", graph)
    project.set_session(session, project.built)
    assert states(project)[4] == "open"
    project.close()
    assert session.read_only


def test_other_data_make_the_graph_stale_and_another_policy_the_hierarchy(project, dataset):
    show(project, dataset)
    policy = agglo.train(project.graph, dataset.gold, epochs=0, preset="minimal")
    give_policy(project, policy)
    assert status(TrainWidget, project) == "done"
    assert status(HierarchyWidget, project) == "stale"
    project.set_dataset(replace(dataset, options={"per_plane": True}))
    assert status(DataWidget, project) == "stale"


def test_the_same_choice_made_again_is_not_stale(project, dataset):
    bare = replace(dataset, superpixels=None, origin=None)
    show(project, bare.oversegmented())
    policy = agglo.train(project.graph, dataset.gold, strategy="flat", preset="minimal")
    give_policy(project, policy)
    same = replace(bare)
    project.set_dataset(same)
    give_regions(project, same.oversegmented())
    assert status(TrainWidget, project) == "done"
    other = replace(bare, options={"min_size": 7})
    project.set_dataset(other)
    give_regions(project, other.oversegmented())
    assert status(TrainWidget, project) == "stale"


def test_results_of_the_former_volume_are_called_so(layers_only, project, dataset):
    data, evaluation = DataWidget(layers_only), EvaluateWidget(layers_only)
    show(project, dataset)
    project.set_curve(agglo.vi_curve(project.tree, dataset.gold))
    assert "superpixels" in data.counts.text()
    assert status(EvaluateWidget, project) == "done"
    cues = {name: cue.copy() for name, cue in dataset.cues.items()}
    project.set_dataset(
        replace(
            dataset, name="there", image=None, gold=None, superpixels=None, cues=cues, origin=None
        )
    )
    assert data.counts.text() == ""
    # Another volume is chosen on purpose: its steps are ready, and say whose results are shown.
    proofread = ProofreadWidget(layers_only)
    for step in (evaluation, proofread):
        assert status(type(step), project) == "ready"
        assert f"of {dataset.name}" in step.hint.text()
    assert "there" in evaluation.hint.text()
    project.set_dataset(None, "there is no cue")  # an incomplete choice
    for step in (evaluation, proofread):
        assert status(type(step), project) == "stale"
        assert f"of {dataset.name}" in step.hint.text()
    project.set_dataset(dataset)
    assert status(EvaluateWidget, project) == "done"
    assert dataset.name not in evaluation.hint.text() + proofread.hint.text()
    assert "superpixels" in data.counts.text()


def test_layers_that_are_chosen_again_have_their_regions(layers_only, project, crop):
    selection = selection_of(layers_only)
    add_sample(layers_only, crop)
    gold = selection.gold
    give_regions(project, project.dataset.oversegmented())
    assert status(DataWidget, project) == "done"
    selection.choose("gold", None)
    assert status(DataWidget, project) == "stale"
    selection.choose("gold", gold)
    assert status(DataWidget, project) == "done"


def test_no_cue_is_said_in_words(dataset):
    bare = replace(dataset, cues={}, gold=None, superpixels=None)
    with refuses("cues", "choose one in step 1, Data, or compute one"):
        bare.graph()
    with refuses("cues", "choose one in step 1, Data, or compute one"):
        bare.oversegmented()


def test_the_table_is_that_of_the_tree_and_of_the_session(project, dataset, tmp_path):
    show(project, dataset, 0.3)
    np.testing.assert_array_equal(project.table(), project.tree.lut(0.3))
    before = project.n_segments
    session = agglo.Session.create(tmp_path / "a.agglo", project.graph)
    session.threshold = 0.3
    project.set_session(session, project.built)
    assert project.n_segments == before
    np.testing.assert_array_equal(project.table(), project.tree.lut(0.3))
    first = int(session.segments.ids()[0])
    session.merge(first, int(session.segments.neighbours(first)[0]))
    project.has_edited()
    assert project.n_segments == before - 1
    project.close()


def test_placements_match_where_pixels_lie_on_top_of_each_other(dataset, dataset3d):
    one, same = (
        replace(dataset.placement, scale=(1.0, 0.5), translate=(0.0, 3.0)) for _ in range(2)
    )
    assert one.matches(same)
    assert not one.matches(replace(one, translate=(0.0, 2.0)))
    assert not one.matches(replace(one, scale=(1.0, 0.6)))
    far = replace(one, scale=(2e-9, 2e-9), units=("meter",) * 2, translate=(0.0, 0.0))
    assert not far.matches(replace(far, scale=(4e-9, 4e-9)))
    near = replace(far, scale=(2.0, 2.0), units=("nanometer",) * 2)
    assert far.matches(near)
    assert near.matches(far)
    assert not near.matches(replace(near, units=("micrometer",) * 2)), "of one number, not one size"
    assert near.matches(replace(near, units=("pixel",) * 2)), "the size is not known"
    assert not one.matches(dataset3d.placement)
    assert one.to_world((2, 4)) == (2.0, 5.0)
