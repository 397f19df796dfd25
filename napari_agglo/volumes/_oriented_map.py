"""Oriented boundary maps: a plane for each direction of a boundary, read at borders of labels.

Such a map says how likely a boundary in each of several directions is. Once there are superpixels,
it becomes an oriented cue, as affinities are: a face has the value of the direction of its border.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput, PickIndex, SetOption
from napari_agglo.volumes._border_lines import fit_lines, read_faces
from napari_agglo.volumes._named_axes import voxel_size_of
from napari_agglo.volumes._oriented_cue import Bytes, OrientedCue
from napari_agglo.volumes._value_range import ValueFaults, ValueGate, check_nan, quantise
from napari_agglo.volumes._volume import in_memory, unwrap

ORIENTED = "_oriented"  # the end of the name of the cue whose faces read their own direction
_TOLERANCE = 1.2  # pixels: the stairs of a slanted line are less, and a bend is soon more
_OFF = 8  # parts of a half turn: a face reads directions that are one such part off, too
_MOST = 64  # directions


@dataclass(frozen=True, eq=False)
class OrientedMap:
    """A boundary map of a plane with a channel for each direction of the boundary.

    Pass it to `region_graph` among the cues, and to `oversegment`; `oriented_boundary` makes it
    from an image, and `oriented_map` from an array. As the cue "boundary" it is two cues in a
    graph: "boundary", the strongest direction at each pixel, and "boundary_oriented", in which each
    face has the value of the direction of its border.

    Attributes
    ----------
    channels : ndarray of uint8, shape (directions, rows, columns)
        255 is boundary. Channel k is of lines at k half turns over the number of directions,
        counter-clockwise from the direction of a row.
    spacing : tuple of float, optional
        Size of a pixel along each axis.
    limits : (float, float)
        The values that were mapped to 0 and 255.
    unit : str, optional
        Unit of the spacing, if known.
    """

    channels: Bytes
    spacing: tuple[float, ...] | None = None
    limits: tuple[float, float] = (0.0, 1.0)
    unit: str | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of pixels along each axis."""
        return self.channels.shape[1:]

    def boundary_map(self) -> NDArray[np.float32]:
        """Return the strongest direction of each pixel, for a watershed.

        Returns
        -------
        ndarray of float32, shape (rows, columns)
            Values from 0 to 1.
        """
        strongest: NDArray[np.float32] = self.channels.max(axis=0) / np.float32(255)
        return strongest

    def at_borders(self, labels: NDArray[Any]) -> Mapping[str, Any]:
        """Return the cues at the borders of a label image, by the ends of their names.

        Line segments are fitted to the borders, and each face reads the direction of its segment,
        or one at most 22.5 degrees from it if that is stronger, which is about the error of short
        segments: the mean of its two pixels. A face inside a label reads the strongest direction.

        Parameters
        ----------
        labels : array of int, shape (rows, columns)
            The label image.

        Returns
        -------
        dict of str to cue
            The strongest direction, by an empty name, and the direction of each border.
        """
        pixels = self.channels.max(axis=0)
        faces = border_channels(labels, len(self.channels))
        read = self.channels.copy()
        for step in range(1, len(self.channels) // _OFF + 1):
            for way in (step, -step):
                np.maximum(read, np.roll(self.channels, way, axis=0), out=read)
        read_faces(read, pixels, faces)
        oriented = OrientedCue(pixels, (faces[0], faces[1]), self.limits)
        return {"": self.boundary_map(), ORIENTED: oriented}


def border_channels(
    labels: NDArray[Any], n_channels: int, tolerance: float = _TOLERANCE
) -> NDArray[np.uint8]:
    """Return the channel of each face of a plane between two labels, and 255 inside of a label.

    Examples
    --------
    >>> import numpy as np
    >>> border_channels(np.array([[1, 1], [2, 2]]), 8)[0]  # faces across rows
    array([[  0,   0],
           [255, 255]], dtype=uint8)
    """
    faces = np.empty((2, *labels.shape), np.uint8)
    path = np.empty((2 * labels.size + 1, 2), np.int32)
    dense = np.ascontiguousarray(labels, np.uint32)
    fit_lines(dense, float(tolerance), n_channels, path, np.empty_like(path), faces)
    return faces


def oriented_map(
    array: Any,
    *,
    value_range: Sequence[float] | None = None,
    nan: Literal["refuse", "boundary"] = "refuse",
) -> OrientedMap:
    """Read an array with a channel for each direction as an oriented boundary map.

    Parameters
    ----------
    array : array or Volume, shape (directions, rows, columns)
        High on boundaries. Channel k is of lines at k half turns over the number of directions,
        counter-clockwise from the direction of a row: of four, channels 0 to 3 are horizontal,
        rising to the right, vertical and falling. Floats from 0 to 1, or any type with
        `value_range`.
    value_range : (float, float), optional
        The values that mean "no boundary" and "boundary".
    nan : {"refuse", "boundary"}
        Treatment of NaN: refuse it, or count it as boundary.

    Returns
    -------
    OrientedMap

    Examples
    --------
    >>> import numpy as np
    >>> import napari_agglo as agglo
    >>> array = np.zeros((4, 2, 4), np.float32)
    >>> array[2] = 0.8  # vertical lines everywhere
    >>> graph = agglo.region_graph(
    ...     np.array([[1, 1, 2, 2], [3, 3, 2, 2]]), {"boundary": oriented_map(array)}
    ... )
    >>> graph.boundary_mean("boundary"), graph.boundary_mean("boundary_oriented")
    (array([0.8, 0.8, 0.8]), array([0.8, 0. , 0.8]))
    """
    check_nan(nan)
    data = unwrap(array, "array")
    shape = tuple(int(n) for n in data.shape)
    if len(shape) != 3:
        remedy: Any = "stack the directions of a plane along axis 0"
        if len(shape) == 4:
            remedy = PickIndex((1,), 4)
        raise InvalidInput(
            f"`array` must have shape (directions, rows, columns), got {shape}: the directions of "
            "boundaries are those of lines in a plane",
            argument="array",
            remedy=remedy,
        )
    if not 2 <= shape[0] <= _MOST:
        last = 2 <= shape[-1] <= _MOST
        raise InvalidInput(
            f"`array` (shape {shape}) must have 2 to {_MOST} directions along its first axis",
            argument="array",
            remedy="put the directions first: np.moveaxis(array, -1, 0)"
            if last
            else "pass a map without directions as a plain cue",
        )
    gate = ValueGate.of(data.dtype, value_range, "array", "value_range")
    values = in_memory(data, "array")
    channels = np.empty(shape, np.uint8)
    faults = ValueFaults()
    faults.add(quantise(values.reshape(-1), gate.limits, channels.reshape(-1)), 0)
    gate.refuse(faults, shape, nan)
    spacing, unit = voxel_size_of(array)
    return OrientedMap(channels, None if spacing is None else spacing[-2:], gate.limits, unit)


def refuse_directions(labels: NDArray[Any], name: str) -> None:
    """Refuse an oriented map for labels that are not a plane."""
    if labels.ndim != 2:
        raise InvalidInput(
            f"`cues[{name!r}]` has directions of lines in a plane, and `superpixels` have "
            f"{labels.ndim} axes",
            argument="cues",
            remedy=SetOption("superpixels", when="of one plane, or a plain cue or affinities"),
        )
