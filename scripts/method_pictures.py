"""Draw the pictures of docs/method.md: ``python -m scripts.method_pictures [FOLDER]``."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import napari_agglo as agglo
from napari_agglo.plots import grey
from scripts.tutorial_pictures import DOCS, coloured, draw_panels

PART = (slice(0, 130), slice(0, 130))  # of the sample, so that single regions are seen
THRESHOLDS = (0.15, 0.4)


def draw_scales(path: Path, sample: agglo.Sample, tree: agglo.MergeTree) -> None:
    """Draw the stages from the image to segments at two thresholds."""
    image = sample.image[PART]
    panels = {"image": grey(image), "boundary map": grey(sample.cues["boundary"][PART])}
    panels["superpixels"] = coloured(image, tree.segment(-np.inf)[PART], 0.25)
    for threshold in THRESHOLDS:
        panels[f"threshold {threshold}"] = coloured(image, tree.segment(threshold)[PART])
    draw_panels(path, panels)


def merged_sizes(graph: agglo.RegionGraph, tree: agglo.MergeTree) -> np.ndarray:
    """Return the pixels of the larger region of each merge, in the order of the merges."""
    sizes = dict(enumerate(graph.sizes.tolist()))
    larger = []
    for kept, absorbed in zip(tree.winners.tolist(), tree.losers.tolist(), strict=True):
        larger.append(max(sizes[kept], sizes[absorbed]))
        sizes[kept] += sizes.pop(absorbed)
    return np.array(larger)


def draw_sizes(path: Path, graph: agglo.RegionGraph, tree: agglo.MergeTree) -> None:
    """Draw the sizes of superpixels beside those of the regions that an agglomeration meets."""
    met = merged_sizes(graph, tree)
    edges = np.geomspace(graph.sizes[1:].min(), met.max(), 24)
    figure = Figure(figsize=(6.4, 2.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for values, name, colour in (
        (graph.sizes[1:], "superpixels: the examples of flat", "#0072b2"),
        (met, "larger region of each merge: also examples of agglo", "#d55e00"),
    ):
        axes.hist(values, edges, histtype="step", linewidth=1.6, color=colour, label=name)
    axes.set_xscale("log")
    axes.set_xlabel("pixels of a region")
    axes.set_ylabel("regions")
    axes.legend(fontsize=8, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


def main(folder: Path) -> None:
    """Draw all pictures of the page."""
    sample = agglo.sample("neuropil2d")
    superpixels = agglo.oversegment(sample.cues["boundary"], spacing=sample.spacing)
    graph = agglo.region_graph(superpixels, sample.cues, spacing=sample.spacing)
    tree = agglo.agglomerate(graph, "mean")
    draw_scales(folder / "method_scales.png", sample, tree)
    draw_sizes(folder / "method_sizes.png", graph, tree)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS / "images")
