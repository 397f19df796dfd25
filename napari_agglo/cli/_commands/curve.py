"""`napari-agglo curve`: the errors of an agglomeration at every threshold."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from napari_agglo.cli._arguments import (
    add_gold,
    add_json,
    add_output,
    add_pipeline,
    add_threshold,
    add_value,
)
from napari_agglo.cli._command_source import (
    OWN,
    OWN_NOTE,
    add_session,
    check_policies,
    input_files,
    open_source,
)
from napari_agglo.cli._commands.evaluate import mean_row
from napari_agglo.cli._files import check_plot_output, check_table_output, refuse_clash
from napari_agglo.cli._image_folders import add_each, check_each, for_each, partners
from napari_agglo.cli._terminal import Console, best_threshold, table, typed_threshold

if TYPE_CHECKING:
    import pandas as pd

NAME = "curve"
SUMMARY = "compare an agglomeration with the gold standard at every threshold"
DESCRIPTION = (
    "Agglomerate, and print the variation of information (bits) along the thresholds, at the best\n"
    "threshold and at --threshold. -o and --json give every distinct state. The hierarchy of a\n"
    "session is that with all edits."
)
EXAMPLE = (
    "napari-agglo curve --superpixels superpixels.tif --cues boundary=cue_boundary.tif "
    "--gold gold.tif -o curve.csv"
)
_COLUMNS = ("segments", "false_merge", "false_split", "vi")

_MEASURES = (("overlap", 1), ("errors", 2), ("covering", 2))  # stages, for each gold standard


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_session(parser, "its hierarchy with all edits, and its gold standard")
    add_pipeline(parser, required=False)
    add_gold(parser)
    add_threshold(parser, "report this one")
    add_output(parser, "CURVE.csv", "write every state, as CSV or .parquet", default=None)
    text = "draw both errors along the curve, and VI by threshold; .png, .svg or .pdf; "
    add_value(parser, "--plot", "PLOT.png", f"{text}with --each the mean and its standard error")
    add_json(parser, "every state")
    add_each(
        parser,
        "a row for each, the mean, and the best threshold for all; CURVE is a folder to write to",
    )


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Print the curve, or a table of many."""
    from napari_agglo.evaluate import minimum, plain_curve, state_at

    files = input_files(arguments, "--gold")
    policies = check_policies(arguments, files)
    if arguments.plot:
        check_plot_output("--plot", arguments.plot)
    output = None if arguments.each else arguments.output
    if output:
        check_table_output("-o", output)
    refuse_clash(console, {"--plot": arguments.plot, "-o": output}, files)
    if arguments.each:
        _run_each(arguments, console, files, policies)
        return
    curve, voxels = _curve(arguments, console, files, policies, output)
    if arguments.plot:
        draw_curve(Path(arguments.plot), _name(arguments), curve, arguments.threshold)
    named = {
        "superpixels": state_at(curve, -math.inf),
        "best": minimum(curve),
        "at_threshold": {**state_at(curve, arguments.threshold), "cut": arguments.threshold},
    }
    n = len(arguments.gold or [])
    means = f", means over {n} gold standards" if n > 1 else ""
    own = curve.attrs["training"]
    after = f"{means}\n{OWN_NOTE}" if own else means
    console.result(
        f"{_text(curve, named, arguments.threshold)}\n\n"
        f"{voxels} annotated voxels compared; errors in bits{after}",
        {
            "voxels": voxels,
            "training_data": own,
            **named,
            "curve": plain_curve(curve).to_dict("records"),
        },
        asked_for=True,
    )


def _curve(
    arguments: argparse.Namespace,
    console: Console,
    files: Mapping[str, str],
    policies: Mapping[str, str],
    output: str | None,
) -> tuple[pd.DataFrame, int]:
    """Return the curve, written if wanted, and the voxels compared, of the gold that has most."""
    import numpy as np

    from napari_agglo._table_files import write_rows
    from napari_agglo.evaluate import plain_curve, vi_curve
    from napari_agglo.volumes import replacing

    measures = _MEASURES * sum(name.partition("[")[0] == "gold" for name in files)
    with open_source(arguments, console, files, policies, after=measures) as (source, progress):
        golds = source.golds()
        (tree,) = source.trees(progress).values()
        curve = vi_curve(tree, golds, progress=progress)
        curve.attrs["training"] = bool(source.trained_here)
    if output:
        Path(output).parent.mkdir(exist_ok=True)
        with replacing(Path(output)) as temporary:
            write_rows(plain_curve(curve), temporary, Path(output))
    return curve, max(int(np.count_nonzero(gold)) for gold in golds)


def _run_each(
    arguments: argparse.Namespace, console: Console, files: dict[str, str], policies: dict[str, str]
) -> None:
    from napari_agglo.evaluate import best_together, mean_curve, minimum, state_at

    images = partners(console, files)
    check_each(console, images, files, {"-o": (arguments.output, ".csv")})
    curves: dict[str, pd.DataFrame] = {}
    rows: dict[str, dict[str, float]] = {}

    def work(name: str, files: Mapping[str, str]) -> None:
        output = str(Path(arguments.output) / f"{name}.csv") if arguments.output else None
        curve, voxels = _curve(arguments, console, files, policies, output)
        curves[name] = curve
        rows[name] = {
            "voxels": voxels,
            "vi_superpixels": state_at(curve, -math.inf)["vi"],
            "vi_at_threshold": state_at(curve, arguments.threshold)["vi"],
            "vi_best": minimum(curve)["vi"],
        }

    try:
        for_each(console, images, work)
    finally:  # print the images that could be compared, whatever happened to the rest
        if rows:
            if arguments.plot:
                mean_of_all = mean_curve(curves)
                draw_curve(Path(arguments.plot), _name(arguments), mean_of_all, arguments.threshold)
            best = best_together(curves)
            common = typed_threshold(best.threshold, best.following)
            mean = mean_row(rows)
            own = {n: OWN * curves[n].attrs["training"] for n in rows}
            lines = [
                [n + own[n], *row.values(), best_threshold(curves[n])] for n, row in rows.items()
            ]
            text = table(["image", *mean, "best threshold"], [*lines, ["mean", *mean.values(), ""]])
            console.result(
                f"{text}\n\nBest threshold for all: {common}, mean VI {best.mean:.3f} bits"
                + (f"\n{OWN_NOTE}" if any(own.values()) else ""),
                {
                    "images": {
                        n: {**row, "best": minimum(curves[n]), "training_data": bool(own[n])}
                        for n, row in rows.items()
                    },
                    "mean": mean,
                    "best_for_all": {
                        "threshold": None if common == "none" else float(common),
                        "vi": best.mean,
                    },
                },
                asked_for=True,
            )


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


def _name(arguments: argparse.Namespace) -> str:
    if arguments.session:
        return Path(arguments.session).stem
    policy: str = arguments.policy
    return Path(policy).stem if policy.endswith(".npz") else policy


def _text(curve: pd.DataFrame, named: dict[str, dict[str, float]], cut: float) -> str:
    from napari_agglo.agglomeration import threshold_text
    from napari_agglo.evaluate import first_threshold, state_at

    rows = [("", f"{tenth / 10:.1f}", state_at(curve, tenth / 10)) for tenth in range(11)]
    rows.insert(0, ("superpixels", "", named["superpixels"]))
    rows.append(("best", best_threshold(curve), named["best"]))
    rows.append(("asked", threshold_text(cut, first_threshold({"": curve})), named["at_threshold"]))
    return table(
        ["", "threshold", *_COLUMNS],
        [[name, typed, *(row[c] for c in _COLUMNS)] for name, typed, row in rows],
    )
