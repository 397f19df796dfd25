"""Warnings of data: told at the line that called this package, or kept for an interface."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from napari_agglo.errors import DataWarning

_PACKAGE = __name__.partition(".")[0]
# The list of the interface that runs the work. Each thread has its own: the filters of `warnings`
# are shared by all threads, so that a worker could not record its warnings by means of them.
_KEPT: ContextVar[list[DataWarning] | None] = ContextVar("warnings kept", default=None)


@contextmanager
def keep_warnings() -> Iterator[list[DataWarning]]:
    """Keep the warnings of data that arise in this thread, each once, instead of telling them.

    Examples
    --------
    >>> with keep_warnings() as kept:
    ...     warn_caller(DataWarning("The map is dark", remedy="invert it"))
    ...     warn_caller(DataWarning("The map is dark", remedy="invert it"))
    >>> [str(one) for one in kept]
    ['The map is dark; invert it.']
    """
    kept: list[DataWarning] = []
    token = _KEPT.set(kept)
    try:
        yield kept
    finally:
        _KEPT.reset(token)


def warn_caller(warning: DataWarning) -> None:
    """Warn at the line that called this package, not at one inside it; or keep the warning."""
    kept = _KEPT.get()
    if kept is not None:
        if str(warning) not in map(str, kept):
            kept.append(warning)
        return
    depth = 1
    while True:
        try:
            frame = sys._getframe(depth)
        except ValueError:  # all of the stack is of this package
            break
        if frame.f_globals.get("__name__", "").partition(".")[0] != _PACKAGE:
            break
        depth += 1
    warnings.warn(warning, stacklevel=depth + 1)
