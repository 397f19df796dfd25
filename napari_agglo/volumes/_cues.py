"""Cues: per-voxel evidence, checked and mapped from its declared range to 0..255.

Integers make sums exact, so that statistics depend neither on blocks nor on the order of addition.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import InvalidInput
from napari_agglo.volumes._arrays import slabs, unwrap
from napari_agglo.volumes._check import check_same_shape
from napari_agglo.volumes._quantise import Findings, quantise
from napari_agglo.volumes._spacing import check_same_spacing

Range = tuple[float, float]


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
    if nan not in ("refuse", "boundary"):
        raise InvalidInput(f'`nan` must be "refuse" or "boundary", not {nan!r}.')
    named = cues if isinstance(cues, Mapping) else {"boundary": cues}
    if not named:
        raise InvalidInput("`cues` is empty; pass at least one cue, e.g. {'boundary': array}.")
    if not all(isinstance(name, str) and name for name in named):
        raise InvalidInput(f"`cues` must have names for keys, not {list(named)}.")
    by_name = _ranges_by_name(ranges, tuple(named))
    shape = tuple(int(n) for n in shape)
    arrays = {}
    for name, cue in named.items():
        array = unwrap(cue, f"cues[{name!r}]")
        check_same_shape(shape, array, shape_of, f"cues[{name!r}]")
        arrays[name] = array
    check_same_spacing({f"cues[{name!r}]": cue for name, cue in named.items()})
    final = [_range_of(name, arrays[name], by_name.get(name)) for name in named]
    values = np.empty((len(named), math.prod(shape)), np.uint8)
    for row, (name, limits) in enumerate(zip(named, final, strict=True)):
        declared = name in by_name
        total = Findings()
        for start, stop, slab in slabs(arrays[name]):
            total.add(quantise(slab.reshape(-1), limits, values[row, start:stop]), start)
            report(progress, f"reading {name}", stop, values.shape[1])
        _judge(name, shape, limits, declared, nan, total)
    return Cues(tuple(named), values, tuple(final))


def _ranges_by_name(ranges: Any, names: tuple[str, ...]) -> dict[str, Range]:
    if ranges is None:
        return {}
    if not isinstance(ranges, Mapping):
        return dict.fromkeys(names, _pair(ranges, "ranges"))
    unknown = [name for name in ranges if name not in names]
    if unknown:
        raise InvalidInput(f"`ranges` names {unknown}, but the cues are {list(names)}.")
    return {name: _pair(pair, f"ranges[{name!r}]") for name, pair in ranges.items()}


def _pair(pair: Any, name: str) -> Range:
    try:
        low, high = (float(value) for value in pair)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high)) or low == high:
        raise InvalidInput(
            f"`{name}` must be two different numbers (low, high), not {pair!r}; e.g. (0, 255)."
        )
    return low, high


def _range_of(name: str, array: Any, declared: Range | None) -> Range:
    """Return the range of a cue; floats need none, anything else must declare one."""
    dtype = np.dtype(array.dtype)
    if dtype == np.bool_:
        raise InvalidInput(
            f"`cues[{name!r}]` must be a map of values, not a bool mask; "
            "if this is what you mean, pass mask.astype('float32')."
        )
    if dtype.kind not in "iuf":
        raise InvalidInput(f"`cues[{name!r}]` must hold real numbers, not {dtype}.")
    if declared is not None:
        return declared
    if dtype.kind == "f":
        return 0.0, 1.0
    if dtype.itemsize > 2:
        raise InvalidInput(
            f"`cues[{name!r}]` is {dtype} and looks like a label image, not like a map of values "
            "in [0, 1]; pass the probability map, or declare the range of its values, "
            "e.g. ranges=(0, 255)."
        )
    top = 255 if dtype.itemsize == 1 else 65535
    raise InvalidInput(
        f"`cues[{name!r}]` is {dtype}, whose range is not known (values in [0, 1] are expected); "
        f"if these are intensities or probabilities, declare it, e.g. ranges=(0, {top}), or "
        f"ranges=({top}, 0) if dark is boundary."
    )


def _judge(
    name: str, shape: tuple[int, ...], limits: Range, declared: bool, nan: str, found: Findings
) -> None:
    if found.not_finite and nan == "refuse":
        where = tuple(int(i) for i in np.unravel_index(found.first_not_finite, shape))
        raise InvalidInput(
            f"`cues[{name!r}]` has {found.not_finite} values that are NaN or infinite, the first "
            f"at index {where}; replace them, or pass nan='boundary' to count them as boundary."
        )
    if not found.outside:
        return
    where = tuple(int(i) for i in np.unravel_index(found.first_outside, shape))
    low, high = min(limits), max(limits)
    said = (
        f"`cues[{name!r}]` must be in [{low:g}, {high:g}], but {found.outside} values are outside "
        f"(from {found.lowest:g} to {found.highest:g}, the first at index {where})"
    )
    if declared:
        raise InvalidInput(f"{said}; declare the range that its values have.")
    if found.lowest >= 0 and found.highest <= 65535:
        top = 255 if found.highest <= 255 else 65535
        raise InvalidInput(
            f"{said}; if these are probabilities in 0 to {top}, declare it: ranges=(0, {top}), or "
            f"ranges=({top}, 0) if dark is boundary."
        )
    raise InvalidInput(
        f"{said}; declare the range of its values, e.g. "
        f"ranges=({math.floor(found.lowest):g}, {math.ceil(found.highest):g})."
    )
