"""The files of `report`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from napari_agglo.cli._findings import Found

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
