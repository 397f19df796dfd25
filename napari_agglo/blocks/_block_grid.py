"""Grid of blocks: their places in a volume, their neighbours, and the groups of a reduction."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from napari_agglo.errors import InvalidInput, SetOption, is_whole

Slices = tuple[slice, ...]


@dataclass(frozen=True)
class Grid:
    """A volume cut into blocks; those at the upper end of an axis may be smaller.

    Blocks are numbered in C order. A block *owns* its voxels, and every face between one of them
    and the next voxel along an axis.

    Attributes
    ----------
    shape : tuple of int
        Voxels of the volume along each axis.
    block : tuple of int
        Voxels of a block along each axis.

    Examples
    --------
    >>> grid = Grid((5, 4), (2, 4))
    >>> grid.n_blocks, grid.slices(2)
    (3, (slice(4, 5, None), slice(0, 4, None)))
    """

    shape: tuple[int, ...]
    block: tuple[int, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of blocks along each axis."""
        return tuple(-(-n // b) for n, b in zip(self.shape, self.block, strict=True))

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return math.prod(self.counts)

    def place(self, index: int) -> tuple[int, ...]:
        """Return the place of a block in the grid."""
        out = []
        for count in reversed(self.counts):
            index, at = divmod(index, count)
            out.append(at)
        return tuple(reversed(out))

    def index(self, place: Sequence[int]) -> int:
        """Return the number of the block at a place."""
        out = 0
        for at, count in zip(place, self.counts, strict=True):
            out = out * count + at
        return out

    def slices(self, index: int) -> Slices:
        """Return the voxels that a block owns."""
        return tuple(
            slice(at * b, min((at + 1) * b, n))
            for at, b, n in zip(self.place(index), self.block, self.shape, strict=True)
        )

    def padded(self, index: int, below: Sequence[int], above: Sequence[int]) -> Slices:
        """Return the voxels of a block with a margin on its lower and upper sides."""
        return tuple(
            slice(max(0, s.start - low), min(n, s.stop + high))
            for s, low, high, n in zip(self.slices(index), below, above, self.shape, strict=True)
        )

    def neighbour(self, index: int, axis: int) -> int | None:
        """Return the next block along an axis, if there is one."""
        place = list(self.place(index))
        place[axis] += 1
        return self.index(place) if place[axis] < self.counts[axis] else None

    def voxels(self, index: int) -> int:
        """Return the number of voxels that a block owns."""
        return math.prod(s.stop - s.start for s in self.slices(index))

    def group(self, index: int) -> tuple[int, ...]:
        """Return the blocks that a block of `coarser` holds: 8 to 16 where there are as many."""
        factors = self._factors()
        sides = (
            range(at * f, min((at + 1) * f, count))
            for at, f, count in zip(self.coarser().place(index), factors, self.counts, strict=True)
        )
        return tuple(self.index(place) for place in itertools.product(*sides))

    def coarser(self) -> Grid:
        """Return the grid whose blocks are the groups of this one."""
        factors = self._factors()
        return Grid(self.shape, tuple(b * f for b, f in zip(self.block, factors, strict=True)))

    def _factors(self) -> tuple[int, ...]:
        several = sum(count > 1 for count in self.counts)
        side = {1: 8, 2: 4}.get(several, 2)
        return tuple(min(side, count) for count in self.counts)


def local(inner: Slices, outer: Slices) -> Slices:
    """Return `inner` relative to the beginning of `outer`.

    Examples
    --------
    >>> local((slice(4, 6),), (slice(3, 9),))
    (slice(1, 3, None),)
    """
    return tuple(
        slice(a.start - b.start, a.stop - b.start) for a, b in zip(inner, outer, strict=True)
    )


def lengths(slices: Slices) -> tuple[int, ...]:
    """Return the shape of a part of an array."""
    return tuple(s.stop - s.start for s in slices)


def check_sides(name: str, sides: object, shape: Sequence[int]) -> tuple[int, ...]:
    """Return a number of voxels for each axis; one number holds for all of them."""
    given = (sides,) * len(shape) if is_whole(sides) else sides
    if (
        not isinstance(given, Sequence)
        or len(given) != len(shape)
        or not all(is_whole(side) and side >= 1 for side in given)
    ):
        raise InvalidInput(
            f"`{name}` must be a whole number of 1 or more for each of {len(shape)} axes, got "
            f"{sides!r}",
            argument=name,
            remedy=SetOption(name, tuple(min(256, n) for n in shape)),
        )
    return tuple(min(int(side), max(int(n), 1)) for side, n in zip(given, shape, strict=True))


def chunk_sides(block: Sequence[int], most: int = 128) -> tuple[int, ...]:
    """Return the largest divisor of each side that is at most `most`, or the side if it is small.

    A chunk then never belongs to two blocks, and no two tasks write one file. Of a side that is
    even and longer, half is divided: blocks then hold whole chunks of a level of half the size.

    Examples
    --------
    >>> chunk_sides((256, 192, 131))
    (128, 96, 131)
    >>> chunk_sides((288, 352, 64))
    (72, 88, 64)
    """
    out = []
    for side in block:
        divided = side // 2 if side % 2 == 0 and side > most else side
        divisor = next(d for d in range(min(most, divided), 0, -1) if divided % d == 0)
        out.append(divisor if 2 * divisor >= min(most, side) // 2 else side)
    return tuple(out)


def reduction_grids(grid: Grid) -> list[Grid]:
    """Return the grids of a tree reduction, from the blocks to the last with up to 16 groups."""
    grids = [grid]
    while grids[-1].n_blocks > 16:
        grids.append(grids[-1].coarser())
    return grids


def reduced_tasks(grid: Grid, level: int, index: int) -> list[tuple[str, int]]:
    """Return the tasks whose tables a task of a level of the reduction adds."""
    before = "statistics" if level == 1 else f"reduce-{level - 1}"
    return [(before, block) for block in reduction_grids(grid)[level - 1].group(index)]
