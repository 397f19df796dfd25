"""Points of the plots of a learned policy: those of its record."""

from __future__ import annotations

from plots.curves import RECORD, drawn
from refusals import refuses

from napari_agglo.plots import (
    plot_importances,
    plot_reliability,
)


def test_reliability():
    axes = plot_reliability(RECORD)
    assert drawn(axes, "curve") == [(0.1, 0.2), (0.9, 0.9)]
    assert axes.get_title(loc="left") == "40 held-out examples, off by 7.5 % on average"
    assert "no record" in plot_reliability({}).texts[0].get_text()
    with refuses("record['calibration']", "pass the record of a policy as train wrote"):
        plot_reliability({"calibration": [[1, 2]]})


def test_importances():
    axes = plot_importances(RECORD, most=2)
    assert [bar.get_width() for bar in axes.patches] == [0.6, 0.3]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["a", "c"]
    assert "no record" in plot_importances({}).texts[0].get_text()
