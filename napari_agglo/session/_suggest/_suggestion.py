"""A suggestion: one decision that may be wrong, where it is, and why it is worth a look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["false_split", "false_merge"]


@dataclass(frozen=True)
class Suggestion:
    """A decision that may be wrong.

    Attributes
    ----------
    kind : {"false_split", "false_merge"}
        Two segments that may be one, or one that may be two.
    segments : tuple of int
        Those two segments, or that one.
    superpixels : tuple of int
        Two that touch, one on each side (dense ids): what the answer is anchored to.
    sizes : tuple of int
        Pixels of both sides.
    position : tuple of float
        Pixel index of a point between them.
    wrong : float
        Probability that merging the two sides is wrong, by the policy.
    gain : float
        Bits by which VI falls if the decision is wrong and is mended.
    score : float
        Expected change in VI times doubt; the order of suggestions.
    """

    kind: Kind
    segments: tuple[int, ...]
    superpixels: tuple[int, int]
    sizes: tuple[int, int]
    position: tuple[float, ...]
    wrong: float
    gain: float
    score: float

    @property
    def question(self) -> str:
        """What is asked."""
        return "Merge these two?" if self.kind == "false_split" else "Cut here?"

    @property
    def reason(self) -> str:
        """Why it is asked, in words."""
        a, b = self.sizes
        if self.kind == "false_split":
            said = f"Left apart ({a:,} and {b:,} pixels), though it is {1 - self.wrong:.0%} likely"
            return f"{said} that they are one; merging them would then lower VI by {self._bits}."
        said = f"Merged here ({a:,} and {b:,} pixels), though it is {self.wrong:.0%} likely"
        return f"{said} that they are two; cutting them would then lower VI by {self._bits}."

    @property
    def _bits(self) -> str:
        return f"{self.gain:.2g} bits"
