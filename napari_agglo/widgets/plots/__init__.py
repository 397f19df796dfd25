"""Interactive plots of tables, without viewers and layers.

Each follows a theme (`set_theme`), writes itself to a file (`export`), and shows the next thing to
do while it is empty.
"""

from __future__ import annotations

from napari_agglo.widgets.plots._breakdown_plot import BreakdownPlot, DotsPlot
from napari_agglo.widgets.plots._plot import Plot
from napari_agglo.widgets.plots._plot_style import contrast, palette
from napari_agglo.widgets.plots._policy_plots import EpochPlot, ImportancePlot, ReliabilityPlot
from napari_agglo.widgets.plots._split_vi_plot import SplitVIPlot
from napari_agglo.widgets.plots._threshold_plot import ThresholdPlot

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
