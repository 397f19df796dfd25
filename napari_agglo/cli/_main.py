"""The `napari-agglo` command: pick the subcommand, and say in one line what went wrong."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from napari_agglo._version import __version__
from napari_agglo.cli._commands import (
    cue,
    curve,
    demo,
    evaluate,
    export,
    movie,
    oversegment,
    report,
    sample,
    segment,
    train,
)
from napari_agglo.cli._messages import describe, say
from napari_agglo.errors import InvalidInput

_COMMANDS = (
    demo, sample, cue, oversegment, train, segment, evaluate, curve, report, movie,
    export,
)  # fmt: skip


class _Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line, like every other message of the command."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # so that in `--spacing -1,1` the value is not taken for an option
        self._negative_number_matcher = re.compile(r"-(\d|\.\d|inf|nan)", re.IGNORECASE)

    def error(self, message: str) -> NoReturn:
        raise InvalidInput(f"{message} (see {self.prog} --help)")


def run(argv: Sequence[str] | None) -> int:
    """Run the command line and return its exit status; an interrupt passes through."""
    words = sys.argv[1:] if argv is None else list(argv)
    try:
        arguments = _parse(words)
        arguments.run(arguments)
        sys.stdout.flush()
    except SystemExit as stop:  # --help and --version
        return int(stop.code or 0)
    except BrokenPipeError:  # whoever read our output has seen enough, e.g. `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        message, status = describe(error, {})
        say(message)
        return status
    return 0


def _parse(words: Sequence[str]) -> argparse.Namespace:
    try:
        arguments, rest = _parser().parse_known_args(words)
        if rest:
            quoted = "; a pattern must be in quotes" if "--each" in words else ""
            arguments.parser.error(f"unrecognized arguments: {' '.join(rest)}{quoted}")
    except InvalidInput as error:
        hint = evaluate.hint(words[1:]) if words[:1] == [evaluate.NAME] else ""
        raise InvalidInput(f"{hint}{error}") from None
    return arguments


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="napari-agglo",
        allow_abbrev=False,  # so that a new option never changes what an old script means
        description="Segment n-D images by hierarchical agglomeration, file to file.",
        epilog="A FILE is PATH or PATH:KEY (HDF5 dataset, Zarr array, npz member), or a folder of "
        "images, which is read as a stack. Output files are replaced if they exist.",
    )
    parser.add_argument("--version", action="version", version=f"napari-agglo {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in _COMMANDS:
        command = commands.add_parser(
            module.NAME,
            allow_abbrev=False,
            help=module.SUMMARY,
            description=f"{module.DESCRIPTION}\n\nexample:\n  {module.EXAMPLE}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run, parser=command)
    return parser
