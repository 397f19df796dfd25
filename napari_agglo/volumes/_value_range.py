"""Values of a map: the check of their range, and their mapping from it to 0..255.

Integers make sums exact, so that statistics depend neither on blocks nor on the order of addition.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from napari_agglo._data_warnings import warn_caller
from napari_agglo._numba import kernel
from napari_agglo.errors import (
    ConvertTo,
    DataWarning,
    InvalidInput,
    Remedy,
    SetOption,
    check_choice,
)

OVERSHOOT = 1e-6  # of the range: rounding errors of probabilities are clipped, not refused
_BLOCK = 8192


@dataclass
class ValueFaults:
    """Faults of a map: counts, first positions (-1: none), and the extremes of values outside."""

    not_finite: int = 0
    first_not_finite: int = -1
    outside: int = 0
    first_outside: int = -1
    lowest: float = math.inf
    highest: float = -math.inf

    def add(self, other: ValueFaults, offset: int) -> None:
        """Add the faults of a slab that begins at voxel `offset`."""
        if self.first_not_finite < 0 <= other.first_not_finite:
            self.first_not_finite = other.first_not_finite + offset
        if self.first_outside < 0 <= other.first_outside:
            self.first_outside = other.first_outside + offset
        self.not_finite += other.not_finite
        self.outside += other.outside
        self.lowest = min(self.lowest, other.lowest)
        self.highest = max(self.highest, other.highest)


def quantise(
    flat: np.ndarray[Any, Any], limits: tuple[float, float], out: np.ndarray[Any, Any]
) -> ValueFaults:
    """Write 255 * (v - low) / (high - low), halves rounded up, to `out`; 255 where not finite.

    Floats are computed in float64. Integers whose limits are whole numbers are computed in
    integers, so that they are exact.
    """
    if flat.dtype.kind == "f":
        if flat.dtype.itemsize not in (4, 8):  # half floats, long doubles: unknown to kernels
            with np.errstate(over="ignore"):  # too large for float64: infinite, and counted as such
                flat = flat.astype(np.float32 if flat.dtype.itemsize == 2 else np.float64)
        return _quantise_floats(flat, limits, out)
    low, high = limits
    if not (low.is_integer() and high.is_integer() and max(abs(low), abs(high)) < 2**52):
        return _quantise_floats(flat.astype(np.float64), limits, out)
    first, last = int(low), int(high)
    if flat.dtype == np.uint8 and (first, last) == (0, 255):
        out[:] = flat
        return ValueFaults()
    faults = _outside(flat, min(first, last), max(first, last))
    if faults.outside:
        return faults
    if flat.dtype.itemsize <= 2:
        unsigned = flat.view(np.dtype(f"u{flat.dtype.itemsize}"))
        _look_up_bytes(unsigned, _table(flat.dtype, first, last), out)
    else:
        _quantise_integers(flat.astype(np.int64), first, last, out)
    return faults


def _quantise_floats(
    flat: np.ndarray[Any, Any], limits: tuple[float, float], out: np.ndarray[Any, Any]
) -> ValueFaults:
    low, high = limits
    slack = OVERSHOOT * abs(high - low)
    counts = np.zeros(2, np.int64)
    firsts = np.full(2, -1, np.int64)
    extremes = np.array([math.inf, -math.inf])
    bottom, top = min(low, high) - slack, max(low, high) + slack
    scale = 255.0 / (high - low)
    with np.errstate(over="ignore", invalid="ignore"):  # numpy warns of infinities with the JIT off
        _quantise(flat, low, scale, bottom, top, out, counts, firsts, extremes)
    return ValueFaults(
        int(counts[0]), int(firsts[0]), int(counts[1]), int(firsts[1]), *extremes.tolist()
    )


def _outside(flat: np.ndarray[Any, Any], bottom: int, top: int) -> ValueFaults:
    lowest, highest = int(flat.min()), int(flat.max())
    if bottom <= lowest and highest <= top:
        return ValueFaults()
    # numpy compares integers of any type with a Python integer by value, so this is exact
    bad = (flat < bottom) | (flat > top)
    return ValueFaults(0, -1, int(bad.sum()), int(bad.argmax()), float(lowest), float(highest))


def _scaled(value: Any, low: int, high: int) -> Any:
    """Return 255 * (value - low) / (high - low) in integers, halves rounded up."""
    rise, span = (value - low, high - low) if high > low else (low - value, low - high)
    return (510 * rise + span) // (2 * span)


def _table(dtype: np.dtype[Any], low: int, high: int) -> np.ndarray[Any, Any]:
    """Return the result for every bit pattern of an 8- or 16-bit type."""
    unsigned = np.dtype(f"u{dtype.itemsize}")
    patterns = np.arange(2 ** (8 * dtype.itemsize), dtype=unsigned)
    scaled = _scaled(patterns.view(dtype).astype(np.int64), low, high)
    return np.asarray(np.clip(scaled, 0, 255), np.uint8)


@kernel
def _look_up_bytes(flat: Any, table: Any, out: Any) -> None:
    """Set ``out[i] = table[flat[i]]``. Checks nothing: `table` must cover the type of `flat`."""
    for i in range(flat.size):
        out[i] = table[flat[i]]


@kernel
def _quantise_integers(flat: Any, low: int, high: int, out: Any) -> None:
    """Quantise int64 values exactly. Checks nothing: all must lie within the limits."""
    sign = 1 if high > low else -1
    span = sign * (high - low)
    for i in range(flat.size):
        rise = sign * (flat[i] - low)
        out[i] = (510 * rise + span) // (2 * span)


@kernel
def _quantise(
    flat: Any,
    low: float,
    scale: float,
    bottom: float,
    top: float,
    out: Any,
    counts: Any,
    firsts: Any,
    extremes: Any,
) -> None:
    """Quantise floats; count values not finite (index 0) and outside (index 1). Checks nothing.

    The first inner loop has no branch, so that it is vectorised; a block with any fault is scanned
    again by the second, slow loop.
    """
    for start in range(0, flat.size, _BLOCK):
        stop = min(start + _BLOCK, flat.size)
        good = np.int64(0)
        for i in range(start, stop):
            value = np.float64(flat[i])
            inside = (value >= bottom) & (value <= top)
            good += np.int64(inside)
            scaled = (value - low) * scale + 0.5
            raised = scaled if scaled > 0.0 else 0.0  # NaN too
            out[i] = np.uint8(np.int32(raised if raised < 255.0 else 255.0))
        if good == stop - start:
            continue
        for i in range(start, stop):
            value = np.float64(flat[i])
            if not np.isfinite(value):
                out[i] = 255
                counts[0] += 1
                if firsts[0] < 0:
                    firsts[0] = i
            elif not (bottom <= value <= top):
                counts[1] += 1
                if firsts[1] < 0:
                    firsts[1] = i
                extremes[0] = min(extremes[0], value)
                extremes[1] = max(extremes[1], value)


Range = tuple[float, float]
_NARROW = 0.03  # share of a declared range that few maps have less of
_ENOUGH = 1000  # values that tell how wide a map is


@dataclass(frozen=True)
class ValueGate:
    """The check of a map of values: its name and range, and the option that declares the range.

    Cues and the boundary map of `oversegment` share it, so that both raise the same messages.

    Attributes
    ----------
    name
        Name of the map in messages, e.g. ``cues['boundary']``.
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
                f"`{name}` must be a map of values, not a bool mask",
                argument=name,
                remedy=ConvertTo("float32", when="to use it as a map of 0 and 1"),
            )
        if dtype.kind not in "iuf":
            raise InvalidInput(
                f"`{name}` must hold real numbers, not {dtype}",
                argument=name,
                remedy=ConvertTo("float32"),
            )
        if declared is not None:
            return cls(name, option, check_range(declared, option), True)
        gate = cls(name, option, (0.0, 1.0), False)
        if dtype.kind == "f":
            return gate
        if dtype.itemsize > 2:
            raise InvalidInput(
                f"`{name}` is {dtype} and looks like a label image, not like a map of values in "
                "[0, 1]",
                argument=name,
                remedy=("use the probability map", gate.declare(None, "to declare its range")),
            )
        top = 255 if dtype.itemsize == 1 else 65535
        raise InvalidInput(
            f"`{name}` is {dtype}, whose range is not known (values in [0, 1] are expected)",
            argument=name,
            remedy=gate.declarations(top),
        )

    def declare(self, limits: Range | None, when: str = "") -> SetOption:
        """Return the remedy that declares these limits for this map."""
        cue = re.fullmatch(r"cues\['(.+)'\]", self.name)
        return SetOption(self.option, limits, cue[1] if cue else "", when)

    def declarations(self, top: int) -> tuple[Remedy, ...]:
        """Return the remedies that declare 0 to `top`, ascending or descending."""
        return self.declare((0, top)), self.declare((top, 0), "if dark is boundary")

    @property
    def bounds(self) -> Range:
        """The lowest and the highest value that pass: the limits, and room for rounding errors."""
        low, high = min(self.limits), max(self.limits)
        slack = OVERSHOOT * (high - low)
        return low - slack, high + slack

    def find_faults(self, values: np.ndarray[Any, Any]) -> ValueFaults:
        """Return the faults of `values`, with positions in C order."""
        bottom, top = self.bounds
        # quick when there are none; a NaN makes both comparisons false
        if values.size == 0 or (bottom <= values.min() and values.max() <= top):
            return ValueFaults()
        flat = values.reshape(-1)
        bad = ~np.isfinite(flat)
        outside = ~bad & ((flat < bottom) | (flat > top))
        faults = ValueFaults(int(bad.sum()), _first(bad), int(outside.sum()), _first(outside))
        if faults.outside:
            faults.lowest, faults.highest = float(flat[outside].min()), float(flat[outside].max())
        return faults

    def refuse(self, faults: ValueFaults, shape: tuple[int, ...], nan: str) -> None:
        """Raise `InvalidInput` if a map of this shape has faults."""
        if faults.not_finite and nan == "refuse":
            index = tuple(int(i) for i in np.unravel_index(faults.first_not_finite, shape))
            raise InvalidInput(
                f"`{self.name}` has {faults.not_finite} values that are NaN or infinite, the first "
                f"at index {index}",
                argument=self.name,
                remedy=(
                    "replace them",
                    SetOption("nan", "boundary", when="to count them as boundary"),
                ),
            )
        if not faults.outside:
            return
        index = tuple(int(i) for i in np.unravel_index(faults.first_outside, shape))
        problem = (
            f"`{self.name}` must be in [{min(self.limits):g}, {max(self.limits):g}], but "
            f"{faults.outside} values are outside (from {faults.lowest:g} to {faults.highest:g}, "
            f"the first at index {index})"
        )
        if self.declared:
            raise InvalidInput(
                problem, argument=self.name, remedy=self.declare(None, "as wide as its values")
            )
        if faults.lowest >= 0 and faults.highest <= 65535:
            remedy = self.declarations(255 if faults.highest <= 255 else 65535)
            raise InvalidInput(problem, argument=self.name, remedy=remedy)
        limits = min(0, math.floor(faults.lowest)), max(1, math.ceil(faults.highest))
        raise InvalidInput(problem, argument=self.name, remedy=self.declare(limits))

    def warn_if_narrow(self, parts: Iterable[np.ndarray[Any, Any]]) -> None:
        """Warn of a declared range of which the values of a map, in parts, fill a few percent.

        A map with the same value everywhere says nothing of its range, and few values little.
        """
        if not self.declared:
            return
        size, lowest, highest, dtype = 0, math.inf, -math.inf, np.dtype(float)
        for part in parts:
            if part.size:
                size, dtype = size + part.size, part.dtype
                lowest = min(lowest, float(np.fmin.reduce(part, axis=None)))
                highest = max(highest, float(np.fmax.reduce(part, axis=None)))
        share = (highest - lowest) / abs(self.limits[1] - self.limits[0])
        if size < _ENOUGH or not 0 < share < _NARROW:
            return
        byte = np.dtype(dtype).itemsize == 1 and max(self.limits) > 255
        remedy = self.declarations(255) if byte else self.declare(None, "as wide as its values")
        warn_caller(
            DataWarning(
                f"The values of `{self.name}` fill {100 * share:.1g} % of the range "
                f"{self.limits[0]:g} to {self.limits[1]:g} that is declared for them, so that "
                "boundaries hardly differ",
                argument=self.name,
                remedy=remedy,
            )
        )


def check_range(pair: Any, option: str) -> Range:
    """Return a declared range as two floats; refuse anything but two different numbers.

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
            f"infinitely far apart, not {pair!r}",
            argument=option,
            remedy="e.g. (0, 255)",
        )
    return low, high


def check_nan(nan: object) -> None:
    """Refuse anything but the two ways to treat values that are not finite."""
    check_choice("nan", nan, ("refuse", "boundary"))


def _first(where: np.ndarray[Any, Any]) -> int:
    return int(where.argmax()) if where.any() else -1
