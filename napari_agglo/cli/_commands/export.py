"""`napari-agglo export`: files of a session for people and other programs."""

from __future__ import annotations

import argparse
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin

from napari_agglo.cli._arguments import add_json, add_output, add_threshold
from napari_agglo.cli._command_source import add_session_options, open_session
from napari_agglo.cli._files import refuse_clash
from napari_agglo.cli._terminal import SESSION, Console
from napari_agglo.errors import InvalidInput

if TYPE_CHECKING:
    from napari_agglo.session._exports import Exporter, ExportOption

NAME = "export"
SUMMARY = "write a session's labels, tables, graph or mapping"
DESCRIPTION = (
    "Write one kind of export of a session: the segments at a threshold, the edits, or all\n"
    "merges. --kinds lists every kind with its suffixes and options; other packages can add kinds."
)
EXAMPLE = "napari-agglo export cells.agglo regions -o regions.csv"


class _ListKinds(argparse.Action):
    """Ask for the list of kinds, which needs no other argument."""

    def __init__(self, **options: Any) -> None:
        super().__init__(nargs=0, default=False, **options)

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, *_: Any
    ) -> None:
        setattr(namespace, self.dest, True)
        for action in parser._actions:
            action.required = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("session", metavar="SESSION", help="folder NAME.agglo")
    parser.add_argument("kind", metavar="KIND", help="labels, regions, ...: see --kinds")
    add_output(parser, "FILE", "file to write")
    add_threshold(parser, "the scale of the segments", "that of the session")
    text = "an option of the kind; an array is a FILE; may be given again"
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help=text)
    add_session_options(parser)
    parser.add_argument("--kinds", action=_ListKinds, help="list the kinds, and stop")
    add_json(parser)


def _list_kinds(console: Console) -> None:
    """Print the registry of export kinds."""
    from napari_agglo.session import export_kinds

    lines, data = [], []
    for kind in export_kinds():
        lines.append(f"{kind.name:12} {kind.label} ({' '.join(kind.suffixes) or 'a folder'})")
        lines += [f"{'':12} --option {one.name}=...  {one.help}" for one in kind.options]
        data.append(
            {
                "name": kind.name,
                "label": kind.label,
                "suffixes": list(kind.suffixes),  # none: a folder is written
                "in_3d": kind.in_3d,
                "options": [{"name": one.name, "help": one.help} for one in kind.options],
            }
        )
    console.result("\n".join(lines), {"kinds": data}, asked_for=True)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Open the session, and write the export; or list the kinds."""
    from napari_agglo.session._exports import exports

    if arguments.kinds:
        _list_kinds(console)
        arguments.parser.exit()  # nothing is written, so there is no record
    kind = exports[arguments.kind]
    options = parse_options(kind, arguments.option)
    refuse_clash(console, {"-o": arguments.output}, {"session": arguments.session})
    with (
        console.progress([*SESSION, ("", 8)]) as progress,
        open_session(arguments, console, arguments.session, progress) as session,
    ):
        if arguments.threshold is not None:
            session.threshold = arguments.threshold
        path = session.export(
            arguments.output, kind.name, overwrite=True, progress=progress, **options
        )
    console.result(
        f"{path}: {kind.label.lower()} of {arguments.session}",
        {"output": str(path), "kind": kind.name, "session": arguments.session},
    )


def parse_options(kind: Exporter, texts: list[str]) -> dict[str, Any]:
    """Return the options of a kind, each NAME=VALUE read by the type of its parameter."""
    known = {option.name: option for option in kind.options}
    options = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in known:
            raise InvalidInput(
                f"--option {text}: {kind.name} has no such option",
                argument="options",
                remedy=f"give one of {', '.join(f'{n}=VALUE' for n in known)}" if known
                else "leave it out",
            )  # fmt: skip
        options[name] = _parse(known[name], value)
    return options


def _parse(option: ExportOption, text: str) -> Any:
    """Return the value of an option from its text: a number, a flag, a text, or an array."""
    from napari_agglo.volumes import open_volume

    is_union = get_origin(option.type) is types.UnionType
    choices = get_args(option.type) if is_union else [option.type]
    words: dict[type, tuple[Any, str, str]] = {
        bool: ({"true": True, "false": False}.__getitem__, "a flag", "give 'true' or 'false'"),
        int: (int, "a number", "give one such as 1"),
        float: (float, "a number", "give one such as 1"),
    }
    for kind, (read, noun, remedy) in words.items():
        if kind in choices:
            try:
                return read(text)
            except (KeyError, ValueError):
                problem = f"--option {option.name}={text}: not {noun}"
                raise InvalidInput(problem, argument=option.name, remedy=remedy) from None
    if str in choices or Path in choices:
        return text

    return open_volume(text).load()
