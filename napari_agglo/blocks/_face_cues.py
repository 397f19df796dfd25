"""Affinities in block-wise runs: channels of a part of a volume, as the cues of the whole.

A face may read a pair of voxels as far away as the longest offset, and the border of the volume is
treated apart. A part is therefore read with a margin of the longest offset and one voxel more, made
into cues, and cropped: its values are, bit for bit, those of `affinities` on the whole array.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.blocks._block_grid import Slices, lengths, local
from napari_agglo.volumes import Affinities, OrientedCue, check_cues
from napari_agglo.volumes._oriented import (
    Offset,
    affinity_gate,
    check_offsets,
    cues_of_channels,
    read_channels,
)
from napari_agglo.volumes._volume import Volume

AFFINITY = "affinity"  # name of the cue, and the beginning of the names of its parts


def offsets_of(volume: Volume, offsets: Sequence[Sequence[int]] | None) -> tuple[Offset, ...]:
    """Return the offset of each channel: those given, those of the file, or the nearest voxels."""
    if offsets is None:
        named = ("neighborhood", "offsets")
        offsets = next((volume.attributes[n] for n in named if n in volume.attributes), None)
    return check_offsets(offsets, volume.shape)


def offsets_as_text(offsets: Sequence[Offset]) -> str:
    """Return offsets as they are kept in a plan.

    >>> offsets_of_text(offsets_as_text([(-1, 0), (0, -1)]))
    ((-1, 0), (0, -1))
    """
    return json.dumps([list(one) for one in offsets])


def offsets_of_text(text: str) -> tuple[Offset, ...]:
    """Return the offsets that a plan keeps."""
    return tuple(tuple(int(n) for n in one) for one in json.loads(text))


def columns_of(
    shape: Sequence[int], offsets: tuple[Offset, ...], plain: Sequence[str]
) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]:
    """Return the names of all cues, those of affinities first, and the planes that each reads."""
    reach = [max(abs(one[axis]) for one in offsets) for axis in range(len(shape))]
    small = [min(n, 2 * far + 2) for n, far in zip(shape, reach, strict=True)]
    channels = cues_of_channels(np.zeros((len(offsets), *small), np.uint8), offsets, (1.0, 0.0))
    cues: dict[str, Any] = {AFFINITY: channels}
    cues |= {name: np.zeros(small, np.uint8) for name in plain}
    checked = check_cues(cues, small, (0, 255))
    return checked.names, checked.sources


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
    assert channels.shape[1:] == lengths(around)
    return cues_of_channels(read_channels(channels, gate, nan), offsets, gate.limits)


def boundary_part(cues: Affinities, outer: Slices, around: Slices) -> NDArray[np.float32]:
    """Return the map for a watershed of a part."""
    return np.ascontiguousarray(cues.boundary_map()[local(outer, around)])


def cropped(cues: Affinities, outer: Slices, around: Slices) -> Affinities:
    """Return the cues of a part without its margin; planes that cues share stay shared."""
    inner = local(outer, around)
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
