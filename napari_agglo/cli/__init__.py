"""The command line: file to file, without a screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Exit status: 0 done; 2 an error that the user can correct; 1 a fault of ours; 130 interrupted.

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
    import sys

    try:  # the import is here so that an interrupt in its midst is no traceback
        from napari_agglo.cli._main import run

        return run(argv)
    except KeyboardInterrupt as stop:
        message = str(stop) or "interrupted; nothing was left half written"
        print(f"napari-agglo: {message}", file=sys.stderr)
        return 130
