"""`napari-agglo movie`: agglomerations in motion, side by side, as a file."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from napari_agglo.errors import InvalidInput

if TYPE_CHECKING:
    from napari_agglo._progress import ProgressCallback
    from napari_agglo.agglomeration import MergeTree
    from napari_agglo.cli._files import Inputs


# The movie of files, or of a session: its panels, and the writing.


_MOST = 4
OPTIONS = {
    "path": "-o", "plane": "--plane", "by": "--by", "frames": "--frames", "fps": "--fps",
    "start": "--from", "stop": "--to", "size": "--size",
}  # fmt: skip


def film_files(arguments: argparse.Namespace) -> dict[str, Any]:
    """Agglomerate by each policy, write the movie, and return its panels."""
    from napari_agglo.cli._arguments import cue_files
    from napari_agglo.cli._commands.report import policy_names
    from napari_agglo.cli._files import open_inputs, refuse_clash
    from napari_agglo.cli._source import check_pipeline, library_names, plan
    from napari_agglo.cli._terminal import progress_line
    from napari_agglo.cli._words import command_words

    cues = cue_files(arguments.cues)
    policies = policy_names(arguments.policy or ["mean"])
    if len(policies) > _MOST:
        raise InvalidInput(f"--policy is given {len(policies)} times; a movie has up to {_MOST}")
    for policy in policies.values():
        check_pipeline(arguments, cues, policy)
        plan(policy, cues)  # one that cannot be used is told now, not after the others have been
    files = library_names(arguments.superpixels, cues)
    if arguments.gold:
        files["gold"] = arguments.gold
    given = {"--superpixels": arguments.superpixels} | {f"--cues {n}": f for n, f in cues.items()}
    given |= {f"--{k}": v for k in ("image", "gold") if (v := getattr(arguments, k))}
    given |= {f"--policy {name}": one for name, one in policies.items() if one.endswith(".npz")}
    refuse_clash({"-o": arguments.output}, given)

    inputs = open_inputs(files, arguments.spacing)
    words = {**files, **OPTIONS, "image": arguments.image or "--image"}
    with command_words(words), progress_line() as progress:
        panels: dict[str, Any] = _trees(inputs, policies, cues, arguments, progress)
        gold = inputs.volumes["gold"].load() if arguments.gold else None
        return _write(panels, gold, inputs.spacing, arguments, progress)


def film_session(path: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Write the movie of a session, and return its panels."""
    from napari_agglo.cli._files import refuse_clash
    from napari_agglo.cli._source import open_session, session_golds, session_trees
    from napari_agglo.cli._terminal import progress_line
    from napari_agglo.cli._words import command_words

    given = {"SESSION": path}
    given |= {f"--{k}": v for k in ("image", "gold") if (v := getattr(arguments, k))}
    refuse_clash({"-o": arguments.output}, given)
    words = {**OPTIONS, "image": arguments.image or "--image", "superpixels": path}
    with (
        command_words(words),
        progress_line() as progress,
        open_session(path, arguments.superpixels, progress) as session,
    ):
        panels: dict[str, Any] = {**session_trees(session, progress, before=arguments.before)}
        gold = session.gold
        if arguments.gold:
            (gold,) = session_golds(session, [arguments.gold])
        return _write(panels, gold, session.graph.spacing, arguments, progress)


def _write(
    panels: dict[str, Any],
    gold: Any,
    spacing: tuple[float, ...] | None,
    arguments: argparse.Namespace,
    progress: ProgressCallback | None,
) -> dict[str, Any]:
    """Write the movie, with gold in it if there is some, and return its panels."""
    from napari_agglo.cli._files import open_image
    from napari_agglo.movie import write_movie

    options: dict[str, Any] = {
        name: getattr(arguments, name)
        for name in ("plane", "by", "start", "stop", "frames", "size", "fps")
    }
    if arguments.image:
        options["image"] = open_image(arguments.image)[0].load()
    if gold is not None and len(panels) < _MOST and "gold" not in panels:
        panels = {**panels, "gold": gold}
    write_movie(arguments.output, panels, gold=gold, spacing=spacing, progress=progress, **options)
    return panels


def _trees(
    inputs: Inputs,
    policies: Mapping[str, str],
    cues: Mapping[str, str],
    arguments: argparse.Namespace,
    progress: ProgressCallback | None,
) -> dict[str, MergeTree]:
    """Agglomerate by each policy, on as few graphs as they need."""
    from napari_agglo.agglomeration import agglomerate
    from napari_agglo.cli._source import build_graph, plan
    from napari_agglo.graph import RegionGraph

    graphs: dict[tuple[Any, ...], RegionGraph] = {}
    trees = {}
    for name, given in policies.items():
        policy, ordered, bins = plan(given, cues)
        key = (*ordered, bins)
        if key not in graphs:
            graphs[key] = build_graph(inputs, ordered, arguments, progress, bins)
        trees[name] = agglomerate(graphs[key], policy, seed=arguments.seed, progress=progress)
    return trees


NAME = "movie"
SUMMARY = "watch agglomerations happen, side by side, as MP4, GIF or PNG frames"
DESCRIPTION = (
    "Agglomerate by each policy and write a movie of it, one panel a policy, in step. Segments\n"
    "that overlap most have one colour in all panels, and what has just been merged flashes.\n"
    "Of a session it is the hierarchy with all edits, beside the one before them with --before."
)
EXAMPLE = (
    "napari-agglo movie --superpixels superpixels.tif --cues boundary=cue_boundary.tif "
    "--policy mean --policy policy.npz --image image.tif --gold gold.tif -o merging.mp4"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    from napari_agglo.cli._arguments import add_graph
    from napari_agglo.cli._source import add_session

    add_session(parser, "its hierarchy with all edits")
    add_graph(parser, required=False)
    parser.add_argument(
        "--before", action="store_true", help="of a session, show what it was before all edits too"
    )
    parser.add_argument(
        "--policy",
        nargs="+",
        action="extend",
        metavar="POLICY.npz|mean|random",
        help="what merges, a panel each; may be given again, up to four (default: mean)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of the random policy (default: 0)"
    )
    parser.add_argument("--image", metavar="FILE", help="what to draw on (default: grey)")
    parser.add_argument(
        "--gold", metavar="FILE", help="tell the VI in each frame, and show it where there is room"
    )
    parser.add_argument(
        "--plane",
        type=_plane,
        metavar="Z",
        help="plane of a volume, from 0; with commas between where there are more axes "
        "(default: the middle)",
    )
    parser.add_argument(
        "--by",
        choices=("merges", "threshold"),
        default="merges",
        help="in each frame all panels have as many merges, or the same threshold "
        "(default: merges)",
    )
    parser.add_argument(
        "--from", dest="start", type=float, metavar="X",
        help="first number of merges, or threshold (default: the superpixels)",
    )  # fmt: skip
    parser.add_argument(
        "--to", dest="stop", type=float, metavar="X",
        help="last number of merges, or threshold (default: the end)",
    )  # fmt: skip
    parser.add_argument(
        "--frames", type=int, default=120, metavar="N", help="how many frames (default: 120)"
    )
    parser.add_argument(
        "--fps", type=float, default=12, metavar="N", help="frames a second (default: 12)"
    )
    parser.add_argument(
        "--size", type=int, default=480, metavar="N",
        help="pixels of the longer side of a panel, about (default: 480)",
    )  # fmt: skip
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE.mp4|FILE.gif|DIR",
        help="movie to write; a name without a suffix is a folder for PNG frames",
    )


def _plane(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, such as 12") from None


def run(arguments: argparse.Namespace) -> None:
    """Agglomerate, or open a session, and write the movie."""
    from napari_agglo.cli._files import check_folder_output, check_table_output
    from napari_agglo.cli._source import given_session
    from napari_agglo.cli._words import command_words
    from napari_agglo.movie import check_movie_path

    session = given_session(arguments)
    if arguments.before and session is None:
        raise InvalidInput("--before is of a session; give one, NAME.agglo, or drop it")
    with command_words(OPTIONS):
        target = check_movie_path(arguments.output)
    check = check_table_output if target.suffix else check_folder_output
    check("-o", arguments.output)
    panels = film_files(arguments) if session is None else film_session(session, arguments)
    print(f"{arguments.output}: {arguments.frames} frames of {', '.join(panels)}")
