"""`napari-agglo evaluate`: how wrong a label image is."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from napari_agglo.evaluate import Breakdown

NAME = "evaluate"
SUMMARY = "compare a label image with the gold standard"
DESCRIPTION = (
    "Print the variation of information in bits, as false merges H(gold|labels) and false splits\n"
    "H(labels|gold), the number of voxels compared, and other measures: of pairs of voxels (rand,\n"
    "adapted_rand, ...), of overlap (covering), of edits that a proofreader would need. Voxels\n"
    "whose gold is 0 are left out."
)
EXAMPLE = "napari-agglo evaluate labels.tif --gold gold.tif --breakdown errors.csv"
_FIRST = ("false_merge", "false_split", "vi", "voxels")
_EACH = (*_FIRST[:3], "adapted_rand_error", "covering", "edit_distance", "voxels")
_WHOLE = ("merges_needed", "cuts_needed", "edit_distance", "segments", "gold_segments", "voxels")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    from napari_agglo.cli._arguments import add_spacing
    from napari_agglo.cli._each import HELP

    parser.add_argument("labels", metavar="LABELS", help="label image")
    parser.add_argument("--gold", required=True, metavar="FILE", help="0 is not annotated")
    parser.add_argument("--ignore-labels", action="store_true", help="leave out label 0 too")
    add_spacing(parser)
    parser.add_argument(
        "--breakdown",
        metavar="ERRORS.csv",
        help="write what each segment and gold segment costs, the worst first, and where it is",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--each",
        action="store_true",
        help=f"{HELP}; a row for each and the mean; ERRORS is a folder to write to",
    )


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
    from napari_agglo.cli._each import check_each, for_each, partners
    from napari_agglo.cli._outputs import check_table_output, refuse_clash
    from napari_agglo.cli._terminal import json_text, table

    given = {"LABELS": arguments.labels, "--gold": arguments.gold}
    output = arguments.breakdown
    if not arguments.each:
        if output:
            check_table_output("--breakdown", output)
            refuse_clash({"--breakdown": output}, given)
        errors = _errors(arguments.labels, arguments.gold, output, arguments)
        print(json_text(errors) if arguments.json else _text(errors))
        return
    images = partners(given)
    check_each(images, given, {"--breakdown": (output, ".csv")} if output else {})
    rows: dict[str, dict[str, float]] = {}

    def work(name: str, files: dict[str, str]) -> None:
        path = str(Path(output) / f"{name}.csv") if output else None
        rows[name] = _errors(files["LABELS"], files["--gold"], path, arguments)

    try:
        for_each(images, work)
    finally:  # what could be compared is told whatever came of the rest
        if rows and arguments.json:
            print(json_text({"images": rows, "mean": mean_row(rows)}))
        elif rows:
            lines = [*rows.items(), ("mean", mean_row(rows))]
            print(table(["image", *_EACH], [[n, *(r[c] for c in _EACH)] for n, r in lines]))


def _text(errors: Mapping[str, float]) -> str:
    """Lay out the errors, and below them the other measures."""

    def block(names: Sequence[str], width: int) -> str:
        values = {n: errors[n] for n in names}
        return "\n".join(
            f"{n:{width}}  {value if n in _WHOLE else format(value, '.4f')}"
            for n, value in values.items()
        )

    rest = [name for name in errors if name not in _FIRST]
    return block(_FIRST, 11) + "\n\n" + block(rest, max(map(len, rest)))


def mean_row(rows: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each column over the images, each image counting once.

    Examples
    --------
    >>> mean_row({"a": {"vi": 1.0}, "b": {"vi": 2.0}})
    {'vi': 1.5}
    """
    columns = next(iter(rows.values()))
    return {c: sum(row[c] for row in rows.values()) / len(rows) for c in columns}


def _errors(
    labels: str, gold: str, output: str | None, arguments: argparse.Namespace
) -> dict[str, float]:
    """Return every measure, and write the breakdown if it is wanted."""
    from napari_agglo.cli._inputs import open_inputs
    from napari_agglo.cli._terminal import progress_line
    from napari_agglo.cli._words import command_words
    from napari_agglo.errors import InvalidInput
    from napari_agglo.evaluate import breakdown, contingency, table_metrics

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
        if output:
            found = breakdown(
                inputs.volumes["labels"],
                inputs.volumes["gold"],
                ignore_labels=arguments.ignore_labels,
                progress=progress,
            )
            _write_breakdown(Path(output), found, arguments.each)
    scores = table_metrics(overlaps)
    names = [*_FIRST, *(str(name) for name in scores.index if name not in _FIRST)]
    return {n: int(scores[n]) if n in _WHOLE else float(scores[n]) for n in names}


def _write_breakdown(path: Path, found: Breakdown, make_folder: bool) -> None:
    """Write both sides of the breakdown as one table, the greatest contribution first."""
    import pandas as pd

    from napari_agglo.volumes import replacing

    sides = [
        table.reset_index().assign(kind=kind)
        for kind, table in (("false split", found.gold), ("false merge", found.segments))
    ]
    both = pd.concat(sides, ignore_index=True).sort_values(
        ["contribution", "kind", "id"], ascending=[False, True, True]
    )
    both.insert(0, "kind", both.pop("kind"))
    if make_folder:
        path.parent.mkdir(exist_ok=True)
    with replacing(path) as temporary:
        both.to_csv(temporary, index=False)
