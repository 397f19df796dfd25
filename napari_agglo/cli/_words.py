"""From the words of the library to those of the command line.

The library speaks of arguments and arrays: `` `cues['boundary']` ``, ``ranges=(0, 255)``. Whoever
typed a command knows files and options. One table holds all that differs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from napari_agglo.errors import InvalidInput

Files = Mapping[str, str]
_OPTIONS = {
    "spacing": "--spacing", "sigma": "--sigma", "min_size": "--min-size", "seed": "--seed",
    "kind": "KIND", "threshold": "--threshold", "policy": "--policy", "source": "FILE",
    "ranges": "--range", "value_range": "--range", "nan": "--nan", "per_plane": "--per-plane",
    "scale": "--scale",
}  # fmt: skip
_NAME = r"(?:`([^`]+)`|the (superpixels) of the tree)"


@contextmanager
def command_words(files: Files) -> Iterator[None]:
    """Let what is refused within be told in the words of the command line.

    Parameters
    ----------
    files : mapping of str to str
        What the library calls each input, e.g. ``cues['boundary']``, and the file that it is.
    """
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(translated(str(error), files)) from error


def translated(message: str, files: Files) -> str:
    """Return a message of the library in the words of the command line.

    Examples
    --------
    >>> translated("`mask` must match `boundary`; see value_range=(0, 255)", {"mask": "m.tif"})
    'm.tif must match `boundary`; see --range 0:255'
    """
    for pattern, replacement in _IDIOMS:
        message = re.sub(pattern, replacement(message, files), message)
    if "--spacing" in message or "`spacing`" in message:
        message = re.sub(r"e\.g\. \(([^()]*)\)", lambda m: f"e.g. --spacing {_list(m[1])}", message)
        message = re.sub(
            r"(not(?: \d+:)?) \(([^()]*)\)", lambda m: f"{m[1]} {_list(m[2])}", message
        )
    named = {**_OPTIONS, **files}
    return re.sub(_NAME, lambda m: named.get(m[1] or m[2], m[0]), message)


_Replacement = Callable[[re.Match[str]], str]


def _fixed(text: str) -> Callable[[str, Files], _Replacement]:
    return lambda message, files: lambda found: text


def _range(message: str, files: Files) -> _Replacement:
    """``ranges=(0, 255)`` is an option that names the cue."""
    cue = re.search(r"cues\['([^']+)'\]", message)
    name = f"{cue[1]}=" if cue else ""
    return lambda found: f"--range {name}{found[1]}:{found[2]}"


def _unknown_range(message: str, files: Files) -> _Replacement:
    cue = re.search(r"cues\['([^']+)'\]", message)
    name = f"{cue[1]}=" if cue else ""
    return lambda found: f"declare the range of its values, --range {name}LOW:HIGH"


def _squeezed(message: str, files: Files) -> _Replacement:
    """Drop an axis of length 1 by picking the only index that it has."""

    def give(found: re.Match[str]) -> str:
        picks = ",".join(f"{axis}=0" for axis in re.findall(r"\d+", found["axes"]))
        return f"{found['name']} has {found['which']} of length 1 in excess: give " + _picked(
            found["name"], picks, files
        )

    return give


def _extra(message: str, files: Files) -> _Replacement:
    """Pick an index along an axis that the other image does not have."""
    return lambda found: (
        f"{found['name']} has an extra axis, {found['which']}: pick one index of it, e.g. "
        + _picked(found["name"], f"{found['axes']}=0", files)
    )


def _channel(message: str, files: Files) -> _Replacement:
    """Pick a channel by its axis, the last of the longer shape."""
    shapes = re.findall(r"\(shape \(([^()]*)\)", message)
    axis = max((shape.strip(",").count(",") for shape in shapes), default=0)
    return lambda found: (
        f"{found['name']} {found['shape'] or ''}looks like an RGB(A) image: convert it to grey or "
        "pick a channel, e.g. " + _picked(found["name"], f"{axis}=0", files)
    )


def _picked(name: str, picks: str, files: Files) -> str:
    file = files.get(name.strip("`").replace("the superpixels of the tree", "superpixels"), "FILE")
    keyed = ":" in file and not os.path.exists(file)
    return f"{file}{',' if keyed else ':'}{picks}"


def _list(numbers: str) -> str:
    return ",".join(f"{float(number):g}" for number in numbers.split(",") if number.strip())


_IDIOMS: tuple[tuple[str, Callable[[str, Files], _Replacement]], ...] = (
    (
        r"declare the range of its values, e\.g\. (?:value_range|ranges)=\(0, 255\)",
        _unknown_range,
    ),
    (r"(?:value_range|ranges)=\(([^,()]+), ([^,()]+)\)", _range),
    (
        rf"(?P<name>{_NAME}) has (?P<which>ax[ei]s \S.*?) of length 1 in excess: drop it with "
        r"np\.squeeze\(\.\.\., axis=(?P<axes>\d+|\([^()]*\))\)",
        _squeezed,
    ),
    (
        rf"(?P<name>{_NAME}) (?P<shape>\([^`]*\) )?looks like an RGB\(A\) image[:;] convert it to "
        r"grey or pick a channel, e\.g\. image\[\.\.\., 0\]",
        _channel,
    ),
    (
        rf"(?P<name>{_NAME}) has an extra axis, (?P<which>axis (?P<axes>\d+) of length \d+): pick "
        r"one index of it, e\.g\. FILE:\d+=0 for a file or array\[[:, 0]*\] for an array",
        _extra,
    ),
    (r"pass nan=['\"]boundary['\"]", _fixed("add --nan boundary")),
    (r"correct the spacing with Volume\(data, spacing=\.\.\.\)", _fixed("say it with --spacing")),
    (r", e\.g\. scipy\.ndimage\.label\(mask\)\[0\]", _fixed(" and save the labels")),
    (
        r"pass the label image, or convert one that holds whole numbers with \.astype\(int\)",
        _fixed("give the label image; if it is one, save its whole numbers as integers"),
    ),
    (
        r"if this is what you mean, pass mask\.astype\('float32'\)",
        _fixed("if this is what you mean, save it as floats 0 and 1"),
    ),
    (
        r"compare it with a level first, e\.g\. mask > 0\.5",
        _fixed("save it as integers, 0 outside"),
    ),
    (r"pass it as image\.astype\('(\w+)'\)", lambda m, f: lambda found: f"save it as {found[1]}"),
    (r"give it another id, e\.g\. labels \* 2", _fixed("give it another id than 1 or 255")),
    (r"pass for instance seed=0", _fixed("e.g. --seed 0")),
    (r"pass sigma=(\S+)\.", lambda m, f: lambda found: f"give --sigma {found[1]}."),
    (r"`sigma`=", _fixed("--sigma ")),
    (r"pass the (same crop|probability map)", lambda m, f: lambda found: f"give the {found[1]}"),
    (r"pass a crop", _fixed("give a crop")),
    (r"`scale`=", _fixed("--scale ")),
    (r"pass `channel_axis`, or kind='gradient'", _fixed("give --kind gradient")),
)
