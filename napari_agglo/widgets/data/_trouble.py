"""Why the chosen layers cannot be used together, and what one click could do about it."""

from __future__ import annotations

from collections.abc import Callable

from napari_agglo.errors import InvalidInput


class Trouble(InvalidInput):
    """What stands in the way.

    Attributes
    ----------
    remedy : str
        What the button says that mends it; empty if the user must.
    mend : callable or None
        What the button does.
    """

    def __init__(
        self, message: str, remedy: str = "", mend: Callable[[], object] | None = None
    ) -> None:
        super().__init__(message)
        self.remedy = remedy
        self.mend = mend
