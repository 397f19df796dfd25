"""`napari-agglo demo`: the whole pipeline on an embedded sample, in napari or to files."""

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

from napari_agglo.cli._arguments import add_json, add_output, add_value
from napari_agglo.cli._files import output_folder
from napari_agglo.cli._terminal import Console, best_threshold, json_text, table
from napari_agglo.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from napari_agglo.samples import Sample

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
    text = f"folder to write to (default: {DEFAULT_OUTPUT})"
    add_output(parser, "DIR", text, default=DEFAULT_OUTPUT)
    text = "open no window and write results, as without a display"
    parser.add_argument("--headless", action="store_true", help=text)
    add_value(parser, "--sample", "KIND", "embedded sample", default="neuropil3d")
    add_json(parser, "the summary")


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Open napari if there is a display; otherwise run the pipeline and write its results."""
    from napari_agglo.samples import SAMPLES

    console.options["kind"] = "--sample"
    known = arguments.sample in SAMPLES  # otherwise the pipeline reports it
    if known and console.verbosity >= 0 and not arguments.json:
        print(expectation(), flush=True)
    if known and not arguments.headless and has_display():
        open_window(arguments.sample)
    else:
        run_headless(arguments, console)


def expectation() -> str:
    """Return a sentence about the expected time, the first time and later."""
    from napari_agglo.session import NOT_KEPT, cache_folder, seconds_to_compile, stages_to_compile

    first = seconds_to_compile({"merge", "evaluate"}.intersection(stages_to_compile()))
    if not first:
        return "This takes a few seconds."
    if cache_folder() is None:
        return f"This takes about {first + 5} s. {NOT_KEPT}"
    return f"The first time takes about {first + 5} s, to compile kernels; later a few seconds."


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
            f"The window could not be opened, or closed with an error (status {ended.returncode})",
            argument="headless",
            remedy="add --headless to run without one",
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


def run_headless(arguments: argparse.Namespace, console: Console) -> None:
    """Run the pipeline and write its results."""
    from napari_agglo.agglomeration import agglomerate
    from napari_agglo.evaluate import minimum, vi_curve
    from napari_agglo.graph import region_graph
    from napari_agglo.samples import sample
    from napari_agglo.superpixels import oversegment
    from napari_agglo.volumes import write_labels

    clock = _Clock()
    with output_folder(arguments.output) as folder:
        with console.progress() as progress:
            with clock.stage("sample"):
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
    files = ", ".join(sorted(file.name for file in Path(arguments.output).iterdir()))
    console.result(
        f"{_text(summary, best_threshold(curve))}\n\n"
        f"Results: {Path(arguments.output).absolute()}\n  {files}",
        summary,
    )


def draw(
    path: Path,
    sample: Sample,
    superpixels: NDArray[Any],
    labels: NDArray[Any],
    curve: pd.DataFrame,
) -> None:
    """Write the picture of one plane and both curves as PNG; it uses no state of pyplot."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from napari_agglo.compare import matched
    from napari_agglo.plots import grey, label_colours, plot_split_vi, plot_vi_by_threshold, tinted
    from napari_agglo.plots._pixels import RGB, borders, enlarged, factors, outlined

    ndim = sample.gold.ndim
    planes = (sample.image, superpixels, matched(sample.gold, labels), sample.gold)
    image, over, segments, gold = (_middle(one, ndim) for one in planes)
    times = factors(gold.shape)
    backdrop = enlarged(grey(image), times)
    colours = label_colours(int(max(segments.max(), gold.max())) + 1)

    def coloured(plane: NDArray[Any]) -> NDArray[np.float64]:
        large = enlarged(plane, times)
        return outline(tinted(backdrop, colours[large], np.where(large > 0, 0.55, 0.0)), plane)

    def outline(
        picture: NDArray[np.float64], plane: NDArray[Any], colour: RGB = (1.0, 1.0, 1.0)
    ) -> NDArray[np.float64]:
        return outlined(picture, borders(enlarged(plane, times)), colour)

    figure = Figure(figsize=(15, 8.6), layout="constrained")
    FigureCanvasAgg(figure)
    halves: Any = figure.subfigures(2, 1)  # an array of two, or one figure, says the stub
    pictures_row, curves_row = halves
    best = int(curve["vi"].to_numpy().argmin())
    pictures = {
        "image": backdrop,
        f"{int(superpixels.max())} superpixels": outline(backdrop, over, (1.0, 0.7, 0.1)),
        f"mean agglomeration at {best_threshold(curve)}: "
        f"{int(curve['segments'].iloc[best])} segments": coloured(segments),
        "gold standard": coloured(gold),
    }
    for axes, (title, picture) in zip(pictures_row.subplots(1, 4), pictures.items(), strict=True):
        axes.imshow(picture, interpolation="antialiased")
        axes.set_title(title, fontsize=11)
        axes.set_axis_off()
    pictures_row.supxlabel(
        "A segment has the colour of the gold segment it covers best; split-off parts have another",
        fontsize=9,
        color="#555555",
    )
    by_threshold, split = curves_row.subplots(1, 2, width_ratios=[1.6, 1])
    plot_vi_by_threshold({"mean": curve}, axes=by_threshold)
    plot_split_vi({"mean": curve}, axes=split)
    figure.savefig(path, dpi=110, format="png")


def _middle(array: NDArray[Any], ndim: int) -> NDArray[Any]:
    """Return the middle plane of the first `ndim` axes; a colour axis after them stays."""
    for _ in range(ndim - 2):
        array = array[array.shape[0] // 2]
    return array


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
