"""Images as the pixel classifier reads them: in boxes of float32, with the voxels around them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from napari_agglo.errors import InvalidInput, PickIndex, SetOption
from napari_agglo.pixels._filters import Array
from napari_agglo.superpixels._boundary_cue import Picture, compare_axes
from napari_agglo.volumes import check_spacing, spacing_of, unwrap

THICK = 2.5  # times the size of a pixel: planes that are thicker are filtered one by one
_BLOCKS = {2: (4, 512, 512), 3: (64, 128, 128)}  # voxels of a block, by the axes of the filters


@dataclass(frozen=True)
class Box:
    """Part of a grid of planes, rows and columns."""

    start: tuple[int, ...]
    stop: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of planes, rows and columns."""
        return tuple(b - a for a, b in zip(self.start, self.stop, strict=True))

    @property
    def index(self) -> tuple[slice, ...]:
        """The box as an index of an array with three axes."""
        return tuple(slice(a, b) for a, b in zip(self.start, self.stop, strict=True))


def blocks(grid: Sequence[int], axes: int) -> list[Box]:
    """Divide a grid into blocks, in the order of memory.

    Examples
    --------
    >>> [box.shape for box in blocks((1, 600, 20), 2)]
    [(1, 512, 20), (1, 88, 20)]
    """
    sides = _BLOCKS[axes]
    counts = [math.ceil(n / side) for n, side in zip(grid, sides, strict=True)]
    return [
        Box(
            tuple(k * side for k, side in zip(which, sides, strict=True)),
            tuple(min((k + 1) * side, n) for k, side, n in zip(which, sides, grid, strict=True)),
        )
        for which in np.ndindex(*counts)
    ]


@dataclass(frozen=True)
class PixelImage:
    """An image in two or three dimensions, perhaps with channels, perhaps still on disk.

    A picture has one plane; `ndim` is 2 for it.
    """

    picture: Picture
    spacing: tuple[float, ...]
    ndim: int

    @classmethod
    def of(
        cls,
        image: object,
        spacing: Sequence[float] | None = None,
        channel_axis: int | None = None,
        name: str = "image",
    ) -> PixelImage:
        """Check the type, the axes and the spacing of an image; no voxel is read."""
        try:
            picture = Picture.of(unwrap(image, name), channel_axis)
        except InvalidInput as error:
            if error.argument != "image" or name == "image":
                raise
            raise InvalidInput(
                error.problem.replace("`image`", f"`{name}`"), argument=name, remedy=error.remedy
            ) from error
        shape = picture.shape
        if not 2 <= len(shape) <= 3:
            extra = (SetOption("channel_axis", when="if it has channels"),
                     PickIndex((0,), len(shape)))  # fmt: skip
            raise InvalidInput(
                f"`{name}` must have two or three axes of space, not {len(shape)} (shape "
                f"{tuple(picture.data.shape)})",
                argument=name,
                remedy=extra if len(shape) > 3 else "pass a picture or a volume",
            )
        if spacing is None:
            spacing = spacing_of(image, name)
            if spacing is not None and len(spacing) == len(shape) + 1:
                spacing = tuple(d for a, d in enumerate(spacing) if a != picture.channel_axis)
        spacings = check_spacing(spacing, len(shape))
        return cls(picture, (spacings[0],) * (3 - len(shape)) + spacings, len(shape))

    def warn_of_channels(self, name: str = "image") -> None:
        """Warn of an axis of space that is as short as one of channels."""
        compare_axes(self.picture, name)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape without channels, as the user has it."""
        return self.picture.shape

    @property
    def grid(self) -> tuple[int, ...]:
        """Number of planes, rows and columns."""
        return (1,) * (3 - self.ndim) + self.shape

    @property
    def channels(self) -> int:
        """Number of channels; that of transparency does not count."""
        if self.picture.channel_axis is None:
            return 1
        n = int(self.picture.data.shape[self.picture.channel_axis])
        return 3 if n == 4 else n

    @property
    def is_thick(self) -> bool:
        """Whether the planes are too few or too far apart to be filtered across."""
        planes, rows, columns = self.spacing
        return self.grid[0] == 1 or planes > THICK * max(rows, columns)

    def read(self, box: Box, reach: Sequence[int]) -> Array:
        """Return (channel, planes, rows, columns) of a box and its surroundings as float32.

        Beyond the border of the image its outermost voxels are repeated.
        """
        index: list[slice] = []
        pads: list[tuple[int, int]] = []
        for start, stop, margin, n in zip(box.start, box.stop, reach, self.grid, strict=True):
            low, high = max(0, start - margin), min(n, stop + margin)
            index.append(slice(low, high))
            pads.append((margin - (start - low), margin - (high - stop)))
        values = self._values(index)
        if not np.isfinite(values).all():
            first = np.argwhere(~np.isfinite(values))[0, 1:] + [part.start for part in index]
            raise InvalidInput(
                "`image` has values that are NaN or infinite, the first at index "
                f"{tuple(int(n) for n in first[3 - self.ndim :])}",
                argument="image",
                remedy="replace them by numbers",
            )
        return np.pad(values, [(0, 0), *pads], mode="edge")

    def is_empty(self, plane: int) -> bool:
        """Return whether all voxels of a plane have one value."""
        values = self._values((slice(plane, plane + 1), slice(None), slice(None)))
        first = values[:, :1, :1, :1]
        return bool((values == first).all())

    def _values(self, index: Sequence[slice]) -> Array:
        axis = self.picture.channel_axis
        where: list[Any] = list(index[3 - self.ndim :])
        if axis is not None:
            where.insert(axis, slice(None))
        part = np.asarray(self.picture.data[tuple(where)])
        part = part[None] if axis is None else np.moveaxis(part, axis, 0)[: self.channels]
        with np.errstate(over="ignore"):  # too large for float32: infinite, and refused
            values = part.astype(np.float32)
        return values[:, None] if self.ndim == 2 else values


def lines_of(box: Box, size: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows of a box, counted over its planes, of about `size` voxels each."""
    planes, rows, columns = box.shape
    step = max(1, size // columns)
    for first in range(0, planes * rows, step):
        yield first, min(first + step, planes * rows)
