"""Points of plots over many images: those of their tables."""

from __future__ import annotations

import pytest
from plots.curves import drawn, names

from napari_agglo.plots import (
    plot_paired_vi,
    plot_vi_rows,
)


def test_paired():
    axes = plot_paired_vi(
        {"a": 1.0, "b": 2.0, "c": 3.0}, {"a": 0.4, "b": 2.5, "d": 1.0}, names=("mean", "agglo")
    )
    better, worse = (c.get_offsets().tolist() for c in axes.collections)
    assert better == [[1.0, 0.4]]
    assert worse == [[2.0, 2.5]]
    assert axes.get_title(loc="left") == "1 of 2 images better by agglo"
    assert sorted(names(axes)) == ["a", "b"]
    assert "no image" in plot_paired_vi({"a": 1.0}, {}).texts[0].get_text()


def test_rows():
    axes = plot_vi_rows({"agglo": [1.0, 2.0], "human": [0.5], "none": []})
    assert drawn(axes, "mean")[::2] == [(1.5, pytest.approx(-0.28)), (0.5, pytest.approx(0.72))]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["agglo", "human", "none"]
