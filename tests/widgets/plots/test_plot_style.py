"""Style of all plots: colours of the theme, room, words, files."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from qtpy.QtCore import QPoint, QPointF, Qt
from qtpy.QtGui import QColor, QImage, QWheelEvent
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication
from refusals import refuses
from widgets.plots.mouse import DARK, LIGHT, MEAN

from napari_agglo.evaluate import breakdown
from napari_agglo.widgets.plots import (
    BreakdownPlot,
    EpochPlot,
    ImportancePlot,
    ReliabilityPlot,
    SplitVIPlot,
    ThresholdPlot,
    contrast,
    palette,
)


def filled(kind):
    """Return a plot with something to see."""
    plot = kind()
    if kind is SplitVIPlot:
        plot.set_curve("mean", MEAN)
    elif kind is ThresholdPlot:
        plot.set_curve(MEAN)
    elif kind is BreakdownPlot:
        plot.set_breakdown(breakdown(np.repeat([1, 2, 2, 3], 5), np.repeat([1, 1, 2, 3], 5)))
    elif kind is EpochPlot:
        plot.add(0, 0.5, 0.7)
        plot.add(1, 0.2, 0.3)
    elif kind is ImportancePlot:
        plot.set_record({"importances": {"a": 0.7, "b": 0.3}})
    else:
        plot.set_record({"calibration": [[0.1, 0.1, 5], [0.9, 0.8, 9]]})
    return plot


KINDS = [SplitVIPlot, ThresholdPlot, BreakdownPlot, EpochPlot, ImportancePlot, ReliabilityPlot]
every_plot = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


@every_plot
def test_no_plot_crushes_the_canvas(kind, shown):
    for plot in (kind(), filled(kind)):
        assert plot.sizeHint().width() <= 320
        assert plot.minimumSizeHint().width() <= 320
    shown(plot, 180, 160)
    assert plot.width() == 180, "it insists on more"


@every_plot
def test_every_plot_has_a_name_and_says_what_to_do(kind, shown):
    plot = shown(kind())
    for half in (plot.merges, plot.splits) if kind is BreakdownPlot else (plot,):
        assert half.empty
        assert len(half.hint.text()) > 30
        assert half.accessibleName()
        assert half.toolTip()


@every_plot
@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=["dark", "light"])
def test_a_plot_is_drawn_in_the_colours_of_the_theme(kind, theme, shown):
    plot = shown(filled(kind), 300, 500 if kind is BreakdownPlot else 260)
    plot.set_theme(*theme)
    QTest.qWait(30)
    pixels = plot.grab().toImage()
    paper, ink = QColor(theme[0]), QColor(theme[1])
    found = [pixels.pixelColor(x, y) for x in range(0, 300, 2) for y in range(pixels.height())]
    share = sum(colour == paper for colour in found) / len(found)
    assert share > 0.5, f"only {share:.0%} of it is background"
    assert any(contrast(colour.name(), paper.name()) > 6 for colour in found), "no words"
    assert contrast(paper.name(), ink.name()) > 6, "test invalid"


@every_plot
@pytest.mark.parametrize("ending", ["png", "svg"])
def test_export(kind, ending, shown, tmp_path):
    plot = shown(filled(kind))
    plot.set_theme(*LIGHT)
    path = tmp_path / f"plot.{ending}"
    plot.export(path)
    if ending == "png":
        image = QImage(str(path))
        assert image.width() == 3 * plot.width()
        assert image.height() == 3 * plot.height()
        seen = {image.pixel(x, y) for x in range(0, 900, 7) for y in range(0, image.height(), 3)}
        assert len(seen) > 10, "hardly anything is drawn"
    else:
        text = path.read_text()
        assert text.rstrip().endswith("</svg>")
        assert "<text" in text


def test_export_refuses_other_files(shown, tmp_path):
    plot = shown(filled(EpochPlot))
    with refuses("path", "choose one of them"):
        plot.export(tmp_path / "plot.gif")
    with refuses("path", "create it first"):
        plot.export(tmp_path / "none" / "plot.png")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", [SplitVIPlot, ThresholdPlot, EpochPlot], ids=lambda k: k.__name__)
def test_the_key_is_above_the_curves_and_does_not_move_them(kind, shown):
    plot = shown(filled(kind))
    key, canvas = plot.key.geometry(), plot.canvas.geometry()
    assert plot.key.text()
    assert key.bottom() < canvas.top()
    if kind is SplitVIPlot:
        plot.set_point("mean", 0.2)
        QTest.qWait(20)
        before = plot.canvas.geometry()
        for at in (0.0, 0.123456, 0.6, 1.0):
            plot.set_point("mean", at)
            QTest.qWait(5)
            assert plot.canvas.geometry() == before


def test_the_wheel_scrolls_the_dock_and_zooms_with_control(shown):
    plot = shown(filled(SplitVIPlot))
    before = plot.canvas.box.viewRange()

    def wheel(modifier):
        port = plot.canvas.viewport()
        spot = QPointF(port.rect().center())
        event = QWheelEvent(
            spot, QPointF(port.mapToGlobal(spot.toPoint())), QPoint(0, -120), QPoint(0, -120),
            Qt.MouseButton.NoButton, modifier, Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        event.accept()
        QApplication.sendEvent(port, event)
        QTest.qWait(20)
        return event.isAccepted()

    assert not wheel(Qt.KeyboardModifier.NoModifier), "the area around it never hears of it"
    assert plot.canvas.box.viewRange() == before
    assert wheel(Qt.KeyboardModifier.ControlModifier)
    assert plot.canvas.box.viewRange() != before


hexes = st.integers(0, 2**24 - 1).map(lambda n: f"#{n:06x}")


@given(hexes, hexes)
def test_every_colour_stands_out_as_far_as_the_theme_allows(background, foreground):
    found = palette(background, foreground)
    allowed = contrast(background, foreground)
    for colour in (found.merge, found.split, *found.series):
        assert contrast(colour, found.paper) >= min(3.0, allowed) - 1e-6
    for colour in (found.muted, *found.text):
        assert contrast(colour, found.paper) >= min(4.5, allowed) - 1e-6
