"""The dataset of a run: arrays and their placement in the world, without layers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import InvalidInput, SetOption
from napari_agglo.graph import RegionGraph, region_graph
from napari_agglo.superpixels import divide_superpixels, oversegment
from napari_agglo.volumes import (
    Affinities,
    OrientedCue,
    OrientedMap,
    Words,
    affinities,
    convert_all,
    unit_name,
    unwrap,
)
from napari_agglo.volumes._volume import slabs


@dataclass(frozen=True, eq=False)
class AffinityArray:
    """Affinities that are not read yet: an array, channels first, and the offsets of the first."""

    array: Any
    offsets: tuple[tuple[int, ...], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of pixels along each axis."""
        return tuple(int(n) for n in self.array.shape[1:])

    def plane(self, index: tuple[int, ...]) -> AffinityArray:
        """Return the affinities within one plane."""
        n = len(index)
        inside = [k for k, offset in enumerate(self.offsets) if not any(offset[:n])]
        array = np.stack([np.asarray(self.array[(k, *index)]) for k in inside])
        return AffinityArray(array, tuple(self.offsets[k][n:] for k in inside))

    def read(
        self, value_range: Any, nan: Any, progress: ProgressCallback | None = None
    ) -> Affinities:
        """Read the channels that have an offset."""
        part = self.array[: len(self.offsets)]
        return affinities(part, self.offsets, value_range=value_range, nan=nan, progress=progress)


# Cues that need no range of values.
_BYTES_ALREADY = (Affinities, OrientedMap, OrientedCue, Words)
Ranges = dict[str, tuple[float, float]]
_SLACK = 0.01  # rounding beyond 0 and 1, as in `region_graph`


def value_ranges(
    cues: Mapping[str, Any],
    typed: Mapping[str, tuple[float, float]],
    nan: str = "refuse",
    progress: ProgressCallback | None = None,
) -> Ranges:
    """Return the values of each cue that mean 0 and 1.

    A range typed by the user comes first. Otherwise it is 0 to 255 for bytes, 0 to 1 for floats,
    and the range of the values for other whole numbers. Floats beyond 0 and 1 are refused, as only
    the user knows their range.

    Examples
    --------
    >>> cues = {"boundary": np.zeros((2, 2), np.uint8), "depth": np.array([[3, 900]], np.uint16)}
    >>> value_ranges(cues, {})
    {'boundary': (0.0, 255.0), 'depth': (3.0, 900.0)}
    """
    ranges = dict(typed)
    for name, cue in cues.items():
        if name in ranges or isinstance(cue, _BYTES_ALREADY):
            continue
        data = unwrap(cue, name)
        dtype = np.dtype(data.dtype)
        if dtype == np.uint8:
            ranges[name] = (0.0, 255.0)
            continue
        low, high, n_invalid = _finite_range(data, name, progress)
        if n_invalid and nan == "refuse":
            values = "value that is" if n_invalid == 1 else "values that are"
            raise InvalidInput(
                f"The cue “{name}” has {n_invalid:,} {values} NaN or infinite",
                argument=f"cues[{name!r}]",
                remedy=(SetOption("nan", "boundary"), "choose another cue"),
            )
        if dtype.kind == "f" and low >= -_SLACK and high <= 1 + _SLACK:
            low, high = 0.0, 1.0
        elif dtype.kind == "f":
            whole = (float(math.floor(low)), float(math.ceil(high)))
            if low >= 0 and 127 < high <= 255:  # bytes that were converted to floats
                whole = (0.0, 255.0)
            raise InvalidInput(
                f"The cue “{name}” has values from {low:g} to {high:g}, not from 0 to 1",
                argument=f"cues[{name!r}]",
                remedy=SetOption("ranges", whole, name),
            )
        if low == high:
            raise InvalidInput(
                f"The cue “{name}” is {low:g} everywhere, so it has no information",
                argument=f"cues[{name!r}]",
                remedy="choose another cue",
            )
        ranges[name] = (low, high)
    return ranges


def _finite_range(
    data: Any, name: str, progress: ProgressCallback | None
) -> tuple[float, float, int]:
    """Return the lowest and the highest finite value, and the number of values not finite."""
    low, high, n_invalid = math.inf, -math.inf, 0
    size = math.prod(data.shape)
    for _, stop, values in slabs(data):
        least, most = float(values.min()), float(values.max())
        if not math.isfinite(least + most):
            finite = values[np.isfinite(values)]
            n_invalid += values.size - finite.size
            least = float(finite.min(initial=math.inf))
            most = float(finite.max(initial=-math.inf))
        low, high = min(low, least), max(high, most)
        report(progress, f"reading {name}", stop, size)
    return low, high, n_invalid


def length_unit(units: Any) -> str | None:
    """Return the unit of a layer's axes if they share one of length; napari calls none "pixel"."""
    names = {str(one) for one in units or ()}
    return unit_name(names.pop()) if len(names) == 1 else None


_APART = 0.01  # of a pixel, which is no distance


@dataclass(frozen=True)
class Placement:
    """The placement of data in the world, as of a napari layer, with an entry for each axis."""

    scale: tuple[float, ...]
    translate: tuple[float, ...]
    units: tuple[str, ...] | None = None
    axis_labels: tuple[str, ...] | None = None

    @classmethod
    def plain(cls, ndim: int) -> Placement:
        """Return the placement of data whose pixels have size 1."""
        return cls((1.0,) * ndim, (0.0,) * ndim)

    @classmethod
    def of(cls, layer: Any) -> Placement:
        """Return the placement of a layer."""
        return cls(
            tuple(float(one) for one in layer.scale),
            tuple(float(one) for one in layer.translate),
            tuple(str(one) for one in layer.units),
            tuple(str(one) for one in layer.axis_labels),
        )

    def matches(self, other: Placement) -> bool:
        """Return whether data of both lie on top of each other, as napari draws them."""
        if len(self.scale) != len(other.scale):
            return False
        scale, translate = other.scale, other.translate
        unit, others = length_unit(self.units), length_unit(other.units)
        if unit is not None and others is not None:
            scale, translate = (convert_all(one, others, unit) for one in (scale, translate))
        apart = np.abs(np.subtract(self.translate, translate))
        is_near = apart <= _APART * np.abs(self.scale)
        return bool(np.allclose(self.scale, scale, atol=0) and is_near.all())

    def keywords(self) -> dict[str, Any]:
        """Return the keyword arguments of a layer."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def to_world(self, index: Any) -> tuple[float, ...]:
        """Return the position of a pixel in the world."""
        return tuple(
            float(i) * s + t for i, s, t in zip(index, self.scale, self.translate, strict=True)
        )


def identity_of(data: Any) -> Any:
    """Return the identity of the memory of an array: slices of channels are new objects."""
    if isinstance(data, AffinityArray):
        return identity_of(data.array), data.offsets
    if isinstance(data, OrientedMap):
        return identity_of(data.channels)
    if isinstance(data, Words):
        return identity_of(data.words)
    if hasattr(data, "dask"):
        return data.name
    if hasattr(data, "__array_interface__"):
        return (data.__array_interface__["data"][0], data.shape, str(data.dtype))
    return id(data)


@dataclass(frozen=True)
class Dataset:
    """One volume: the arrays and options chosen in the Data step."""

    name: str
    placement: Placement
    cues: dict[str, Any] = field(default_factory=dict)  # by name, the boundary cue first
    ranges: Ranges = field(default_factory=dict)  # the data's own for cues that are not named
    image: Any = None  # for display; not needed to segment
    superpixels: Any = None  # of the user, or computed when they are needed
    gold: Any = None  # 0 is not annotated
    golds: tuple[Any, ...] = ()  # of several people, `gold` among them; training learns from all
    options: Mapping[str, Any] = field(default_factory=dict)  # of `oversegment`; `nan` of the graph
    start: Any = None  # a segmentation of another tool, whose borders no superpixel crosses
    partition: NDArray[np.uint64] | None = None  # the segment of `start` of each superpixel
    # The dataset before superpixels were computed.
    origin: Dataset | None = field(default=None, repr=False, compare=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of all arrays."""
        for one in (self.superpixels, *self.cues.values(), self.gold):
            if one is not None:
                return tuple(int(n) for n in one.shape)
        return ()

    def same_volume(self, other: Dataset) -> bool:
        """Return whether two datasets are of one volume: they share an array."""
        return any(a is b for a in self._arrays() for b in other._arrays())

    def uses(self, array: Any) -> bool:
        """Return whether an array is one of those that the user chose."""
        return any(one is array for one in self._arrays())

    @property
    def key(self) -> Any:
        """The identity of the user's choice: equal for two datasets of the same arrays and options.

        Those that were computed from it have the same.
        """
        origin = self.origin or self
        arrays = (origin.image, origin.superpixels, origin.gold, origin.start, *origin.golds)
        return (
            origin.name, origin.placement, tuple(id(one) for one in arrays),
            tuple((name, identity_of(cue)) for name, cue in origin.cues.items()),
            tuple(origin.ranges.items()), tuple(origin.options.items()),
        )  # fmt: skip

    def _arrays(self) -> list[Any]:
        """Return the user's arrays: not the cues that were read, but their origin."""
        origin = self.origin or self
        arrays = (origin.image, origin.gold, origin.superpixels, *origin.cues.values())
        return [one for one in arrays if one is not None]

    @property
    def training_gold(self) -> Any:
        """The gold labels to learn from: one array, or a list of those of several people."""
        if self.golds:
            return [np.asarray(one) for one in self.golds]
        return None if self.gold is None else np.asarray(self.gold)

    @property
    def nan(self) -> Literal["refuse", "boundary"]:
        """The treatment of NaN and infinite values of a cue."""
        return "boundary" if self.options.get("nan") == "boundary" else "refuse"

    @property
    def spacing(self) -> tuple[float, ...]:
        """The size of a pixel along each axis."""
        return tuple(abs(one) for one in self.placement.scale)

    def oversegmented(self, progress: ProgressCallback | None = None) -> Dataset:
        """Return the dataset with superpixels, computed from its first cue if it has none."""
        if self.superpixels is None:
            self._boundary()
            ready = self._ranged(progress)
            name, cue = ready._boundary()
            superpixels = oversegment(
                cue,
                spacing=self.spacing,
                value_range=ready.ranges.get(name),
                progress=progress,
                **self.options,
            )
            whole = replace(ready, superpixels=superpixels, origin=self)
            return whole.oversegmented(progress)
        if self.start is None or self.partition is not None:
            return self
        pieces, segments = divide_superpixels(
            self.superpixels, self.start, name="start from", progress=progress
        )
        return replace(self, superpixels=pieces, partition=segments, origin=self.origin or self)

    def _ranged(self, progress: ProgressCallback | None) -> Dataset:
        """Return the dataset with the ranges of all cues, and with affinities read."""
        cues, typed = dict(self.cues), dict(self.ranges)
        for name, cue in self.cues.items():
            if isinstance(cue, AffinityArray):
                cues[name] = cue.read(typed.pop(name, None), self.nan, progress)
            elif isinstance(cue, _BYTES_ALREADY):
                typed.pop(name, None)
        return replace(self, cues=cues, ranges=value_ranges(cues, typed, self.nan, progress))

    def graph(self, progress: ProgressCallback | None = None) -> RegionGraph:
        """Return the region graph, computing superpixels if there are none."""
        self._boundary()
        whole = self.oversegmented(progress)._ranged(progress)
        return region_graph(
            whole.superpixels,
            whole.cues,
            spacing=self.spacing,
            unit=length_unit(self.placement.units),
            ranges=whole.ranges,
            nan=whole.nan,
            progress=progress,
        )

    def _boundary(self) -> tuple[str, Any]:
        for name, cue in self.cues.items():
            return name, cue
        raise InvalidInput(
            "There is no boundary cue yet",
            argument="cues",
            remedy="choose one in step 1, Data, or compute one from the image there",
        )
