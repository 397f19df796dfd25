"""Gold standards on the command line: one, or several of one image."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from napari_agglo.errors import InvalidInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from napari_agglo.volumes import Volume

_SAID = "0 is not annotated; several of one image: errors are means over them"


def add_gold(parser: argparse.ArgumentParser) -> None:
    """Add ``--gold``, which takes several files and may come again; a session may have its own."""
    parser.add_argument("--gold", nargs="+", action="extend", metavar="FILE", help=_SAID)


def add_gold_once_each(parser: argparse.ArgumentParser) -> None:
    """Add ``--gold`` where a file may follow that is none: it takes one, and may come again."""
    parser.add_argument(
        "--gold",
        required=True,
        action="append",
        metavar="FILE",
        help=f"{_SAID} (--gold A --gold B)",
    )


def gold_options(given: Sequence[str]) -> dict[str, str]:
    """Return each gold standard by what a message calls it.

    Examples
    --------
    >>> gold_options(["a.tif", "b.tif"])
    {'--gold': 'a.tif', '--gold 2': 'b.tif'}
    """
    return {f"--gold {k}" if k > 1 else "--gold": file for k, file in enumerate(given, start=1)}


def gold_names(files: Mapping[str, str]) -> dict[str, str]:
    """Return what the library calls each gold standard, and its file, in order.

    Examples
    --------
    >>> gold_names({"--superpixels": "s.tif", "--gold": "a.tif", "--gold 2": "b.tif"})
    {'gold': 'a.tif', 'gold[1]': 'b.tif'}
    """
    golds = [file for option, file in files.items() if option.partition(" ")[0] == "--gold"]
    return {f"gold[{k}]" if k else "gold": file for k, file in enumerate(golds)}


def load_golds(
    volumes: Mapping[str, Volume], names: Mapping[str, str], like: str
) -> list[NDArray[Any]]:
    """Return gold standards that something can be compared with.

    Parameters
    ----------
    volumes : mapping of str to Volume
        What is open, by what the library calls it.
    names : mapping
        As of `gold_names`.
    like : str
        Which of the volumes they must have the shape of.
    """
    from napari_agglo.volumes import check_labels, check_same_shape

    golds = []
    for name in names:
        check_same_shape(volumes[name], volumes[like], name, like)
        golds.append(check_labels(volumes[name], name))
        if not golds[-1].any():
            raise InvalidInput(
                f"`{name}` is 0 everywhere, which is not annotated: nothing to compare"
            )
    return golds
