"""Plots of the quality of a segmentation, for files: each draws a table on matplotlib axes.

Every function takes tables of `napari_agglo.evaluate` and optionally the axes to draw on, and
returns the axes. None touches the state of pyplot or the settings of matplotlib.
"""

from __future__ import annotations

from napari_agglo.plots._boundary_figure import plot_boundaries
from napari_agglo.plots._breakdown_figure import plot_breakdown
from napari_agglo.plots._curve_figures import plot_split_vi, plot_vi_by_epoch, plot_vi_by_threshold
from napari_agglo.plots._error_map import (
    MERGE,
    SPLIT,
    check_plane,
    error_borders,
    error_picture,
    plot_error_map,
    worst_plane,
    wrong_shares,
)
from napari_agglo.plots._figure_style import DARK, LIGHT, Colours, new_axes, shown
from napari_agglo.plots._paired_figure import plot_paired_vi, plot_vi_rows
from napari_agglo.plots._policy_figures import plot_importances, plot_reliability
from napari_agglo.plots._raster_pictures import grey, label_colours, tinted

__all__ = [
    "plot_split_vi",
    "plot_vi_by_threshold",
    "plot_vi_by_epoch",
    "plot_breakdown",
    "plot_boundaries",
    "plot_paired_vi",
    "plot_vi_rows",
    "plot_reliability",
    "plot_importances",
    "plot_error_map",
    "error_picture",
    "error_borders",
    "check_plane",
    "worst_plane",
    "wrong_shares",
    "MERGE",
    "SPLIT",
    "grey",
    "tinted",
    "label_colours",
    "new_axes",
    "Colours",
    "LIGHT",
    "DARK",
    "shown",
]
