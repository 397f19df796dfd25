"""Errors as values: the problem, the argument that has it, and a remedy.

`str(error)` is the message for Python. The command line and the Data step render the same `remedy`
in their own way: as an option to type, or as a button. No error is only logged: a function either
does its work or raises one of these.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real


@dataclass(frozen=True)
class SetOption:
    """Pass an option: ``ranges={'boundary': (0, 255)}``, ``--range boundary=0:255``.

    Attributes
    ----------
    option : str
        The parameter, by its name in Python.
    value : object
        The value to pass; None if only the user knows it.
    key : str
        For a parameter that maps names to values, such as `ranges`: the name.
    when : str
        The condition or the purpose, such as ``if dark is boundary``.
    """

    option: str
    value: object = None
    key: str = ""
    when: str = ""

    def __str__(self) -> str:
        if self.value is None:
            text = f"`{self.option}`" + (f" for {self.key!r}" if self.key else "")
        elif self.key:
            text = f"{self.option}={{{self.key!r}: {self.value!r}}}"
        else:
            text = f"{self.option}={self.value!r}"
        return f"pass {text} {self.when}".rstrip()


@dataclass(frozen=True)
class PickIndex:
    """Take one index along some axes: ``array[:, 0]``, ``FILE:1=0``.

    Attributes
    ----------
    axes : tuple of int
        The axes to drop.
    ndim : int
        Number of axes of the array.
    """

    axes: tuple[int, ...]
    ndim: int

    def __str__(self) -> str:
        picks = ["0" if axis in self.axes else ":" for axis in range(self.ndim)]
        while picks and picks[-1] == ":":
            picks.pop()
        axes = ", ".join(map(str, self.axes))
        return f"pick one index along axis {axes}, e.g. array[{', '.join(picks)}]"


@dataclass(frozen=True)
class ConvertTo:
    """Convert an array to another type of number: ``array.astype('float32')``.

    Attributes
    ----------
    dtype : str
        The type of number.
    when : str
        The condition, such as ``if its values are whole numbers``.
    """

    dtype: str
    when: str = ""

    def __str__(self) -> str:
        return f"convert it with .astype('{self.dtype}') {self.when}".rstrip()


@dataclass(frozen=True)
class LabelComponents:
    """Number the connected components of a mask: ``scipy.ndimage.label(mask)[0]``."""

    def __str__(self) -> str:
        return "label its connected components first, e.g. scipy.ndimage.label(mask)[0]"


@dataclass(frozen=True)
class Install:
    """Install a package that reads or writes this kind of file.

    Parameters
    ----------
    package : str
        Its name, as pip takes it.
    """

    package: str

    def __str__(self) -> str:
        return f"install it with: pip install {self.package}"


@dataclass(frozen=True)
class ReadAffinities:
    """Read an array with a channel for each offset as affinities, not as a map.

    Attributes
    ----------
    when : str
        The condition, such as ``if its channels are offsets``.
    """

    when: str = ""

    def __str__(self) -> str:
        return f"pass affinities(array) {self.when}".rstrip()


@dataclass(frozen=True)
class Advice:
    """A remedy that reads the same everywhere.

    Parameters
    ----------
    text : str
        A phrase in the imperative.
    """

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class OneOf:
    """Alternative remedies, each of which is enough; the likeliest comes first.

    Parameters
    ----------
    remedies : tuple of Remedy
        The alternatives.
    """

    remedies: tuple[Remedy, ...]

    def __str__(self) -> str:
        return ", or ".join(map(str, self.remedies))


Remedy = (
    SetOption | PickIndex | ConvertTo | LabelComponents | Install | ReadAffinities | Advice | OneOf
)


def alternatives(remedy: Remedy | None) -> tuple[Remedy, ...]:
    """Return the single remedies of `remedy`, for interfaces that show each by itself.

    Parameters
    ----------
    remedy : Remedy or None
        Any remedy.

    Returns
    -------
    tuple of Remedy
        The alternatives of `OneOf`, or the remedy alone; empty without one.

    Examples
    --------
    >>> alternatives(OneOf((Advice("use a crop"), ConvertTo("uint8"))))
    (Advice(text='use a crop'), ConvertTo(dtype='uint8', when=''))
    >>> alternatives(None)
    ()
    """
    if remedy is None:
        return ()
    if not isinstance(remedy, OneOf):
        return (remedy,)
    return tuple(one for part in remedy.remedies for one in alternatives(part))


class DataWarning(UserWarning):
    """Data that a policy, or a training, is not likely to be good on.

    Parameters
    ----------
    problem, argument, remedy
        As of `InvalidInput`.
    """

    def __init__(
        self,
        problem: str,
        *,
        argument: str | None = None,
        remedy: Remedy | str | tuple[Remedy | str, ...] | None = None,
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.argument = argument
        self.remedy = _as_remedy(remedy)

    def __str__(self) -> str:
        return sentence(self.problem, self.remedy)


class AggloError(Exception):
    """Base of every error that this package raises on purpose."""


class InvalidInput(AggloError, ValueError):
    """An argument or a file that cannot be used as it is.

    Parameters
    ----------
    problem : str
        The expected value and the actual one. Names of arguments are in backquotes.
    argument : str, optional
        The argument that has the problem, as it stands in `problem` without the backquotes, e.g.
        ``cues['boundary']``.
    remedy : Remedy, str or tuple of these, optional
        The action that solves the problem; a str is an `Advice`, a tuple is `OneOf` its items.

    Examples
    --------
    >>> error = InvalidInput(
    ...     "`cues['boundary']` holds uint8, whose range is not known",
    ...     argument="cues['boundary']",
    ...     remedy=SetOption("ranges", (0, 255), "boundary"),
    ... )
    >>> print(error)
    `cues['boundary']` holds uint8, whose range is not known; pass ranges={'boundary': (0, 255)}.
    """

    def __init__(
        self,
        problem: str,
        *,
        argument: str | None = None,
        remedy: Remedy | str | tuple[Remedy | str, ...] | None = None,
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.argument = argument
        self.remedy = _as_remedy(remedy)

    def __str__(self) -> str:
        return sentence(self.problem, self.remedy)


def _as_remedy(remedy: Remedy | str | tuple[Remedy | str, ...] | None) -> Remedy | None:
    if isinstance(remedy, tuple):
        return OneOf(tuple(Advice(one) if isinstance(one, str) else one for one in remedy))
    return Advice(remedy) if isinstance(remedy, str) else remedy


def sentence(problem: str, remedy: object | None) -> str:
    """Return a problem and its remedy as one sentence.

    Parameters
    ----------
    problem : str
        The problem.
    remedy : Remedy or None
        The remedy.

    Returns
    -------
    str
        ``problem; remedy.``
    """
    if remedy is None:
        return problem
    return f"{problem.rstrip('.')}; {str(remedy).rstrip('.')}."


class Cancelled(AggloError):
    """Raised by a progress callback to stop the work; existing results stay as they were."""


def is_whole(value: object) -> bool:
    """Return whether `value` is a whole number, of Python or numpy; True and False are not.

    Parameters
    ----------
    value : object
        Any value.

    Returns
    -------
    bool
        Whether it is one.
    """
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Return whether `value` is a real number, infinities included; NaN is not.

    Parameters
    ----------
    value : object
        Any value.

    Returns
    -------
    bool
        Whether it is one.
    """
    return isinstance(value, Real) and bool(value == value)


def check_whole(name: str, value: object, least: int, most: int | None = None) -> int:
    """Return `value` as int; refuse anything but a whole number from `least` to `most`.

    Parameters
    ----------
    name : str
        The name of the argument, for the message.
    value : object
        Its value.
    least : int
        The least value that is allowed.
    most : int, optional
        The greatest one.

    Returns
    -------
    int
        The value.

    Raises
    ------
    InvalidInput
        If it is anything else.

    Examples
    --------
    >>> check_whole("frames", 1, 2)
    Traceback (most recent call last):
    napari_agglo.errors.InvalidInput: `frames` must be a whole number of 2 or more, got 1; ...
    """
    if is_whole(value):
        number: int = int(value)  # type: ignore[call-overload]
        if least <= number and (most is None or number <= most):
            return number
    span = f"of {least} or more" if most is None else f"from {least} to {most}"
    raise InvalidInput(
        f"`{name}` must be a whole number {span}, got {value!r}",
        argument=name,
        remedy=SetOption(name, least),
    )


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Refuse a value that is not one of `choices`.

    Parameters
    ----------
    name : str
        The name of the argument, for the message.
    value : object
        Its value.
    choices : sequence
        The values that are allowed.

    Raises
    ------
    InvalidInput
        If it is none of them.

    Examples
    --------
    >>> check_choice("by", "time", ("merges", "threshold"))
    Traceback (most recent call last):
    napari_agglo.errors.InvalidInput: `by` must be 'merges' or 'threshold', got 'time'; pass ...
    >>> check_choice("by", "treshold", ("merges", "threshold"))
    Traceback (most recent call last):
    napari_agglo.errors.InvalidInput: ... got 'treshold' (did you mean 'threshold'?); pass ...
    """
    if not isinstance(value, Hashable) or value not in choices:  # an array compares to an array
        *others, last = map(repr, choices)
        known = f"{', '.join(others)} or {last}" if others else last
        raise InvalidInput(
            f"`{name}` must be {known}, got {value!r}{did_you_mean(value, choices)}",
            argument=name,
            remedy=SetOption(name, nearest_choice(value, choices) or choices[0]),
        )


def nearest_choice(value: object, choices: Iterable[object]) -> str | None:
    """Return the text among `choices` that a misspelt value is nearest to; None if none is near.

    Parameters
    ----------
    value : object
        What was passed.
    choices : iterable
        The values that are allowed.

    Returns
    -------
    str or None
        The choice that was probably meant.

    Examples
    --------
    >>> nearest_choice("Aglo", ["flat", "agglo", "lash"])
    'agglo'
    >>> nearest_choice("watershed", ["flat", "agglo", "lash"])
    >>> nearest_choice("--adapt", ["--dams", "--policy"])
    """
    from difflib import get_close_matches

    if not isinstance(value, str):
        return None
    # without the dashes of options, which are alike in all of them
    spelt = {one.lower().lstrip("-"): one for one in choices if isinstance(one, str)}
    matches = get_close_matches(value.lower().lstrip("-"), spelt, 1)
    return spelt[matches[0]] if matches else None


def did_you_mean(value: object, choices: Iterable[object]) -> str:
    """Return the question after a misspelt value, `` (did you mean 'agglo'?)``, or no text.

    Parameters
    ----------
    value, choices
        As for `nearest_choice`.

    Returns
    -------
    str
        Text to append to the problem.
    """
    near = nearest_choice(value, choices)
    return "" if near is None else f" (did you mean {near!r}?)"
