"""The gate for maps of values: their type, their range, and what lies outside it.

Cues and the boundary map that superpixels are made of pass it, and are refused in the same words.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from napari_agglo.errors import InvalidInput
from napari_agglo.volumes._quantise import OVERSHOOT, Findings

Range = tuple[float, float]


@dataclass(frozen=True)
class ValueGate:
    """What a map is called, the option that declares its range, and the range that it has.

    Attributes
    ----------
    name
        As messages have it, e.g. ``cues['boundary']``.
    option
        The argument that declares the range, e.g. ``ranges``.
    limits
        (low, high); low above high turns the map upside down.
    declared
        Whether the caller gave the limits.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.volumes import ValueGate
    >>> ValueGate.of(np.float32, None, "boundary", "value_range").limits
    (0.0, 1.0)
    >>> ValueGate.of(np.uint8, (255, 0), "boundary", "value_range").limits
    (255.0, 0.0)
    """

    name: str
    option: str
    limits: Range
    declared: bool

    @classmethod
    def of(cls, dtype: Any, declared: Any, name: str, option: str) -> ValueGate:
        """Return the gate of a map of this type; only floats need not declare their range."""
        dtype = np.dtype(dtype)
        if dtype == np.bool_:
            raise InvalidInput(
                f"`{name}` must be a map of values, not a bool mask; "
                "if this is what you mean, pass mask.astype('float32')."
            )
        if dtype.kind not in "iuf":
            raise InvalidInput(f"`{name}` must hold real numbers, not {dtype}.")
        if declared is not None:
            return cls(name, option, check_range(declared, option), True)
        if dtype.kind == "f":
            return cls(name, option, (0.0, 1.0), False)
        if dtype.itemsize > 2:
            raise InvalidInput(
                f"`{name}` is {dtype} and looks like a label image, not like a map of values in "
                "[0, 1]; pass the probability map, or declare the range of its values, "
                f"e.g. {option}=(0, 255)."
            )
        top = 255 if dtype.itemsize == 1 else 65535
        raise InvalidInput(
            f"`{name}` is {dtype}, whose range is not known (values in [0, 1] are expected); if "
            f"these are intensities or probabilities, declare it, e.g. {option}=(0, {top}), or "
            f"{option}=({top}, 0) if dark is boundary."
        )

    @property
    def bounds(self) -> Range:
        """The lowest and the highest value that pass: a little beyond the limits is rounding."""
        low, high = min(self.limits), max(self.limits)
        slack = OVERSHOOT * (high - low)
        return low - slack, high + slack

    def look_over(self, values: np.ndarray[Any, Any]) -> Findings:
        """Return what is wrong in `values`, in C order. If all is well they are read once."""
        bottom, top = self.bounds
        if values.size == 0 or (bottom <= values.min() and values.max() <= top):  # no NaN either
            return Findings()
        flat = values.reshape(-1)
        finite = np.isfinite(flat)
        outside = finite & ((flat < bottom) | (flat > top))
        found = Findings(int((~finite).sum()), _first(~finite), int(outside.sum()), _first(outside))
        if found.outside:
            found.lowest, found.highest = float(flat[outside].min()), float(flat[outside].max())
        return found

    def judge(self, found: Findings, shape: tuple[int, ...], nan: str) -> None:
        """Refuse a map of this shape for what was found in it."""
        if found.not_finite and nan == "refuse":
            where = tuple(int(i) for i in np.unravel_index(found.first_not_finite, shape))
            raise InvalidInput(
                f"`{self.name}` has {found.not_finite} values that are NaN or infinite, the first "
                f"at index {where}; replace them, or pass nan='boundary' to count them as boundary."
            )
        if not found.outside:
            return
        where = tuple(int(i) for i in np.unravel_index(found.first_outside, shape))
        said = (
            f"`{self.name}` must be in [{min(self.limits):g}, {max(self.limits):g}], but "
            f"{found.outside} values are outside (from {found.lowest:g} to {found.highest:g}, the "
            f"first at index {where})"
        )
        if self.declared:
            raise InvalidInput(f"{said}; declare the range that its values have.")
        if found.lowest >= 0 and found.highest <= 65535:
            top = 255 if found.highest <= 255 else 65535
            raise InvalidInput(
                f"{said}; if these are probabilities in 0 to {top}, declare it: "
                f"{self.option}=(0, {top}), or {self.option}=({top}, 0) if dark is boundary."
            )
        low, high = min(0, math.floor(found.lowest)), max(1, math.ceil(found.highest))
        raise InvalidInput(
            f"{said}; declare the range of its values, e.g. {self.option}=({low:g}, {high:g})."
        )


def check_range(pair: Any, option: str) -> Range:
    """Return a declared range as two floats, or say why it is none.

    Examples
    --------
    >>> from napari_agglo.volumes import check_range
    >>> check_range((255, 0), "ranges")
    (255.0, 0.0)
    """
    try:
        low, high = (float(value) for value in pair)
    except (TypeError, ValueError, OverflowError):
        low = high = math.nan
    span = high - low
    if not (math.isfinite(span) and abs(span) > 1e-300):  # its inverse must be finite too
        raise InvalidInput(
            f"`{option}` must be two different numbers (low, high), neither infinitely close nor "
            f"infinitely far apart, not {pair!r}; e.g. (0, 255)."
        )
    return low, high


def check_nan(nan: object) -> None:
    """Refuse anything but the two ways to treat values that are not finite."""
    if nan not in ("refuse", "boundary"):
        raise InvalidInput(f'`nan` must be "refuse" or "boundary", not {nan!r}.')


def _first(where: np.ndarray[Any, Any]) -> int:
    return int(where.argmax()) if where.any() else -1
