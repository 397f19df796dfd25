"""`napari-agglo segment`: from superpixels and cues to segments."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from napari_agglo.agglomeration import MergeTree

NAME = "segment"
SUMMARY = "agglomerate superpixels and write the segments at a threshold"
DESCRIPTION = (
    "Merge superpixels in the order of a policy, and write the label image at a threshold:\n"
    "a segment has the id of one of its superpixels, and keeps it while it takes in smaller ones.\n"
    "Of a session the labels are those last seen there, or seen at the threshold given."
)
EXAMPLE = (
    "napari-agglo segment --superpixels superpixels.tif --cues boundary=cue_boundary.tif "
    "--threshold 0.3 -o labels.tif"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    from napari_agglo.cli._arguments import add_pipeline, add_threshold
    from napari_agglo.cli._each import HELP
    from napari_agglo.cli._source import add_session

    add_session(parser, "its labels with all edits")
    add_pipeline(parser, required=False)
    add_threshold(parser, "merge up to here", "0.5, or that of the session")
    parser.add_argument(
        "-o", "--output", required=True, metavar="LABELS", help="label image to write"
    )
    parser.add_argument("--tree", metavar="TREE.csv", help="write the merges too")
    parser.add_argument(
        "--each", action="store_true", help=f"{HELP}; LABELS and TREE are folders to write to"
    )


def run(arguments: argparse.Namespace) -> None:
    """Segment one image, or each of many."""
    from napari_agglo.cli._arguments import cue_files
    from napari_agglo.cli._each import check_each, for_each, partners
    from napari_agglo.cli._source import check_pipeline, given_session

    session = given_session(arguments)
    if session is not None:
        _check_outputs(arguments, {"SESSION": session})
        print(_of_session(session, arguments))
        return
    if arguments.threshold is None:
        arguments.threshold = 0.5
    cues = cue_files(arguments.cues)
    check_pipeline(arguments, cues)
    given = {"--superpixels": arguments.superpixels} | {f"--cues {n}": f for n, f in cues.items()}
    if not arguments.each:
        _check_outputs(arguments, given)
        print(_one(arguments.superpixels, cues, arguments.output, arguments.tree, arguments))
        return
    images = partners(given)
    folders = {"-o": (arguments.output, ".tif")}
    if arguments.tree:
        folders["--tree"] = (arguments.tree, ".csv")
    check_each(images, given, folders)

    def work(name: str, files: dict[str, str]) -> str:
        output = str(Path(arguments.output) / f"{name}.tif")
        tree = str(Path(arguments.tree) / f"{name}.csv") if arguments.tree else None
        evidence = {cue: files[f"--cues {cue}"] for cue in cues}
        return _one(files["--superpixels"], evidence, output, tree, arguments)

    for_each(images, work)


def _check_outputs(arguments: argparse.Namespace, given: dict[str, str]) -> None:
    from napari_agglo.cli._files import check_label_output, check_table_output, refuse_clash

    check_label_output(arguments.output)
    if arguments.tree:
        check_table_output("--tree", arguments.tree)
    trees = {"--tree": arguments.tree} if arguments.tree else {}
    refuse_clash({"-o": arguments.output} | trees, given)


def _of_session(path: str, arguments: argparse.Namespace) -> str:
    from napari_agglo.cli._files import check_label_output
    from napari_agglo.cli._source import WITH, open_session, session_trees
    from napari_agglo.cli._terminal import count, progress_line

    with (
        progress_line() as progress,
        open_session(path, arguments.superpixels, progress) as session,
    ):
        graph = session.graph
        check_label_output(arguments.output, ndim=graph.superpixels.image.ndim)
        if arguments.threshold is not None:
            session.threshold = arguments.threshold
        tree = session_trees(session, progress, before=False)[WITH]
        output = Path(arguments.output)
        _write(tree, session.labels(), graph.spacing, output, arguments.tree, False)
        before, after = count(graph.n_regions, "superpixel"), count(session.n_segments, "segment")
        return f"{output}: {before}, {after} with all edits at threshold {session.threshold!r}"


def _one(
    superpixels: str,
    cues: dict[str, str],
    output: str,
    tree_output: str | None,
    arguments: argparse.Namespace,
) -> str:
    from napari_agglo.cli._files import check_label_output, open_inputs
    from napari_agglo.cli._source import build_tree, library_names
    from napari_agglo.cli._terminal import count, progress_line

    inputs = open_inputs(library_names(superpixels, cues), arguments.spacing)
    if not arguments.each:
        check_label_output(output, ndim=inputs.volumes["superpixels"].ndim)
    with progress_line() as progress:
        tree = build_tree(inputs, cues, arguments, progress)
    t = arguments.threshold
    labels = tree.segment(t)
    _write(tree, labels, inputs.spacing, Path(output), tree_output, arguments.each)
    before, after = count(tree.n_superpixels, "superpixel"), count(tree.n_segments(t), "segment")
    return f"{output}: {before}, {after} at threshold {t!r}"


def _write(
    tree: MergeTree,
    labels: NDArray[Any],
    spacing: tuple[float, ...] | None,
    output: Path,
    tree_output: str | None,
    make_folders: bool,
) -> None:
    """Write both files or none; the tree waits, complete, until the labels are in place."""
    from napari_agglo.errors import InvalidInput
    from napari_agglo.volumes import replacing, write_labels

    written = False
    try:
        with ExitStack() as waiting:
            for path in (output, *([Path(tree_output)] if tree_output else [])):
                if make_folders:
                    path.parent.mkdir(exist_ok=True)
            if tree_output:
                tree.to_csv(waiting.enter_context(replacing(Path(tree_output))))
            write_labels(output, labels, spacing=spacing)
            written = True
    except InvalidInput as error:
        kept = f" ({output} has been written)" if written else ""
        raise InvalidInput(f"{error}{kept}") from error
