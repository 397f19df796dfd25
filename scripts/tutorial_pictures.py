"""Draw the pictures of the tutorials: ``python -m scripts.tutorial_pictures [NAME ...]``.

Each page is run in a temporary folder, block by block, as the tests run it, and its picture is
drawn from the variables that it leaves. So a picture shows what the page computes.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from napari_agglo.plots import grey, label_colours, plot_vi_by_threshold, tinted

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
COLOURS = 128  # few, so that the files stay small
Panels = dict[str, Any]  # the picture of each panel by its title


def run(page: Path) -> dict[str, Any]:
    """Run the Python of a page and return its variables."""
    names: dict[str, Any] = {}
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(block, str(page), "exec"), names)
    return names


def coloured(image: Any, labels: Any, strength: float = 0.55) -> Any:
    """Return an image with its segments in colours, and their borders in black."""
    labels = np.asarray(labels)
    _, dense = np.unique(labels, return_inverse=True)
    dense = dense.reshape(labels.shape)
    picture = tinted(
        grey(image), label_colours(int(dense.max()) + 1)[dense], strength * (labels > 0)
    )
    border = np.zeros(labels.shape, bool)
    border[:-1] |= labels[:-1] != labels[1:]
    border[:, :-1] |= labels[:, :-1] != labels[:, 1:]
    return tinted(picture, (0.0, 0.0, 0.0), 0.8 * border)


def neuropil(v: dict[str, Any]) -> Panels:
    """Return the panels of the tutorial on tissue: a plane of the half that is judged."""
    image, superpixels = v["sample"].image[v["right"]][24], v["test"].superpixels.image[24]
    gold = v["agglo"].matched(v["labels"], v["gold"])  # the same colours for the same objects
    both = np.concatenate([v["labels"][24], gold[24]], axis=1)
    learned, gold = np.split(coloured(np.tile(image, 2), both), 2, axis=1)
    return {
        "a plane and its superpixels": coloured(image, superpixels, 0.25),
        "learned segments": learned,
        "gold": gold,
    }


def cells(v: dict[str, Any]) -> Panels:
    """Return the panels of the tutorial on cells: both maps, and segments by the second."""
    curve = v["curve"]  # by the map of the strokes
    labels = v["agglo"].agglomerate(v["graph"]).segment(curve.threshold[curve.vi.idxmin()])
    return {
        "the stain": grey(v["image"]),
        "ridges": grey(v["boundary"]),
        "membrane, learned from strokes": grey(v["painted"]),
        "segments at the best threshold": coloured(v["image"], labels),
    }


def photograph(v: dict[str, Any]) -> Panels:
    """Return the panels of the tutorial on a photograph."""
    from napari_agglo import Session

    with Session.open("coffee.agglo", read_only=True) as session:
        labels = session.labels()
    return {
        "photograph": grey(v["photo"]),
        "superpixels": coloured(v["photo"], v["superpixels"], 0.25),
        "segments, the cup in one": coloured(v["photo"], labels),
    }


def thick_planes(v: dict[str, Any]) -> Panels:
    """Return the panels of the tutorial on a stack: a plane, and a section across the planes."""
    image = v["sample"].image[v["part"]]
    planes = v["graphs"]["plane by plane"].superpixels.image
    across = np.repeat(image[:, 56], 4, axis=0), np.repeat(v["labels"][:, 56], 4, axis=0)
    return {
        "a plane and its superpixels": coloured(image[12], planes[12], 0.25),
        "segments of this plane": coloured(image[12], v["labels"][12]),
        "across the planes": coloured(*across),
    }


def network(v: dict[str, Any]) -> Panels:
    """Return the panels of the tutorial on affinities."""
    return {
        "affinities of columns": grey(v["channels"][1]),
        "superpixels": coloured(v["sample"].image, v["superpixels"], 0.25),
        "learned segments": coloured(v["sample"].image, v["learned"].segment(0.5)),
    }


def other_tool(v: dict[str, Any]) -> Panels:
    """Return the panels of the tutorial on labels of another tool."""
    from napari_agglo import open_volume

    image = v["sample"].image
    marked = coloured(image, v["theirs"], 0.2)
    for suggestion in v["places"]:
        row, column = (round(one) for one in suggestion.position)
        marked[max(row - 3, 0) : row + 4, max(column - 3, 0) : column + 4] = (1.0, 0.2, 0.1)
    return {
        "labels of the other tool": coloured(image, v["theirs"]),
        "places to look at": marked,
        "corrected": coloured(image, open_volume("corrected.tif").load()),
    }


def large_volume(v: dict[str, Any]) -> Panels:
    """Return the panels of the tutorial on blocks."""
    image = v["sample"].image
    grid = grey(image)
    for at in range(0, image.shape[0], 96):
        grid[max(at - 1, 0) : at + 1] = (1.0, 0.5, 0.1)
    for at in range(0, image.shape[1], 96):
        grid[:, max(at - 1, 0) : at + 1] = (1.0, 0.5, 0.1)
    return {
        "blocks": grid,
        "superpixels": coloured(image, v["superpixels"], 0.25),
        "segments": coloured(image, np.asarray(v["result"].labels[0][...])),
    }


def draw_panels(path: Path, panels: Panels) -> None:
    """Write pictures side by side."""
    heights = [picture.shape[0] / picture.shape[1] for picture in panels.values()]
    height = 9.6 / len(panels) * max(heights) + 0.3
    figure = Figure(figsize=(9.6, height), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (title, picture) in zip(figure.subplots(1, len(panels)), panels.items(), strict=True):
        axes.imshow(picture, interpolation="nearest")
        axes.set_title(title, fontsize=9)
        axes.set_axis_off()
    page = io.BytesIO()
    figure.savefig(page, dpi=110)
    picture = Image.open(page).convert("RGB")
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


def draw_curves(path: Path, v: dict[str, Any]) -> None:
    """Write the picture of the tutorial on a policy of one's own: errors by threshold."""
    axes = plot_vi_by_threshold(v["curves"])
    axes.figure.savefig(path, dpi=110, bbox_inches="tight")


PAGES: dict[str, Callable[[dict[str, Any]], Panels] | None] = {
    "neuropil": neuropil,
    "cells": cells,
    "photograph": photograph,
    "thick_planes": thick_planes,
    "network": network,
    "other_tool": other_tool,
    "large_volume": large_volume,
    "own_policy": None,
}


def main(chosen: list[str]) -> None:
    """Draw the pictures of some pages, or of all."""
    for name in chosen or list(PAGES):
        path = DOCS / "images" / f"tutorial_{name}.png"
        with tempfile.TemporaryDirectory() as folder:
            before = os.getcwd()
            os.chdir(folder)
            try:
                variables = run(DOCS / "tutorials" / f"{name}.md")
                panels = PAGES[name]
                if panels is None:
                    draw_curves(path, variables)
                else:
                    draw_panels(path, panels(variables))
            finally:
                os.chdir(before)
        print(path)


if __name__ == "__main__":
    main(sys.argv[1:])
