"""Compile or load the kernels before they are needed, in the background."""

from __future__ import annotations

import numpy as np
from napari.utils.colormaps import label_colormap

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.graph import region_graph
from napari_agglo.superpixels import oversegment
from napari_agglo.tree import agglomerate
from napari_agglo.widgets._colours import COLOURS, MARKS, direct_colours

WARM = "warm"  # the name of the job
_done = False


def is_warm() -> bool:
    """Return whether this process has been warmed up."""
    return _done


def warm_up(progress: ProgressCallback) -> None:
    """Run the pipeline on next to nothing, in 2-D and 3-D."""
    global _done
    rng = np.random.default_rng(0)
    shapes = ((12, 12), (6, 12, 12))
    for k, shape in enumerate(shapes):
        report(progress, "loading kernels", k, len(shapes))
        cue = rng.random(shape, np.float32)
        graph = region_graph(oversegment(cue, min_size=1), cue)
        agglomerate(graph, "mean").segment(0.5)
    report(progress, "loading colours", len(shapes), len(shapes) + 1)
    # napari compiles how it colours labels in each process anew: seconds, at the first selection.
    direct_colours(MARKS).map(np.zeros((2, 2), np.uint8))
    label_colormap(COLOURS).map(np.zeros((2, 2), np.uint32))
    _done = True
