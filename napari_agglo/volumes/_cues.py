"""Cues: per-voxel evidence, checked and mapped from its declared range to 0..255."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import InvalidInput, PickIndex, ReadAffinities, alternatives
from napari_agglo.volumes._checks import check_same_shape, check_same_spacing
from napari_agglo.volumes._oriented_cue import Affinities, OrientedCue
from napari_agglo.volumes._value_range import (
    Range,
    ValueFaults,
    ValueGate,
    check_nan,
    check_range,
    quantise,
)
from napari_agglo.volumes._volume import slabs, unwrap
from napari_agglo.volumes._word_cue import Words


@dataclass(frozen=True, eq=False)
class Cues:
    """Evidence as bytes: ``values[c, voxel]`` is ``round(255 * (v - low) / (high - low))``.

    Attributes
    ----------
    names
        Names of the cues, in the order given.
    values
        uint8, shape (number of cues, number of voxels), C order. Halves are rounded up. Oriented
        cues have several rows, after those of the plain ones.
    ranges
        The (low, high) of each cue; low above high turns a cue upside down.
    sources
        The rows of `values` of each cue: that of its voxels and, if it is oriented, those of the
        faces across each axis, -1 for none. Empty if no cue is oriented, and cue c has row c.
    """

    names: tuple[str, ...]
    values: np.ndarray[Any, np.dtype[np.uint8]]
    ranges: tuple[Range, ...]
    sources: tuple[tuple[int, ...], ...] = ()


_FEW_LEVELS = 10  # of 256, which a map that hardly fills its range may have


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
        (dask, Zarr): these are read slab by slab along axis 0. `Affinities` are several cues, and
        an `OrientedCue` is one; both are bytes already.
    shape
        The shape that every cue must have.
    ranges
        The lowest and highest value that a cue can have: one pair for all, or name to pair. The
        default is (0, 1) for floats; integers need a range. A descending pair, e.g. ``(255, 0)``,
        inverts the cue.
    nan
        Treatment of values that are not finite: "refuse" them, or count them as "boundary", the top
        of the range (255).
    shape_of
        Name, in messages, of the image that has `shape`.
    progress
        Called after each slab.

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
    given = cues if isinstance(cues, Mapping) else {"boundary": cues}
    if not given:
        raise InvalidInput(
            "`cues` is empty", argument="cues", remedy="pass at least one, e.g. {'boundary': array}"
        )
    if not all(isinstance(name, str) and name for name in given):
        raise InvalidInput(
            f"`cues` must have names for keys, not {list(given)}",
            argument="cues",
            remedy="name them, e.g. {'boundary': array}",
        )
    named = _each_cue(given)
    plain = {n: cue for n, cue in named.items() if not isinstance(cue, OrientedCue)}
    by_name = _ranges_by_name(ranges, tuple(plain))
    shape = tuple(int(n) for n in shape)
    arrays = {name: unwrap(cue, f"cues[{name!r}]") for name, cue in plain.items()}
    for name, cue in named.items():
        try:
            check_same_shape(shape, arrays.get(name, cue), shape_of, f"cues[{name!r}]")
        except InvalidInput as error:
            ways = alternatives(error.remedy)
            channels = PickIndex((0,), len(shape) + 1) in ways
            if not channels or arrays[name].shape[0] < len(shape):
                raise
            remedy = (*ways, ReadAffinities("if its channels are those of offsets"))
            raise InvalidInput(error.problem, argument=error.argument, remedy=remedy) from None
    check_same_spacing({f"cues[{name!r}]": cue for name, cue in given.items()})
    gates = {
        name: ValueGate.of(array.dtype, by_name.get(name), f"cues[{name!r}]", "ranges")
        for name, array in arrays.items()
    }
    sources, planes = _planes(named)
    values = np.empty((len(plain) + len(planes), math.prod(shape)), np.uint8)
    for row, (name, gate) in enumerate(gates.items()):
        total = ValueFaults()
        for start, stop, slab in slabs(arrays[name]):
            total.add(quantise(slab.reshape(-1), gate.limits, values[row, start:stop]), start)
            report(progress, f"reading {name}", stop, values.shape[1])
        gate.refuse(total, shape, nan)
        if gate.declared and values[row].size and np.ptp(values[row]) < _FEW_LEVELS:
            gate.warn_if_narrow(slab for _, _, slab in slabs(arrays[name]))
    for row, plane in enumerate(planes, start=len(plain)):
        values[row] = plane.reshape(-1)
    limits = (gates[n].limits if n in gates else cue.limits for n, cue in named.items())
    return Cues(tuple(named), values, tuple(limits), sources)


def _each_cue(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cues by name, those of affinities one by one; refuse a name that comes twice."""
    named: dict[str, Any] = {}
    for name, cue in given.items():
        group = cue.cues if isinstance(cue, Affinities) else cue
        parts = group if isinstance(group, Mapping) else {"": cue}
        for end, part in parts.items():
            if name + end in named:
                raise InvalidInput(
                    f"`cues` has two cues called {name + end!r}, one of which is a part of "
                    "affinities or of an oriented map",
                    argument="cues",
                    remedy="give one of them another name",
                )
            named[name + end] = part
    return named


def _planes(
    named: Mapping[str, Any],
) -> tuple[tuple[tuple[int, ...], ...], list[NDArray[np.uint8]]]:
    """Return the rows of `Cues.values` of each cue, and the planes of oriented cues, each once."""
    n_plain = sum(not isinstance(cue, OrientedCue) for cue in named.values())
    rows: dict[int, int] = {}  # by the identity of a plane, which several cues may share
    planes: list[NDArray[np.uint8]] = []

    def row_of(plane: NDArray[np.uint8] | None) -> int:
        if plane is None:
            return -1
        if id(plane) not in rows:
            rows[id(plane)] = n_plain + len(planes)
            planes.append(plane)
        return rows[id(plane)]

    sources, row = [], 0
    for cue in named.values():
        if isinstance(cue, OrientedCue):
            sources.append(tuple(row_of(plane) for plane in (cue.pixels, *cue.faces)))
        else:
            sources.append((row,))
            row += 1
    return (tuple(sources), planes) if planes else ((), [])


def cues_of_rows(
    names: Sequence[str],
    rows: NDArray[np.uint8],
    sources: Sequence[Sequence[int]],
    words: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Return cues from rows of bytes, each of the shape of the image; the inverse of `check_cues`.

    `words` has the number of words of each cue of words; theirs are the last rows.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.volumes import cues_of_rows
    >>> cues_of_rows(["boundary"], np.zeros((1, 2, 3), np.uint8), ())["boundary"].shape
    (2, 3)
    """
    out: dict[str, Any] = {}
    for k, name in enumerate(names):
        first, *faces = sources[k] if sources else (k,)
        out[name] = rows[first]
        if faces:
            planes = tuple(rows[at] if at >= 0 else None for at in faces)
            out[name] = OrientedCue(rows[first], planes)
    counts = words or {}
    for k, (name, n_words) in enumerate(counts.items()):
        out[name] = Words(rows[len(rows) - len(counts) + k], n_words)
    return out


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
            remedy=f"remove {', '.join(map(str, unknown))}",
        )
    return {name: check_range(pair, f"ranges[{name!r}]") for name, pair in ranges.items()}
