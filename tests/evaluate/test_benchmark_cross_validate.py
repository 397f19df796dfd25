from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from refusals import refuses

import napari_agglo as agglo
from napari_agglo.errors import Cancelled, SetOption
from napari_agglo.evaluate import best_point, cross_validate, minimum, state_at

pytestmark = pytest.mark.compiled  # forests are grown

POLICIES = {"flat": {"preset": "minimal"}, "mean": None}


@pytest.fixture(scope="module")
def volumes():
    sample = agglo.sample("neuropil2d")
    out = {}
    for name, start in (("a", 0), ("b", 80), ("c", 160)):
        crop = np.s_[:80, start : start + 80]
        cues = {cue: data[crop] for cue, data in sample.cues.items()}
        graph = agglo.region_graph(agglo.oversegment(cues["boundary"]), cues)
        out[name] = graph, sample.gold[crop]
    return out


@pytest.fixture(scope="module")
def found(volumes):
    return cross_validate(volumes, POLICIES, seed=3)


def test_each_learns_from_one_and_is_tested_on_the_others(volumes, found):
    done = list(zip(found.table["policy"], found.table["train"], found.table["test"], strict=True))
    assert done == [
        ("flat", "a", "b"), ("flat", "a", "c"), ("flat", "b", "a"), ("flat", "b", "c"),
        ("flat", "c", "a"), ("flat", "c", "b"),
        ("mean", None, "a"), ("mean", None, "b"), ("mean", None, "c"),
    ]  # fmt: skip
    assert list(found.curves) == done
    assert set(found.trained) == {("flat", "a"), ("flat", "b"), ("flat", "c")}


def test_a_row_is_what_one_gets_by_hand(volumes, found):
    policy = agglo.train(*volumes["b"], strategy="flat", preset="minimal", seed=3)
    graph, gold = volumes["c"]
    curve = agglo.vi_curve(agglo.agglomerate(graph, policy), gold)
    pd.testing.assert_frame_equal(found.curves["flat", "b", "c"], curve)
    row = found.table.iloc[3]
    assert row["vi_at_half"] == state_at(curve, 0.5)["vi"]
    assert row["vi_min"] == minimum(curve)["vi"]
    assert row["threshold_min"] == minimum(curve)["threshold"]
    assert row["vi_best"] == best_point(graph, gold)["vi"] == found.best.loc["c", "vi"]
    assert row["vi_best"] <= row["vi_min"] + 0.05  # A* need not be the very least, but nearly is


def test_summary_and_mean(found):
    summary = found.summary()
    assert summary.index.tolist() == ["flat", "mean"]
    assert summary["n"].tolist() == [6, 3]
    flat = found.table[found.table["policy"] == "flat"]["vi_min"]
    assert summary.loc["flat", "vi_min"] == pytest.approx(flat.mean())
    assert summary.loc["flat", "vi_min_sem"] == pytest.approx(flat.std(ddof=1) / 6**0.5)
    assert (found.mean_curve("flat")["n"] == 6).all()


def test_several_golds_and_numbered_volumes(volumes):
    (one, gold), (two, other) = volumes["a"], volumes["b"]
    found = cross_validate([(one, [gold, gold]), (two, other)], {"mean": agglo.MeanPolicy()})
    assert found.table["test"].tolist() == [0, 1]
    assert found.best.loc[0].to_dict() == pytest.approx(best_point(one, gold))
    plain = cross_validate([(one, gold), (two, other)], {"mean": "mean"})
    pd.testing.assert_frame_equal(found.table, plain.table)


def test_progress_goes_forward_and_can_cancel(volumes):
    seen = []
    cross_validate(volumes, POLICIES, progress=seen.append)
    done = [one.done for one in seen]
    assert done == sorted(done)
    assert seen[-1].fraction == 1
    assert len({one.total for one in seen}) == 1, "one bar for 3 trainings and 6 + 3 tests"
    assert {"train flat on volume a", "test flat on volume b", "test mean on volume c"} <= {
        one.stage for one in seen
    }

    def cancel(progress):
        if progress.stage.startswith("test"):
            raise Cancelled

    with pytest.raises(Cancelled):
        cross_validate(volumes, POLICIES, progress=cancel)


def test_refusals(volumes):
    with refuses("volumes", "cut a volume in two, or add one"):
        cross_validate([volumes["a"]])
    with refuses("policies", "name one, e.g. {'agglo': {}}"):
        cross_validate(volumes, {})
    with refuses("policy", "pass one of these names, a function, or"):
        cross_validate(volumes, {"mode": None})


@pytest.mark.parametrize(
    ("wrong", "refusal"),
    [
        ("mode", ("policy", "pass one of these names, a function, or")),
        (
            {"presett": "minimal"},
            ("policies['other']", "choose from classifier, each_epoch, epochs"),
        ),
        ({"strategy": "lasso"}, ("policies['other']", "choose from flat, agglo, lash, mixed")),
    ],
)
def test_untrainable_folds_are_refused_before_the_first_training(volumes, wrong, refusal):
    def never(progress):
        raise AssertionError(progress.stage)

    with refuses(*refusal):
        cross_validate(volumes, {"flat": {}, "other": wrong}, progress=never)


def test_policies_are_a_dict(volumes):
    expected = SetOption("policies", {"mean": None, "flat": {}})
    with refuses("policies", expected, facts=("dict",)):
        cross_validate(volumes, ["mean", "flat"])
    with refuses("policies", SetOption):
        cross_validate(volumes, 3)
