"""`napari-agglo report`: a comparison of policies on one HTML page."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_agglo._progress import part_of
from napari_agglo.cli._arguments import (
    add_gold,
    add_graph,
    add_json,
    add_output,
    add_policies,
    add_threshold,
    add_value,
)
from napari_agglo.cli._command_source import (
    BEFORE,
    OWN,
    OWN_NOTE,
    WITH,
    SessionSource,
    add_session,
    check_policies,
    input_files,
    open_source,
)
from napari_agglo.cli._commands.evaluate import WHOLE
from napari_agglo.cli._files import check_folder_output, open_image, output_folder, refuse_clash
from napari_agglo.cli._image_folders import add_each, for_each, partners
from napari_agglo.cli._messages import SomeFailed
from napari_agglo.cli._terminal import Console, table

if TYPE_CHECKING:
    import pandas as pd

    from napari_agglo._progress import ProgressCallback
    from napari_agglo.report import Finding

NAME = "report"
SUMMARY = "compare policies with the gold standard on one HTML page"
DESCRIPTION = (
    "Agglomerate by each policy, compare with the gold standard, and write DIR/report.html: a\n"
    "summary, plots, error maps, pictures of the worst errors and the settings on one page that\n"
    "needs no other file; and DIR/summary.csv, DIR/curves.csv and DIR/worst.csv. For a session,\n"
    "the hierarchy before all edits is compared with that after them."
)
FILES = ("report.html", "summary.csv", "curves.csv", "worst.csv")
EXAMPLE = (
    "napari-agglo report --superpixels superpixels.tif --cues boundary=cue_boundary.tif "
    "--gold gold.tif --policy mean --policy policy.npz --image image.tif -o report"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_session(parser, "its hierarchy before all edits and with them, and its gold standard")
    add_graph(parser, required=False)
    add_gold(parser)
    add_policies(parser, "a policy to compare; may be given again")
    text = "background of the error maps (default: the boundary cue; of a session, grey)"
    add_value(parser, "--image", "FILE", text)
    add_threshold(parser, "threshold of the comparison", "0.5, or that of the session")
    parser.add_argument("--title", default="Segmentation report", help="heading of the page")
    text = "leave out precision and recall of boundary pixels, which take longest"
    parser.add_argument("--no-boundaries", action="store_true", help=text)
    add_output(parser, "DIR", "folder to write to")
    add_json(parser)
    add_each(parser, "one page for all")


_IMAGES = 0.8  # of the work; the rest is that on the page
_EXAMINE = 20.0  # of a tree, where its graph and its merges are 16


@dataclass
class Findings:
    """Results of every policy on every image."""

    of_policies: list[Finding] = field(default_factory=list)
    best: dict[str, dict[str, float]] = field(default_factory=dict)
    human: list[pd.DataFrame] = field(default_factory=list)
    records: dict[str, dict[str, Any]] = field(default_factory=dict)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Write the page and its tables."""
    files = input_files(arguments, "--gold")
    policies = check_policies(arguments, files)
    if "session" not in files and arguments.threshold is None:
        arguments.threshold = 0.5
    images = partners(console, files) if arguments.each else {_image_name(arguments): files}
    output = arguments.output
    check_folder_output("-o", output)
    policy_files = {f"policy {n}": f for n, f in policies.items() if f.endswith(".npz")}
    for own in ({**one, **policy_files} for one in images.values()):
        for file in FILES:
            refuse_clash(console, {"-o": str(Path(output) / file)}, own)

    findings = Findings()

    def work(name: str, files: Mapping[str, str]) -> None:
        _examine(arguments, console, name, files, policies, findings)

    failure: SomeFailed | KeyboardInterrupt | None = None
    with output_folder(output) as folder:
        if arguments.each:
            try:
                for_each(console, images, work)
            except (SomeFailed, KeyboardInterrupt) as error:  # the page shows the images that went
                if not findings.of_policies:
                    raise
                failure = error
        else:
            work(*next(iter(images.items())))
        compared = policies or {BEFORE: BEFORE, WITH: WITH}
        settings = _settings(arguments, console, files, compared)
        console.image = (0, 1)  # the page is of all images
        with console.progress(span=(_IMAGES, 1.0)) as progress:
            _write_files(folder, arguments.title, findings, settings, progress)
    page = str(Path(output) / "report.html")
    console.result(
        f"{_summary(findings)}\n\n{page}: open it in a browser; errors in bits",
        {
            "output": page,
            "findings": [
                {"policy": f.policy, "image": f.image, "training_data": f.training, **scores_of(f)}
                for f in findings.of_policies
            ],
        },
        asked_for=True,
    )
    if failure is not None:
        raise failure


def _image_name(arguments: argparse.Namespace) -> str:
    """Return the name of the only image: that of its file."""
    if arguments.session:
        return Path(arguments.session).stem
    return os.path.basename(arguments.image or arguments.superpixels) or "image"


def _examine(
    arguments: argparse.Namespace,
    console: Console,
    name: str,
    files: Mapping[str, str],
    policies: Mapping[str, str],
    findings: Findings,
) -> None:
    """Examine every policy on one image, or a session before edits and with them."""
    from napari_agglo.evaluate import best_point, human_agreement
    from napari_agglo.report import examine

    image = files.get("image")
    if image is None and "session" not in files:
        image = files.get("cues['boundary']") or next(
            file for argument, file in files.items() if argument.startswith("cues[")
        )
    backdrop = open_image(console, image, "backdrop")[0].load() if image else None
    plane: tuple[int, ...] | None = None
    own: list[Finding] = []
    n_trees = 2 if "session" in files else len(policies)
    after = [("", n_trees * _EXAMINE)]  # any stage, each with its part of these
    with open_source(
        arguments, console, files, policies, before=True, after=after, span=(0.0, _IMAGES)
    ) as (source, progress):
        golds = source.golds()
        if isinstance(source, SessionSource) and arguments.threshold is None:
            arguments.threshold = source.session.threshold
        each = 0.95 / n_trees
        for k, (policy, tree) in enumerate(source.trees(progress).items()):
            own.append(
                examine(
                    tree,
                    golds,
                    policy=policy,
                    image=name,
                    backdrop=backdrop,
                    threshold=arguments.threshold,
                    spacing=source.spacing,
                    plane=plane,
                    boundaries=not arguments.no_boundaries,
                    training=policy in source.trained_here,
                    progress=part_of(progress, each * k, each * (k + 1)),
                )
            )
            plane = own[-1].plane  # all policies show the same one
        last = part_of(progress, 0.95, 1.0)
        best = best_point(source.graph(last), golds, progress=last)
        if len(golds) > 1:
            people = human_agreement(golds, progress=last).assign(image=name)
            findings.human.append(people)
    # Only now, when nothing can fail: an image is on the page wholly or not at all.
    findings.best[name] = best
    findings.records |= source.records
    findings.of_policies += own


def _settings(
    arguments: argparse.Namespace,
    console: Console,
    files: Mapping[str, str],
    policies: Mapping[str, str],
) -> dict[str, object]:
    """Return the settings of the command, the time, and the versions of the libraries."""
    import datetime
    import platform
    from importlib.metadata import version

    from napari_agglo._version import __version__
    from napari_agglo.agglomeration import threshold_text

    settings: dict[str, object] = {
        console.option(name).lstrip("-"): file for name, file in files.items()
    }
    settings["policies"] = ", ".join(policies.values())
    settings["threshold"] = threshold_text(arguments.threshold)
    settings |= {
        name: value
        for name, value in {
            "range": ", ".join(f"{n or 'all'}={a:g}:{b:g}" for n, (a, b) in arguments.range),
            "spacing": arguments.spacing and ",".join(f"{d:g}" for d in arguments.spacing),
            "unit": arguments.unit,
            "seed": arguments.seed if "random" in policies else None,
            "dams": "yes" if arguments.dams else None,
            "nan": arguments.nan if arguments.nan != "refuse" else None,
        }.items()
        if value not in (None, "")
    }
    libraries = ("numpy", "numba", "scipy", "scikit-learn", "matplotlib")
    settings["made"] = datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %z")
    settings["versions"] = ", ".join(
        [f"napari-agglo {__version__}", f"Python {platform.python_version()}"]
        + [f"{name} {version(name)}" for name in libraries]
    )
    return settings


def _write_files(
    folder: Path,
    title: str,
    findings: Findings,
    settings: Mapping[str, object],
    progress: ProgressCallback | None,
) -> None:
    """Write the page and the tables that it was made from."""
    import pandas as pd

    from napari_agglo.evaluate import plain_curve
    from napari_agglo.report import html_report

    page = html_report(
        findings.of_policies,
        title=title,
        best=findings.best,
        human=pd.concat(findings.human, ignore_index=True) if findings.human else None,
        records=findings.records,
        settings=settings,
        progress=progress,
    )
    (folder / "report.html").write_text(page, encoding="utf-8")
    names = [{"image": f.image, "policy": f.policy} for f in findings.of_policies]
    summary = [n | scores_of(f) for n, f in zip(names, findings.of_policies, strict=True)]
    pd.DataFrame(summary).to_csv(folder / "summary.csv", index=False)
    curves = [
        plain_curve(f.curve).assign(**n) for n, f in zip(names, findings.of_policies, strict=True)
    ]
    pd.concat(curves).to_csv(folder / "curves.csv", index=False)
    worst = [
        n
        | {"kind": e.kind, "id": e.id, "contribution": e.contribution, "voxels": e.voxels}
        | {"partners": " ".join(map(str, e.partners)), "voxel": " ".join(map(str, e.voxel))}
        for n, f in zip(names, findings.of_policies, strict=True)
        for e in f.errors
    ]
    columns = ["image", "policy", "kind", "id", "contribution", "voxels", "partners", "voxel"]
    pd.DataFrame(worst, columns=columns).to_csv(folder / "worst.csv", index=False)


def scores_of(finding: Finding) -> dict[str, float | int]:
    """Return the errors of a finding, counts as whole numbers, and the least VI of its curve."""
    from napari_agglo.agglomeration import plain_threshold
    from napari_agglo.evaluate import minimum

    least = minimum(finding.curve)
    counts = {n: v for n, v in finding.scores.items() if n in WHOLE and float(v).is_integer()}
    return {
        **finding.scores,
        **{name: int(value) for name, value in counts.items()},
        "least_vi": float(least["vi"]),
        "least_vi_threshold": plain_threshold(float(least["threshold"])),
    }


def _summary(findings: Findings) -> str:
    """Return the errors of each policy as a table."""
    from napari_agglo.evaluate import minimum

    errors = ("false_merge", "false_split", "vi")
    rows = [
        [
            f.policy,
            f.image + OWN * f.training,
            *(f.scores[key] for key in errors),
            minimum(f.curve)["vi"],
        ]
        for f in findings.of_policies
    ]
    text = table(["policy", "image", *errors, "least vi"], rows)
    own = any(f.training for f in findings.of_policies)
    return f"{text}\n{OWN_NOTE}" if own else text
