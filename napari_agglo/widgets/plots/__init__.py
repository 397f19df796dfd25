"""Plots on the screen: they know tables and the mouse, but neither viewers nor layers.

Each follows a theme (`set_theme`), writes itself to a file (`export`), and says what to do while
there is nothing to see.
"""

from __future__ import annotations

from napari_agglo.widgets.plots._breakdown import BreakdownPlot
from napari_agglo.widgets.plots._by_epoch import EpochPlot
from napari_agglo.widgets.plots._by_threshold import ThresholdPlot
from napari_agglo.widgets.plots._dots import DotsPlot
from napari_agglo.widgets.plots._importances import ImportancePlot
from napari_agglo.widgets.plots._palette import contrast, palette
from napari_agglo.widgets.plots._plot import Plot
from napari_agglo.widgets.plots._reliability import ReliabilityPlot
from napari_agglo.widgets.plots._split_vi import SplitVIPlot

__all__ = [
    "Plot",
    "SplitVIPlot",
    "ThresholdPlot",
    "BreakdownPlot",
    "DotsPlot",
    "EpochPlot",
    "ImportancePlot",
    "ReliabilityPlot",
    "palette",
    "contrast",
]
