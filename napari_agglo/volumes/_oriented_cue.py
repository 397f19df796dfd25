"""Oriented cues, with a value for each face between two voxels; affinities as such cues.

A plain cue has a value for each voxel, and a face between two voxels reads both of them. An
oriented cue has a channel for each direction, and a face reads the channel of its own axis.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from napari_agglo._data_warnings import warn_caller
from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import DataWarning, InvalidInput, SetOption, check_choice, is_whole
from napari_agglo.volumes._named_axes import voxel_size_of
from napari_agglo.volumes._units import UNKNOWN, VoxelSize
from napari_agglo.volumes._value_range import ValueFaults, ValueGate, check_nan, quantise
from napari_agglo.volumes._volume import Volume, native, require_memory, unwrap

Bytes = NDArray[np.uint8]
Offset = tuple[int, ...]
# Attributes of Zarr and HDF5 arrays that have the offsets, by the tools that write them.
_ATTRIBUTES = ("neighborhood", "offsets")
_SLAB_BYTES = 64 * 2**20


@dataclass(frozen=True, eq=False)
class OrientedCue:
    """A cue with a value for each face between two voxels, as bytes: 255 is boundary.

    Attributes
    ----------
    pixels : ndarray of uint8
        A value for each voxel, for the statistics of regions.
    faces : tuple of ndarray of uint8, or None
        For each axis, the value of the face between a voxel and the next one along that axis; None
        if the cue has no value there, so that such faces do not count.
    limits : (float, float)
        The values that were mapped to 0 and 255.

    Examples
    --------
    >>> import numpy as np
    >>> OrientedCue(np.uint8([0, 9]), (np.uint8([9, 9]),)).shape
    (2,)
    """

    pixels: Bytes
    faces: tuple[Bytes | None, ...]
    limits: tuple[float, float] = (0.0, 1.0)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of voxels along each axis."""
        return self.pixels.shape


@dataclass(frozen=True, eq=False)
class Affinities:
    """Affinities as cues: those of all nearest voxels, and further ones by the ends of their names.

    Pass it to `region_graph` among the cues, and to `oversegment`; `affinities` makes it.

    Attributes
    ----------
    cues : dict of str to OrientedCue
        By what follows the name in the graph: nothing for the nearest voxels along all axes.
    offsets : tuple of tuple of int
        The offset of each channel.
    spacing : tuple of float, optional
        That of the Volume.
    far : tuple of (offset, ndarray of uint8)
        The channels of longer offsets as they are: at a voxel, the value of it and of the voxel at
        the offset.
    unit : str, optional
        Unit of the spacing, if known.
    """

    cues: Mapping[str, OrientedCue]
    offsets: tuple[Offset, ...]
    spacing: tuple[float, ...] | None = None
    far: tuple[tuple[Offset, Bytes], ...] = ()
    unit: str | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of voxels along each axis."""
        return self.cues[""].shape

    def boundary_map(self) -> NDArray[np.float32]:
        """Return 1 minus the mean affinity of the faces of each voxel, for a watershed.

        Returns
        -------
        ndarray of float32
            Values from 0 to 1, in the shape of the volume.
        """
        sums, n = _face_sums(self.cues[""].faces, self.shape)
        return sums.astype(np.float32) / np.float32(255 * max(n, 1))


def affinities(
    array: Any,
    offsets: Sequence[Sequence[int]] | None = None,
    *,
    value_range: Sequence[float] | None = None,
    separate: Literal["nearest", "all", "none"] = "nearest",
    nan: Literal["refuse", "boundary"] = "refuse",
    progress: ProgressCallback | None = None,
) -> Affinities:
    """Read affinities, the output of networks that say which voxels are of one object, as cues.

    Channel k has, at each voxel, the affinity of the voxel and of the one at ``offsets[k]`` from
    it: high in one object. In a graph, a boundary is the mean of 1 minus the affinity over its
    faces, each of which reads the channel of its own axis.

    Parameters
    ----------
    array : array or Volume, shape (channels, plane, row, column), or of more or fewer axes
        Floats from 0 to 1, or bytes. It may be on disk: it is read in slabs.
    offsets : sequence of sequence of int, optional
        An offset for each channel. By default those in the attribute ``neighborhood`` or
        ``offsets`` of a Zarr or HDF5 array; otherwise, for as many channels as axes, the nearest
        voxels: ``[-1, 0, 0], [0, -1, 0], [0, 0, -1]``.
    value_range : (float, float), optional
        The values that mean "no boundary" and "boundary": ``(1, 0)`` by default, or ``(255, 0)``
        for bytes. Ascending for a network that predicts 1 minus the affinity.
    separate : {"nearest", "all", "none"}
        Offsets that have statistics of their own besides those of all nearest ones together; the
        statistics are those of the faces across the axis of the offset.
    nan : {"refuse", "boundary"}
        Treatment of NaN: refuse it, or count it as boundary.
    progress : callable, optional
        Called after each slab.

    Returns
    -------
    Affinities

    Warns
    -----
    DataWarning
        If most affinities are low, as of a map that is high on boundaries.

    Notes
    -----
    In a graph, the cue "affinity" has the nearest offsets. "affinity_z", "affinity_y" and
    "affinity_x" have one each. "affinity_long" has all longer ones together: a face reads their
    mean over the offsets along its axis, each of the pair of voxels that the face is in the middle
    of. With ``separate="all"``, these have cues of their own too: "affinity_y9" is that of the
    offset ``[0, -9, 0]``.

    Examples
    --------
    >>> import numpy as np
    >>> import napari_agglo as agglo
    >>> array = np.ones((2, 2, 4))
    >>> array[1, :, 2] = 0.2  # the third column is another object than the second
    >>> graph = agglo.region_graph(np.array([[1, 1, 2, 2]] * 2), {"affinity": affinities(array)})
    >>> graph.cue_names
    ('affinity', 'affinity_y', 'affinity_x')
    >>> graph.boundary_mean("affinity")
    array([0.8])
    """
    check_choice("separate", separate, ("nearest", "all", "none"))
    check_nan(nan)
    data = unwrap(array, "affinities")
    shape = tuple(int(n) for n in data.shape)
    if offsets is None and isinstance(array, Volume):
        names = [name for name in _ATTRIBUTES if name in array.attributes]
        offsets = array.attributes[names[0]] if names else None
    known = check_offsets(offsets, shape)
    gate = affinity_gate(data.dtype, value_range)
    values = read_channels(data, gate, nan, progress)
    if values.size and values[: len(shape) - 1].mean() > 127.5:
        warning = DataWarning(
            "Most affinities are low, as if they were high on boundaries",
            argument="affinities",
            remedy=SetOption("value_range", gate.limits[::-1], when="if they are"),
        )
        warn_caller(warning)
    spacing, unit = voxel_size_of(array, "affinities")
    spacing = None if spacing is None else spacing[1 - len(shape) :]
    return cues_of_channels(values, known, gate.limits, separate, VoxelSize(spacing, unit))


def affinity_gate(dtype: Any, value_range: Sequence[float] | None) -> ValueGate:
    """Return the check of the values of affinities, which are high in one object by default."""
    if value_range is None and np.dtype(dtype).str[1:] in ("u1", "f2", "f4", "f8"):
        value_range = (255, 0) if np.dtype(dtype) == np.uint8 else (1, 0)
    return ValueGate.of(dtype, value_range, "affinities", "value_range")


def cues_of_channels(
    values: Bytes,
    offsets: tuple[Offset, ...],
    limits: tuple[float, float],
    separate: str = "nearest",
    voxel: VoxelSize = UNKNOWN,
) -> Affinities:
    """Return the cues of channels of bytes, 255 for boundary, as `affinities` does."""
    nearest = [k for k, offset in enumerate(offsets) if sum(map(abs, offset)) == 1]
    longer = [k for k in range(len(offsets)) if k not in nearest]
    groups = {"": nearest}
    alone = {"nearest": nearest, "all": range(len(offsets)), "none": []}[separate]
    groups |= {f"_{_offset_name(offsets[k])}": [k] for k in alone}
    if longer:
        groups["_long"] = longer
    cache: dict[tuple[int, int], Bytes | None] = {}
    cues = {end: _cue(values, offsets, group, limits, cache) for end, group in groups.items()}
    far = tuple((offsets[k], values[k]) for k in longer)
    return Affinities(cues, offsets, voxel.spacing, far, voxel.unit)


def check_offsets(offsets: Any, shape: tuple[int, ...]) -> tuple[Offset, ...]:
    """Return the offset of each channel, the nearest voxels if none are given; refuse others."""
    ndim = len(shape) - 1
    if ndim < 1:
        raise InvalidInput(
            f"`affinities` (shape {shape}) must have an axis of channels and one or more of space",
            argument="affinities",
            remedy="pass the whole array, channels first",
        )
    n_channels = shape[0] if offsets is None else len(offsets)
    if shape[0] != n_channels or (offsets is None and n_channels != ndim):
        last = shape[-1] == (ndim if offsets is None else n_channels)
        raise InvalidInput(
            f"`affinities` (shape {shape}) has {shape[0]} channels along its first axis and "
            f"{'no' if offsets is None else n_channels} offsets",
            argument="affinities",
            remedy="put the channels first: np.moveaxis(array, -1, 0)"
            if last
            else SetOption("offsets", when="one for each channel"),
        )
    if offsets is None:
        return tuple(tuple(-int(a == k) for a in range(ndim)) for k in range(ndim))
    out = []
    for offset in offsets:
        numbers = tuple(np.atleast_1d(offset).tolist())
        whole = [int(n) for n in numbers if is_whole(n) or (isinstance(n, float) and n == int(n))]
        if len(numbers) != ndim or len(whole) != ndim or not any(whole):
            raise InvalidInput(
                f"`offsets` must be {ndim} whole numbers each, not all 0, got {offset!r}",
                argument="offsets",
                remedy=SetOption("offsets", tuple(-int(a == ndim - 1) for a in range(ndim))),
            )
        out.append(tuple(whole))
    if not any(sum(map(abs, offset)) == 1 for offset in out):
        raise InvalidInput(
            f"`offsets` has no nearest voxels, such as {[0] * (ndim - 1) + [-1]}, which are needed "
            "where regions touch",
            argument="offsets",
            remedy="pass the channels of the nearest voxels too",
        )
    return tuple(out)


def read_offsets(text: str) -> list[list[int]]:
    """Read offsets as JSON, ``[[-1,0,0],[0,-1,0]]``, with or without the outer brackets.

    Examples
    --------
    >>> read_offsets("[[-1, 0], [0, -1]]") == read_offsets("[-1,0], [0,-1]")
    True
    """
    try:
        value = json.loads(text if text.replace(" ", "").startswith("[[") else f"[{text}]")
    except ValueError:
        value = None
    if not (isinstance(value, list) and value and all(isinstance(one, list) for one in value)):
        raise InvalidInput(
            f"{text!r} is not a list of offsets",
            argument="offsets",
            remedy="write a list for each channel, such as [[-1,0,0],[0,-1,0],[0,0,-1]]",
        )
    return value


def _offset_name(offset: Offset) -> str:
    """Return the name of an offset, in either direction.

    >>> _offset_name((0, -1, 0)), _offset_name((0, -9, 4)), _offset_name((0, 0, 0, -2))
    ('y', 'y9x-4', '3-2')
    """
    letters = "zyx"[-len(offset) :] if len(offset) <= 3 else [f"{a}-" for a in range(len(offset))]
    forward = _forward(offset)
    parts = [(letter, n) for letter, n in zip(letters, forward, strict=True) if n]
    return "".join(letter + ("" if n == 1 and len(parts) == 1 else str(n)) for letter, n in parts)


def _forward(offset: Offset) -> Offset:
    """Return the offset with its first component that is not 0 positive."""
    sign = next(1 if n > 0 else -1 for n in offset if n)
    return tuple(sign * n for n in offset)


def read_channels(
    data: Any, gate: ValueGate, nan: str, progress: ProgressCallback | None = None
) -> Bytes:
    """Return all channels as bytes, 255 for boundary, read in slabs of all channels."""
    shape = tuple(int(n) for n in data.shape)
    require_memory(data, "affinities")
    out = np.empty(shape, np.uint8)
    plane = math.prod(shape[2:]) * shape[0] * np.dtype(data.dtype).itemsize
    step = max(1, _SLAB_BYTES // max(plane, 1))
    for start in range(0, shape[1], step):
        stop = min(start + step, shape[1])
        slab = native(np.asarray(data[:, start:stop]))
        faults = ValueFaults()
        part = np.empty(slab[0].size, np.uint8)
        for k, channel in enumerate(slab):
            faults.add(quantise(channel.reshape(-1), gate.limits, part), k * channel.size)
            out[k, start:stop] = part.reshape(channel.shape)
        gate.refuse(faults, slab.shape, nan)
        report(progress, "reading affinities", stop, shape[1])
    return out


def _cue(
    values: Bytes,
    offsets: tuple[Offset, ...],
    group: Sequence[int],
    limits: tuple[float, float],
    cache: dict[tuple[int, int], Bytes | None],
) -> OrientedCue:
    """Return the channels of a group as one cue: a face reads the mean of those along its axis."""
    shape = values.shape[1:]
    faces: list[Bytes | None] = []
    for axis in range(len(shape)):
        planes: list[Bytes] = []
        for k in group:
            if offsets[k][axis]:
                if (k, axis) not in cache:
                    cache[k, axis] = _at_faces(values[k], offsets[k], axis)
                if (plane := cache[k, axis]) is not None:
                    planes.append(plane)
        if len(planes) > 1:
            total: Any = np.sum(planes, axis=0, dtype=np.uint32)
            planes = [((2 * total + len(planes)) // (2 * len(planes))).astype(np.uint8)]
        faces.append(planes[0] if planes else None)
    used = [plane for plane in faces if plane is not None]
    if len(used) == 1:  # no further plane: a voxel has the value of its upper face
        return OrientedCue(used[0], tuple(faces), limits)
    sums, n = _face_sums(faces, shape)
    pixels = ((2 * sums.astype(np.uint32) + n) // max(2 * n, 1)).astype(np.uint8)
    return OrientedCue(pixels, tuple(faces), limits)


def _at_faces(channel: Bytes, offset: Offset, axis: int) -> Bytes | None:
    """Return a channel at the faces across `axis`: the pair in whose middle each face is.

    At the border of the volume, where that pair would reach out, it is the nearest pair inside;
    None if there is no pair at all, unless there are no such faces either.
    """
    if channel.shape[axis] == 1 and sum(map(abs, offset)) == 1:
        return np.zeros_like(channel)
    forward = _forward(offset)
    for a, n in enumerate(forward):
        size = channel.shape[a]
        # the first voxel of the pair lies in low..high; its value is stored at either end
        low, high = max(0, -n), size - 1 - max(0, n)
        if high < low:
            return None
        first = np.clip(np.arange(size) - (n - (a == axis)) // 2, low, high)
        index = first if offset == forward else first + n
        if not np.array_equal(index, np.arange(size)):
            channel = np.take(channel, index, axis=a)
    return channel


def _face_sums(
    faces: Sequence[Bytes | None], shape: tuple[int, ...]
) -> tuple[NDArray[np.uint16], int]:
    """Return the sum over the two faces of each voxel along each axis, and their number.

    A voxel on the border of the volume counts its only face along that axis twice.
    """
    sums, n = np.zeros(shape, np.uint16), 0
    for axis, plane in enumerate(faces):
        if plane is not None and shape[axis] > 1:
            at = np.arange(shape[axis])
            sums += np.take(plane, np.minimum(at, at[-2]), axis=axis)
            sums += np.take(plane, np.maximum(at - 1, 0), axis=axis)
            n += 2
    return sums, n
