"""What was found, mended and lost on opening a session, in words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Report:
    """What opening or recovering a session found.

    Attributes
    ----------
    kept
        Journal entries that are there and can be trusted.
    lost
        Acknowledged entries that are gone, or follow a damaged one and cannot be trusted.
    sentences
        What happened, a sentence each; empty if all is well.
    aside
        Files that hold what was taken out of use; nothing is deleted.
    unmended
        Whether something is left that keeps the session from being opened.
    """

    kept: int
    lost: int = 0
    sentences: tuple[str, ...] = ()
    aside: tuple[Path, ...] = ()
    unmended: bool = False

    def __str__(self) -> str:
        entries = "1 entry" if self.kept == 1 else f"{self.kept} entries"
        return " ".join(self.sentences) or f"All is well: {entries}."
