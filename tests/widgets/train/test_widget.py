"""Training by clicks: it runs in the background, can be stopped, and is there for all widgets."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from qtpy.QtWidgets import QApplication, QDialog, QFileDialog, QLineEdit, QPushButton
from windows import build, draw, give_regions, settle, status

import napari_agglo as agglo
from napari_agglo.features import FeatureBlock, feature_blocks
from napari_agglo.policy import LearnedPolicy, MeanPolicy, policies
from napari_agglo.widgets import DataWidget, TrainWidget


@pytest.fixture
def viewer(layers_only):
    """Return the layers of a viewer: the step knows no more of it."""
    return layers_only


@pytest.fixture
def step(viewer, project):
    widget = TrainWidget(viewer)
    widget.show()
    widget.options["preset"].value = "minimal"
    widget.options["epochs"].value = 2
    widget.options["folds"].value = 0
    draw()
    yield widget
    widget.close()


@pytest.fixture
def taught(step, project, dataset):
    """Return the step with data and gold chosen, but nothing built."""
    project.set_dataset(replace(dataset, superpixels=None))
    return step


def wait_for(condition, seconds=240):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not come"
        QApplication.processEvents()
        time.sleep(0.005)


def test_without_gold_it_says_what_to_do(step, project, dataset):
    assert status(TrainWidget, project) == "empty"
    assert all(words in step.hint.text() for words in ("gold", "step 1"))
    assert not step.run.button.isEnabled()
    project.set_dataset(replace(dataset, gold=None))
    assert not step.run.button.isEnabled()
    assert "step 1" in step.run.button.toolTip()


def test_one_click_trains_and_builds_what_is_missing(taught, project, dataset):
    assert status(TrainWidget, project) == "ready"
    taught.run.button.click()
    assert status(TrainWidget, project) == "running"
    assert taught.run.button.text() == "Cancel"
    assert not taught.options.isEnabled()
    settle(project, 240)
    assert isinstance(project.policy, LearnedPolicy)
    assert project.policy.record["epochs"] == 2
    assert project.policy.features.preset == "minimal"
    assert [status(one, project) for one in (DataWidget, TrainWidget)] == ["done"] * 2
    assert project.regions is not None
    assert [one.epoch for one in taught.trainer.errors] == [0, 1, 2]
    assert "examples right" in taught.summary.text.text()
    assert "step 3" in taught.hint.text()
    assert taught.run.button.text() == "Train again"


def test_the_error_of_an_epoch_is_that_of_its_policy(taught, project):
    taught.options["epochs"].value = 1
    taught.run.button.click()
    settle(project, 240)
    last = taught.trainer.errors[-1]
    labels = agglo.agglomerate(project.regions.graph, project.policy).segment(0.5)
    expected = agglo.split_vi(labels, project.regions.dataset.gold)
    assert (last.false_merge, last.false_split) == pytest.approx(expected)


def test_the_error_on_a_held_out_half_is_shown_large(taught, project):
    taught.options["folds"].value = 1
    taught.options["epochs"].value = 1
    taught.run.button.click()
    settle(project, 240)
    graph, gold = project.regions.graph, project.regions.dataset.gold
    options = {"preset": "minimal", "epochs": 1}
    row = agglo.evaluate.hold_out(graph, gold, {"agglo": options}).table.iloc[0]
    assert taught.summary.error.text().startswith(f"VI {row['vi_at_half']:.2f} ")
    assert "held-out" in taught.summary.error.text()
    assert taught.summary.error.isVisibleTo(taught)
    last = taught.trainer.errors[-1]
    assert last.held_out
    assert last.false_merge + last.false_split == pytest.approx(row["vi_at_half"])
    text = taught.summary.text.text()
    assert "estimate" in text
    assert "training data" not in text, "nothing was measured there"
    assert "held\N{NON-BREAKING HYPHEN}out" in taught.summary.epochs.key.text()
    whole = agglo.train(graph, gold, **options)
    np.testing.assert_array_equal(project.policy.score(graph), whole.score(graph))
    taught.files.mean.click()
    assert not taught.summary.error.isVisibleTo(taught)


def test_too_few_gold_segments_are_said_and_the_training_error_is_called_so(
    taught, project, dataset
):
    from napari_agglo.learning import assign

    whole = dataset.oversegmented()
    graph = agglo.region_graph(whole.superpixels, whole.cues)
    ids, counts = np.unique(assign(graph, dataset.gold), return_counts=True)
    few = ids[1:][np.argsort(-counts[1:])[:5]]
    project.set_dataset(replace(whole, gold=np.where(np.isin(dataset.gold, few), dataset.gold, 0)))
    taught.options["folds"].value = 1
    taught.run.button.click()
    settle(project, 240)
    assert "refusal" in project.policy.record["estimate"]
    text = taught.summary.text.text()
    assert re.search(r"held.out .*\b8 gold segments", text)
    assert "training data" in text
    assert not taught.summary.error.isVisibleTo(taught)


def test_the_curve_grows_while_it_runs(taught, project):
    taught.options["epochs"].value = 50
    taught.run.button.click()
    wait_for(lambda: len(taught.trainer.errors) >= 2)
    assert status(TrainWidget, project) == "running"
    assert taught.summary.tabs.isVisibleTo(taught)
    taught.run.button.click()
    settle(project, 240)
    assert isinstance(project.policy, MeanPolicy), "a cancelled training changes nothing"
    assert status(TrainWidget, project) == "ready"
    assert taught.run.button.text() == "Train"


def test_flat_has_no_epochs(taught, project):
    taught.options["strategy"].value = "flat"
    assert not taught.options["epochs"].enabled
    taught.options["classifier"].value = "logistic"
    taught.options["seed"].value = 3
    taught.run.button.click()
    settle(project, 240)
    record = project.policy.record
    assert (record["strategy"], record["classifier"], record["seed"]) == ("flat", "logistic", 3)


def test_several_volumes(step, project, dataset):
    other = agglo.sample("neuropil2d", seed=1)
    part = (slice(0, 90), slice(0, 90))
    cues = {name: cue[part] for name, cue in other.cues.items()}
    kept = replace(dataset, name="other", superpixels=None, cues=cues, gold=other.gold[part],
                   image=other.image[part])  # fmt: skip
    project.training = [kept]
    project.set_dataset(None, "nothing chosen")
    assert status(TrainWidget, project) == "ready"
    step.options["strategy"].value = "flat"
    step.run.button.click()
    settle(project, 240)
    assert len(project.policy.record["volumes"]) == 1
    project.set_dataset(dataset)
    step.run.button.click()
    settle(project, 240)
    assert len(project.policy.record["volumes"]) == 2
    assert project.regions.dataset is dataset


def test_save_load_and_the_mean(taught, project, tmp_path, monkeypatch):
    taught.options["strategy"].value = "flat"
    taught.run.button.click()
    settle(project, 240)
    trained = project.policy
    path = str(tmp_path / "mine")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (path, ""))
    taught.files.save.click()
    settle(project, 240)
    taught.files.mean.click()
    assert isinstance(project.policy, MeanPolicy)
    assert not taught.files.save.isEnabled()
    assert not taught.summary.tabs.isVisibleTo(taught)
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (f"{path}.npz", ""))
    taught.files.load.click()
    settle(project, 240)
    graph = project.regions.graph
    np.testing.assert_array_equal(project.policy.score(graph), trained.score(graph))
    assert status(TrainWidget, project) == "done"
    assert taught.trainer.errors == []


def test_a_file_that_is_no_policy_is_said_and_changes_nothing(
    taught, project, tmp_path, monkeypatch
):
    from napari.utils import notifications

    path = tmp_path / "wrong.npz"
    np.savez(path, a=np.zeros(3))
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(path), ""))
    before = len(notifications.notification_manager.records)
    taught.files.load.click()
    settle(project, 240)
    assert isinstance(project.policy, MeanPolicy)
    told = notifications.notification_manager.records[before:]
    assert any("wrong.npz" in one.message for one in told)
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: ("", ""))
    taught.files.load.click()


def test_other_data_make_it_stale_but_usable(taught, project, dataset):
    taught.options["strategy"].value = "flat"
    taught.run.button.click()
    settle(project, 240)
    other = replace(dataset, options={"min_size": 70}, superpixels=None)
    project.set_dataset(other)
    whole = other.oversegmented()
    give_regions(project, whole)
    assert status(TrainWidget, project) == "stale"
    assert "other data" in taught.hint.text()
    assert taught.files.save.isEnabled()
    # Another volume is chosen on purpose: nothing is stale, and a button applies the policy to it.
    cues = {name: cue.copy() for name, cue in dataset.cues.items()}
    there = replace(dataset, name="there", image=dataset.image.copy(), cues=cues, gold=None,
                    superpixels=dataset.superpixels.copy(), origin=None)  # fmt: skip
    project.set_dataset(there)
    assert status(TrainWidget, project) == "done"
    assert all(words in taught.hint.text() for words in (dataset.name, "there"))
    assert taught.apply.isVisibleTo(taught)
    assert "there" in taught.apply.text()
    taught.apply.click()
    settle(project, 300)
    assert project.built.policy is project.policy
    assert project.built.regions.dataset.name == "there"
    assert not taught.apply.isVisibleTo(taught)


def test_a_policy_of_the_registry_is_chosen_by_name(taught, project):
    """The choice of a policy, and tooltips."""
    # A policy of the registry is chosen by name.
    assert taught.files.named.currentText() == "mean"
    taught.files.named.textActivated.emit("random")
    settle(project, 240)
    assert project.policy.name == "random"
    assert taught.files.named.currentText() == "random"
    assert not taught.files.save.isEnabled()
    assert status(TrainWidget, project) == "ready", "nothing was trained"
    assert "random" in taught.hint.text()
    assert "mean" not in taught.hint.text()
    taught.files.mean.click()
    assert taught.files.named.currentText() == "mean"
    assert "mean" in taught.hint.text()

    # All controls have a tooltip.
    from qtpy.QtWidgets import QAbstractSpinBox, QComboBox, QPushButton

    for kind in (QPushButton, QAbstractSpinBox, QComboBox):
        for control in taught.findChildren(kind):
            assert control.toolTip(), control.objectName()


def test_a_policy_of_another_package_is_in_the_list_and_merges(
    viewer, project, dataset, monkeypatch
):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "example_package")
    from agglo_example.policies import CautiousPolicy

    monkeypatch.setitem(policies._values, "cautious", CautiousPolicy)
    project.set_dataset(dataset)
    give_regions(project, dataset)
    widget = TrainWidget(viewer)
    assert widget.files.named.findText("cautious") >= 0
    widget.files.named.textActivated.emit("cautious")
    settle(project, 240)
    assert widget.files.named.currentText() == "cautious"
    tree = build(project).tree
    expected = agglo.agglomerate(project.regions.graph, CautiousPolicy())
    np.testing.assert_array_equal(tree.priorities, expected.priorities)
    widget.close()


def test_a_function_of_python_is_a_policy(taught, project, tmp_path, monkeypatch):
    (tmp_path / "rules_of_train.py").write_text(
        "def by_area(graph):\n    return graph.contact_area()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    taught.files.named.textActivated.emit("a Python function…")
    (dialog,) = [one for one in taught.files.findChildren(QDialog) if one.isVisible()]
    (line,) = dialog.findChildren(QLineEdit)
    line.setText("rules_of_train:by_area")
    dialog.findChild(QPushButton, "Use").click()
    settle(project, 240)
    assert project.policy.name == taught.files.named.placeholderText() == "rules_of_train:by_area"


def test_blocks_of_features_are_listed_with_the_presets(step, monkeypatch):
    assert "em+none" not in step.options["preset"].choices, "test invalid"
    block = FeatureBlock("none", ("none",), lambda graph: graph.contact_area())
    monkeypatch.setitem(feature_blocks._values, "none", block)
    step.options.follow()
    assert {"em", "minimal+none"} <= set(step.options["preset"].choices)
    step.options["preset"].value = "minimal+none"
    assert step.trainer.options["preset"] == "minimal+none"


def test_gold_that_teaches_nothing_is_said(taught, project, dataset):
    from napari.utils import notifications

    project.set_dataset(replace(dataset, gold=np.zeros_like(dataset.gold)))
    before = len(notifications.notification_manager.records)
    taught.run.button.click()
    settle(project, 240)
    assert isinstance(project.policy, MeanPolicy)
    assert len(notifications.notification_manager.records) > before


def test_closed_and_opened_again_it_goes_on(viewer, taught, project):
    taught.options["epochs"].value = 3
    taught.run.button.click()
    again = TrainWidget(viewer)
    again.show()
    assert again.run.button.text() == "Cancel"
    assert again.options["epochs"].value == 3
    settle(project, 240)
    assert isinstance(project.policy, LearnedPolicy)
    assert again.summary.text.text() == taught.summary.text.text() != ""


def test_the_data_go_while_it_runs(taught, project):
    taught.run.button.click()
    project.set_dataset(None, "gone")
    settle(project, 240)
    assert isinstance(project.policy, LearnedPolicy)
