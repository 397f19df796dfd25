"""Cues of faces on disk: channels of affinities in a part of a volume, as the cues of the whole.

A face may read a pair of voxels as far away as the longest offset, and the border of the volume is
treated apart. A part is therefore read with a margin of the longest offset and one voxel more, made
into cues, and cropped: its values are, bit for bit, those of `affinities` on the whole array. In
its own file: block-wise runs read blocks by it, and sessions the boxes of superpixels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.volumes._cues import check_cues
from napari_agglo.volumes._oriented_cue import (
    Affinities,
    Offset,
    OrientedCue,
    affinity_gate,
    cues_of_channels,
    read_channels,
)

Slices = tuple[slice, ...]


def margin(outer: Slices, offsets: tuple[Offset, ...], whole: Sequence[int]) -> Slices:
    """Return a part of the volume with the voxels around that its faces read."""
    reach = [1 + max(abs(one[axis]) for one in offsets) for axis in range(len(outer))]
    return tuple(
        slice(max(0, s.start - far), min(n, s.stop + far))
        for s, far, n in zip(outer, reach, whole, strict=True)
    )


def part_of_channels(
    channels: NDArray[Any],
    around: Slices,
    offsets: tuple[Offset, ...],
    value_range: tuple[float, float] | None,
    nan: str,
) -> Affinities:
    """Return the cues of channels that were read with their margin, not yet cropped."""
    gate = affinity_gate(channels.dtype, value_range)
    assert channels.shape[1:] == tuple(s.stop - s.start for s in around)
    return cues_of_channels(read_channels(channels, gate, nan), offsets, gate.limits)


def boundary_part(cues: Affinities, outer: Slices, around: Slices) -> NDArray[np.float32]:
    """Return the map for a watershed of a part."""
    return np.ascontiguousarray(cues.boundary_map()[_local(outer, around)])


def cropped(cues: Affinities, outer: Slices, around: Slices) -> Affinities:
    """Return the cues of a part without its margin; planes that cues share stay shared."""
    inner = _local(outer, around)
    cropped_planes: dict[int, NDArray[np.uint8]] = {}

    def crop(plane: NDArray[np.uint8]) -> NDArray[np.uint8]:
        if id(plane) not in cropped_planes:
            cropped_planes[id(plane)] = np.ascontiguousarray(plane[inner])
        return cropped_planes[id(plane)]

    named: Mapping[str, OrientedCue] = {
        end: OrientedCue(
            crop(cue.pixels),
            tuple(None if plane is None else crop(plane) for plane in cue.faces),
            cue.limits,
        )
        for end, cue in cues.cues.items()
    }
    return Affinities(named, cues.offsets)


def _local(inner: Slices, outer: Slices) -> Slices:
    """Return `inner` relative to the beginning of `outer`."""
    return tuple(
        slice(a.start - b.start, a.stop - b.start) for a, b in zip(inner, outer, strict=True)
    )


class DiskFaces:
    """The planes of affinities on disk: bytes of a box are made of its channels when asked for.

    Parameters
    ----------
    source : callable
        A function that opens the channels; it is called on first use.
    offsets : sequence of tuple of int
        The offset of each channel.
    limits : (low, high)
        The values that mean 0 and 255.
    shape : tuple of int
        The shape of the volume, without channels.
    n_planes : int
        Planes of the cues of all faces, as a graph has them.
    path : str
        The file of the channels, for a session to refer to.

    Examples
    --------
    >>> channels = np.array([[[0.5, 0.9, 0.2]], [[0.5, 0.9, 0.2]]])
    >>> faces = DiskFaces(lambda: channels, ((-1, 0), (0, -1)), (1.0, 0.0), (1, 3), 3)
    >>> faces.read((slice(0, 1), slice(1, 2))).shape
    (3, 1, 1)
    """

    def __init__(
        self,
        source: Callable[[], Any],
        offsets: Sequence[Offset],
        limits: tuple[float, float],
        shape: tuple[int, ...],
        n_planes: int,
        path: str = "",
    ) -> None:
        self.offsets, self.limits, self.path = tuple(offsets), limits, path
        self.n_planes = n_planes
        self._source, self._shape = source, shape
        self._opened: Any = None

    def read(self, box: Slices) -> NDArray[np.uint8]:
        """Return all planes in a box, in the order of the planes of a graph."""
        if self._opened is None:
            data = self._source()
            expected = (len(self.offsets), *self._shape)
            if tuple(int(n) for n in data.shape) != expected:
                raise InvalidInput(
                    f"The affinities have the shape {tuple(data.shape)}, and those that the graph "
                    f"was made of {expected}",
                    argument="cues",
                    remedy="name the file that the graph was made of",
                )
            self._opened = data
        around = margin(box, self.offsets, self._shape)
        channels = np.ascontiguousarray(self._opened[(slice(None), *around)])
        cues = part_of_channels(channels, around, self.offsets, self.limits, "boundary")
        sides = tuple(s.stop - s.start for s in box)
        planes = check_cues({"affinity": cropped(cues, box, around)}, sides).values
        return planes.reshape(self.n_planes, *sides)
