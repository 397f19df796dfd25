"""The image that a cue is made from: checked, and given slab by slab as channels of floats."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from napari_agglo.errors import InvalidInput
from napari_agglo.superpixels._boundary import slabs
from napari_agglo.superpixels._grid import Array
from napari_agglo.superpixels._slices import Tick


@dataclass(frozen=True)
class Picture:
    """An image and which of its axes is that of colours; voxels may still be on disk."""

    data: Any
    channel_axis: int | None

    @classmethod
    def of(cls, data: Any, channel_axis: int | None) -> Picture:
        """Check the type and the axes; bytes whose last axis has length 3 or 4 are colours."""
        shape = tuple(int(n) for n in data.shape)
        dtype = np.dtype(data.dtype)
        if dtype.kind not in "iuf":
            raise InvalidInput(
                f"`image` must hold integers or floats, not {dtype}; pass the grey values or "
                "colours of the image."
            )
        if channel_axis is not None:
            axis = channel_axis + len(shape) if channel_axis < 0 else channel_axis
            if not 0 <= axis < len(shape):
                raise InvalidInput(
                    f"`channel_axis` must be one of the {len(shape)} axes of `image` (shape "
                    f"{shape}), not {channel_axis}; leave it out if there are no channels."
                )
            channel_axis = axis
        elif len(shape) >= 3 and shape[-1] in (3, 4) and dtype == np.uint8:
            channel_axis = len(shape) - 1
        picture = cls(data, channel_axis)
        if math.prod(shape) == 0 or not any(n > 1 for n in picture.shape):
            raise InvalidInput(
                f"`image` (shape {shape}) must have at least two voxels along some axis; there is "
                "nothing between which a boundary could be."
            )
        return picture

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape without the axis of channels."""
        return tuple(int(n) for a, n in enumerate(self.data.shape) if a != self.channel_axis)

    def slab(self, start: int, stop: int) -> Array:
        """Return planes `start` to `stop` in their own type, as (channel, axis 0, ...)."""
        index = [slice(None)] * len(self.data.shape)
        index[1 if self.channel_axis == 0 else 0] = slice(start, stop)
        values = np.asarray(self.data[tuple(index)])
        if self.channel_axis is None:
            return values[None]
        moved = np.moveaxis(values, self.channel_axis, 0)
        return moved[:3] if len(moved) == 4 else moved  # the fourth is transparency

    def ranges(self, reach: int = 0) -> list[tuple[int, int]]:
        """Return ranges of planes to look at, thick enough that what is beyond them is not more."""
        thick = max(next(slabs(self.shape))[1], 2 * reach)
        length = self.shape[0]
        return [(start, min(start + thick, length)) for start in range(0, length, thick)]

    def around(self, start: int, stop: int, reach: int) -> tuple[int, Array]:
        """Return a range with `reach` planes on either side, and how many there are before it."""
        above = max(0, start - reach)
        return start - above, self.slab(above, min(self.shape[0], stop + reach))

    def limits(self, tick: Tick) -> tuple[float, float]:
        """Return the lowest and the highest value, or refuse values that nothing can be seen in."""
        low, high = math.inf, -math.inf
        for start, stop in self.ranges():
            values = self.slab(start, stop)
            if values.dtype.kind == "f" and not np.isfinite(values).all():
                where = np.argwhere(~np.isfinite(values))[0]
                index = [int(i) for i in where[1:]]
                index[0] += start
                raise InvalidInput(
                    f"`image` has values that are NaN or infinite, the first at index "
                    f"{tuple(index)}; replace them, e.g. by np.nan_to_num(image)."
                )
            low, high = min(low, float(values.min())), max(high, float(values.max()))
            tick("looking the image over", stop, self.shape[0])
        if low == high:
            raise InvalidInput(
                f"`image` is {low:g} everywhere, so it shows no boundary; pass the image that the "
                "objects can be seen in."
            )
        return low, high


def to_channels(values: Array, limits: tuple[float, float], colour: bool) -> Array:
    """Return a slab as float32 in [0, 1], or as L*a*b* if it has three colours and `colour`.

    Without `colour` several channels become one, their luminance or mean.
    """
    low, high = limits
    # in float64, so that a small range far from 0 keeps its differences
    unit = ((values.astype(np.float64) - low) / (high - low)).astype(np.float32)
    if len(unit) == 1:
        return unit
    if len(unit) == 3:
        from skimage import color

        convert = color.rgb2lab if colour else color.rgb2gray
        made: Array = convert(np.moveaxis(unit, 0, -1)).astype(np.float32)
        return np.moveaxis(made, -1, 0) / np.float32(100) if colour else made[None]
    grey: Array = unit.mean(axis=0, keepdims=True)
    return unit if colour else grey
