"""How many boundary pixels have a partner, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Matches:
    """Numbers of boundary pixels.

    Attributes
    ----------
    drawn, right
        Of the segmentation; those of them that have a partner.
    true, found
        Of the gold standard, or of all of them; those of them that have a partner.

    Examples
    --------
    >>> Matches(drawn=10, right=5, true=5, found=5).f
    0.6666666666666666
    """

    drawn: int
    right: int
    true: int
    found: int

    @property
    def precision(self) -> float:
        """Share of what is drawn that is right; 1 if nothing is drawn."""
        return self.right / self.drawn if self.drawn else 1.0

    @property
    def recall(self) -> float:
        """Share of what is true that is found; 1 if there is nothing to find."""
        return self.found / self.true if self.true else 1.0

    @property
    def f(self) -> float:
        """The harmonic mean of precision and recall."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0

    def row(self) -> dict[str, float]:
        """Return precision, recall, f and the numbers that they come from."""
        scores = {"precision": self.precision, "recall": self.recall, "f": self.f}
        return scores | {name: getattr(self, name) for name in ("drawn", "right", "true", "found")}
