"""`napari-agglo session`: make, describe, export or repair a session; apply a table of edits."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from napari_agglo.cli._arguments import add_json, add_verbosity
from napari_agglo.cli._command_source import add_session_options, open_session
from napari_agglo.cli._commands import export, session_create
from napari_agglo.cli._messages import SomeFailed
from napari_agglo.cli._provenance import add_provenance
from napari_agglo.cli._terminal import SESSION, Console

NAME = "session"
SUMMARY = "make, describe, export or repair a session folder, or apply edits"
DESCRIPTION = (
    "create makes a session of superpixels, or of the segments of another tool (a label image or\n"
    "a mapping); info prints the contents of a session; export is napari-agglo export;\n"
    "apply applies the edits of a table (export edits), and lists those not possible here;\n"
    "recover repairs a damaged session and lists what was lost; nothing is deleted."
)
EXAMPLE = "napari-agglo session info cells.agglo"

# Suffixes of the records of provenance; that of an export is beside its own output.
_RECORDS = {"create": "", "apply": ".apply", "export": None}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the commands of a session and their arguments."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, run_action, summary in (
        ("create", session_create.run, session_create.SUMMARY),
        ("info", run_info, "print the contents of a session"),
        ("export", export.run, export.SUMMARY),
        ("apply", run_apply, "apply the edits of a table"),
        ("recover", run_recover, "repair a damaged session"),
    ):
        action = actions.add_parser(name, help=summary, description=summary)
        if name == "create":
            session_create.add_arguments(action)
        elif name == "export":
            export.add_arguments(action)
        else:
            action.add_argument("session", metavar="FOLDER", help="session, NAME.agglo")
            if name == "apply":
                action.add_argument("table", metavar="TABLE", help="file of the export kind edits")
                action.add_argument(
                    "--other-superpixels", action="store_true",
                    help="apply a table that was made on other superpixels too, by their ids",
                )  # fmt: skip
            add_session_options(action)
            add_json(action)
        add_verbosity(action)
        if name in _RECORDS:
            add_provenance(action)
            action.set_defaults(records=_RECORDS[name])
        action.set_defaults(run=run_action, parser=action)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Run an action; its own parser has set another function in place of this one."""
    raise AssertionError("an action is required")


def run_info(arguments: argparse.Namespace, console: Console) -> None:
    """Print the contents of a session."""
    from napari_agglo.agglomeration import plain_threshold

    with (
        console.progress() as progress,
        open_session(arguments, console, arguments.session, progress) as session,
    ):
        graph = session.graph
        data: dict[str, Any] = {
            "session": arguments.session,
            "shape": list(graph.superpixels.image.shape),
            "spacing": list(graph.spacing),
            "unit": graph.unit,
            "superpixels": graph.n_regions,
            "boundaries": graph.n_boundaries,
            "cues": list(graph.cue_names),
            "policy": _policy_text(session.policy),
            "gold": session.errors.gold is not None,
            "threshold": plain_threshold(session.threshold),
            "segments": len(session.segments),
            "edits": len(session.history),
            "locked": len(session.segments.locked()),
            "report": str(session.history.report),
        }
    width = max(map(len, data))
    lines = [f"{name:{width}}  {_plain(value)}" for name, value in data.items()]
    console.result("\n".join(lines), data, asked_for=True)


def run_apply(arguments: argparse.Namespace, console: Console) -> None:
    """Make the edits of a table in a session."""
    console.files["table"] = arguments.table
    with (
        console.progress([*SESSION, ("edits", 12)]) as progress,
        open_session(arguments, console, arguments.session, progress, read_only=False) as session,
    ):
        done = session.apply(
            arguments.table, other_superpixels=arguments.other_superpixels, progress=progress
        )
    lines = [f"{arguments.session}: {done}", *(f"  {one}" for one in done.not_applied)]
    console.result(
        "\n".join(lines),
        {
            "session": arguments.session,
            "applied": done.applied,
            "already": done.already,
            "left_out": done.left_out,
            "not_applied": [asdict(one) for one in done.not_applied],
        },
        asked_for=True,
    )
    if done.not_applied:
        raise SomeFailed(f"{len(done.not_applied)} edits are not possible in this session", 1)


def _policy_text(policy: Any) -> str:
    """Return the policy in words: its parameters where its class says no more than an address."""
    text = repr(policy)
    if " object at 0x" not in text:
        return text
    words = policy.to_json()
    own = ", ".join(f"{name}={value!r}" for name, value in words.items() if name != "kind")
    return f"{policy.name}({own}) of {type(policy).__module__}"


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, float):
        from napari_agglo.agglomeration import threshold_text

        return threshold_text(value)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def run_recover(arguments: argparse.Namespace, console: Console) -> None:
    """Repair a session and print the report."""
    from napari_agglo.session import Session
    from napari_agglo.volumes import open_volume

    superpixels = arguments.superpixels and open_volume(arguments.superpixels)
    report = Session.recover(Path(arguments.session), superpixels=superpixels)
    console.result(
        f"{arguments.session}: {report}",
        {
            "session": arguments.session,
            "kept": report.kept,
            "lost": report.lost,
            "sentences": list(report.sentences),
            "aside": [str(path) for path in report.aside],
            "unmended": report.unmended,
        },
        asked_for=True,
    )
    if report.unmended:
        raise SomeFailed(
            f"{arguments.session} cannot be opened yet, see above; if its superpixels are gone, "
            "add --superpixels FILE",
            2,
        )
