"""Arguments that several commands share, and the types that read their text."""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from napari_agglo.errors import InvalidInput, did_you_mean

Range = tuple[float, float]
_POLICY = "POLICY.npz|mean|'oriented mean'|random|NAME|MODULE:FUNCTION"
_GOLD = "0 is not annotated; several of one image: errors are means over them"


def add_gold(parser: argparse.ArgumentParser) -> None:
    """Add ``--gold``, which takes several files and may come again; a session may have its own."""
    parser.add_argument("--gold", nargs="+", action="extend", metavar="FILE", help=_GOLD)


def add_value(
    parser: argparse.ArgumentParser, option: str, metavar: str, text: str, **options: Any
) -> None:
    """Add an option with a value; its default, if there is one, is added to the help."""
    default = options.get("default")
    text += "" if default is None else f" (default: {default})"
    parser.add_argument(option, metavar=metavar, help=text, **options)


def add_choice(parser: argparse.ArgumentParser, option: str, text: str, *choices: str) -> None:
    """Add an option that takes one of a few words, by default the first."""
    default = choices[0]
    parser.add_argument(
        option, choices=choices, default=default, help=f"{text} (default: {default})"
    )


def add_output(
    parser: argparse.ArgumentParser, metavar: str, text: str, default: str | None = ""
) -> None:
    """Add ``-o``, which is required unless it has a default."""
    parser.add_argument(
        "-o", "--output", required=default == "", default=default, metavar=metavar, help=text
    )


def add_json(parser: argparse.ArgumentParser, what: str = "the result") -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help=f"print {what} as JSON")


def add_verbosity(parser: argparse.ArgumentParser) -> None:
    """Add ``-q`` and ``-v``."""
    level = parser.add_mutually_exclusive_group()
    level.add_argument(
        "-q", "--quiet", dest="verbosity", action="store_const", const=-1, default=0,
        help="print only errors and results",
    )  # fmt: skip
    level.add_argument(
        "-v", "--verbose", dest="verbosity", action="store_const", const=1,
        help="print a line for each stage",
    )  # fmt: skip


def gold_files(files: Sequence[str] | None) -> dict[str, str]:
    """Return gold standards by their names in the library.

    Examples
    --------
    >>> gold_files(["a.tif", "b.tif"])
    {'gold': 'a.tif', 'gold[1]': 'b.tif'}
    """
    return {f"gold[{k}]" if k else "gold": file for k, file in enumerate(files or [])}


AFFINITY = "affinity"  # the cue of --affinities, and the beginning of the names of its parts
BOUNDARY = "boundary"  # the cue of a file without a name, and of --oriented


def graph_files(
    superpixels: str,
    cues: Sequence[tuple[str, str]] | None,
    affinities: str | None = None,
    oriented: str | None = None,
    words: Sequence[tuple[str, str]] | None = None,
) -> dict[str, str]:
    """Return superpixels and cues by their names in the library, each name once.

    A file of several channels, such as the predictions of ilastik, is a cue for each of them.

    Examples
    --------
    >>> graph_files("s.tif", [("boundary", "b.tif")])
    {'superpixels': 's.tif', "cues['boundary']": 'b.tif'}
    """
    files = {"superpixels": superpixels}
    if affinities is not None:
        files["affinities"] = affinities
    if oriented is not None:
        files["oriented"] = oriented
    each = [channel for name, path in cues or [] for channel in _channels(name, path)]
    for name, path in each:
        if name == BOUNDARY and oriented is not None:
            raise InvalidInput(
                f"--oriented {oriented} and --cues {path} both give the cue {BOUNDARY}",
                argument="cues",
                remedy="name the other one, e.g. edges=FILE",
            )
        if (taken := files.setdefault(f"cues[{name!r}]", path)) != path:
            raise InvalidInput(
                f"--cues has two images called {name!r} ({taken} and {path})",
                argument="cues",
                remedy="name them, e.g. boundary=A mitochondria=B",
            )
    for name, path in words or []:
        if files.setdefault(f"words[{name!r}]", path) != path or f"cues[{name!r}]" in files:
            raise InvalidInput(
                f"--words {name}={path}: there is another cue called {name!r}",
                argument="cues",
                remedy="name them, e.g. textons=A classes=B",
            )
    return files


def _channels(name: str, path: str) -> list[tuple[str, str]]:
    """Return a name and a file for each channel of a file; the boundary takes their own names."""
    from napari_agglo.volumes import add_pick, open_channels

    try:
        channels = list(open_channels(path))
    except InvalidInput:  # a folder or a pattern of --each; other errors come when it is read
        return [(name, path)]
    if len(channels) == 1:
        return [(name, path)]
    start = "" if name == "boundary" else f"{name}_"
    return [(f"{start}{one}", add_pick(path, f"c={k}")) for k, one in enumerate(channels)]


def cue_names(files: Mapping[str, str]) -> list[str]:
    """Return the names of the cues among files by their names in the library.

    Examples
    --------
    >>> cue_names({"superpixels": "s.tif", "cues['mito']": "m.tif"})
    ['mito']
    """
    first = [AFFINITY] if "affinities" in files else []
    first += [BOUNDARY] if "oriented" in files else []
    return first + [name[6:-2] for name in files if name.startswith("cues[")]


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
    """Read a threshold, a finite number; `refuse_beyond` checks that it fits the policy.

    Examples
    --------
    >>> threshold("0.3")
    0.3
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1")
    return value


def refuse_beyond(threshold: float | None, policy: str, bounded: bool) -> None:
    """Refuse a threshold beyond 0 and 1, unless the priorities of the policy may be anything.

    Those of this package are from 0 to 1, whatever the range of the files.
    """
    if threshold is None or 0 <= threshold <= 1 or not bounded:
        return
    remedy = "choose one such as 0.5"
    if 1 < threshold <= 255:
        remedy = f"if you think of values from 0 to 255, give {threshold / 255:.3g}"
    raise InvalidInput(
        f"--threshold must be from 0 to 1, as the priorities of {policy} are, got {threshold:g}",
        argument="threshold",
        remedy=remedy,
    )


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
    """Add ``--spacing``, and ``--unit``, the unit of all lengths of a command."""
    text = (
        "distance between voxels along plane, row, column, with commas between, for all inputs "
        "(default: that of the files, in micrometres if they have a unit, else 1)"
    )
    add_value(parser, "--spacing", "Z,Y,X", text, type=spacing)
    text = (
        "unit of --spacing, of other lengths, and of a spacing that is written, such as nm or um; "
        "files that state a unit are converted to it (default: that of the files)"
    )
    add_value(parser, "--unit", "UNIT", text)


def add_labels_output(parser: argparse.ArgumentParser, metavar: str) -> None:
    """Add ``-o`` for a label image, and the options of OME-Zarr."""
    text = "label image to write: .tif, .ome.zarr, .h5, .precomputed, .npz, .npy or .png, or "
    add_output(parser, metavar, f"{text}IMAGE.ome.zarr:labels/NAME, labels of that image")
    group = parser.add_argument_group("options of OME-Zarr")
    group.add_argument(
        "--ome-version", choices=("0.5", "0.4"), dest="version", help="version (default: 0.5)"
    )
    group.add_argument(
        "--levels", type=int, metavar="N",
        help="levels of the pyramid (default: until one has 2**18 voxels or fewer)",
    )  # fmt: skip
    group.add_argument(
        "--downsample", choices=("mode", "nearest"), default="mode",
        help="coarser levels have the commonest id, or that of the first voxel (default: mode)",
    )  # fmt: skip
    for option, noun in (("--chunks", "a chunk"), ("--shards", "a shard, which is one file")):
        group.add_argument(
            option, type=_sizes, metavar="Z,Y,X", help=f"voxels of {noun} along each axis"
        )


def _sizes(text: str) -> tuple[int, ...]:
    """Read ``64,128,128``: whole numbers with commas between."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of whole numbers, such as 64,128,128"
        ) from None


def add_nan(parser: argparse.ArgumentParser) -> None:
    """Add ``--nan``."""
    text = "values that are not numbers are refused, or count as boundary"
    add_choice(parser, "--nan", text, "refuse", "boundary")


def add_threshold(parser: argparse.ArgumentParser, what: str, otherwise: str | None = None) -> None:
    """Add ``--threshold``; with `otherwise`, its default is None and the command chooses."""
    parser.add_argument(
        "--threshold",
        type=threshold,
        default=0.5 if otherwise is None else None,
        metavar="T",
        help=f"{what}, a number from 0 to 1 (default: {otherwise or 0.5}), or any number for a "
        "policy of your own whose priorities are no probabilities",
    )


def add_affinities(
    parser: argparse.ArgumentParser, action: type[argparse.Action] | str = "store"
) -> None:
    """Add ``--affinities`` and ``--offsets``."""
    parser.add_argument(
        "--affinities", action=action, metavar="FILE",
        help="affinities, channels first and high in one object, of floats from 0 to 1 or bytes: "
        f"the cue {AFFINITY}",
    )  # fmt: skip
    text = (
        "the offsets of the affinities as JSON, such as [[-1,0,0],[0,-1,0],[0,0,-1]] (default: "
        "those in the file, or the nearest voxels)"
    )
    add_value(parser, "--offsets", "JSON", text, type=offsets)


WORDS = "textons"  # the name of a file of --words that has none


def named_words(text: str) -> tuple[str, str]:
    """Read ``NAME=FILE``; a file without a name is the textons.

    Examples
    --------
    >>> named_words("w.tif")
    ('textons', 'w.tif')
    """
    name, file = named_file(text)
    return (name if "=" in text else WORDS), file


def add_words(
    parser: argparse.ArgumentParser, action: type[argparse.Action] | str = "extend"
) -> None:
    """Add ``--words``."""
    parser.add_argument(
        "--words", nargs="+", action=action, type=named_words, metavar="NAME=FILE",
        help="images of words, whole numbers from 0 to 255 whose order means nothing, as "
        "`napari-agglo cue --kind textons` writes them: their shares are features of regions; one "
        f"without a name is {WORDS}",
    )  # fmt: skip


def add_oriented(
    parser: argparse.ArgumentParser, action: type[argparse.Action] | str = "store"
) -> None:
    """Add ``--oriented``."""
    parser.add_argument(
        "--oriented", action=action, metavar="FILE",
        help="boundary map of a plane with a channel for each direction, channels first, as "
        f"`napari-agglo cue --kind oriented` writes it: the cues {BOUNDARY} and "
        f"{BOUNDARY}_oriented",
    )  # fmt: skip


def offsets(text: str) -> list[list[int]]:
    """Read ``[[-1,0,0],[0,-1,0]]``: a list of lists of whole numbers.

    Examples
    --------
    >>> offsets("[[-1, 0], [0, -1]]")
    [[-1, 0], [0, -1]]
    """
    from napari_agglo.volumes import read_offsets

    try:
        return read_offsets(text)
    except InvalidInput as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_graph(
    parser: argparse.ArgumentParser,
    *,
    required: bool = True,
    action: type[argparse.Action] | None = None,
) -> None:
    """Add the options of a region graph; where a session may replace them none is required."""
    parser.add_argument(
        "--superpixels", required=required, action=action or "store", metavar="FILE",
        help="label image; 0 is no region",
    )  # fmt: skip
    parser.add_argument(
        "--cues",
        nargs="+",
        action=action or "extend",
        type=named_file,
        metavar="NAME=FILE",
        help="evidence images of the same shape; one without a name is the boundary, and one of "
        "several channels a cue for each",
    )
    add_affinities(parser, action or "store")
    add_oriented(parser, action or "store")
    add_words(parser, action or "extend")
    parser.add_argument(
        "--range",
        nargs="+",
        action="extend",
        type=named_range,
        default=[],
        metavar="NAME=LOW:HIGH",
        help="the values of a cue that mean 0 and 1, needed for cues that are not floats from 0 to "
        "1; boundary=255:0 inverts, affinity=0:1 is for affinities that are high on boundaries; "
        "without NAME for all cues",
    )
    add_nan(parser)
    add_spacing(parser)
    parser.add_argument(
        "--dams",
        action="store_true",
        help="regions separated by a one-pixel line of 0 are adjacent",
    )


def add_pipeline(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add the options of one merge tree; where a session may replace them none is required."""
    add_graph(parser, required=required)
    text = (
        "order of the merges: a policy that `napari-agglo train` wrote, one that needs no "
        "training, one of another package, which `napari-agglo plugins` lists, or a Python function"
    )
    add_value(parser, "--policy", _POLICY, text, default="mean")
    _add_policy_options(parser)


def add_policies(parser: argparse.ArgumentParser, text: str) -> None:
    """Add ``--policy`` that may be given again, and ``--seed``."""
    add_value(parser, "--policy", _POLICY, f"{text} (default: mean)", nargs="+", action="extend")
    _add_policy_options(parser)


def _add_policy_options(parser: argparse.ArgumentParser) -> None:
    add_adapt(parser)
    add_value(parser, "--seed", "N", "seed of the random policy", type=int, default=0)
    text = (
        "choice of the segments: `threshold`; `adaptive`, a threshold for each branch; `multicut` "
        "of the boundaries between superpixels; `mutex`, the mutex watershed, by long-range "
        "affinities if there are any (both with bioimage-cpp); the last three at 0.5; or a method "
        "of another package, which `napari-agglo plugins` lists (default: threshold)"
    )
    add_value(parser, "--method", "NAME", text)
    text = "cut more boundaries in a multicut, if above 0.5, or fewer (default: 0.5)"
    add_value(parser, "--beta", "B", text, type=float)


def add_adapt(parser: argparse.ArgumentParser) -> None:
    """Add ``--adapt``."""
    text = "invert or stretch cues whose values differ from those of the training of the policy"
    parser.add_argument("--adapt", action="store_true", help=f"{text}; a warning names them")


def policy_names(given: Sequence[str]) -> dict[str, str]:
    """Return a name for each policy: that of its file, or with its folder where names are alike.

    Examples
    --------
    >>> policy_names(["mean", "a/flat.npz"])
    {'mean': 'mean', 'flat': 'a/flat.npz'}
    >>> list(policy_names(["a/p.npz", "b/p.npz"]))
    ['a/p.npz', 'b/p.npz']
    """
    stems = [Path(one).stem if one.endswith(".npz") else one for one in given]
    names = [one if stems.count(stem) > 1 else stem for one, stem in zip(given, stems, strict=True)]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(
                f"--policy {name} is given twice", argument="policy", remedy="give each once"
            )
    return dict(zip(names, given, strict=True))


def check_policy(policy: str) -> str:
    """Return the text of ``--policy`` if it names a policy: a file, or one of the library."""
    from napari_agglo.policy import policies

    if policy.endswith(".npz") or ":" in policy or policy in policies:
        return policy
    *others, last = policies
    names = f"{', '.join(others)} or {last}"
    meant = did_you_mean(policy, policies)
    raise InvalidInput(
        f"--policy must be a file POLICY.npz, {names}, not {policy!r}{meant}", argument="policy",
        remedy="give a function, or an object that is a policy, as MODULE:NAME, or install a "
        f"package with such an entry point in {policies.group} ('napari-agglo plugins' lists them)",
    )  # fmt: skip


def cue_ranges(
    pairs: Sequence[tuple[str | None, Range]], cues: Sequence[str]
) -> dict[str, Range] | None:
    """Return the declared ranges by cue; a range without a name holds for those not named."""
    ranges = {}
    for name in cues:
        declared = [r for n, r in pairs if n == name] or [r for n, r in pairs if n is None]
        if declared:
            ranges[name] = declared[-1]
    for named, _ in pairs:
        if named is not None and named not in cues:
            raise InvalidInput(
                f"--range names {named!r}, but the cues are {', '.join(cues)}",
                argument="ranges",
                remedy="name one of these, or none for all",
            )
    return ranges or None
