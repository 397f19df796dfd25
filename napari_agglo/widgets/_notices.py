"""What the user is told, as napari notifications: never a traceback to read in a terminal."""

from __future__ import annotations

import logging

from napari.utils.notifications import show_error, show_info, show_warning

from napari_agglo.errors import AggloError, Cancelled

_log = logging.getLogger("napari_agglo")


def tell(message: str) -> None:
    """Say that something is so."""
    show_info(message)


def warn(message: str) -> None:
    """Say what should be known before going on."""
    show_warning(message)


def tell_error(error: BaseException) -> None:
    """Say what went wrong, and what to do."""
    if isinstance(error, Cancelled):
        return
    if isinstance(error, AggloError):
        show_error(str(error))
    elif isinstance(error, MemoryError):
        show_error("There is not enough memory for this. Crop the image, or close other programs.")
    elif isinstance(error, OSError):
        show_error(f"A file could not be read or written: {error}")
    else:
        # A fault of ours. The log has the details for a report; the window says what is lost.
        _log.error("unexpected error", exc_info=error)
        show_error(
            f"Something unexpected went wrong ({type(error).__name__}: {error}). Nothing that was "
            "there before has changed. Please report it with what you did."
        )
