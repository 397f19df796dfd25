"""Cues: per-voxel evidence, checked and mapped from its declared range to 0..255.

Integers make sums exact, so that statistics depend neither on blocks nor on the order of addition.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from napari_agglo._numba import kernel
from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import ConvertTo, InvalidInput, Remedy, SetOption, check_choice
from napari_agglo.volumes._checks import check_same_shape, check_same_spacing
from napari_agglo.volumes._volume import slabs, unwrap

# Map values from their range to 0..255 and find what does not belong, in one pass.


OVERSHOOT = 1e-6  # of the range: what rounding adds to a probability; clipped, not refused
_BLOCK = 8192


@dataclass
class Findings:
    """Faults of a map: counts, first positions (-1: none), and the extremes of values outside."""

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


# The check of maps of values: their type, their range, and the values outside it. Cues and the
# boundary map of `oversegment` share it, so that both are refused in the same words.


Range = tuple[float, float]


@dataclass(frozen=True)
class ValueGate:
    """Name and range of a map, and the option that declares the range.

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
                f"`{name}` must be a map of values, not a bool mask",
                argument=name,
                remedy=ConvertTo("float32", when="if this is what you mean"),
            )
        if dtype.kind not in "iuf":
            raise InvalidInput(
                f"`{name}` must hold real numbers, not {dtype}",
                argument=name,
                remedy=ConvertTo("float32"),
            )
        if declared is not None:
            return cls(name, option, check_range(declared, option), True)
        if dtype.kind == "f":
            return cls(name, option, (0.0, 1.0), False)
        gate = cls(name, option, (0.0, 1.0), False)
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
            remedy=gate.both_ways(top),
        )

    def declare(self, limits: tuple[int, int] | None, when: str = "") -> SetOption:
        """Return the remedy that declares these limits for this map."""
        cue = re.fullmatch(r"cues\['(.+)'\]", self.name)
        return SetOption(self.option, limits, cue[1] if cue else "", when)

    def both_ways(self, top: int) -> tuple[Remedy, ...]:
        """Return the remedies that declare 0 to `top`, upright or upside down."""
        return self.declare((0, top)), self.declare((top, 0), "if dark is boundary")

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
                f"at index {where}",
                argument=self.name,
                remedy=(
                    "replace them",
                    SetOption("nan", "boundary", when="to count them as boundary"),
                ),
            )
        if not found.outside:
            return
        where = tuple(int(i) for i in np.unravel_index(found.first_outside, shape))
        problem = (
            f"`{self.name}` must be in [{min(self.limits):g}, {max(self.limits):g}], but "
            f"{found.outside} values are outside (from {found.lowest:g} to {found.highest:g}, the "
            f"first at index {where})"
        )
        if self.declared:
            raise InvalidInput(
                problem, argument=self.name, remedy=self.declare(None, "as wide as its values")
            )
        if found.lowest >= 0 and found.highest <= 65535:
            remedy = self.both_ways(255 if found.highest <= 255 else 65535)
            raise InvalidInput(problem, argument=self.name, remedy=remedy)
        limits = min(0, math.floor(found.lowest)), max(1, math.ceil(found.highest))
        raise InvalidInput(problem, argument=self.name, remedy=self.declare(limits))


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


@dataclass(frozen=True, eq=False)
class Cues:
    """Evidence as bytes: ``values[c, voxel]`` is ``round(255 * (v - low) / (high - low))``.

    Attributes
    ----------
    names
        Names of the cues, in the order given.
    values
        uint8, shape (number of cues, number of voxels), C order. Halves are rounded up.
    ranges
        The (low, high) of each cue; low above high turns a cue upside down.
    """

    names: tuple[str, ...]
    values: np.ndarray[Any, np.dtype[np.uint8]]
    ranges: tuple[Range, ...]


def check_cues(
    cues: object,
    shape: Sequence[int],
    ranges: Mapping[str, Sequence[float]] | Sequence[float] | None = None,
    *,
    nan: Literal["refuse", "boundary"] = "refuse",
    shape_of: str = "superpixels",
    progress: ProgressCallback | None = None,
) -> Cues:
    """Check cues against the shape of the labels and map each to 0..255.

    Parameters
    ----------
    cues
        Name to array, or one array, whose name is then "boundary". Arrays may be Volumes or lazy
        (dask, Zarr): these are read slab by slab along axis 0.
    shape
        The shape that every cue must have.
    ranges
        The lowest and highest value that a cue can have: one pair for all, or name to pair. Floats
        are in (0, 1) unless this says otherwise; for integers it must be given. A descending pair,
        e.g. ``(255, 0)``, inverts the cue.
    nan
        What to do with values that are not finite: "refuse" them, or take them for "boundary", the
        top of the range (255).
    shape_of
        What a message calls the image of the given shape.
    progress
        Called as each slab is done.

    Returns
    -------
    Cues

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.volumes import check_cues
    >>> check_cues(np.array([0.0, 0.5, 1.0]), (3,)).values
    array([[  0, 128, 255]], dtype=uint8)
    >>> check_cues({"membrane": np.uint8([0, 10])}, (2,), ranges=(255, 0)).values
    array([[255, 245]], dtype=uint8)
    """
    check_nan(nan)
    named = cues if isinstance(cues, Mapping) else {"boundary": cues}
    if not named:
        raise InvalidInput(
            "`cues` is empty", argument="cues", remedy="pass at least one, e.g. {'boundary': array}"
        )
    if not all(isinstance(name, str) and name for name in named):
        raise InvalidInput(
            f"`cues` must have names for keys, not {list(named)}",
            argument="cues",
            remedy="name them, e.g. {'boundary': array}",
        )
    by_name = _ranges_by_name(ranges, tuple(named))
    shape = tuple(int(n) for n in shape)
    arrays = {}
    for name, cue in named.items():
        array = unwrap(cue, f"cues[{name!r}]")
        check_same_shape(shape, array, shape_of, f"cues[{name!r}]")
        arrays[name] = array
    check_same_spacing({f"cues[{name!r}]": cue for name, cue in named.items()})
    gates = [
        ValueGate.of(arrays[name].dtype, by_name.get(name), f"cues[{name!r}]", "ranges")
        for name in named
    ]
    values = np.empty((len(named), math.prod(shape)), np.uint8)
    for row, (name, gate) in enumerate(zip(named, gates, strict=True)):
        total = Findings()
        for start, stop, slab in slabs(arrays[name]):
            total.add(quantise(slab.reshape(-1), gate.limits, values[row, start:stop]), start)
            report(progress, f"reading {name}", stop, values.shape[1])
        gate.judge(total, shape, nan)
    return Cues(tuple(named), values, tuple(gate.limits for gate in gates))


def _ranges_by_name(ranges: Any, names: tuple[str, ...]) -> dict[str, Range]:
    if ranges is None:
        return {}
    if not isinstance(ranges, Mapping):
        return dict.fromkeys(names, check_range(ranges, "ranges"))
    unknown = [name for name in ranges if name not in names]
    if unknown:
        raise InvalidInput(
            f"`ranges` names {unknown}, but the cues are {list(names)}",
            argument="ranges",
            remedy=f"leave {', '.join(map(str, unknown))} out",
        )
    return {name: check_range(pair, f"ranges[{name!r}]") for name, pair in ranges.items()}
