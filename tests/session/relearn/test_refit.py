"""Fit of a policy to its training set and edits."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses

from napari_agglo import Cancelled, region_graph
from napari_agglo.features import feature_map, feature_matrix
from napari_agglo.learning import ForestSettings, train
from napari_agglo.policy import LearnedPolicy, MeanPolicy
from napari_agglo.session._relearn import refit

SETTINGS = ForestSettings(trees=15, leaf=1)


def volume(seed, cue="boundary"):
    """Forty superpixels in a row; a cue above one half lies between gold segments."""
    rng = np.random.default_rng(seed)
    wall = np.repeat(rng.random(41) < 0.4, 1)
    labels = np.repeat(np.arange(1, 41), 3)[None]
    values = np.repeat(np.where(wall[:-1], 0.9, 0.1), 3)
    values[2::3] = np.where(wall[1:], 0.9, 0.1)
    values[1::3] = rng.random(40)
    gold = np.repeat(1 + np.cumsum(wall[:-1]), 3)[None]
    return region_graph(labels, {cue: values[None]}), gold


@pytest.fixture(scope="module")
def taught():
    graph, gold = volume(0)
    options = {"epochs": 1, "preset": "minimal", "settings": SETTINGS, "near_misses": False}
    return graph, gold, train(graph, gold, **options)


def decisions(graph, policy, n):
    """Return what a person says who contradicts the policy where it is surest, both ways."""
    rows = feature_matrix(graph, policy.features)
    order = np.argsort(policy.model.predict(rows))
    chosen = np.concatenate([order[:n], order[-n:]])
    labels = np.where(policy.model.predict(rows[chosen]) < 0.5, 1, -1)
    assert set(labels) == {-1, 1}, "test invalid"
    return rows[chosen], labels


def test_the_training_is_repeated_as_the_record_says_and_the_edits_are_in_it(taught):
    graph, gold, policy = taught
    rows, labels = decisions(graph, policy, 3)
    new = refit(policy, rows, labels, volumes=[(graph, gold)])
    assert isinstance(new, LearnedPolicy)
    for key in ("strategy", "epochs", "start", "near_misses", "classifier", "settings", "volumes"):
        assert new.record[key] == policy.record[key], key
    assert new.features == policy.features
    assert new.record["edits"] == {"to_merge": 3, "to_keep": 3, "weight": 5}
    assert new.record["extra_examples"] == 5 * 6
    before, after = (p.model.predict(rows) for p in (policy, new))
    assert ((after - before) * labels > 0).all(), "of what was decided it now thinks otherwise"
    again = refit(policy, rows, labels, volumes=[(graph, gold)])
    assert (again.score(graph) == new.score(graph)).all()


def test_an_edit_counts_for_several_examples(taught):
    graph, gold, policy = taught
    rows, labels = decisions(graph, policy, 3)
    light, heavy = (
        refit(policy, rows, labels, volumes=[(graph, gold)], weight=w).model.predict(rows)
        for w in (1, 20)
    )
    assert ((heavy - light) * labels).mean() > 0


def test_another_strategy_and_edits_of_one_kind_go_with_a_training_set(taught):
    graph, gold, policy = taught
    rows, labels = decisions(graph, policy, 2)
    cuts = labels > 0
    new = refit(policy, rows[cuts], labels[cuts], volumes=[(graph, gold)], strategy="flat")
    assert new.record["strategy"] == "flat"
    assert new.record["edits"]["to_merge"] == 0


def test_without_a_training_set_it_learns_from_the_edits_alone(taught):
    graph, _, policy = taught
    rows = feature_matrix(graph, policy.features)
    labels = np.where(graph.boundary_mean() > 0.5, 1, -1)
    new = refit(policy, rows, labels, seed=3)
    assert ((new.score(graph) > 0.5) == (labels > 0)).all()
    assert new.record["strategy"] == "edits"
    assert new.record["settings"] == policy.record["settings"]
    assert new.record["held_out"] is True
    # A policy of edits alone can be trained again with volumes: by the default strategy.
    graph, gold = volume(1)
    more = refit(new, rows, labels, volumes=[(graph, gold)], strategy="flat")
    assert more.record["examples"] > len(rows)


def test_edits_of_one_kind_alone_are_refused_with_their_number(taught):
    graph, _, policy = taught
    rows = feature_matrix(graph, policy.features)[:4]
    with refuses("volumes", "merge a wrong segment, answer suggestions"):
        refit(policy, rows, np.ones(4))
    with refuses("volumes", "cut a wrong segment, answer suggestions") as caught:
        refit(policy, rows, -np.ones(4))
    assert "4 merges and 0 cuts" in caught.value.problem
    with refuses("volumes", "cut a wrong segment, answer suggestions") as caught:
        refit(policy, rows[:0], np.ones(0))
    assert "0 merges and 0 cuts" in caught.value.problem


def test_the_mean_can_become_a_learned_policy():
    graph, gold = volume(0)
    features = feature_map(graph, "minimal")
    rows = feature_matrix(graph, features)
    labels = np.where(graph.boundary_mean() > 0.5, 1, -1)
    assert refit(MeanPolicy(), rows, labels, features=features).features == features
    with_gold = refit(
        MeanPolicy(), rows, labels, features=features, volumes=[(graph, gold)], strategy="flat"
    )
    assert with_gold.features == features


def test_bad_rows_and_volumes_are_refused(taught):
    graph, gold, policy = taught
    rows, labels = decisions(graph, policy, 2)
    with refuses("extra", "pass rows of feature_matrix(graph"):
        refit(policy, rows[:, :3], labels)
    other = volume(0, cue="mito")
    with refuses("volumes", "build all graphs with the same cues"):
        refit(policy, rows, labels, volumes=[other])
    with refuses("rows", "merge or cut a segment, or answer"):
        refit(policy, rows[:0], labels[:0], volumes=[(graph, gold)])


def test_refit_can_be_cancelled(taught):
    graph, gold, policy = taught
    rows, labels = decisions(graph, policy, 2)

    def stop(_):
        raise Cancelled

    for volumes in (None, [(graph, gold)]):
        with pytest.raises(Cancelled):
            refit(policy, rows, labels, volumes=volumes, progress=stop)
