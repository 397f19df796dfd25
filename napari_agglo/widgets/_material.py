"""What a run works on: arrays and where they lie in the world, never layers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph, region_graph
from napari_agglo.superpixels import oversegment
from napari_agglo.widgets._cue_ranges import Ranges, settled_ranges
from napari_agglo.widgets._starting import divided


@dataclass(frozen=True)
class Placement:
    """Where data lie in the world: new layers get the same, so that all stay on top of each other.

    Attributes
    ----------
    scale, translate : tuple of float
        As of a napari layer, an entry for each axis.
    units : tuple of str, optional
        The unit of each axis.
    axis_labels : tuple of str, optional
        The name of each axis.
    """

    scale: tuple[float, ...]
    translate: tuple[float, ...]
    units: tuple[str, ...] | None = None
    axis_labels: tuple[str, ...] | None = None

    @classmethod
    def plain(cls, ndim: int) -> Placement:
        """Return that of data whose pixels have size 1."""
        return cls((1.0,) * ndim, (0.0,) * ndim)

    @classmethod
    def of(cls, layer: Any) -> Placement:
        """Return that of a layer."""
        return cls(
            tuple(float(one) for one in layer.scale),
            tuple(float(one) for one in layer.translate),
            tuple(str(one) for one in layer.units),
            tuple(str(one) for one in layer.axis_labels),
        )

    def matches(self, other: Placement) -> bool:
        """Return whether data of both lie on top of each other."""
        return (
            len(self.scale) == len(other.scale)
            and np.allclose(self.scale, other.scale)
            and np.allclose(self.translate, other.translate)
        )

    def keywords(self) -> dict[str, Any]:
        """Return what a layer is made with."""
        given: dict[str, Any] = {"scale": self.scale, "translate": self.translate}
        if self.units is not None:
            given["units"] = self.units
        if self.axis_labels is not None:
            given["axis_labels"] = self.axis_labels
        return given

    def to_world(self, index: Any) -> tuple[float, ...]:
        """Return the place of a pixel in the world."""
        return tuple(
            float(i) * s + t for i, s, t in zip(index, self.scale, self.translate, strict=True)
        )


@dataclass(frozen=True)
class Material:
    """One volume: what was chosen in the Data step.

    Attributes
    ----------
    name : str
        What to call it.
    cues : dict of str to array
        Evidence by name, the boundary cue first; empty while there is none.
    ranges : dict of str to (float, float)
        The values of each cue that mean 0 and 1; found in the data for cues that are not named.
    image : array, optional
        What is looked at; not needed to segment.
    superpixels : array of int, optional
        Given by the user, or computed; otherwise computed when they are needed.
    gold : array of int, optional
        The gold standard; 0 is not annotated.
    placement : Placement
        Where it lies.
    per_plane : bool
        Whether superpixels are computed in each plane by itself.
    min_size : int, optional
        Of superpixels that are computed.
    nan : {"refuse", "boundary"}
        What to do with values of a cue that are not numbers.
    start : array of int, optional
        A segmentation of another tool: no superpixel crosses its borders.
    partition : array of int, optional
        The segment of `start` that holds each superpixel, once there are superpixels.
    origin : Material, optional
        What it was before superpixels were computed.
    """

    name: str
    placement: Placement
    cues: dict[str, Any] = field(default_factory=dict)
    ranges: Ranges = field(default_factory=dict)
    image: Any = None
    superpixels: Any = None
    gold: Any = None
    per_plane: bool = False
    min_size: int | None = None
    nan: Literal["refuse", "boundary"] = "refuse"
    start: Any = None
    partition: NDArray[np.uint64] | None = None
    origin: Material | None = field(default=None, repr=False, compare=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that all of it has."""
        for one in (self.superpixels, *self.cues.values(), self.gold):
            if one is not None:
                return tuple(int(n) for n in one.shape)
        return ()

    @property
    def spacing(self) -> tuple[float, ...]:
        """The size of a pixel along each axis."""
        return tuple(abs(one) for one in self.placement.scale)

    def oversegmented(self, progress: ProgressCallback | None = None) -> Material:
        """Return it with superpixels: those that it has, or computed from its first cue."""
        if self.superpixels is None:
            return self._computed(progress).oversegmented(progress)
        if self.start is None or self.partition is not None:
            return self
        pieces, segments = divided(self.superpixels, self.start, progress)
        return replace(self, superpixels=pieces, partition=segments, origin=self.origin or self)

    def _computed(self, progress: ProgressCallback | None) -> Material:
        name, cue = self._boundary()
        ready = self._ranged(progress)
        found = oversegment(
            cue,
            spacing=self.spacing,
            per_plane=self.per_plane,
            min_size=self.min_size,
            value_range=ready.ranges[name],
            nan=self.nan,
            progress=progress,
        )
        return replace(ready, superpixels=found, origin=self)

    def _ranged(self, progress: ProgressCallback | None) -> Material:
        return replace(self, ranges=settled_ranges(self.cues, self.ranges, self.nan, progress))

    def graph(self, progress: ProgressCallback | None = None) -> RegionGraph:
        """Return the region graph; superpixels are computed if there are none."""
        self._boundary()
        whole = self.oversegmented(progress)._ranged(progress)
        return region_graph(
            whole.superpixels,
            whole.cues,
            spacing=self.spacing,
            ranges=whole.ranges,
            nan=whole.nan,
            progress=progress,
        )

    def _boundary(self) -> tuple[str, Any]:
        for name, cue in self.cues.items():
            return name, cue
        raise InvalidInput(
            "There is no boundary cue yet; choose one in step 1, Data, or make one from the image "
            "there."
        )
