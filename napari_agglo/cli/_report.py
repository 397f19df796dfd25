"""`napari-agglo report`: policies compared, as one page to send to a colleague."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from napari_agglo.errors import InvalidInput

NAME = "report"
SUMMARY = "compare policies with the gold standard on one HTML page"
DESCRIPTION = (
    "Agglomerate by each policy, compare with the gold standard, and write DIR/report.html: a\n"
    "summary, plots, error maps, pictures of the worst errors and the settings on one page that\n"
    "needs no other file; and DIR/summary.csv, DIR/curves.csv and DIR/worst.csv. Of a session it\n"
    "compares the hierarchy before all edits with the one after them."
)
EXAMPLE = (
    "napari-agglo report --superpixels superpixels.tif --cues boundary=cue_boundary.tif "
    "--gold gold.tif --policy mean --policy policy.npz --image image.tif -o report"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    from napari_agglo.cli._arguments import add_graph, add_threshold
    from napari_agglo.cli._each import HELP
    from napari_agglo.cli._golds import add_gold
    from napari_agglo.cli._sessions import add_session

    add_session(parser, "its hierarchy before all edits and with them, and its gold standard")
    add_graph(parser, required=False)
    add_gold(parser)
    parser.add_argument(
        "--policy",
        nargs="+",
        action="extend",
        metavar="POLICY.npz|mean|random",
        help="a policy to compare; may be given again (default: mean)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of the random policy (default: 0)"
    )
    parser.add_argument(
        "--image",
        metavar="FILE",
        help="what to draw errors on (default: the boundary cue; of a session, grey)",
    )
    add_threshold(parser, "compare segments at this one", "0.5, or that of the session")
    parser.add_argument("--title", default="Segmentation report", help="heading of the page")
    parser.add_argument(
        "--no-boundaries",
        action="store_true",
        help="leave out precision and recall of boundary pixels, which take longest",
    )
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="folder to write to")
    parser.add_argument("--each", action="store_true", help=f"{HELP}; one page for all")


def policy_names(given: Sequence[str]) -> dict[str, str]:
    """Return a name for each policy: that of its file, or with its folder where names are alike.

    Examples
    --------
    >>> policy_names(["mean", "a/flat.npz"])
    {'mean': 'mean', 'flat': 'a/flat.npz'}
    >>> list(policy_names(["a/p.npz", "b/p.npz"]))
    ['a/p.npz', 'b/p.npz']
    """
    stems = [Path(one).stem if one.endswith(".npz") else one for one in given]
    names = [one if stems.count(stem) > 1 else stem for one, stem in zip(given, stems, strict=True)]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"--policy {name} is given twice; give each once")
    return dict(zip(names, given, strict=True))


def run(arguments: argparse.Namespace) -> None:
    """Write the page and its tables."""
    from napari_agglo.cli._arguments import cue_files
    from napari_agglo.cli._each import for_each, partners
    from napari_agglo.cli._failures import SomeFailed
    from napari_agglo.cli._findings import Found, examine_image, examine_session
    from napari_agglo.cli._golds import gold_options
    from napari_agglo.cli._outputs import check_folder_output, output_folder, refuse_clash
    from napari_agglo.cli._report_files import FILES, settings_of, summary_text, write_files
    from napari_agglo.cli._sessions import BEFORE, WITH, given_session

    session = given_session(arguments, "--gold")
    cues = {} if session else cue_files(arguments.cues)
    policies = {BEFORE: BEFORE, WITH: WITH} if session else _policies(arguments, cues)
    given = {"SESSION": session} if session else {"--superpixels": arguments.superpixels}
    given |= {f"--cues {n}": f for n, f in cues.items()} | gold_options(arguments.gold or [])
    if arguments.image:
        given["--image"] = arguments.image
    images = partners(given) if arguments.each else {_image_name(arguments): given}
    check_folder_output("-o", arguments.output)
    read = {f"{what} {n}": f for n, files in images.items() for what, f in files.items()}
    read |= {f"--policy {name}": file for name, file in policies.items() if file.endswith(".npz")}
    for file in FILES:
        refuse_clash({"-o": str(Path(arguments.output) / file)}, read)

    found = Found()

    def work(name: str, files: Mapping[str, str]) -> None:
        if session:
            examine_session(name, session, arguments, found)
        else:
            examine_image(name, files, cues, policies, arguments, found)

    failed: SomeFailed | KeyboardInterrupt | None = None
    with output_folder(arguments.output) as folder:
        if arguments.each:
            try:
                for_each(images, work)
            except (SomeFailed, KeyboardInterrupt) as failure:  # the page is of what was compared
                if not found.findings:
                    raise
                failed = failure
        else:
            work(*next(iter(images.items())))
        settings = settings_of(arguments, given, policies)
        write_files(folder, arguments.title, found, settings)
    print(summary_text(found))
    print(f"\n{Path(arguments.output) / 'report.html'}: open it in a browser; errors in bits")
    if failed is not None:
        raise failed


def _policies(arguments: argparse.Namespace, cues: Mapping[str, str]) -> dict[str, str]:
    """Return the policies by name; one that cannot be used is told now, not after the others."""
    from napari_agglo.cli._pipeline import check_pipeline, plan

    if arguments.threshold is None:
        arguments.threshold = 0.5
    policies = policy_names(arguments.policy or ["mean"])
    for policy in policies.values():
        check_pipeline(arguments, cues, policy)
        plan(policy, cues)
    return policies


def _image_name(arguments: argparse.Namespace) -> str:
    """Return what to call the only image: the name of its file."""
    if arguments.session:
        return Path(arguments.session).stem
    return os.path.basename(arguments.image or arguments.superpixels) or "image"
