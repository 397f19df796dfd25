"""Error messages in the words of the command line: files and options, not arguments."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from napari_agglo._registry import raised_by
from napari_agglo.errors import (
    Advice,
    AggloError,
    ConvertTo,
    DataWarning,
    InvalidInput,
    LabelComponents,
    OneOf,
    PickIndex,
    ReadAffinities,
    Remedy,
    SetOption,
    alternatives,
    sentence,
)

Names = Mapping[str, str]
_METAVARS = {"--range": "LOW:HIGH", "--spacing": "Z,Y,X"}


class SomeFailed(AggloError):
    """Some images of many failed; each has been reported already."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def describe(error: Exception, files: Names, options: Names) -> tuple[str, int]:
    """Return the message of an error, and 2 if the user can correct it, 1 if it is a fault of ours.

    `files` and `options` map an argument of the library to its file and to the option that sets it.
    """
    if isinstance(error, SomeFailed):
        return str(error), error.status
    if isinstance(error, InvalidInput):
        return render(error, files, options), 2
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename else ""
        return f"{error.strerror}{where}; check the path and its permissions", 2
    if isinstance(error, (AggloError, OSError)):
        return str(error), 2
    if isinstance(error, MemoryError):
        return f"not enough memory ({error}); try a smaller crop", 2
    if os.environ.get("NAPARI_AGGLO_DEBUG"):
        raise error
    origin = raised_by(error)
    if origin is not None:  # of a function of the user
        where = "(set NAPARI_AGGLO_DEBUG=1 to see where)"
        return f"{type(error).__name__} {origin}: {error} {where}", 2
    return (
        f"unexpected {type(error).__name__}: {error} "
        "(set NAPARI_AGGLO_DEBUG=1 to see where, and please report it)",
        1,
    )


def render(error: InvalidInput | DataWarning, files: Names, options: Names) -> str:
    """Return the sentence of an error with files and options in place of arguments.

    Examples
    --------
    >>> error = InvalidInput(
    ...     "`cues['boundary']` is uint8, whose range is not known",
    ...     argument="cues['boundary']",
    ...     remedy=SetOption("ranges", (0, 255), "boundary"),
    ... )
    >>> render(error, {"cues['boundary']": "b.tif"}, {"ranges": "--range"})
    'b.tif is uint8, whose range is not known; add --range boundary=0:255.'
    >>> error = InvalidInput("It needs the mean", remedy=SetOption("hierarchical", False))
    >>> render(error, {}, {"hierarchical": "--hierarchical"})
    'It needs the mean; leave out --hierarchical.'
    """
    names = {**options, **files}
    file = files.get(error.argument or "", "FILE")
    # A remedy that is no option of this command is left out where there is another.
    single = [one for one in alternatives(error.remedy) if _option_needed(one) in (None, *options)]
    remedy = OneOf(tuple(Advice(_render_remedy(one, options, file)) for one in single))
    text = sentence(error.problem, remedy if single else None)
    return re.sub(r"`([^`]+)`", lambda name: names.get(name[1], name[0]), text)


def option_of(argument: str, options: Names) -> str:
    """Return the option that gives an argument.

    Examples
    --------
    >>> options = {"cues": "--cues", "gold": "--gold"}
    >>> [option_of(name, options) for name in ("cues['mito']", "gold", "gold[1]")]
    ['--cues mito', '--gold', '--gold 2']
    """
    cue = re.fullmatch(r"cues\['(.+)'\]", argument)
    if cue:
        return f"{options['cues']} {cue[1]}"
    item = re.fullmatch(r"(\w+)\[(\d+)\]", argument)
    if item:
        return f"{options[item[1]]} {int(item[2]) + 1}"
    return options.get(argument, argument)


def _option_needed(remedy: Remedy) -> str | None:
    """Return the argument whose option a remedy uses; None if it uses none."""
    match remedy:
        case SetOption(option):
            return option
        case ReadAffinities():
            return "affinities"
    return None


def _render_remedy(remedy: Remedy, options: Names, file: str) -> str:
    match remedy:
        case SetOption(option, value, key, when):
            if not options[option].startswith("-"):  # a word in its place, such as KIND
                return f"give {value or 'FILE'} for {options[option]} {when}".rstrip()
            if value is False:
                return f"leave out {options[option]} {when}".rstrip()
            return f"add {_typed(options[option], value, key)} {when}".rstrip()
        case PickIndex(axes):
            from napari_agglo.volumes import add_pick

            picked = f"{file}:{','.join(f'{axis}=0' for axis in axes)}"
            with suppress(InvalidInput):  # the file has gone
                picked = add_pick(file, ",".join(f"{axis}=0" for axis in axes))
            return f"pick {'an index' if len(axes) == 1 else 'indices'}, e.g. {picked}"
        case ConvertTo(dtype, when):
            return f"save it as {dtype} {when}".rstrip()
        case LabelComponents():
            return "label its connected components first, and save the labels"
        case ReadAffinities(when):
            return f"give it as {options['affinities']} {file} {when}".rstrip()
    return str(remedy)


def _typed(option: str, value: Any, key: str) -> str:
    """Return an option as one would type it; ``--range NAME`` is one that has a name already."""
    option, _, own = option.partition(" ")
    key = key or own
    if value is True:
        return option
    if value is None:
        value = _METAVARS.get(option, "FILE")
    elif isinstance(value, tuple):
        value = (":" if option == "--range" else ",").join(f"{one:g}" for one in value)
    return f"{option} {key + '=' if key else ''}{value}"
