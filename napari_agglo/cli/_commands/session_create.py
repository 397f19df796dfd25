"""`napari-agglo session create`: a session from files, also from segments of another tool.

In its own file because the options are those of a pipeline, and `session` has the other actions.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from napari_agglo.cli._arguments import (
    BOUNDARY,
    add_adapt,
    add_graph,
    add_json,
    add_threshold,
    add_value,
    check_policy,
    cue_names,
    gold_files,
    graph_files,
)
from napari_agglo.cli._command_source import FileSource, check_threshold, read_policy
from napari_agglo.cli._commands.mapping import add_mapping_options, apply_mapping
from napari_agglo.cli._files import open_inputs, refuse_existing
from napari_agglo.cli._terminal import GRAPH, TREE, Console, count

if TYPE_CHECKING:
    from napari_agglo.graph import RegionGraph

SUMMARY = "make a session of superpixels, or of the segments of another tool"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("session", metavar="FOLDER", help="session to make, NAME.agglo")
    add_graph(parser, required=False)
    add_value(parser, "--policy", "POLICY", "order of the merges", default="mean")
    add_adapt(parser)
    add_threshold(parser, "threshold that the session begins with", "0.5")
    start = parser.add_mutually_exclusive_group()
    start.add_argument(
        "--segmentation", metavar="FILE",
        help="label image of another tool to start from; superpixels are divided at its borders, "
        "and without --superpixels its segments are the superpixels",
    )  # fmt: skip
    start.add_argument(
        "--mapping", metavar="MAPPING",
        help="start from the segments that a mapping of another program makes of the superpixels",
    )  # fmt: skip
    add_mapping_options(parser)
    add_value(parser, "--gold", "FILE", "gold standard, to measure errors after each edit")
    add_value(parser, "--image", "FILE", "image, which the plugin shows with the session")
    add_json(parser)
    parser.set_defaults(method=None, beta=None, seed=0, words=None)


class _Start(NamedTuple):
    """All that a session starts with."""

    policy: Any
    graph: RegionGraph | None = None
    segmentation: Any = None
    source: str | None = None  # the file of the superpixels


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Make the session and print its size."""
    from napari_agglo.session import Session
    from napari_agglo.volumes import open_volume

    files = _check(arguments)
    refuse_existing(arguments.session)
    check_threshold(arguments)
    with console.progress([*GRAPH, *TREE, ("saving", 3), ("applying edits", 2)]) as progress:
        start = _start(arguments, console, files, progress)
        console.files |= {"path": arguments.session, **gold_files([arguments.gold or ""])}
        with Session.create(
            arguments.session,
            start.graph,
            start.policy,
            segmentation=start.segmentation,
            gold=open_volume(arguments.gold) if arguments.gold else None,
            source=start.source,
            sources=_sources(arguments, files),
            progress=progress,
        ) as session:
            if arguments.threshold is not None:
                session.threshold = arguments.threshold
            segments, superpixels = len(session.segments), session.graph.n_regions
    console.result(
        f"{arguments.session}: {count(superpixels, 'superpixel')}, {count(segments, 'segment')}",
        {"session": arguments.session, "superpixels": superpixels, "segments": segments},
    )


def _check(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the superpixels and the evidence by their names in the library, if there are any.

    Options that are not enough for a session are refused.
    """
    evidence = arguments.cues or arguments.affinities or arguments.oriented
    if arguments.superpixels is None and (evidence or arguments.segmentation is None):
        arguments.parser.error(
            "the following arguments are required: --superpixels, or --segmentation alone"
        )
    if not evidence and not (arguments.segmentation or arguments.mapping):
        arguments.parser.error("the following arguments are required: --cues, or --segmentation")
    if not evidence:
        return {}
    return graph_files(
        arguments.superpixels, arguments.cues, arguments.affinities, arguments.oriented,
        arguments.words,
    )  # fmt: skip


def _start(
    arguments: argparse.Namespace, console: Console, files: dict[str, str], progress: Any
) -> _Start:
    """Read the files, and build the graph."""
    from napari_agglo.graph import DEFAULT_BINS
    from napari_agglo.policy import as_policy

    cues = cue_names(files) if files else [BOUNDARY]
    maps = ("affinities" in files, "oriented" in files)
    policy, cues, bins = read_policy(check_policy(arguments.policy), cues, *maps)
    needed = {"superpixels": arguments.superpixels, "segmentation": arguments.segmentation}
    labels = {name: file for name, file in needed.items() if file}
    volumes = dict(open_inputs(console, labels, arguments.spacing, arguments.unit).volumes)
    segmentation: Any = volumes.get("segmentation")
    if arguments.superpixels is None:
        return _Start(policy, segmentation=segmentation)
    superpixels, source = volumes["superpixels"], arguments.superpixels
    if arguments.mapping:
        segmentation = apply_mapping(arguments, console, arguments.mapping, superpixels)
    elif segmentation is not None:
        pieces = _divided(superpixels, segmentation, console, progress)
        if pieces is not None:
            superpixels, source = pieces, None
    if not files:
        graph = _graph_of_labels(superpixels, segmentation, progress)
        return _Start(policy, graph, segmentation, source)
    evidence = FileSource(arguments, console, files, {})
    evidence.volumes = {**evidence.volumes, "superpixels": superpixels}
    graph = evidence.graph(progress, cues, bins or DEFAULT_BINS)
    if arguments.adapt:  # else the session warns of other data
        graph = evidence.adapted(graph, as_policy(policy), progress)
    return _Start(policy, graph, segmentation, source)


def _divided(superpixels: Any, segmentation: Any, console: Console, progress: Any) -> Any:
    """Return superpixels that cross no border of a segmentation; None if none of them does."""
    from napari_agglo.superpixels import divide_superpixels
    from napari_agglo.volumes import dense_labels

    before = dense_labels(superpixels, "superpixels").n_labels
    pieces, segments = divide_superpixels(superpixels, segmentation, progress=progress)
    after = len(segments) - 1
    if after == before:
        return None
    console.note(f"divided at the borders of the segmentation: {before} superpixels into {after}")
    return replace(superpixels, data=pieces)


def _graph_of_labels(superpixels: Any, segmentation: Any, progress: Any) -> RegionGraph:
    """Return the graph of superpixels whose boundary cue is made of the borders of segments."""
    from napari_agglo.graph import region_graph
    from napari_agglo.superpixels import boundary_from_labels

    cue = boundary_from_labels(segmentation, spacing=superpixels.spacing, progress=progress)
    return region_graph(superpixels, cue, progress=progress)


def _sources(arguments: argparse.Namespace, files: dict[str, str]) -> dict[str, Any]:
    """Return the files that the plugin shows with the session.

    Of an oriented map it shows the strongest direction, which is a cue in the folder.
    """
    from napari_agglo.session import Source
    from napari_agglo.volumes import add_pick, open_volume

    named = {"image": arguments.image, "gold": arguments.gold}
    sources: dict[str, Any] = {name: file for name, file in named.items() if file}
    sources |= {f"cue {one[6:-2]}": file for one, file in files.items() if one.startswith("cues[")}
    if "affinities" in files:
        channels = add_pick(files["affinities"], "c=*")
        sources["affinities"] = Source(open_volume(channels).data, channels, "affinities")
    return sources
