"""`napari-agglo segment`: from superpixels and cues to segments."""

from __future__ import annotations

import argparse
from pathlib import Path

NAME = "segment"
SUMMARY = "agglomerate superpixels and write the segments at a threshold"
DESCRIPTION = (
    "Merge superpixels in the order of a policy, and write the label image at a threshold:\n"
    "a segment's id is the smallest of its superpixels' ids."
)
EXAMPLE = (
    "napari-agglo segment --superpixels superpixels.tif --cues boundary=cue_boundary.tif "
    "--threshold 0.3 -o labels.tif"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    from napari_agglo.cli._arguments import add_pipeline

    add_pipeline(parser)
    parser.add_argument(
        "--threshold", type=float, default=0.5, metavar="T", help="merge up to here (default: 0.5)"
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="LABELS", help="label image to write"
    )
    parser.add_argument("--tree", metavar="TREE.csv", help="write the merges too")
    parser.add_argument(
        "--each",
        action="store_true",
        help="the inputs are folders of separate images with the same names, and LABELS (and "
        "TREE) the folders to write to",
    )


def run(arguments: argparse.Namespace) -> None:
    """Segment one image, or each of a folder."""
    from napari_agglo.cli._arguments import cue_files
    from napari_agglo.cli._each import partners
    from napari_agglo.cli._outputs import check_label_output, check_parent, output_folder

    cues = cue_files(arguments.cues)
    if not arguments.each:
        check_label_output(arguments.output)
        if arguments.tree:
            check_parent(arguments.tree)
        tree = Path(arguments.tree) if arguments.tree else None
        said = _one(arguments.superpixels, cues, Path(arguments.output), tree, arguments)
        print(f"{arguments.output}: {said}")
        return
    pairs = partners({"--superpixels": arguments.superpixels, **cues})
    with (
        output_folder(arguments.output) as labels,
        output_folder(arguments.tree or arguments.output) as trees,
    ):
        for stem, files in pairs.items():
            superpixels = files.pop("--superpixels")
            tree = trees / f"{stem}.csv" if arguments.tree else None
            said = _one(superpixels, files, labels / f"{stem}.tif", tree, arguments)
            print(f"{arguments.output}/{stem}.tif: {said}")


def _one(
    superpixels: str,
    cues: dict[str, str],
    output: Path,
    tree_output: Path | None,
    arguments: argparse.Namespace,
) -> str:
    from napari_agglo.cli._pipeline import build_tree
    from napari_agglo.cli._terminal import progress_line
    from napari_agglo.volumes import write_labels
    from napari_agglo.volumes._atomic import replacing

    with progress_line() as progress:
        tree, spacing = build_tree(superpixels, cues, arguments, progress)
    t = arguments.threshold
    write_labels(output, tree.segment(t), spacing=spacing)
    if tree_output is not None:
        with replacing(tree_output) as temporary:
            tree.to_csv(temporary)
    before = tree.superpixels.ids.size - 1
    return f"{before} superpixels, {tree.n_segments(t)} segments at threshold {t:g}"
