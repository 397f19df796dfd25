"""`napari-agglo movie`: agglomerations in motion, side by side, as a file."""

from __future__ import annotations

import argparse
from typing import Any

from napari_agglo.cli._arguments import add_graph, add_json, add_policies
from napari_agglo.cli._files import (
    check_folder_output,
    check_table_output,
    open_image,
    refuse_clash,
)
from napari_agglo.cli._source import add_session, check_policies, input_files, open_source
from napari_agglo.cli._terminal import Console
from napari_agglo.errors import InvalidInput

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
_MOST = 4  # panels


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_session(parser, "its hierarchy with all edits")
    add_graph(parser, required=False)
    parser.add_argument(
        "--before", action="store_true", help="of a session, show what it was before all edits too"
    )
    add_policies(parser, "what merges, a panel each; may be given again, up to four")
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
    add_json(parser)


def _plane(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, such as 12") from None


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Agglomerate, or open a session, and write the movie."""
    from napari_agglo.movie import check_movie_path

    files = input_files(arguments)
    if arguments.before and "session" not in files:
        raise InvalidInput(
            "--before is of a session",
            argument="before",
            remedy="give a session, NAME.agglo, or drop it",
        )
    output = arguments.output
    check = check_table_output if check_movie_path(output).suffix else check_folder_output
    check("-o", output)
    policies = check_policies(arguments, files)
    if len(policies) > _MOST:
        raise InvalidInput(
            f"--policy is given {len(policies)} times; a movie has up to {_MOST}",
            argument="policy",
            remedy="leave some out",
        )
    policy_files = {f"policy {n}": f for n, f in policies.items() if f.endswith(".npz")}
    refuse_clash(console, {"-o": output}, files | policy_files)
    panels = _write(arguments, console, files, policies)
    console.result(
        f"{output}: {arguments.frames} frames of {', '.join(panels)}",
        {"output": output, "frames": arguments.frames, "panels": panels},
    )


def _write(
    arguments: argparse.Namespace,
    console: Console,
    files: dict[str, str],
    policies: dict[str, str],
) -> list[str]:
    """Write the movie, with gold in it if there is some, and return the names of its panels."""
    from napari_agglo.movie import write_movie

    options: dict[str, Any] = {
        name: getattr(arguments, name)
        for name in ("plane", "by", "start", "stop", "frames", "size", "fps")
    }
    if "image" in files:
        options["image"] = open_image(console, files["image"])[0].load()
    with (
        console.progress() as progress,
        open_source(
            arguments, console, files, policies, progress, before=arguments.before
        ) as source,
    ):
        gold = source.golds()[0] if source.has_gold else None
        panels: dict[str, Any] = dict(source.trees(progress))
        if gold is not None and len(panels) < _MOST and "gold" not in panels:
            panels["gold"] = gold
        write_movie(
            arguments.output, panels, gold=gold, spacing=source.spacing, progress=progress,
            **options,
        )  # fmt: skip
    return list(panels)
