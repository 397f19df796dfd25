"""`napari-agglo curve`: how wrong an agglomeration is at every threshold."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

NAME = "curve"
SUMMARY = "compare an agglomeration with the gold standard at every threshold"
DESCRIPTION = (
    "Agglomerate, and print the variation of information (bits) along the thresholds, where it is\n"
    "least, and at the threshold asked for. -o and --json give every distinct state."
)
EXAMPLE = (
    "napari-agglo curve --superpixels superpixels.tif --cues boundary=cue_boundary.tif "
    "--gold gold.tif -o curve.csv"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    from napari_agglo.cli._arguments import add_pipeline

    add_pipeline(parser)
    parser.add_argument("--gold", required=True, metavar="FILE", help="0 is not annotated")
    parser.add_argument(
        "--threshold", type=float, default=0.5, metavar="T", help="report this one (default: 0.5)"
    )
    parser.add_argument("-o", "--output", metavar="CURVE.csv", help="write every state")
    parser.add_argument("--json", action="store_true", help="print every state as JSON")


def run(arguments: argparse.Namespace) -> None:
    """Print the curve."""
    from napari_agglo.cli._arguments import cue_files
    from napari_agglo.cli._outputs import check_parent
    from napari_agglo.cli._pipeline import build_tree
    from napari_agglo.cli._terminal import progress_line
    from napari_agglo.evaluate import state_at, vi_curve
    from napari_agglo.volumes import open_volume
    from napari_agglo.volumes._atomic import replacing

    if arguments.output:
        check_parent(arguments.output)
    gold = open_volume(arguments.gold)
    with progress_line() as progress:
        tree, _ = build_tree(arguments.superpixels, cue_files(arguments.cues), arguments, progress)
        curve = vi_curve(tree, gold, progress=progress)
    if arguments.output:
        with replacing(Path(arguments.output)) as temporary:
            curve.to_csv(temporary, index=False)
    named = {
        "superpixels": state_at(curve, -math.inf),
        "best": best_state(curve),
        "at_threshold": {**state_at(curve, arguments.threshold), "cut": arguments.threshold},
    }
    if arguments.json:
        states = [_finite(row) for row in curve.to_dict("records")]
        summary = {name: _finite(state) for name, state in named.items()}
        print(json.dumps({**summary, "curve": states}))
    else:
        print(_text(curve, named, arguments.threshold))


def best_state(curve: pd.DataFrame) -> dict[str, float]:
    """Return the row with the least VI; of equals, the first."""
    from napari_agglo.evaluate import state_at

    return state_at(curve, float(curve["threshold"].iloc[int(curve["vi"].to_numpy().argmin())]))


def _text(curve: pd.DataFrame, named: dict[str, dict[str, float]], cut: float) -> str:
    from napari_agglo.cli._terminal import table
    from napari_agglo.evaluate import state_at

    columns = ["segments", "false_merge", "false_split", "vi"]
    rows = [(f"{tenth / 10:.1f}", state_at(curve, tenth / 10)) for tenth in range(11)]
    rows.insert(0, ("superpixels", named["superpixels"]))
    rows.append((f"best, {named['best']['threshold']:.3f}", named["best"]))
    rows.append((f"asked, {cut:g}", named["at_threshold"]))
    return table(["threshold", *columns], [[t, *(row[c] for c in columns)] for t, row in rows])


def _finite(state: dict[Any, Any]) -> dict[Any, Any]:
    """Return the state with null for the threshold of the superpixels: JSON has no infinity."""
    return {**state, "threshold": None if state["threshold"] == -math.inf else state["threshold"]}
