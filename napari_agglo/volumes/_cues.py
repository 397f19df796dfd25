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
from napari_agglo.volumes._quantise import Findings, quantise
from napari_agglo.volumes._shape import check_same_shape
from napari_agglo.volumes._spacing import check_same_spacing
from napari_agglo.volumes._values import Range, ValueGate, check_nan, check_range


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
        raise InvalidInput(f"`ranges` names {unknown}, but the cues are {list(names)}.")
    return {name: check_range(pair, f"ranges[{name!r}]") for name, pair in ranges.items()}
