"""`napari-agglo report`: policies compared, as one page to send to a colleague."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_agglo.cli._files import open_image
from napari_agglo.errors import InvalidInput

if TYPE_CHECKING:
    import pandas as pd

    from napari_agglo.report import Finding


# What `report` finds: every policy examined on one image after another.


@dataclass
class Found:
    """Results collected so far."""

    findings: list[Finding] = field(default_factory=list)
    best: dict[str, dict[str, float]] = field(default_factory=dict)
    human: list[pd.DataFrame] = field(default_factory=list)
    records: dict[str, dict[str, Any]] = field(default_factory=dict)


def examine_image(
    name: str,
    files: Mapping[str, str],
    cues: Mapping[str, str],
    policies: Mapping[str, str],
    arguments: argparse.Namespace,
    found: Found,
) -> None:
    """Examine every policy on one image."""
    from napari_agglo.agglomeration import agglomerate
    from napari_agglo.cli._arguments import gold_names, load_golds
    from napari_agglo.cli._files import open_inputs
    from napari_agglo.cli._source import build_graph, library_names, plan
    from napari_agglo.cli._terminal import progress_line
    from napari_agglo.cli._words import command_words
    from napari_agglo.evaluate import best_point, human_agreement
    from napari_agglo.policy import policy_record
    from napari_agglo.report import examine

    evidence = {cue: files[f"--cues {cue}"] for cue in cues}
    truth = gold_names(files)
    inputs = open_inputs(library_names(files["--superpixels"], evidence) | truth, arguments.spacing)
    image = files.get("--image") or evidence.get("boundary") or next(iter(evidence.values()))
    words = {**inputs.files, "backdrop": image}
    with command_words(words):
        golds = load_golds(inputs.volumes, truth, "superpixels")
        backdrop = open_image(image)[0].load()
    made: tuple[Any, ...] = ()
    findings: list[Finding] = []
    records: dict[str, dict[str, Any]] = {}
    plane: tuple[int, ...] | None = None
    with progress_line() as progress:
        for policy_name, given in policies.items():
            policy, ordered, bins = plan(given, evidence)
            if made != (tuple(ordered), bins):
                graph = build_graph(inputs, ordered, arguments, progress, bins)
                made = (tuple(ordered), bins)
            tree = agglomerate(graph, policy, seed=arguments.seed, progress=progress)
            if (record := policy_record(policy)) is not None:
                records[policy_name] = record
            with command_words(words):
                findings.append(
                    examine(
                        tree,
                        golds,
                        policy=policy_name,
                        image=name,
                        backdrop=backdrop,
                        threshold=arguments.threshold,
                        spacing=inputs.spacing,
                        plane=plane,
                        boundaries=not arguments.no_boundaries,
                        progress=progress,
                    )
                )
            plane = findings[-1].plane  # all policies show the same one
        best = best_point(graph, golds, progress=progress)
        people = human_agreement(golds, progress=progress) if len(golds) > 1 else None
    if people is not None:
        found.human.append(people.assign(image=name))
    found.best[name] = best
    found.records |= records
    found.findings += findings  # only now: an image is told of wholly or not at all


def examine_session(name: str, path: str, arguments: argparse.Namespace, found: Found) -> None:
    """Examine a session before all edits and with them."""
    from napari_agglo.cli._source import open_session, session_golds, session_trees
    from napari_agglo.cli._terminal import progress_line
    from napari_agglo.cli._words import command_words
    from napari_agglo.evaluate import best_point, human_agreement
    from napari_agglo.policy import policy_record
    from napari_agglo.report import examine

    backdrop = open_image(arguments.image)[0].load() if arguments.image else None
    plane: tuple[int, ...] | None = None
    words = {"backdrop": arguments.image or "--image", "superpixels": path}
    with (
        command_words(words),
        progress_line() as progress,
        open_session(path, arguments.superpixels, progress) as session,
    ):
        golds = session_golds(session, arguments.gold)
        if arguments.threshold is None:
            arguments.threshold = session.threshold
        for when, tree in session_trees(session, progress).items():
            found.findings.append(
                examine(
                    tree,
                    golds,
                    policy=when,
                    image=name,
                    backdrop=backdrop,
                    threshold=arguments.threshold,
                    spacing=session.graph.spacing,
                    plane=plane,
                    boundaries=not arguments.no_boundaries,
                    progress=progress,
                )
            )
            plane = found.findings[-1].plane
        if (record := policy_record(session.policy)) is not None:
            found.records[name] = record
        if len(golds) > 1:
            found.human.append(human_agreement(golds, progress=progress).assign(image=name))
        found.best[name] = best_point(session.graph, golds, progress=progress)


# The files of `report`.


if TYPE_CHECKING:
    pass

FILES = ("report.html", "summary.csv", "curves.csv", "worst.csv")


def settings_of(
    arguments: argparse.Namespace, given: Mapping[str, str], policies: Mapping[str, str]
) -> dict[str, object]:
    """Return what was asked for, and by which versions it was done."""
    import datetime
    import platform
    from importlib.metadata import version

    from napari_agglo._version import __version__

    said: dict[str, object] = {what.lstrip("-"): file for what, file in given.items()}
    said["policies"] = ", ".join(policies.values())
    said["threshold"] = arguments.threshold
    said |= {
        name: value
        for name, value in {
            "range": ", ".join(f"{n or 'all'}={a:g}:{b:g}" for n, (a, b) in arguments.range),
            "spacing": arguments.spacing and ",".join(f"{d:g}" for d in arguments.spacing),
            "seed": arguments.seed if "random" in policies else None,
            "dams": "yes" if arguments.dams else None,
            "nan": arguments.nan if arguments.nan != "refuse" else None,
        }.items()
        if value not in (None, "")
    }
    libraries = ("numpy", "numba", "scipy", "scikit-learn", "matplotlib")
    said["made"] = datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %z")
    said["versions"] = ", ".join(
        [f"napari-agglo {__version__}", f"Python {platform.python_version()}"]
        + [f"{name} {version(name)}" for name in libraries]
    )
    return said


def write_files(folder: Path, title: str, found: Found, settings: Mapping[str, object]) -> None:
    """Write the page and the tables that it was made from."""
    import pandas as pd

    from napari_agglo.report import html_report

    page = html_report(
        found.findings,
        title=title,
        best=found.best,
        human=pd.concat(found.human, ignore_index=True) if found.human else None,
        records=found.records,
        settings=settings,
    )
    (folder / "report.html").write_text(page, encoding="utf-8")
    names = [{"image": f.image, "policy": f.policy} for f in found.findings]
    summary = [n | f.scores for n, f in zip(names, found.findings, strict=True)]
    pd.DataFrame(summary).to_csv(folder / "summary.csv", index=False)
    curves = [f.curve.assign(**n) for n, f in zip(names, found.findings, strict=True)]
    pd.concat(curves).to_csv(folder / "curves.csv", index=False)
    worst = [
        n
        | {"kind": e.kind, "id": e.id, "contribution": e.contribution, "voxels": e.voxels}
        | {"partners": " ".join(map(str, e.partners)), "voxel": " ".join(map(str, e.voxel))}
        for n, f in zip(names, found.findings, strict=True)
        for e in f.errors
    ]
    columns = ["image", "policy", "kind", "id", "contribution", "voxels", "partners", "voxel"]
    pd.DataFrame(worst, columns=columns).to_csv(folder / "worst.csv", index=False)


def summary_text(found: Found) -> str:
    """Return the errors of each policy as a table."""
    from napari_agglo.cli._terminal import table
    from napari_agglo.evaluate import minimum

    errors = ("false_merge", "false_split", "vi")
    rows = [
        [f.policy, f.image, *(f.scores[key] for key in errors), minimum(f.curve)["vi"]]
        for f in found.findings
    ]
    return table(["policy", "image", *errors, "least vi"], rows)


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
    from napari_agglo.cli._arguments import add_gold, add_graph, add_threshold
    from napari_agglo.cli._each import HELP
    from napari_agglo.cli._source import add_session

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
    from napari_agglo.cli._arguments import cue_files, gold_options
    from napari_agglo.cli._each import for_each, partners
    from napari_agglo.cli._files import check_folder_output, output_folder, refuse_clash
    from napari_agglo.cli._messages import SomeFailed
    from napari_agglo.cli._source import BEFORE, WITH, given_session

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
    from napari_agglo.cli._source import check_pipeline, plan

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
