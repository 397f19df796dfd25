"""`napari-agglo evaluate`: how wrong a label image is."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

NAME = "evaluate"
SUMMARY = "compare a label image with the gold standard"
DESCRIPTION = (
    "Print the variation of information in bits, as false merges H(gold|labels) and false splits\n"
    "H(labels|gold), and the number of voxels compared. Voxels whose gold is 0 are left out."
)
EXAMPLE = "napari-agglo evaluate labels.tif --gold gold.tif"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    from napari_agglo.cli._arguments import add_spacing
    from napari_agglo.cli._each import HELP

    parser.add_argument("labels", metavar="LABELS", help="label image")
    parser.add_argument("--gold", required=True, metavar="FILE", help="0 is not annotated")
    parser.add_argument("--ignore-labels", action="store_true", help="leave out label 0 too")
    add_spacing(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--each", action="store_true", help=f"{HELP}; a row for each and the mean")


def hint(words: Sequence[str]) -> str:
    """Return what was meant by two files without an option, if that is what `words` are.

    Examples
    --------
    >>> hint(["a.tif", "b.tif"])
    'did you mean: napari-agglo evaluate a.tif --gold b.tif? '
    """
    files = [word for word in words if not word.startswith("-")]
    if "--gold" in words or len(files) != 2:
        return ""
    return f"did you mean: napari-agglo evaluate {files[0]} --gold {files[1]}? "


def run(arguments: argparse.Namespace) -> None:
    """Print the errors."""
    from napari_agglo.cli._each import for_each, partners
    from napari_agglo.cli._terminal import json_text, table

    if not arguments.each:
        errors = _errors(arguments.labels, arguments.gold, arguments)
        if arguments.json:
            print(json_text(errors))
        else:
            voxels = errors.pop("voxels")
            print("\n".join(f"{name:11}  {value:.4f}" for name, value in errors.items()))
            print(f"{'voxels':11}  {voxels}")
        return
    rows: dict[str, dict[str, float]] = {}

    def work(name: str, files: dict[str, str]) -> None:
        rows[name] = _errors(files["LABELS"], files["--gold"], arguments)

    try:
        for_each(partners({"LABELS": arguments.labels, "--gold": arguments.gold}), work)
    finally:  # what could be compared is told whatever came of the rest
        if rows and arguments.json:
            print(json_text({"images": rows, "mean": mean_row(rows)}))
        elif rows:
            lines = [*rows.items(), ("mean", mean_row(rows))]
            columns = list(lines[0][1])
            print(table(["image", *columns], [[n, *(r[c] for c in columns)] for n, r in lines]))


def mean_row(rows: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each column over the images, each image counting once.

    Examples
    --------
    >>> mean_row({"a": {"vi": 1.0}, "b": {"vi": 2.0}})
    {'vi': 1.5}
    """
    columns = next(iter(rows.values()))
    return {c: sum(row[c] for row in rows.values()) / len(rows) for c in columns}


def _errors(labels: str, gold: str, arguments: argparse.Namespace) -> dict[str, float]:
    from napari_agglo.cli._inputs import open_inputs
    from napari_agglo.cli._terminal import progress_line
    from napari_agglo.cli._words import command_words
    from napari_agglo.errors import InvalidInput
    from napari_agglo.evaluate import conditional_entropies, contingency

    inputs = open_inputs({"labels": labels, "gold": gold}, arguments.spacing)
    with command_words(inputs.files), progress_line() as progress:
        overlaps = contingency(
            inputs.volumes["labels"],
            inputs.volumes["gold"],
            ignore_labels=arguments.ignore_labels,
            progress=progress,
        )
        if overlaps.total == 0:
            unless = " or the labels are" if arguments.ignore_labels else ""
            raise InvalidInput(
                f"`labels` and `gold` have no voxel to compare: everywhere the gold is{unless} 0, "
                "which is left out; check that these are the right files"
            )
    false_merge, false_split = conditional_entropies(overlaps)
    return {
        "false_merge": false_merge,
        "false_split": false_split,
        "vi": false_merge + false_split,
        "voxels": overlaps.total,
    }
