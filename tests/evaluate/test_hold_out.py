"""Held-out parts: what they have in common with the training data, and their errors."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from refusals import refuses

import napari_agglo as agglo
from napari_agglo.agglomeration import merge_tree
from napari_agglo.errors import Cancelled
from napari_agglo.evaluate import hold_out, state_at, train_and_hold_out
from napari_agglo.evaluate._hold_out import folds_of
from napari_agglo.learning import assign

pytestmark = pytest.mark.compiled  # forests are grown

POLICIES = {"flat": {"preset": "minimal", "classifier": "logistic"}, "mean": None}
OPTIONS = {"preset": "minimal", "classifier": "logistic", "epochs": 1}


@pytest.fixture(scope="module")
def volume():
    sample = agglo.sample("neuropil2d")
    crop = np.s_[:160, :200]
    cues = {name: cue[crop] for name, cue in sample.cues.items()}
    return agglo.region_graph(agglo.oversegment(cues["boundary"]), cues), sample.gold[crop]


@pytest.mark.parametrize("folds", [1, 2, 3])
def test_parts_lie_apart(volume, folds):
    graph, gold = volume
    image = graph.superpixels.image
    held_out = np.zeros(len(graph.boxes), np.int64)
    divided = folds_of([(graph, [gold])], folds)
    assert len(divided) == max(folds, 1)
    for fold in divided:
        ((trained, truth),), ((tested, judged),) = fold.training, fold.test
        sides = [np.setdiff1d(np.unique(image[one[0] > 0]), 0) for one in (truth, judged)]
        assert np.intersect1d(*sides).size == 0
        held_out[sides[1]] += 1
        between = np.isin(graph.edges, sides[0]).any(axis=1)
        between &= np.isin(graph.edges, sides[1]).any(axis=1)
        assert not between.any(), "no superpixel of one side touches one of the other"
        for part, inside in ((trained, sides[0]), (tested, sides[1])):
            assert part.n_boundaries > 0
            assert np.isin(part.edges[np.isin(part.edges, inside).any(axis=1)], inside).all()
        for masked in (truth[0], judged[0]):
            assert np.isin(masked[masked > 0], gold).all()
            np.testing.assert_array_equal(masked[masked > 0], gold[masked > 0])
    assert held_out.max() == 1, "each superpixel is held out once at most"
    if folds > 1:
        known = assign(graph, gold) > 0
        assert held_out[known].mean() > 0.7


def test_the_axis_leaves_segments_whole():
    """Segments are columns: a cut across the rows would leave a half of each on either side."""
    index = np.indices((24, 80))
    superpixels = index[0] // 2 * 40 + index[1] // 2 + 1
    gold = index[1] // 4 + 1
    graph = agglo.region_graph(superpixels, np.zeros((24, 80)))
    (fold,) = folds_of([(graph, [gold])], 1)
    (truth,), (judged,) = fold.training[0][1], fold.test[0][1]
    assert np.intersect1d(truth, judged).tolist() == [0]
    assert (truth > 0).any(axis=1).all()


def test_pixels_without_a_superpixel_are_on_the_side_of_their_plane(volume):
    graph, gold = volume
    labels = graph.superpixels.image.copy()
    labels[::7] = 0
    dammed = agglo.region_graph(labels, np.zeros(labels.shape))
    (fold,) = folds_of([(dammed, [gold])], 1)
    both = (fold.training[0][1][0] > 0).astype(int) + (fold.test[0][1][0] > 0)
    assert (both[labels == 0] == (gold[labels == 0] > 0)).all()


def test_a_row_is_what_one_gets_by_hand(volume):
    graph, gold = volume
    result = hold_out(graph, gold, POLICIES, seed=2)
    (fold,) = folds_of([(graph, [gold])], 1)
    policy = agglo.train(fold.training, strategy="flat", seed=2, **POLICIES["flat"])
    ((part, golds),) = fold.test
    curve = agglo.vi_curve(merge_tree(part, policy), golds)
    pd.testing.assert_frame_equal(result.curves["flat", "all but part 1", "part 1"], curve)
    assert result.table["vi_at_half"][0] == state_at(curve, 0.5)["vi"]
    assert (result.table["vi_best"] < result.table["vi_min"]).all()


def test_several_volumes_are_the_parts(volume):
    graph, gold = volume
    pairs = [(graph, [gold]), (graph, [gold]), (graph, [gold])]
    (fold,) = folds_of(pairs, 1)
    assert [len(fold.training), len(fold.test)] == [2, 1]
    np.testing.assert_array_equal(fold.test[0][1][0], gold)
    assert fold.test[0][0].n_boundaries == graph.n_boundaries
    assert fold.names == ["part 1 of volume 1"]
    few = folds_of(pairs[:2], 3)
    assert [[len(one.training), len(one.test)] for one in few] == [[2, 2]] * 3


def test_the_policy_learns_from_all_and_its_record_has_the_estimate(volume, tmp_path):
    graph, gold = volume
    epochs = []
    policy = train_and_hold_out(
        graph, gold, folds=2, each_epoch=lambda *one: epochs.append(one), **OPTIONS
    )
    whole = agglo.train(graph, gold, **OPTIONS)
    np.testing.assert_array_equal(policy.score(graph), whole.score(graph))
    result = hold_out(graph, gold, {"agglo": OPTIONS, "mean": None}, folds=2)
    table = result.table.groupby("policy")["vi_at_half"].mean()
    estimate = policy.record["estimate"]
    assert estimate["folds"] == 2
    for name, errors in estimate["policies"].items():
        assert errors["vi_at_half"] == pytest.approx(table[name], abs=1e-4)
    assert [one[:2] for one in epochs] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    last = [sum(one[2:]) for one in epochs if one[1] == 1]
    assert np.mean(last) == pytest.approx(table["agglo"])
    json.dumps(policy.record)
    loaded = agglo.load_policy(policy.save(tmp_path / "policy.npz"))
    assert loaded.record["estimate"] == estimate


def test_gold_that_is_too_small_gives_a_reason_in_place_of_an_estimate(volume):
    graph, gold = volume
    ids, counts = np.unique(assign(graph, gold), return_counts=True)
    few = np.where(np.isin(gold, ids[1:][np.argsort(-counts[1:])[:6]]), gold, 0)
    with refuses("folds", "annotate more segments, or train without a held-out part"):
        hold_out(graph, few, POLICIES)
    with refuses("folds", "choose fewer folds, or annotate more segments"):
        hold_out(graph, few, POLICIES, folds=5)
    errors = []
    policy = train_and_hold_out(graph, few, each_epoch=lambda *one: errors.append(one), **OPTIONS)
    estimate = policy.record["estimate"]
    assert "8 gold segments" in estimate["refusal"]
    assert "policies" not in estimate
    assert [one[0] for one in errors] == [None, None], "on the training data"
    assert "estimate" not in train_and_hold_out(graph, gold, folds=0, **OPTIONS).record
    with refuses("gold", "annotate some"):
        hold_out(graph, np.zeros_like(gold), POLICIES)
    with refuses("folds", ""):
        hold_out(graph, gold, folds=0)


def test_progress_goes_forward_names_its_stage_and_can_cancel(volume):
    states = []
    train_and_hold_out(*volume, progress=states.append, **OPTIONS)
    shares = [one.whole for one in states]
    assert shares == sorted(shares)
    assert shares[-1] > 0.8
    stages = " | ".join(one.stage for one in states)
    words = ("fit without the held-out part", "testing mean on the held-out", "with all the gold")
    for part in words:
        assert part in stages

    def cancel(state):
        if "testing" in state.stage:
            raise Cancelled

    with pytest.raises(Cancelled):
        train_and_hold_out(*volume, progress=cancel, **OPTIONS)
