"""Errors as values: the problem, the argument that has it, and a remedy.

`str(error)` is the message for Python. The command line and the Data step render the same `remedy`
in their own way: as an option to type, or as a button. Nothing is logged and passed over: a
function either does its work or raises one of these.
"""

from __future__ import annotations

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
        What to pass; None if only the user knows.
    key : str
        For a parameter that maps names to values, such as `ranges`: the name.
    """

    option: str
    value: object = None
    key: str = ""

    def __str__(self) -> str:
        value = "..." if self.value is None else repr(self.value)
        return (
            f"pass {self.option}={{{self.key!r}: {value}}}"
            if self.key
            else (f"pass {self.option}={value}")
        )


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
        return f"pick one index along axis {', '.join(map(str, self.axes))}, e.g. array[" + (
            ", ".join(picks) + "]"
        )


@dataclass(frozen=True)
class ConvertTo:
    """Convert an array to another type of number: ``array.astype('float32')``."""

    dtype: str

    def __str__(self) -> str:
        return f"convert it with .astype('{self.dtype}')"


@dataclass(frozen=True)
class Install:
    """Install a package that reads or writes this kind of file."""

    package: str

    def __str__(self) -> str:
        return f"install it with: pip install {self.package}"


@dataclass(frozen=True)
class Advice:
    """A remedy that reads the same everywhere."""

    text: str

    def __str__(self) -> str:
        return self.text


Remedy = SetOption | PickIndex | ConvertTo | Install | Advice


class AggloError(Exception):
    """Base of every error that this package raises on purpose."""


class InvalidInput(AggloError, ValueError):
    """An argument or a file that cannot be used as it is.

    Parameters
    ----------
    problem : str
        What was expected and what came. Arguments stand in it in backquotes.
    argument : str, optional
        The argument that has the problem, as it stands in `problem` without the backquotes, e.g.
        ``cues['boundary']``.
    remedy : Remedy or str, optional
        What to do about it; a str is an `Advice`.

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
        self, problem: str, *, argument: str | None = None, remedy: Remedy | str | None = None
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.argument = argument
        self.remedy: Remedy | None = Advice(remedy) if isinstance(remedy, str) else remedy

    def __str__(self) -> str:
        return sentence(self.problem, self.remedy)


def sentence(problem: str, remedy: object | None) -> str:
    """Return a problem and its remedy as one sentence."""
    if remedy is None:
        return problem
    return f"{problem.rstrip('.')}; {str(remedy).rstrip('.')}."


class Cancelled(AggloError):
    """Raised by a progress callback to stop the work; whatever was there before stays as it was."""


def is_whole(value: object) -> bool:
    """Return whether `value` is a whole number, of Python or numpy; True and False are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Return whether `value` is a real number, infinities included; NaN is not."""
    return isinstance(value, Real) and bool(value == value)
