"""What can go wrong, in words for the person who can mend it.

Every message names the argument, what was expected, what came and what to do. Nothing is logged
and passed over: a function either does what it was asked or raises one of these.
"""

from __future__ import annotations

from numbers import Integral, Real


class AggloError(Exception):
    """Base of every error that this package raises on purpose."""


class InvalidInput(AggloError, ValueError):
    """An argument or a file that cannot be used as it is; the message says what to do."""


class Cancelled(AggloError):
    """Raised by a progress callback to stop the work; whatever was there before stays as it was."""


def is_whole(value: object) -> bool:
    """Return whether `value` is a whole number, of Python or numpy; True and False are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Return whether `value` is a real number, infinities included; NaN is not."""
    return isinstance(value, Real) and bool(value == value)
