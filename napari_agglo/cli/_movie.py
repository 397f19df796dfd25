"""`napari-agglo movie`: agglomerations in motion, side by side, as a file."""

from __future__ import annotations

import argparse

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    from napari_agglo.cli._arguments import add_graph
    from napari_agglo.cli._sessions import add_session

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
    from napari_agglo.cli._movie_made import OPTIONS, film_files, film_session
    from napari_agglo.cli._outputs import check_folder_output, check_table_output
    from napari_agglo.cli._sessions import given_session
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
