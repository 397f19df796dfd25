"""`napari-agglo evaluate`: the errors of a label image."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_agglo.cli._arguments import (
    add_gold,
    add_json,
    add_spacing,
    add_value,
    gold_files,
)
from napari_agglo.cli._command_source import add_session_options, is_session, open_session, own_gold
from napari_agglo.cli._files import check_table_output, open_inputs, refuse_clash
from napari_agglo.cli._image_folders import add_each, check_each, for_each, partners
from napari_agglo.cli._terminal import SESSION, Console, table
from napari_agglo.errors import InvalidInput, check_whole

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
_LABELS = (("reading", 1), ("numbering", 2))  # stages of an image, and of the breakdown
_BREAKDOWN = (("overlap", 1), ("centroids", 1), ("places", 1))
WHOLE = ("merges_needed", "cuts_needed", "edit_distance", "segments", "gold_segments", "voxels")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    text = "label image, or a session, NAME.agglo, at its last threshold"
    add_value(parser, "labels", "LABELS", text, nargs="?")
    add_gold(parser)
    parser.add_argument("--ignore-labels", action="store_true", help="leave out label 0 too")
    text = "overlaps of fewer voxels need no edit; other measures count all"
    add_value(parser, "--min-overlap", "N", text, type=int, default=1)
    add_spacing(parser)
    add_session_options(parser)
    text = "write the cost and place of each segment and gold segment, the worst first; "
    add_value(parser, "--breakdown", "ERRORS.csv", f"{text}of several gold standards, by the first")
    add_json(parser)
    add_each(parser, "a row for each and the mean; ERRORS is a folder to write to")


def hint(words: Sequence[str]) -> str:
    """Return the likely command if `words` are two files without an option, else nothing.

    Examples
    --------
    >>> hint(["a.tif", "b.tif"])
    'did you mean: napari-agglo evaluate a.tif --gold b.tif? '
    """
    files = [word for word in words if not word.startswith("-")]
    if "--gold" in words or len(files) != 2:
        return ""
    return f"did you mean: napari-agglo evaluate {files[0]} --gold {files[1]}? "


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Print the errors."""
    check_whole("min_overlap", arguments.min_overlap, 1)
    _take_labels(arguments)
    files = {"labels": arguments.labels} | gold_files(arguments.gold)
    output = arguments.breakdown
    if not arguments.each:
        if output:
            check_table_output("--breakdown", output)
        refuse_clash(console, {"--breakdown": output}, files)
        errors = _errors(arguments, console, files, output)
        console.result(_text(errors), errors, asked_for=True)
        return
    images = partners(console, files)
    check_each(console, images, files, {"--breakdown": (output, ".csv")})
    rows: dict[str, dict[str, float]] = {}

    def work(name: str, files: Mapping[str, str]) -> None:
        path = str(Path(output) / f"{name}.csv") if output else None
        rows[name] = _errors(arguments, console, files, path)

    try:
        for_each(console, images, work)
    finally:  # print the images that could be compared, whatever happened to the rest
        if rows:
            mean = mean_row(rows)
            lines = [[n, *(r[c] for c in _EACH)] for n, r in [*rows.items(), ("mean", mean)]]
            text = table(["image", *_EACH], lines)
            console.result(text, {"images": rows, "mean": mean}, asked_for=True)


def _text(errors: Mapping[str, float]) -> str:
    """Lay out the errors, and below them the other measures."""

    def block(names: Sequence[str], width: int) -> str:
        values = {n: errors[n] for n in names}
        return "\n".join(
            f"{n:{width}}  {value if isinstance(value, int) else format(value, '.4f')}"
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
    arguments: argparse.Namespace, console: Console, files: Mapping[str, str], output: str | None
) -> dict[str, float]:
    """Return every measure, and write the breakdown if it is wanted."""
    from napari_agglo.evaluate import breakdown, contingency, table_metrics
    from napari_agglo.volumes import check_same_shape, dense_labels

    console.files |= files
    of_session = is_session(files["labels"])
    on_disk = {n: f for n, f in files.items() if not (of_session and n == "labels")}
    volumes: dict[str, Any] = dict(
        open_inputs(console, on_disk, arguments.spacing, arguments.unit).volumes
    )
    if not of_session:
        _check_golds(volumes)
    skip = arguments.ignore_labels
    rows = []
    golds = [*_LABELS, ("overlap", 1)] * (len(files) - 1)
    stages = [*(SESSION if of_session else ()), *_LABELS, *golds]
    with console.progress([*stages, *(_BREAKDOWN if output else ())]) as progress:
        if of_session:
            with open_session(arguments, console, files["labels"], progress) as session:
                if not volumes:
                    volumes["gold"] = own_gold(session)
                labels = dense_labels(session.labels(), "labels", progress=progress)
        else:
            labels = dense_labels(volumes.pop("labels"), "labels", progress=progress)
        for name, volume in volumes.items():
            check_same_shape(labels.image, volume, "labels", name)
            gold = dense_labels(volume, name, progress=progress)
            overlaps = contingency(labels, gold, ignore_labels=skip, progress=progress)
            if overlaps.total == 0:
                either = " or the labels are" if skip else ""
                raise InvalidInput(
                    f"`labels` and `{name}` have no voxel to compare: everywhere the gold is"
                    f"{either} 0, and such voxels are left out",
                    argument=name,
                    remedy="check that these are the right files",
                )
            rows.append(table_metrics(overlaps, min_overlap=arguments.min_overlap))
            if output and len(rows) == 1:
                costs = breakdown(labels, gold, ignore_labels=skip, progress=progress)
        if output:  # now that no gold standard has been refused
            _write_breakdown(Path(output), costs)
    order = [*_FIRST, *(str(name) for name in rows[0].index if name not in _FIRST)]
    if len(rows) == 1:
        return {n: int(rows[0][n]) if n in WHOLE else float(rows[0][n]) for n in order}
    return mean_row({str(k): {n: float(row[n]) for n in order} for k, row in enumerate(rows)})


def _take_labels(arguments: argparse.Namespace) -> None:
    """Take the labels from the end of ``--gold A B LABELS``, where they look like one more gold.

    Refuse a command without labels, or without gold, which only a session may have of its own.
    """
    if arguments.labels is None and arguments.gold and len(arguments.gold) > 1:
        arguments.labels = arguments.gold.pop()
    missing = [] if arguments.labels else ["LABELS"]
    own = arguments.labels and not arguments.each and is_session(arguments.labels)
    missing += [] if arguments.gold or own else ["--gold"]
    if missing:
        arguments.parser.error(f"the following arguments are required: {', '.join(missing)}")


def _check_golds(volumes: Mapping[str, Any]) -> None:
    """Refuse golds that the metadata of the files tell to be wrong, before anything is read."""
    import numpy as np

    from napari_agglo.volumes import check_labels, check_same_shape

    for name, volume in volumes.items():
        if name != "labels":
            check_same_shape(volumes["labels"], volume, "labels", name)
        check_labels(np.zeros((1,) * volume.ndim, volume.dtype), name)  # its type


def _write_breakdown(path: Path, costs: Breakdown) -> None:
    """Write both sides of the breakdown as one table, the greatest contribution first."""
    import pandas as pd

    from napari_agglo._table_files import write_rows
    from napari_agglo.volumes import replacing

    sides = [
        table.reset_index().assign(kind=kind)
        for kind, table in (("false split", costs.gold), ("false merge", costs.segments))
    ]
    both = pd.concat(sides, ignore_index=True).sort_values(
        ["contribution", "kind", "id"], ascending=[False, True, True]
    )
    both.insert(0, "kind", both.pop("kind"))
    path.parent.mkdir(exist_ok=True)
    with replacing(path) as temporary:
        write_rows(both, temporary, path)
