"""Points of the plot of boundary precision and recall: those of its tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from plots.curves import drawn

from napari_agglo.plots import (
    plot_boundaries,
)


def test_boundaries():
    table = pd.DataFrame({"precision": [0.5, 0.9, 1.0], "recall": [0.9, 0.8, 0.1]})
    table["f"] = 2 * table["precision"] * table["recall"] / table.sum(axis=1)
    axes = plot_boundaries({"mean": table}, human={"precision": 0.95, "recall": 0.7})
    assert drawn(axes, "greatest") == [(0.8, 0.9)]
    assert drawn(axes, "human") == [(0.7, 0.95)]
    for line in (x.get_xydata() for x in axes.lines if x.get_gid() == "isoline"):
        f = 2 * line[:, 0] * line[:, 1] / line.sum(axis=1)
        assert np.ptp(f) == pytest.approx(0, abs=1e-9)
    nothing = table.assign(precision=np.nan, recall=np.nan, f=np.nan)
    assert drawn(plot_boundaries({"none": nothing}), "greatest") == []
