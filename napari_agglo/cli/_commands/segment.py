"""`napari-agglo segment`: segments of superpixels and cues, or of a session."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from napari_agglo.cli._arguments import add_json, add_labels_output, add_pipeline, add_threshold
from napari_agglo.cli._command_source import (
    SessionSource,
    add_session,
    check_policies,
    input_files,
    open_source,
)
from napari_agglo.cli._files import (
    check_axes,
    check_label_output,
    check_table_output,
    place,
    write_labels_output,
)
from napari_agglo.cli._image_folders import Result, add_each, one_or_each
from napari_agglo.cli._terminal import WRITE, Console, count
from napari_agglo.errors import InvalidInput

if TYPE_CHECKING:
    from napari_agglo.agglomeration import MergeTree

NAME = "segment"
SUMMARY = "agglomerate superpixels and write the segments at a threshold"
DESCRIPTION = (
    "Merge superpixels in the order of a policy, and write the label image at a threshold:\n"
    "a segment has the id of one of its superpixels, and keeps it while it takes in smaller ones.\n"
    "For a session, the labels are those at its last threshold, or at --threshold."
)
EXAMPLE = (
    "napari-agglo segment --superpixels superpixels.tif --cues boundary=cue_boundary.tif "
    "--threshold 0.3 -o labels.tif"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_session(parser, "its labels with all edits")
    add_pipeline(parser, required=False)
    add_threshold(parser, "merge up to here", "0.5, or that of the session")
    add_labels_output(parser, "LABELS")
    parser.add_argument(
        "--tree", metavar="TREE.csv", help="write the merges too, as CSV or .parquet"
    )
    add_json(parser)
    add_each(parser, "LABELS and TREE are folders to write to")


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Segment one image, or each of many."""
    files = input_files(arguments)
    policies = check_policies(arguments, files)
    output, tree = arguments.output, arguments.tree
    if not arguments.each:
        check_label_output(output)
        if tree:
            check_table_output("--tree", tree)

    def work(files: Mapping[str, str], paths: dict[str, str]) -> Result:
        return _segment(arguments, console, files, policies, paths["-o"], paths.get("--tree"))

    outputs = {"-o": (output, ".tif"), "--tree": (tree, ".csv")}
    one_or_each(arguments, console, files, outputs, work)


def _segment(
    arguments: argparse.Namespace,
    console: Console,
    files: Mapping[str, str],
    policies: Mapping[str, str],
    output: str,
    tree_output: str | None,
) -> Result:
    from napari_agglo.agglomeration import plain_threshold, threshold_phrase

    with open_source(arguments, console, files, policies, after=WRITE) as (source, progress):
        check_axes(output, source.ndim)
        tree: MergeTree | None = None
        if tree_output or not isinstance(source, SessionSource):
            (tree,) = source.trees(progress).values()
        if isinstance(source, SessionSource):  # whose labels need no policy
            session = source.session
            if arguments.threshold is not None:
                session.threshold = arguments.threshold
            threshold, labels, edited = session.threshold, session.labels(), " with all edits"
            n_segments, n_superpixels = len(session.segments), session.graph.n_regions
        elif tree is not None:
            n_superpixels = tree.n_superpixels
            threshold = 0.5 if arguments.threshold is None else arguments.threshold
            labels, n_segments, edited = tree.segment(threshold), tree.n_segments(threshold), ""

        def write() -> None:
            place(output)[0].parent.mkdir(exist_ok=True)
            write_labels_output(
                arguments, output, labels, source.spacing, source.unit, progress, source.origin
            )

        _write_both(tree, write, output, tree_output)
    arguments.threshold = threshold  # the one that was used, for the record of provenance
    first = float(tree.heights[0]) if tree is not None and tree.n_merges else -math.inf
    phrase = threshold_phrase(threshold, first)
    before, after = count(n_superpixels, "superpixel"), count(n_segments, "segment")
    return f"{output}: {before}, {after}{edited} {phrase}", {
        "output": output,
        "tree": tree_output,
        "superpixels": n_superpixels,
        "segments": n_segments,
        "threshold": plain_threshold(threshold),
        "seconds": next(iter(source.seconds.values()), None),
    }


def _write_both(
    tree: MergeTree | None, write_labels: Callable[[], None], output: str, tree_output: str | None
) -> None:
    """Write both files or none; the tree waits, complete, until the labels are in place."""
    from napari_agglo._table_files import write_rows
    from napari_agglo.agglomeration._merge_tree import merge_table
    from napari_agglo.volumes import replacing

    written = False
    try:
        with ExitStack() as waiting:
            if tree_output and tree is not None:
                Path(tree_output).parent.mkdir(exist_ok=True)
                target = Path(tree_output)
                temporary = waiting.enter_context(replacing(target))
                write_rows(merge_table(tree, tree.name_inheritance), temporary, target)
            write_labels()
            written = True
    except InvalidInput as error:
        if not written:
            raise
        problem = f"{error.problem} ({output} has been written)"
        raise InvalidInput(problem, argument=error.argument, remedy=error.remedy) from error
