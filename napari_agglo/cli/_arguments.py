"""Arguments that several commands share, and how their text is read."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from napari_agglo.errors import InvalidInput

if TYPE_CHECKING:
    from napari_agglo.volumes import Volume

Range = tuple[float, float]


def spacing(text: str) -> tuple[float, ...]:
    """Read ``40,4,4``: the distance between voxels along plane, row, column.

    Examples
    --------
    >>> spacing("40,4,4")
    (40.0, 4.0, 4.0)
    """
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of numbers with commas between, such as 40,4,4"
        ) from None


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
        raise argparse.ArgumentTypeError(
            f"{text!r} is not LOW:HIGH, such as 0:255 (255:0 inverts)"
        ) from None
    return low, high


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
    named = re.fullmatch(r"([\w.-]+)=(.+)", text)
    return (named[1], named[2]) if named else ("boundary", text)


def add_spacing(parser: argparse.ArgumentParser) -> None:
    """Add ``--spacing``."""
    parser.add_argument(
        "--spacing",
        type=spacing,
        metavar="Z,Y,X",
        help="distance between voxels along plane, row, column, with commas between (default: "
        "what the file says, else 1)",
    )


def add_pipeline(parser: argparse.ArgumentParser) -> None:
    """Add what turns superpixels and cues into a merge tree."""
    parser.add_argument(
        "--superpixels", required=True, metavar="FILE", help="label image; 0 is no region"
    )
    parser.add_argument(
        "--cues",
        required=True,
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
    add_spacing(parser)
    parser.add_argument(
        "--dams",
        action="store_true",
        help="regions separated by a one-pixel line of 0 are adjacent",
    )
    parser.add_argument(
        "--policy", default="mean", metavar="mean|random", help="what merges first (default: mean)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of the random policy (default: 0)"
    )


def check_policy(policy: str) -> str:
    """Return the policy's name, or say which there are."""
    if policy in ("mean", "random"):
        return policy
    if policy.endswith(".npz"):
        raise InvalidInput(
            f"--policy {policy}: learned policies cannot be read by this version; "
            "use --policy mean or --policy random"
        )
    raise InvalidInput(f"--policy must be mean or random, not {policy!r}")


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


def require_range(what: str, volume: Volume, declared: Range | None, option: str) -> None:
    """Refuse integers of unknown range, in the words of the command line."""
    if declared is None and volume.dtype.kind in "iu":
        raise InvalidInput(
            f"{what} is {volume.dtype}: say which values mean 0 and 1, e.g. {option}0:255, "
            f"or {option}255:0 if boundaries are dark"
        )


def pick_spacing(given: tuple[float, ...] | None, *volumes: Volume) -> tuple[float, ...] | None:
    """Return the spacing given on the command line, else the first that a file knows."""
    if given is not None:
        return given
    return next((volume.spacing for volume in volumes if volume.spacing is not None), None)
