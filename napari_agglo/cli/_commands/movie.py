"""`napari-agglo movie`: a movie of agglomerations side by side."""

from __future__ import annotations

import argparse
from typing import Any

from napari_agglo.cli._arguments import (
    add_choice,
    add_graph,
    add_json,
    add_output,
    add_policies,
    add_value,
)
from napari_agglo.cli._command_source import add_session, check_policies, input_files, open_source
from napari_agglo.cli._files import (
    check_folder_output,
    check_table_output,
    open_image,
    refuse_clash,
)
from napari_agglo.cli._terminal import Console
from napari_agglo.errors import InvalidInput

NAME = "movie"
SUMMARY = "write a movie of agglomerations side by side, as MP4, GIF or PNG frames"
DESCRIPTION = (
    "Agglomerate by each policy and write a movie of it, with one panel for each policy, in step.\n"
    "Segments that overlap most have one colour in all panels, and new merges flash. A session\n"
    "is shown with all edits, and with --before also as it was before them."
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
        "--before", action="store_true", help="show a session also as it was before all edits"
    )
    add_policies(parser, "a policy, with a panel of its own; may be given again, up to four")
    add_value(parser, "--image", "FILE", "background of the panels (default: grey)")
    text = "print the VI in each frame, and add a panel if there is room"
    add_value(parser, "--gold", "FILE", text)
    text = "plane of a volume, from 0; with commas between if there are more axes"
    add_value(parser, "--plane", "Z", f"{text} (default: the middle)", type=_plane)
    text = "keep all panels at the same number of merges, or at the same threshold"
    add_choice(parser, "--by", text, "merges", "threshold")
    text = "first number of merges, or threshold (default: the superpixels)"
    add_value(parser, "--from", "X", text, type=float, dest="start")
    text = "last number of merges, or threshold (default: the end)"
    add_value(parser, "--to", "X", text, type=float, dest="stop")
    add_value(parser, "--frames", "N", "number of frames", type=int, default=120)
    add_value(parser, "--fps", "N", "frames a second", type=float, default=12)
    text = "pixels of the longer side of a panel, about"
    add_value(parser, "--size", "N", text, type=int, default=480)
    text = "movie to write; a name without a suffix is a folder for PNG frames"
    add_output(parser, "FILE.mp4|FILE.gif|DIR", text)
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
            "--before needs a session",
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
    arguments: argparse.Namespace, console: Console, files: dict[str, str], policies: dict[str, str]
) -> list[str]:
    """Write the movie, with gold in it if there is some, and return the names of its panels."""
    from napari_agglo.movie import write_movie

    options: dict[str, Any] = {
        name: getattr(arguments, name)
        for name in ("plane", "by", "start", "stop", "frames", "size", "fps")
    }
    if "image" in files:
        options["image"] = open_image(console, files["image"])[0].load()
    before = arguments.before
    errors = [("errors", 1.0)] * len(policies) if "gold" in files else []
    with open_source(
        arguments, console, files, policies, before=before, after=[*errors, ("frames", 12)]
    ) as (source, progress):
        gold = source.golds()[0] if source.has_gold else None
        panels: dict[str, Any] = dict(source.trees(progress))
        if gold is not None and len(panels) < _MOST and "gold" not in panels:
            panels["gold"] = gold
        write_movie(
            arguments.output, panels, gold=gold, spacing=source.spacing, progress=progress,
            **options,
        )  # fmt: skip
    return list(panels)
