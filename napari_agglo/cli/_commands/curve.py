"""`napari-agglo curve`: how wrong an agglomeration is at every threshold."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


# The curve of one image, or of a session: made, and written if that is wanted.


def curve_of_files(
    files: dict[str, str], cues: dict[str, str], output: str | None, arguments: argparse.Namespace
) -> tuple[pd.DataFrame, int]:
    """Return the curve of one image, and the voxels compared, of the gold that has the most."""
    from napari_agglo.cli._arguments import gold_names, load_golds
    from napari_agglo.cli._files import open_inputs
    from napari_agglo.cli._source import build_tree, library_names
    from napari_agglo.cli._terminal import progress_line
    from napari_agglo.cli._words import command_words
    from napari_agglo.evaluate import vi_curve

    evidence = {name: files[f"--cues {name}"] for name in cues}
    truth = gold_names(files)
    names = library_names(files["--superpixels"], evidence) | truth
    inputs = open_inputs(names, arguments.spacing)
    with command_words(names):
        golds = load_golds(inputs.volumes, truth, "superpixels")
    with progress_line() as progress:
        tree = build_tree(inputs, evidence, arguments, progress)
        with command_words(names):
            curve = vi_curve(tree, golds, progress=progress)
    _write(curve, output, arguments.each)
    return curve, _voxels(golds)


def curve_of_session(path: str, arguments: argparse.Namespace) -> tuple[pd.DataFrame, int]:
    """Return the curve of a session with all edits, and the voxels compared."""
    from napari_agglo.cli._source import WITH, open_session, session_golds, session_trees
    from napari_agglo.cli._terminal import progress_line
    from napari_agglo.evaluate import vi_curve

    with (
        progress_line() as progress,
        open_session(path, arguments.superpixels, progress) as session,
    ):
        golds = session_golds(session, arguments.gold)
        tree = session_trees(session, progress, before=False)[WITH]
        curve = vi_curve(tree, golds, progress=progress)
    _write(curve, arguments.output, False)
    return curve, _voxels(golds)


def _voxels(golds: Sequence[NDArray[Any]]) -> int:
    import numpy as np

    return max(int(np.count_nonzero(gold)) for gold in golds)


def _write(curve: pd.DataFrame, output: str | None, make_folder: bool) -> None:
    from napari_agglo.volumes import replacing

    if output:
        if make_folder:
            Path(output).parent.mkdir(exist_ok=True)
        with replacing(Path(output)) as temporary:
            curve.to_csv(temporary, index=False)


NAME = "curve"
SUMMARY = "compare an agglomeration with the gold standard at every threshold"
DESCRIPTION = (
    "Agglomerate, and print the variation of information (bits) along the thresholds, where it is\n"
    "least, and at the threshold asked for. -o and --json give every distinct state. Of a session\n"
    "it is the hierarchy with all edits."
)
EXAMPLE = (
    "napari-agglo curve --superpixels superpixels.tif --cues boundary=cue_boundary.tif "
    "--gold gold.tif -o curve.csv"
)
_COLUMNS = ("segments", "false_merge", "false_split", "vi")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    from napari_agglo.cli._arguments import add_gold, add_pipeline, add_threshold
    from napari_agglo.cli._each import HELP
    from napari_agglo.cli._source import add_session

    add_session(parser, "its hierarchy with all edits, and its gold standard")
    add_pipeline(parser, required=False)
    add_gold(parser)
    add_threshold(parser, "report this one")
    parser.add_argument("-o", "--output", metavar="CURVE.csv", help="write every state")
    parser.add_argument(
        "--plot",
        metavar="PLOT.png",
        help="draw both errors along the curve, and VI by threshold; .png, .svg or .pdf; with "
        "--each the mean and its standard error",
    )
    parser.add_argument("--json", action="store_true", help="print every state as JSON")
    parser.add_argument(
        "--each",
        action="store_true",
        help=f"{HELP}; a row for each, the mean, and the best threshold for all; CURVE is a folder "
        "to write to",
    )


def run(arguments: argparse.Namespace) -> None:
    """Print the curve, or a table of many."""
    from napari_agglo.cli._arguments import cue_files, gold_options
    from napari_agglo.cli._commands.demo import draw_curve
    from napari_agglo.cli._files import check_plot_output, check_table_output, refuse_clash
    from napari_agglo.cli._source import check_pipeline, given_session, plan
    from napari_agglo.cli._terminal import json_text
    from napari_agglo.evaluate import minimum, state_at

    session = given_session(arguments, "--gold")
    cues: dict[str, str] = {}
    given = gold_options(arguments.gold or [])
    if session is not None:
        given |= {"SESSION": session}
    else:
        cues = cue_files(arguments.cues)
        check_pipeline(arguments, cues)
        plan(arguments.policy, cues)  # one that cannot be used is told before the work, and once
        files = {"--superpixels": arguments.superpixels}
        given = files | {f"--cues {n}": f for n, f in cues.items()} | given
    if arguments.plot:
        check_plot_output("--plot", arguments.plot)
        tables = {"-o": arguments.output} if arguments.output and not arguments.each else {}
        refuse_clash({"--plot": arguments.plot} | tables, given)
    if arguments.each:
        _run_each(given, cues, arguments)
        return
    if arguments.output:
        check_table_output("-o", arguments.output)
        refuse_clash({"-o": arguments.output}, given)
    if session is not None:
        curve, voxels = curve_of_session(session, arguments)
    else:
        curve, voxels = curve_of_files(given, cues, arguments.output, arguments)
    if arguments.plot:
        draw_curve(Path(arguments.plot), _policy_name(arguments), curve, arguments.threshold)
    named = {
        "superpixels": state_at(curve, -math.inf),
        "best": minimum(curve),
        "at_threshold": {**state_at(curve, arguments.threshold), "cut": arguments.threshold},
    }
    if arguments.json:
        states = curve.to_dict("records")
        print(json_text({"voxels": voxels, **named, "curve": states}))
    else:
        print(_text(curve, named, arguments.threshold))
        n = len(arguments.gold or [])
        means = f", means over {n} gold standards" if n > 1 else ""
        print(f"\n{voxels} annotated voxels compared; errors in bits{means}")


def _policy_name(arguments: argparse.Namespace) -> str:
    if arguments.session:
        return Path(arguments.session).stem
    return Path(arguments.policy).stem if arguments.policy.endswith(".npz") else arguments.policy


def _run_each(given: dict[str, str], cues: dict[str, str], arguments: argparse.Namespace) -> None:
    from napari_agglo.cli._commands.demo import draw_curve
    from napari_agglo.cli._commands.evaluate import mean_row
    from napari_agglo.cli._each import check_each, for_each, partners
    from napari_agglo.cli._terminal import best_typed, json_text, table, typed_threshold
    from napari_agglo.evaluate import best_together, mean_curve, minimum, state_at

    images = partners(given)
    check_each(images, given, {"-o": (arguments.output, ".csv")} if arguments.output else {})
    curves: dict[str, pd.DataFrame] = {}
    rows: dict[str, dict[str, float]] = {}
    best: dict[str, str] = {}

    def work(name: str, files: dict[str, str]) -> None:
        output = str(Path(arguments.output) / f"{name}.csv") if arguments.output else None
        curve, voxels = curve_of_files(files, cues, output, arguments)
        curves[name], best[name] = curve, best_typed(curve)
        rows[name] = {
            "voxels": voxels,
            "vi_superpixels": state_at(curve, -math.inf)["vi"],
            "vi_at_threshold": state_at(curve, arguments.threshold)["vi"],
            "vi_best": minimum(curve)["vi"],
        }

    try:
        for_each(images, work)
    finally:  # what could be compared is told whatever came of the rest
        if rows:
            if arguments.plot:
                whole = mean_curve(curves)
                draw_curve(
                    Path(arguments.plot), _policy_name(arguments), whole, arguments.threshold
                )
            shared = best_together(curves)
            common, least = typed_threshold(shared.threshold, shared.following), shared.mean
            mean = mean_row(rows)
            if arguments.json:
                each = {n: {**row, "best": minimum(curves[n])} for n, row in rows.items()}
                together = {"threshold": None if common == "none" else float(common), "vi": least}
                print(json_text({"images": each, "mean": mean, "best_for_all": together}))
            else:
                header = ["image", *mean, "best threshold"]
                lines = [[n, *row.values(), best[n]] for n, row in rows.items()]
                print(table(header, [*lines, ["mean", *mean.values(), ""]]))
                print(f"\nBest threshold for all: {common}, mean VI {least:.3f} bits")


def _text(curve: pd.DataFrame, named: dict[str, dict[str, float]], cut: float) -> str:
    from napari_agglo.cli._terminal import best_typed, table
    from napari_agglo.evaluate import state_at

    rows = [("", f"{tenth / 10:.1f}", state_at(curve, tenth / 10)) for tenth in range(11)]
    rows.insert(0, ("superpixels", "", named["superpixels"]))
    rows.append(("best", best_typed(curve), named["best"]))
    rows.append(("asked", repr(cut), named["at_threshold"]))
    return table(
        ["", "threshold", *_COLUMNS],
        [[name, typed, *(row[c] for c in _COLUMNS)] for name, typed, row in rows],
    )
