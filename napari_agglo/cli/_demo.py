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

from napari_agglo.errors import InvalidInput
from napari_agglo.samples import SAMPLES

if TYPE_CHECKING:
    import pandas as pd

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
    from napari_agglo.cli._best import best_state, best_typed
    from napari_agglo.cli._outputs import output_folder
    from napari_agglo.cli._picture import draw
    from napari_agglo.cli._terminal import json_text, progress_line
    from napari_agglo.cli._words import command_words
    from napari_agglo.evaluate import vi_curve
    from napari_agglo.graph import region_graph
    from napari_agglo.samples import sample
    from napari_agglo.superpixels import oversegment
    from napari_agglo.tree import agglomerate
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
        best = best_state(curve)
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
