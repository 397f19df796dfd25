"""Points of the plot of the VI breakdown: those of its table."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from plots.curves import GOLD, LABELS, names

from napari_agglo.evaluate import breakdown, split_vi
from napari_agglo.plots import (
    plot_breakdown,
)


def test_breakdown():
    found = breakdown(LABELS, GOLD)
    split = plot_breakdown(found.gold, kind="false split")
    (dots,) = split.collections
    assert dots.get_offsets().tolist() == [[6 / 11, 1.0]]
    assert names(split) == ["7"]
    assert "1 with false splits" in split.get_title(loc="left")
    assert "2 without" in split.get_title(loc="left")
    merge = plot_breakdown(found.segments, kind="false merge", worst=0)
    ((share, entropy),) = merge.collections[0].get_offsets().tolist()
    assert share * entropy == pytest.approx(split_vi(LABELS, GOLD)[0])
    assert names(merge) == []
    assert merge.get_ylabel() == "H(U|S=s) (bits)"


def test_the_worst_are_named_and_curves_join_equal_costs():
    table = pd.DataFrame({"share": np.geomspace(1e-4, 0.1, 50), "entropy": np.linspace(0.1, 2, 50)})
    table["contribution"] = table["share"] * table["entropy"]
    axes = plot_breakdown(table, kind="false merge", worst=3)
    assert sorted(map(int, names(axes))) == [47, 48, 49]
    curves = [x.get_xydata() for x in axes.lines if x.get_gid() == "isocurve"]
    assert len(curves) == 3
    for line in curves:
        assert np.ptp(line[:, 0] * line[:, 1]) == pytest.approx(0, abs=1e-9)


def test_many_dots_do_not_swell_a_vector_file():
    table = pd.DataFrame({"share": np.full(20000, 1e-5), "entropy": np.linspace(0.1, 2, 20000)})
    table["contribution"] = table["share"] * table["entropy"]
    out = io.BytesIO()
    plot_breakdown(table, kind="false split").figure.savefig(out, format="svg")
    assert len(out.getvalue()) < 400_000
