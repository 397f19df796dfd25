"""The `napari-agglo` command: build the parser, run the subcommand, print one line on failure."""

from __future__ import annotations

import argparse
import os
import re
import sys
import warnings
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NoReturn

from napari_agglo._version import __version__
from napari_agglo.cli._arguments import add_verbosity
from napari_agglo.cli._commands import (
    blocks,
    completion,
    cue,
    curve,
    demo,
    evaluate,
    export,
    mapping,
    movie,
    oversegment,
    pixels,
    plugins,
    report,
    sample,
    segment,
    session,
    train,
    warm,
)
from napari_agglo.cli._messages import render
from napari_agglo.cli._provenance import add_provenance, write_provenance
from napari_agglo.cli._terminal import Console
from napari_agglo.errors import DataWarning, InvalidInput, did_you_mean

COMMANDS = (
    demo, sample, cue, pixels, oversegment, train, segment, evaluate, curve, report, movie,
    mapping, session, export, blocks, plugins, warm, completion,
)  # fmt: skip
# Commands whose result gets a record of its provenance; `pixels` and `blocks` have it in their own.
RECORDED = (
    demo, sample, cue, oversegment, train, segment, evaluate, curve, report, movie, export,
    mapping,
)  # fmt: skip
# Arguments of the library that have another name on the command line.
_RENAMED = {
    "ranges": "range", "value_range": "range", "path": "output", "images": "image",
    "adapt_cues": "adapt",
}  # fmt: skip


class Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line, like every other message of the command."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        # An option is never abbreviated: a new one must not change what an old script means.
        super().__init__(*arguments, **{**options, "allow_abbrev": False})
        # so that in `--spacing -1,1` the value is not taken for an option
        self._negative_number_matcher = re.compile(r"-(\d|\.\d|inf|nan)", re.IGNORECASE)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            meant = did_you_mean(value, action.choices or ())
            raise argparse.ArgumentError(action, f"{error.message}{meant}") from None

    def error(self, message: str) -> NoReturn:
        raise InvalidInput(f"{message} (see {self.prog} --help)")


def run(argv: Sequence[str] | None) -> int:
    """Run the command line and return its exit status; an interrupt passes through."""
    words = sys.argv[1:] if argv is None else list(argv)
    console = Console()
    try:
        arguments = _parse(words)
        console = Console(
            _options(arguments.parser), arguments.verbosity, getattr(arguments, "json", False)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("always", DataWarning)
            warnings.showwarning = _note_warnings(console)
            began = datetime.now(UTC)
            arguments.run(arguments, console)
            write_provenance(arguments, arguments.parser.prog.partition(" ")[2], began)
        sys.stdout.flush()
    except SystemExit as stop:  # --help and --version
        return int(stop.code or 0)
    except BrokenPipeError:  # the reader of our output has seen enough, e.g. `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        return console.fail(error)
    return 0


def _note_warnings(console: Console) -> Any:
    """Return a hook that prints our own warnings as a line, and others as Python does."""
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if isinstance(message, DataWarning):
            console.note(f"warning: {render(message, console.files, console.options)}")
        else:
            usual(message, category, *rest, **more)

    return show


def _parse(words: Sequence[str]) -> argparse.Namespace:
    try:
        arguments, rest = make_parser().parse_known_args(words)
        if rest:
            quoted = "; a pattern must be in quotes" if "--each" in words else ""
            known = [name for action in arguments.parser._actions for name in action.option_strings]
            meant = did_you_mean(rest[0].partition("=")[0], known)
            arguments.parser.error(f"unrecognized arguments: {' '.join(rest)}{meant}{quoted}")
    except InvalidInput as error:
        if "are required" in error.problem and (unknown := _unknown_options(words)):
            raise InvalidInput(f"{error.problem}; {unknown}") from None
        hint = evaluate.hint(words[1:]) if words[:1] == [evaluate.NAME] else ""
        raise InvalidInput(f"{hint}{error}") from None
    return arguments


def _unknown_options(words: Sequence[str]) -> str:
    """Return a text that names the options that a command does not have, or no text."""
    parser: argparse.ArgumentParser = make_parser()
    for word in words:
        nested = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
        if not nested or word not in nested[0].choices:
            break
        parser = nested[0].choices[word]
    known = [name for action in parser._actions for name in action.option_strings]
    given = (word.partition("=")[0] for word in words if word.startswith("--") and len(word) > 2)
    wrong = [f"{one}{did_you_mean(one, known)}" for one in given if one not in known]
    return f"unrecognized arguments: {', '.join(wrong)}" if wrong else ""


def _options(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Return each argument of the library, and the option of this command that sets it."""
    options = {}
    for action in parser._actions:
        name = "-o" if action.dest == "output" else (action.option_strings or [""])[-1]
        options[action.dest] = name or str(action.metavar)
    renamed = {name: options[own] for name, own in _RENAMED.items() if own in options}
    block_wise = blocks.NAME in parser.prog.split()  # whose cues are adapted by their ranges
    by = "by --range of blocks plan, or " if block_wise else ""
    renamed.setdefault("adapt_cues", f"{by}with adapt_cues in Python")
    return {**options, **renamed, "source": "FILE"}


def make_parser() -> Parser:
    """Return the parser of all commands."""
    parser = Parser(
        prog="napari-agglo",
        description="Segment n-D images by hierarchical agglomeration, file to file.",
        epilog="A FILE is PATH or PATH:KEY (HDF5 dataset, Zarr array, npz member), or a folder of "
        "images, which is read as a stack. Output files are replaced if they exist.",
    )
    parser.add_argument("--version", action="version", version=f"napari-agglo {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in COMMANDS:
        command = commands.add_parser(
            module.NAME,
            help=module.SUMMARY,
            description=f"{module.DESCRIPTION}\n\nexample:\n  {module.EXAMPLE}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        if module not in (blocks, pixels, session):  # its own commands have these options
            add_verbosity(command)
        if module in RECORDED:
            add_provenance(command)
        command.set_defaults(run=module.run, parser=command)
    return parser
