"""Map values from their range to 0..255 and find what does not belong, in one pass."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from napari_agglo._jit import kernel

OVERSHOOT = 1e-6  # of the range: what rounding adds to a probability; clipped, not refused
_BLOCK = 8192


@dataclass
class Findings:
    """What was wrong: counts, first positions (-1: none), and the extremes of what lay outside."""

    not_finite: int = 0
    first_not_finite: int = -1
    outside: int = 0
    first_outside: int = -1
    lowest: float = math.inf
    highest: float = -math.inf

    def add(self, other: Findings, offset: int) -> None:
        """Take in the findings of a slab that begins at voxel `offset`."""
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
) -> Findings:
    """Write 255 * (v - low) / (high - low), halves rounded up, to `out`; 255 where not finite.

    Floats are computed in float64. Integers whose limits are whole numbers are computed in
    integers, so that they are exact.
    """
    if flat.dtype.kind == "f":
        wide = flat if flat.dtype.itemsize in (4, 8) else _widened(flat)
        return _quantise_floats(wide, limits, out)
    low, high = limits
    if not (low.is_integer() and high.is_integer() and max(abs(low), abs(high)) < 2**52):
        return _quantise_floats(flat.astype(np.float64), limits, out)
    first, last = int(low), int(high)
    if flat.dtype == np.uint8 and (first, last) == (0, 255):
        out[:] = flat
        return Findings()
    found = _outside(flat, min(first, last), max(first, last))
    if found.outside:
        return found
    if flat.dtype.itemsize <= 2:
        unsigned = flat.view(np.dtype(f"u{flat.dtype.itemsize}"))
        _look_up_bytes(unsigned, _table(flat.dtype, first, last), out)
    else:
        _quantise_integers(flat.astype(np.int64), first, last, out)
    return found


def _widened(flat: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return half floats as float32 and long doubles as float64, the types that kernels know."""
    with np.errstate(over="ignore"):  # too large for float64: infinite, and found as such
        return flat.astype(np.float32 if flat.dtype.itemsize == 2 else np.float64)


def _quantise_floats(
    flat: np.ndarray[Any, Any], limits: tuple[float, float], out: np.ndarray[Any, Any]
) -> Findings:
    low, high = limits
    slack = OVERSHOOT * abs(high - low)
    counts = np.zeros(2, np.int64)
    firsts = np.full(2, -1, np.int64)
    extremes = np.array([math.inf, -math.inf])
    bottom, top = min(low, high) - slack, max(low, high) + slack
    scale = 255.0 / (high - low)
    with np.errstate(over="ignore", invalid="ignore"):  # numpy minds infinities if not compiled
        _quantise(flat, low, scale, bottom, top, out, counts, firsts, extremes)
    return Findings(
        int(counts[0]), int(firsts[0]), int(counts[1]), int(firsts[1]), *extremes.tolist()
    )


def _outside(flat: np.ndarray[Any, Any], bottom: int, top: int) -> Findings:
    lowest, highest = int(flat.min()), int(flat.max())
    if bottom <= lowest and highest <= top:
        return Findings()
    # numpy compares integers of any type with a Python integer by value, so this is exact
    bad = (flat < bottom) | (flat > top)
    return Findings(0, -1, int(bad.sum()), int(bad.argmax()), float(lowest), float(highest))


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
    """Quantise floats and count what is not finite (index 0) or outside (index 1). Checks nothing.

    The inner loop has no branch, so that it is vectorised; a block in which it met anything odd is
    gone through again, slowly.
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
