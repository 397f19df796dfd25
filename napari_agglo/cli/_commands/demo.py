"""`napari-agglo demo`: the main job on the embedded sample, from image to picture."""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.samples import SAMPLES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from napari_agglo.samples import Sample


# The picture of the demo: what went in, what came out, and how wrong it is.


_MERGE, _SPLIT, _TOTAL, _MARK = "#c8553d", "#2f6690", "#222222", "#e0a030"


def draw(
    path: Path,
    sample: Sample,
    superpixels: NDArray[Any],
    labels: NDArray[Any],
    curve: pd.DataFrame,
) -> None:
    """Write the picture of one plane and both curves as PNG; it uses no state of pyplot."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from napari_agglo.cli._terminal import best_typed
    from napari_agglo.plots import grey

    image, over, cut, gold = (
        _enlarged(_middle(a, sample.gold.ndim))
        for a in (sample.image, superpixels, labels, sample.gold)
    )
    colours = _colours(int(max(labels.max(), sample.gold.max())) + 1)
    backdrop = grey(image)

    figure = Figure(figsize=(15, 8.6), layout="constrained")
    FigureCanvasAgg(figure)
    halves: Any = figure.subfigures(2, 1)  # an array of two, or one figure, says the stub
    pictures_row, curves_row = halves
    panels = pictures_row.subplots(1, 4)
    best = int(curve["vi"].to_numpy().argmin())
    pictures = [
        ("image", backdrop),
        (f"{int(superpixels.max())} superpixels", _outlined(backdrop, over, (1.0, 0.7, 0.1))),
        (
            f"mean agglomeration at {best_typed(curve)}: "
            f"{int(curve['segments'].iloc[best])} segments",
            _outlined(_tinted(backdrop, _matched(labels, sample.gold, colours)[cut], cut), cut),
        ),
        ("gold standard", _outlined(_tinted(backdrop, colours[gold], gold), gold)),
    ]
    for axes, (title, picture) in zip(panels, pictures, strict=True):
        axes.imshow(picture, interpolation="antialiased")
        axes.set_title(title, fontsize=11)
        axes.set_axis_off()
    pictures_row.supxlabel(
        "A segment has the colour of the gold segment it covers best; split-off parts have another",
        fontsize=9,
        color="#555555",
    )
    by_threshold, split_merge = curves_row.subplots(1, 2, width_ratios=[1.6, 1])
    _plot_by_threshold(by_threshold, curve, best)
    _plot_split_merge(split_merge, curve, best)
    figure.savefig(path, dpi=110, format="png")


def draw_curve(path: Path, name: str, curve: pd.DataFrame, threshold: float) -> None:
    """Write the split-VI plot and VI by threshold side by side; the suffix says the format."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from napari_agglo.plots import plot_split_vi, plot_vi_by_threshold
    from napari_agglo.volumes import replacing

    figure = Figure(figsize=(10, 4.6), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    split, by_threshold = figure.subplots(1, 2)
    plot_split_vi({name: curve}, threshold=threshold, axes=split)
    plot_vi_by_threshold({name: curve}, threshold=threshold, axes=by_threshold)
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=120, format=path.suffix[1:].lower())


def _middle(array: NDArray[Any], ndim: int) -> NDArray[Any]:
    """Return the middle plane of the first `ndim` axes; a colour axis after them stays."""
    for _ in range(ndim - 2):
        array = array[array.shape[0] // 2]
    return array


def _enlarged(plane: NDArray[Any], wanted: int = 480) -> NDArray[Any]:
    """Repeat pixels, so that an outline one pixel wide is a thin line and hides nothing."""
    factor = max(1, round(wanted / max(plane.shape[:2])))
    return plane.repeat(factor, axis=0).repeat(factor, axis=1)


def _colours(n: int) -> NDArray[np.float64]:
    """Return n colours, neighbours far apart in hue; 0, no region, is black."""
    from matplotlib.colors import hsv_to_rgb

    i = np.arange(n)
    # The golden ratio spreads hues evenly for any n; the other two vary to tell close hues apart.
    hsv = np.stack([i * 0.618034 % 1, 0.55 + 0.4 * (i * 0.4142 % 1), 0.7 + 0.3 * (i * 0.732 % 1)])
    rgb = np.asarray(hsv_to_rgb(hsv.T), float)
    rgb[0] = 0
    return rgb


def _matched(
    labels: NDArray[Any], gold: NDArray[Any], colours: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the colours of the segments: that of the gold segment each covers better than others.

    A gold segment gives its colour once, to the segment that shares most voxels with it; the rest
    get colours of their own.
    """
    from napari_agglo.evaluate import contingency

    table = contingency(labels, gold)
    result = np.roll(colours, len(colours) // 2 + 1, axis=0)[::-1].copy()
    taken: set[int] = set()
    done: set[int] = set()
    for entry in np.argsort(-table.counts, kind="stable"):
        segment = int(table.row_ids[table.rows[entry]])
        partner = int(table.column_ids[table.columns[entry]])
        if segment not in done and partner not in taken:
            result[segment] = colours[partner]
            done.add(segment)
            taken.add(partner)
    result[0] = 0
    return result


def _tinted(
    grey: NDArray[np.float64], colour: NDArray[np.float64], labels: NDArray[Any]
) -> NDArray[np.float64]:
    """Lay colours over the image, except where there is no label."""
    alpha = np.where(labels > 0, 0.55, 0.0)[..., None]
    return np.asarray(grey * (1 - alpha) + colour * alpha)


def _outlined(
    picture: NDArray[np.float64],
    labels: NDArray[Any],
    colour: tuple[float, float, float] = (1.0, 1.0, 1.0),
) -> NDArray[np.float64]:
    """Draw a line on the pixels whose label differs from that of the next in row or column."""
    edge = np.zeros(labels.shape, bool)
    edge[:-1] |= labels[:-1] != labels[1:]
    edge[:, :-1] |= labels[:, :-1] != labels[:, 1:]
    result = picture.copy()
    result[edge] = colour
    return result


def _plot_by_threshold(axes: Axes, curve: pd.DataFrame, best: int) -> None:
    from napari_agglo.cli._terminal import best_typed

    threshold = curve["threshold"].to_numpy().copy()
    threshold[0] = min(0.0, float(threshold[1:].min(initial=0.0)))  # -inf cannot be drawn
    for column, colour, name in (
        ("false_merge", _MERGE, "false merge H(U|S)"),
        ("false_split", _SPLIT, "false split H(S|U)"),
        ("vi", _TOTAL, "VI, their sum"),
    ):
        axes.step(threshold, curve[column], where="post", color=colour, label=name, lw=1.8)
    axes.axvline(threshold[best], color=_MARK, lw=1.5, zorder=0)
    axes.annotate(
        f" best: {curve['vi'].iloc[best]:.2f} bits at {best_typed(curve)}",
        (threshold[best], 1),
        xycoords=("data", "axes fraction"),
        xytext=(2, -12),
        textcoords="offset points",
        fontsize=9,
        color="#8a5d00",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
    )
    axes.axvline(0.5, color="#999999", lw=1, ls=":", zorder=0)
    axes.set(xlabel="threshold", ylabel="bits", xlim=(0, max(1.0, float(threshold.max()))))
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=9)
    _plain(axes)


def _plot_split_merge(axes: Axes, curve: pd.DataFrame, best: int) -> None:
    axes.plot(curve["false_merge"], curve["false_split"], color=_TOTAL, lw=1.8)
    for row, name, colour in ((0, "superpixels", _SPLIT), (best, "best", _MARK)):
        point = (float(curve["false_merge"].iloc[row]), float(curve["false_split"].iloc[row]))
        axes.plot(*point, "o", color=colour, ms=7, zorder=3)
        axes.annotate(name, point, xytext=(8, 4), textcoords="offset points", fontsize=9)
    axes.set(xlabel="false merge H(U|S) (bits)", ylabel="false split H(S|U) (bits)")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    _plain(axes)


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, lw=0.6)


NAME = "demo"
SUMMARY = "open the embedded sample in napari, or run the pipeline on it without a display"
DESCRIPTION = (
    "With a display: open napari with the embedded sample and the guided dock.\n"
    "Without one, or with --headless: oversegment the sample, agglomerate by mean boundary,\n"
    "evaluate at every threshold, and write superpixels.tif, labels.tif (at the best threshold),\n"
    "tree.csv, curve.csv, picture.png and summary.json."
)
EXAMPLE = "napari-agglo demo -o demo-output"
DEFAULT_OUTPUT = "demo-output"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "-o",
        "--output",
        default=DEFAULT_OUTPUT,
        metavar="DIR",
        help=f"folder to write to (default: {DEFAULT_OUTPUT})",
    )
    parser.add_argument(
        "--headless",
        action="store_true",
        help="open no window, and write results instead (as where there is no display)",
    )
    parser.add_argument(
        "--sample", default="neuropil3d", metavar="KIND", help="which sample (default: neuropil3d)"
    )


class _Clock:
    """Seconds spent in each stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start


def run(arguments: argparse.Namespace) -> None:
    """Open the window where there can be one; otherwise run the pipeline and write its results."""
    known = arguments.sample in SAMPLES  # otherwise the pipeline says what is wrong
    if known and not arguments.headless and has_display():
        open_window(arguments.sample)
    else:
        run_headless(arguments)


def has_display() -> bool:
    """Return whether a window can be opened: there is a screen, napari and a Qt binding."""
    bindings = ("PyQt6", "PySide6", "PyQt5", "PySide2")
    if find_spec("napari") is None or not any(find_spec(name) for name in bindings):
        return False
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_window(sample: str) -> None:
    """Open napari in a process of its own: the command line knows nothing of windows."""
    print(f"Opening napari with the sample {sample} and the Agglo dock. Close the window to end.")
    ended = subprocess.run([sys.executable, "-m", "napari_agglo.widgets", sample], check=False)
    if ended.returncode:
        raise InvalidInput(
            f"The window could not be opened, or closed with an error (status {ended.returncode}); "
            "add --headless to run without one."
        )


def run_headless(arguments: argparse.Namespace) -> None:
    """Run the pipeline and write its results."""
    from napari_agglo.agglomeration import agglomerate
    from napari_agglo.cli._files import output_folder
    from napari_agglo.cli._terminal import best_typed, json_text, progress_line
    from napari_agglo.cli._words import command_words
    from napari_agglo.evaluate import minimum, vi_curve
    from napari_agglo.graph import region_graph
    from napari_agglo.samples import sample
    from napari_agglo.superpixels import oversegment
    from napari_agglo.volumes import write_labels

    clock = _Clock()
    with output_folder(arguments.output) as folder:
        with progress_line() as progress:
            with clock.stage("sample"), command_words({"kind": "--sample"}):
                drawn = sample(arguments.sample)
            with clock.stage("superpixels"):
                superpixels = oversegment(
                    drawn.cues["boundary"], spacing=drawn.spacing, progress=progress
                )
            with clock.stage("graph"):
                graph = region_graph(
                    superpixels, drawn.cues, spacing=drawn.spacing, progress=progress
                )
            with clock.stage("agglomeration"):
                tree = agglomerate(graph, "mean", progress=progress)
            with clock.stage("evaluation"):
                curve = vi_curve(tree, drawn.gold, progress=progress)
        best = minimum(curve)
        with clock.stage("labels"):
            labels = tree.segment(best["threshold"])
        with clock.stage("files"):
            write_labels(folder / "superpixels.tif", superpixels, spacing=drawn.spacing)
            write_labels(folder / "labels.tif", labels, spacing=drawn.spacing)
            tree.to_csv(folder / "tree.csv")
            curve.to_csv(folder / "curve.csv", index=False)
            draw(folder / "picture.png", drawn, superpixels, labels, curve)
        summary = _summary(arguments.sample, drawn.image.shape, curve, best, clock.seconds)
        (folder / "summary.json").write_text(json_text(summary, indent=2) + "\n")
    print(_text(summary, best_typed(curve)))
    print(f"\nResults: {Path(arguments.output).absolute()}")
    print("  " + ", ".join(sorted(f.name for f in Path(arguments.output).iterdir())))


def _summary(
    name: str,
    shape: tuple[int, ...],
    curve: pd.DataFrame,
    best: dict[str, float],
    seconds: dict[str, float],
) -> dict[str, Any]:
    from napari_agglo.evaluate import state_at

    states = {
        "superpixels": state_at(curve, -math.inf),
        "best threshold": best,
        "threshold 0.5": state_at(curve, 0.5),
    }
    states["superpixels"].pop("threshold")  # there is none
    return {"sample": name, "shape": list(shape), "states": states, "seconds": seconds}


def _text(summary: dict[str, Any], best: str) -> str:
    from napari_agglo.cli._terminal import table

    columns = ["segments", "false_merge", "false_split", "vi"]
    names = (("superpixels", ""), ("best", best), ("default", "0.5"))
    rows = [
        [name, typed, *(state[column] for column in columns)]
        for (name, typed), state in zip(names, summary["states"].values(), strict=True)
    ]
    size = " x ".join(map(str, summary["shape"]))
    seconds = ", ".join(f"{stage} {s:.2f}" for stage, s in summary["seconds"].items())
    return (
        f"{summary['sample']}, {size}, mean agglomeration; errors in bits\n\n"
        f"{table(['', 'threshold', *columns], rows)}\n\n"
        f"Seconds: {seconds}; together {sum(summary['seconds'].values()):.1f}"
    )
