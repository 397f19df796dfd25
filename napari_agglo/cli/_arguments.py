"""Arguments that several commands share, and how their text is read."""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from napari_agglo.errors import InvalidInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from napari_agglo.volumes import Volume


# Gold standards on the command line: one, or several of one image.


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


Range = tuple[float, float]


def spacing(text: str) -> tuple[float, ...]:
    """Read ``40,4,4``: the distance between voxels along plane, row, column.

    Examples
    --------
    >>> spacing("40,4,4")
    (40.0, 4.0, 4.0)
    """
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of numbers with commas between, such as 40,4,4 or 1,1"
        ) from None
    if not all(math.isfinite(value) and value > 0 for value in values):
        raise argparse.ArgumentTypeError(
            f"{text!r} must hold positive numbers; 1 where a distance is not known"
        )
    return values


def value_range(text: str) -> Range:
    """Read ``0:255``: the values that mean 0 and 1.

    Examples
    --------
    >>> value_range("255:0")
    (255.0, 0.0)
    """
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError:
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high)) or low == high:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not LOW:HIGH, two different numbers, such as 0:255 (255:0 inverts)"
        )
    return low, high


def threshold(text: str) -> float:
    """Read a threshold, from 0 to 1: boundaries are, whatever the range of the files.

    Examples
    --------
    >>> threshold("0.3")
    0.3
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        hint = ""
        if 1 < value <= 255:
            hint = f"; if you think of values from 0 to 255, give {value / 255:.3g}"
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1{hint}")
    return value


def named_range(text: str) -> tuple[str | None, Range]:
    """Read ``boundary=0:255``, or ``0:255`` for every cue (name None).

    Examples
    --------
    >>> named_range("boundary=0:255")
    ('boundary', (0.0, 255.0))
    """
    name, equals, rest = text.rpartition("=")
    return (name if equals else None), value_range(rest)


def named_file(text: str) -> tuple[str, str]:
    """Read ``NAME=FILE``; a file without a name is the boundary.

    Examples
    --------
    >>> named_file("mito=m.h5:stack")
    ('mito', 'm.h5:stack')
    >>> named_file("map.tif")
    ('boundary', 'map.tif')
    """
    named = re.fullmatch(r"([\w.-]+)=(.*)", text, re.DOTALL)
    if named and not named[2]:
        raise argparse.ArgumentTypeError(f"{text!r} names no file; give {text}FILE")
    colon = re.fullmatch(r"(\w{2,}):(.+)", text, re.DOTALL)
    if colon and not os.path.exists(colon[1]) and not os.path.exists(text):
        raise argparse.ArgumentTypeError(
            f"there is no file {colon[1]!r}; if that is the name of the cue, give "
            f"{colon[1]}={colon[2]}"
        )
    return (named[1], named[2]) if named else ("boundary", text)


def add_spacing(parser: argparse.ArgumentParser) -> None:
    """Add ``--spacing``."""
    parser.add_argument(
        "--spacing",
        type=spacing,
        metavar="Z,Y,X",
        help="distance between voxels along plane, row, column, with commas between, for all "
        "inputs, whatever they say (default: what the files say, in micrometres if they have a "
        "unit, else 1)",
    )


def add_nan(parser: argparse.ArgumentParser) -> None:
    """Add ``--nan``."""
    parser.add_argument(
        "--nan",
        choices=("refuse", "boundary"),
        default="refuse",
        help="what to do with values that are not numbers: refuse them, or take them for boundary "
        "(default: refuse)",
    )


def add_threshold(parser: argparse.ArgumentParser, what: str, otherwise: str | None = None) -> None:
    """Add ``--threshold``; if the command itself says what it is `otherwise`, it is None then."""
    parser.add_argument(
        "--threshold",
        type=threshold,
        default=0.5 if otherwise is None else None,
        metavar="T",
        help=f"{what}, a number from 0 to 1 (default: {otherwise or 0.5})",
    )


def add_graph(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add what turns superpixels and cues into a region graph; a session may stand for it."""
    parser.add_argument(
        "--superpixels", required=required, metavar="FILE", help="label image; 0 is no region"
    )
    parser.add_argument(
        "--cues",
        required=required,
        nargs="+",
        action="extend",
        type=named_file,
        metavar="NAME=FILE",
        help="evidence images of the same shape; one without a name is the boundary",
    )
    parser.add_argument(
        "--range",
        nargs="+",
        action="extend",
        type=named_range,
        default=[],
        metavar="NAME=LOW:HIGH",
        help="the values of a cue that mean 0 and 1, needed for cues that are not floats from 0 to "
        "1; boundary=255:0 inverts; without NAME for all cues",
    )
    add_nan(parser)
    add_spacing(parser)
    parser.add_argument(
        "--dams",
        action="store_true",
        help="regions separated by a one-pixel line of 0 are adjacent",
    )


def add_pipeline(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add what turns superpixels and cues into a merge tree; a session may stand for it."""
    add_graph(parser, required=required)
    parser.add_argument(
        "--policy",
        default="mean",
        metavar="POLICY.npz|mean|random|MODULE:FUNCTION",
        help="what merges first: a policy that `napari-agglo train` wrote, one that needs no "
        "training, or a function of Python (default: mean)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of the random policy (default: 0)"
    )


def check_policy(policy: str) -> str:
    """Return the policy's name, or say which there are."""
    from napari_agglo.policy import policies

    if policy.endswith(".npz") or ":" in policy or policy in policies:
        return policy
    *others, last = policies
    names = f"{', '.join(others)} or {last}"
    raise InvalidInput(
        f"--policy must be a file POLICY.npz, {names}, not {policy!r}", argument="policy",
        remedy="a function of Python goes as MODULE:FUNCTION",
    )  # fmt: skip


def cue_files(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the cues by name, each name once."""
    files: dict[str, str] = {}
    for name, path in pairs:
        if name in files:
            raise InvalidInput(
                f"--cues has two images called {name!r} ({files[name]} and {path}); "
                "name them, e.g. boundary=A mitochondria=B"
            )
        files[name] = path
    return files


def cue_ranges(
    pairs: Sequence[tuple[str | None, Range]], cues: Mapping[str, object]
) -> dict[str, Range] | None:
    """Return the declared ranges by cue; a range without a name holds for those not named."""
    ranges = {}
    for name in cues:
        declared = [r for n, r in pairs if n == name] or [r for n, r in pairs if n is None]
        if declared:
            ranges[name] = declared[-1]
    for named, _ in pairs:
        if named is not None and named not in cues:
            raise InvalidInput(f"--range names {named!r}, but the cues are {', '.join(cues)}")
    return ranges or None
