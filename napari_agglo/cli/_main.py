"""The `napari-agglo` command: pick the subcommand, and say in one line what went wrong.

Exit status: 0 done; 2 what the user can mend; 1 a fault of ours; 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from napari_agglo._version import __version__
from napari_agglo.cli import _curve, _demo, _evaluate, _oversegment, _sample, _segment
from napari_agglo.errors import AggloError, InvalidInput

_COMMANDS = (_demo, _sample, _oversegment, _segment, _evaluate, _curve)


class _Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line, like every other message of the command."""

    def error(self, message: str) -> NoReturn:
        raise InvalidInput(f"{message} (see {self.prog} --help)")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default those of the process.

    Examples
    --------
    >>> main(["--version"])
    napari-agglo ...
    0
    """
    try:
        arguments = _parser().parse_args(argv)
        arguments.run(arguments)
        sys.stdout.flush()
    except SystemExit as stop:  # --help and --version
        return int(stop.code or 0)
    except KeyboardInterrupt:
        return _say("interrupted; nothing was left half written", 130)
    except BrokenPipeError:  # whoever read our output has seen enough, e.g. `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (AggloError, OSError) as error:
        return _say(_describe(error), 2)
    except MemoryError as error:
        return _say(f"not enough memory ({error}); try a smaller crop", 2)
    except Exception as error:
        if os.environ.get("NAPARI_AGGLO_DEBUG"):
            raise
        return _say(
            f"unexpected {type(error).__name__}: {error} "
            "(set NAPARI_AGGLO_DEBUG=1 to see where, and please report it)",
            1,
        )
    return 0


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
        command.set_defaults(run=module.run)
    return parser


def _describe(error: Exception) -> str:
    """Put what the user must know of an error in words."""
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename else ""
        return f"{error.strerror}{where}; check the path and its permissions"
    return str(error)


def _say(message: str, status: int) -> int:
    """Print one line to stderr and return `status`."""
    print(f"napari-agglo: {' '.join(message.split())}", file=sys.stderr)
    return status
