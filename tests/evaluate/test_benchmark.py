from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

import napari_agglo as agglo
from napari_agglo.errors import Cancelled, SetOption
from napari_agglo.evaluate import (
    best_covering,
    boundary_curve,
    human_agreement,
    mean_curve,
    metrics,
    over_set,
    state_at,
    vi_curve,
)


def case(seed):
    rng = np.random.default_rng(seed)
    superpixels = rng.integers(1, 9, (7, 8))
    boundary = np.round(rng.random((7, 8)), 1)
    tree = agglo.agglomerate(agglo.region_graph(superpixels, boundary))
    return tree, rng.integers(0, 4, (7, 8))


def cases(seed, n=3):
    return {f"image {k}": case(seed + k) for k in range(n)}


@given(st.integers(0, 2**31), st.sampled_from(["vi", "rand", "covering"]))
def test_one_threshold_for_all_or_one_each(seed, quantity):
    trees = cases(seed)
    curves = {name: vi_curve(*one) for name, one in trees.items()}
    best_of = min if quantity == "vi" else max
    thresholds = np.unique(np.concatenate([c["threshold"] for c in curves.values()]))
    at_all = [np.mean([state_at(c, t)[quantity] for c in curves.values()]) for t in thresholds]
    found = over_set(curves, quantity)
    assert found.ods == pytest.approx(best_of(at_all))
    assert found.threshold == thresholds[np.argmax(np.isclose(at_all, found.ods))]
    assert found.ois == pytest.approx(np.mean([best_of(c[quantity]) for c in curves.values()]))
    assert best_of(found.ois, found.ods) == pytest.approx(found.ois)
    for name, row in found.images.iterrows():
        assert row["ods"] == state_at(curves[name], found.threshold)[quantity]
        assert row["ois"] == state_at(curves[name], row["threshold"])[quantity]
    assert found.best is None


def test_best_possible_is_surpassed_by_no_threshold():
    trees = cases(3)
    curves = {name: vi_curve(*one) for name, one in trees.items()}
    best = {name: best_covering(*one) for name, one in trees.items()}
    found = over_set(curves, "covering", best=best)
    assert found.best == pytest.approx(np.mean(list(best.values())))
    assert found.ods <= found.ois <= found.best
    with refuses("best", "leave it out, or compute it for the same"):
        over_set(curves, "covering", best={"image 0": 1.0})


def test_boundary_pixels_of_all_images_are_put_together():
    thresholds = np.linspace(0, 1, 11)
    curves = {
        name: boundary_curve(tree, gold, tolerance=1, thresholds=thresholds)
        for name, (tree, gold) in cases(5).items()
    }
    found = over_set(curves, "f")
    counts = ["drawn", "right", "true", "recalled"]
    sums = sum(c.set_index("threshold")[counts] for c in curves.values())
    precision, recall = sums["right"] / sums["drawn"], sums["recalled"] / sums["true"]
    f = (2 * precision * recall / (precision + recall)).fillna(0)
    assert found.ods == pytest.approx(f.max())
    assert found.threshold == f.idxmax()
    own = sum(c.iloc[c["f"].to_numpy().argmax()][counts] for c in curves.values())
    p, r = own["right"] / own["drawn"], own["recalled"] / own["true"]
    assert found.ois == pytest.approx(2 * p * r / (p + r))
    plain = {name: one[["threshold", "f"]] for name, one in curves.items()}
    expected = np.mean([one["f"].max() for one in plain.values()])
    assert over_set(plain, "f").ois == pytest.approx(expected)  # without counts: the mean


@given(st.integers(0, 2**31))
def test_the_mean_holds_at_every_threshold(seed):
    curves = {name: vi_curve(*one) for name, one in cases(seed).items()}
    mean = mean_curve(curves)
    for row in mean.itertuples():
        values = [state_at(c, row.threshold)["vi"] for c in curves.values()]
        assert row.vi == pytest.approx(np.mean(values))
        assert row.vi_sem == pytest.approx(np.std(values, ddof=1) / math.sqrt(3))
    assert (mean["n"] == 3).all()
    assert mean["vi"].to_numpy() == pytest.approx(mean["false_merge"] + mean["false_split"])
    chosen = mean_curve(list(curves.values()), thresholds=[0.5, 0.1])
    assert chosen["threshold"].tolist() == [0.1, 0.5]
    assert chosen["vi"].iloc[1] == mean_curve(curves, [0.5])["vi"].iloc[0]


@given(st.integers(0, 2**32))
def test_the_mean_keeps_the_best_threshold(seed):
    rng = np.random.default_rng(seed)
    curves = {}
    for name in range(3):
        at = np.unique(rng.integers(0, 3000, 900)) / 3000
        at[0] = -np.inf
        curves[name] = pd.DataFrame({"threshold": at, "vi": rng.integers(0, 99, at.size) / 8})
    mean = mean_curve(curves)
    assert len(mean) <= 1001
    assert mean["vi"].min() == over_set(curves).ods


def test_one_curve_has_no_standard_error_and_many_points_are_thinned():
    rng = np.random.default_rng(0)
    one = pd.DataFrame({"threshold": np.sort(rng.random(5000)), "vi": rng.random(5000)})
    mean = mean_curve([one])
    assert len(mean) <= 1001
    assert mean["vi"].min() == one["vi"].min(), "the least is not thinned out"
    assert mean["threshold"].iloc[[0, -1]].tolist() == one["threshold"].iloc[[0, -1]].tolist()
    assert mean["vi_sem"].isna().all()
    assert mean["vi"].isin(one["vi"]).all()


def test_refusals():
    curve = vi_curve(*case(0))
    with refuses("curves", 'pass {"mean": vi_curve(tree, gold)}'):
        over_set({})
    with refuses("quantity", SetOption("quantity", "vi")):
        over_set({"a": curve}, "entropy")
    with refuses("curves['a']", "make it with vi_curve or boundary_curve"):
        over_set({"a": curve.drop(columns="covering")}, "covering")
    with refuses("curves[0]", "make it with vi_curve or boundary_curve"):
        mean_curve([curve.iloc[:0]])


def test_people_against_people():
    rng = np.random.default_rng(1)
    golds = [rng.integers(0, 4, (6, 6)) for _ in range(3)]
    found = human_agreement(golds)
    assert list(zip(found["labels"], found["gold"], strict=True)) == [
        (0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1),
    ]  # fmt: skip
    pair = found.set_index(["labels", "gold"])
    assert pair.loc[(0, 1), "vi"] == pytest.approx(pair.loc[(1, 0), "vi"])
    assert pair.loc[(0, 1), "false_merge"] == pytest.approx(pair.loc[(1, 0), "false_split"])
    both = np.where((golds[0] > 0) & (golds[1] > 0), golds[1], 0)
    assert pair.loc[(0, 1), "covering"] == pytest.approx(metrics(golds[0], both)["covering"])
    same = human_agreement([golds[0], golds[0]])
    assert (same["vi"] == 0).all()
    for wrong in (golds[0], [golds[0]]):
        with refuses("golds", "compare the annotation of one person with"):
            human_agreement(wrong)

    def cancel(progress):
        raise Cancelled

    with pytest.raises(Cancelled):
        human_agreement(golds, progress=cancel)
