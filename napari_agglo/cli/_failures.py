"""What went wrong, in one line, and the exit status that goes with it."""

from __future__ import annotations

import os
import sys

from napari_agglo.errors import AggloError


class SomeFailed(AggloError):
    """Some images of many failed; each has been told of already."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def describe(error: Exception) -> tuple[str, int]:
    """Return what the user must know of an error, and 2 if they can mend it, 1 if it is ours."""
    if isinstance(error, SomeFailed):
        return str(error), error.status
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename else ""
        return f"{error.strerror}{where}; check the path and its permissions", 2
    if isinstance(error, (AggloError, OSError)):
        return str(error), 2
    if isinstance(error, MemoryError):
        return f"not enough memory ({error}); try a smaller crop", 2
    if os.environ.get("NAPARI_AGGLO_DEBUG"):
        raise error
    return (
        f"unexpected {type(error).__name__}: {error} "
        "(set NAPARI_AGGLO_DEBUG=1 to see where, and please report it)",
        1,
    )


def say(message: str) -> None:
    """Print one line to stderr."""
    print(f"napari-agglo: {' '.join(message.split())}", file=sys.stderr, flush=True)
