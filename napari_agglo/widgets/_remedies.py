"""Error messages for the window, with remedies in terms of its controls."""

from __future__ import annotations

import re

from napari_agglo.errors import (
    ConvertTo,
    DataWarning,
    InvalidInput,
    LabelComponents,
    OneOf,
    PickIndex,
    ReadAffinities,
    Remedy,
    SetOption,
    sentence,
)

# Labels of the options of superpixels. The form of the Data step takes them from here.
OPTION_LABELS = {
    "per_plane": "each plane by itself",
    "min_size": "Least size",
    "sigma": "Smoothing",
    "nan": "NaN",
}
_OPTIONS = {"ranges": "the range", "value_range": "the range"} | {
    name: f"“{text}”" for name, text in OPTION_LABELS.items()
}


def window_sentence(error: BaseException) -> str:
    """Return the message of an error in terms of the controls of the window.

    Examples
    --------
    >>> print(window_sentence(InvalidInput("The cue has values up to 255",
    ...                                    remedy=SetOption("ranges", (0.0, 255.0), "boundary"))))
    The cue has values up to 255; set the range of “boundary” to 0:255 in step 1, Data.
    """
    if not isinstance(error, (InvalidInput, DataWarning)):
        return str(error)
    problem = window_problem(error) if isinstance(error, DataWarning) else error.problem
    return sentence(problem, None if error.remedy is None else window_remedy(error.remedy))


def window_problem(warning: DataWarning) -> str:
    """Return the problem of a warning, with names of cues and layers in place of arguments.

    Examples
    --------
    >>> window_problem(DataWarning("`cues['boundary']` is lower where regions touch"))
    '“boundary” is lower where regions touch'
    """
    return re.sub(r"`(?:cues\[')?([^`']+)(?:'\])?`", r"“\1”", warning.problem)


def window_remedy(remedy: Remedy) -> str:
    """Return a remedy as a clause."""
    if isinstance(remedy, OneOf):
        return ", or ".join(window_remedy(one) for one in remedy.remedies)
    if isinstance(remedy, SetOption) and remedy.option == "policy":
        return "install its module, or add the folder of the module to PYTHONPATH"
    if isinstance(remedy, SetOption) and remedy.option == "channel_axis":
        return f"open them as layers of their own (right-click, Split Stack) {remedy.when}".rstrip()
    if isinstance(remedy, SetOption) and remedy.option == "classes":
        return "change the classes with Add and Remove"
    if isinstance(remedy, SetOption) and remedy.option == "force":
        return "merge anyway"
    if isinstance(remedy, SetOption):
        return f"{setting_text(remedy)} in step 1, Data {remedy.when}".rstrip()
    if isinstance(remedy, PickIndex):
        return "use one plane of it"
    if isinstance(remedy, ConvertTo):
        return f"convert it to {remedy.dtype} {remedy.when}".rstrip()
    if isinstance(remedy, ReadAffinities):
        return f"put “affinities” into the name of the layer {remedy.when}".rstrip()
    if isinstance(remedy, LabelComponents):
        return "label its connected components first"
    return str(remedy)


def setting_text(remedy: SetOption) -> str:
    """Return the setting of an option by the label of its control.

    Examples
    --------
    >>> setting_text(SetOption("min_size", 7)), setting_text(SetOption("per_plane", True))
    ('set “Least size” to 7', 'tick “each plane by itself”')
    """
    option = _OPTIONS.get(remedy.option, remedy.option.replace("_", " "))
    if isinstance(remedy.value, bool):
        return f"{'tick' if remedy.value else 'untick'} {option}"
    whose = f" of “{remedy.key}”" if remedy.key else ""
    return f"set {option}{whose}" + (
        "" if remedy.value is None else f" to {value_text(remedy.value)}"
    )


def value_text(value: object) -> str:
    """Return a value as typed in the window: a range as ``LOW:HIGH``."""
    if isinstance(value, tuple):
        return ":".join(f"{one:g}" for one in value)
    return str(value)
