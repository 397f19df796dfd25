"""The work of a build: what is refused before anything is computed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from refusals import refuses
from windows import give_policy, project_of, settle, show

import napari_agglo as agglo
from napari_agglo.errors import DataWarning
from napari_agglo.policy import as_policy
from napari_agglo.widgets import HierarchyWidget, TrainWidget
from napari_agglo.widgets.hierarchy._build_tree import Plan, build, cue_mismatch


@pytest.fixture(scope="module")
def policy(dataset):
    """Return a policy of all cues of the corner."""
    return agglo.train(dataset.graph(), dataset.gold, strategy="flat", preset="minimal")


def with_cues(dataset, *names):
    return replace(dataset, name="other", cues={name: dataset.cues[name] for name in names})


def test_a_policy_of_other_cues_is_refused_with_their_names(dataset, policy):
    first, *rest = policy.features.cues
    assert rest, "test invalid: the sample has one cue"
    assert cue_mismatch(policy, dataset) is None
    assert cue_mismatch(agglo.MeanPolicy(), with_cues(dataset, first)) is None
    few = with_cues(dataset, first)
    refusal = cue_mismatch(policy, few)
    assert f"{', '.join(rest)} {'is' if len(rest) == 1 else 'are'} missing" in refusal.problem
    assert "train again" in str(refusal)
    bare = cue_mismatch(policy, replace(few, gold=None))
    assert "the mean" in str(bare.remedy.remedies[0]), "the first remedy must be possible"
    assert "train again" not in str(bare)
    assert "step 3" in str(bare)
    assert "step 3" not in str(cue_mismatch(policy, few, here=True)), "one is there already"
    plan = Plan(few, None, policy, None, 0)
    with refuses("policy", "train again", facts=("missing",)):
        build(plan, lambda progress: pytest.fail("it computes before it refuses"))
    more = replace(dataset, cues={**dataset.cues, "extra": dataset.cues[first]})
    assert "extra" in cue_mismatch(policy, more).problem


def test_train_offers_no_policy_that_does_not_fit(layers_only, dataset, policy):
    step = TrainWidget(layers_only)
    project = project_of(layers_only)
    show(project, dataset)
    give_policy(project, policy)
    project.set_dataset(replace(dataset, name="there", image=None, gold=None, superpixels=None,
                                origin=None,
                                cues={n: c.copy() for n, c in dataset.cues.items()}))  # fmt: skip
    assert all(name in step.hint.text() for name in (dataset.name, "there"))
    assert step.apply.isVisibleTo(step)
    first = policy.features.cues[0]
    project.set_dataset(replace(project.dataset, cues={first: dataset.cues[first].copy()}))
    assert "step 3" in step.hint.text()
    assert not step.apply.isVisibleTo(step)


def test_the_mean_is_offered_for_a_policy_of_other_cues_which_is_kept(layers_only, dataset, policy):
    step, training = HierarchyWidget(layers_only), TrainWidget(layers_only)
    project = project_of(layers_only)
    show(project, dataset)
    give_policy(project, policy)
    assert not step.mean.isVisibleTo(step)
    assert not training.files.former.isVisibleTo(training)
    first = policy.features.cues[0]
    bare = replace(dataset, name="there", image=None, gold=None, superpixels=None, origin=None,
                   ranges={}, cues={first: dataset.cues[first].copy()})  # fmt: skip
    project.set_dataset(bare)
    assert step.mean.isVisibleTo(step)
    assert "the mean" in step.hint.text()
    assert not step.run.button.isEnabled(), "it would be refused"
    step.mean.click()
    settle(project)
    assert project.built.policy.name == agglo.MeanPolicy.name
    assert project.built.regions.dataset.name == "there"
    assert not step.mean.isVisibleTo(step)

    former = training.files.former
    assert former.isVisibleTo(training)
    assert dataset.name in former.toolTip() or "trained policy" in former.toolTip()
    project.set_dataset(dataset)
    former.click()
    assert project.policy is policy
    assert not former.isVisibleTo(training)
    assert training.files.save.isEnabled()


def test_a_policy_that_is_not_local_is_warned_of(dataset):
    """The job of the step keeps the warning, and shows it."""

    def share(graph):
        return graph.contact_area() / graph.contact_area().max()

    plan = Plan(dataset, None, as_policy(share), None, 0)
    with pytest.warns(DataWarning, match="not local"):
        build(plan, lambda progress: None)
