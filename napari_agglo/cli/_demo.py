"""`napari-agglo demo`: the main job on the embedded sample, from image to picture."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

NAME = "demo"
SUMMARY = "run the pipeline on the embedded sample and write labels and a picture"
DESCRIPTION = (
    "Oversegment the embedded sample, agglomerate by mean boundary, evaluate at every threshold,\n"
    "and write superpixels.tif, labels.tif (at the best threshold), tree.csv, curve.csv,\n"
    "picture.png and summary.json."
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
        "--headless", action="store_true", help="open no window (no window exists yet)"
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
