from __future__ import annotations

import math

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from napari_agglo.evaluate import minimum, state_at, tangent_point


def curve(merge, split):
    merge, split = np.asarray(merge, float), np.asarray(split, float)
    thresholds = np.concatenate([[-math.inf], np.linspace(0, 1, merge.size - 1)])
    return pd.DataFrame(
        {"threshold": thresholds, "false_merge": merge, "false_split": split, "vi": merge + split}
    )


def test_minimum_is_the_first_of_equals():
    assert minimum(curve([0, 1, 1, 5], [3, 1, 1, 0]))["threshold"] == 0.0


@given(st.integers(0, 2**32), st.floats(0.01, 100))
def test_no_point_lies_below_the_tangent(seed, a):
    rng = np.random.default_rng(seed)
    drawn = curve(np.sort(rng.random(20)), np.sort(rng.random(20))[::-1])
    point = tangent_point(drawn, a)
    touched = a * point["false_merge"] + point["false_split"]
    assert (a * drawn["false_merge"] + drawn["false_split"] >= touched).all()
    assert tangent_point(drawn)["vi"] == minimum(drawn)["vi"]


def test_a_heavier_weight_moves_towards_splits():
    drawn = curve([0, 0.2, 1], [1, 0.5, 0])
    assert [tangent_point(drawn, a)["false_merge"] for a in (0.1, 1, 10)] == [1, 0.2, 0]


def test_refusals():
    drawn = curve([0, 1], [1, 0])
    for wrong in (0, -2, math.inf, math.nan, None):
        with refuses("a", "pass 1 to weigh both errors alike, 2 to"):
            tangent_point(drawn, wrong)
    nothing = drawn.iloc[:0]
    for find in (minimum, tangent_point, lambda curve: state_at(curve, 0.5)):
        with refuses("curve", "make it with vi_curve"):
            find(nothing)
