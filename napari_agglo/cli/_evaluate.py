"""`napari-agglo evaluate`: how wrong a label image is."""

from __future__ import annotations

import argparse
import json

NAME = "evaluate"
SUMMARY = "compare a label image with the gold standard"
DESCRIPTION = (
    "Print the variation of information in bits, as false merges H(gold|labels) and false splits\n"
    "H(labels|gold). Voxels whose gold is 0 are left out."
)
EXAMPLE = "napari-agglo evaluate labels.tif --gold gold.tif"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("labels", metavar="LABELS", help="label image")
    parser.add_argument("--gold", required=True, metavar="FILE", help="0 is not annotated")
    parser.add_argument("--ignore-labels", action="store_true", help="leave out label 0 too")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> None:
    """Print the errors."""
    from napari_agglo.cli._terminal import progress_line
    from napari_agglo.evaluate import split_vi
    from napari_agglo.volumes import open_volume

    labels, gold = open_volume(arguments.labels), open_volume(arguments.gold)
    with progress_line() as progress:
        false_merge, false_split = split_vi(
            labels, gold, ignore_labels=arguments.ignore_labels, progress=progress
        )
    errors = {
        "false_merge": false_merge,
        "false_split": false_split,
        "vi": false_merge + false_split,
    }
    if arguments.json:
        print(json.dumps(errors))
    else:
        print("\n".join(f"{name:11}  {value:.4f}" for name, value in errors.items()))
