"""Boundary cue from a bare image, for users without a probability map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal, get_args

import numpy as np

from napari_agglo._data_warnings import warn_caller
from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import (
    DataWarning,
    InvalidInput,
    PickIndex,
    SetOption,
    check_choice,
    is_number,
)
from napari_agglo.superpixels._flood_queue import Array, Tick
from napari_agglo.superpixels._oversegment import slabs
from napari_agglo.superpixels._ridges import Filter, robust_top
from napari_agglo.volumes import check_spacing, require_memory, spacing_of, unwrap


@dataclass(frozen=True)
class Picture:
    """Image with its axis of colours, read slab by slab; voxels may still be on disk."""

    data: Any
    channel_axis: int | None

    @classmethod
    def of(cls, data: Any, channel_axis: int | None) -> Picture:
        """Check the type and the axes; bytes whose last axis has length 3 or 4 are colours."""
        shape = tuple(int(n) for n in data.shape)
        dtype = np.dtype(data.dtype)
        if dtype.kind not in "iuf":
            raise InvalidInput(
                f"`image` must hold integers or floats, not {dtype}",
                argument="image",
                remedy="use the grey values or colours of the image",
            )
        if channel_axis is not None:
            axis = channel_axis + len(shape) if channel_axis < 0 else channel_axis
            if not 0 <= axis < len(shape):
                raise InvalidInput(
                    f"`channel_axis` must be one of the {len(shape)} axes of `image` (shape "
                    f"{shape}), not {channel_axis}",
                    argument="channel_axis",
                    remedy="leave it out if there are no channels",
                )
            channel_axis = axis
        elif len(shape) >= 3 and shape[-1] in (3, 4) and dtype == np.uint8:
            channel_axis = len(shape) - 1
        picture = cls(data, channel_axis)
        if math.prod(shape) == 0 or not any(n > 1 for n in picture.shape):
            raise InvalidInput(
                f"`image` (shape {shape}) must have at least two voxels along some axis",
                argument="image",
                remedy="use a larger crop",
            )
        return picture

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape without the axis of channels."""
        return tuple(int(n) for a, n in enumerate(self.data.shape) if a != self.channel_axis)

    def require_plane(self, reason: str, *remedies: str) -> None:
        """Refuse an image with more or fewer than two axes of space."""
        shape = tuple(int(n) for n in self.data.shape)
        if len(self.shape) == 2:
            return
        short = [axis for axis in (0, len(shape) - 1) if 2 <= shape[axis] <= _CHANNELS]
        channels = [SetOption("channel_axis", axis, when=_IF_CHANNELS) for axis in short]
        raise InvalidInput(
            f"`image` (shape {shape}) must be a plane, {reason}",
            argument="image",
            remedy=(
                *(channels if len(shape) == 3 and self.channel_axis is None else ()),
                PickIndex((0,), len(shape)),
                *remedies,
            ),
        )

    def slab(self, start: int, stop: int) -> Array:
        """Return planes `start` to `stop` in their own type, as (channel, axis 0, ...)."""
        index = [slice(None)] * len(self.data.shape)
        index[1 if self.channel_axis == 0 else 0] = slice(start, stop)
        values = np.asarray(self.data[tuple(index)])
        if self.channel_axis is None:
            return values[None]
        moved = np.moveaxis(values, self.channel_axis, 0)
        return moved[:3] if len(moved) == 4 else moved  # the fourth channel is transparency

    def ranges(self, reach: int = 0) -> list[tuple[int, int]]:
        """Return ranges of planes, each at least as thick as the `reach` on both sides of it."""
        thick = max(next(slabs(self.shape))[1], 2 * reach)
        length = self.shape[0]
        return [(start, min(start + thick, length)) for start in range(0, length, thick)]

    def around(self, start: int, stop: int, reach: int) -> tuple[int, Array]:
        """Return the number of planes before a range, and the range with its surroundings."""
        above = max(0, start - reach)
        return start - above, self.slab(above, min(self.shape[0], stop + reach))

    def limits(self, tick: Tick) -> tuple[float, float]:
        """Return the lowest and the highest value; refuse NaN and constant images."""
        low, high = math.inf, -math.inf
        for start, stop in self.ranges():
            values = self.slab(start, stop)
            if values.dtype.kind == "f" and not np.isfinite(values).all():
                index = np.argwhere(~np.isfinite(values))[0, 1:].tolist()
                index[0] += start
                raise InvalidInput(
                    "`image` has values that are NaN or infinite, the first at index "
                    f"{tuple(index)}",
                    argument="image",
                    remedy="replace them by numbers",
                )
            low, high = min(low, float(values.min())), max(high, float(values.max()))
            tick("checking the image", stop, self.shape[0])
        if low == high:
            raise InvalidInput(
                f"`image` is {low:g} everywhere, so it shows no boundary",
                argument="image",
                remedy="use the image that shows the objects",
            )
        return low, high


_CHANNELS = 4  # at most, of a picture in colours
_OFFSETS = 32  # at most, of affinities
_PICTURE = 16  # pixels: the least side of a picture
_IF_CHANNELS = "if these are channels"


def compare_axes(picture: Picture, name: str = "image") -> None:
    """Warn of an axis that is as short as one of channels, and is taken for one of space."""
    shape = picture.shape
    if picture.channel_axis is not None or len(shape) not in (3, 4):
        return
    most = {3: _CHANNELS, 4: _OFFSETS}[len(shape)]
    for axis, others in ((0, shape[-2:]), (len(shape) - 1, shape[:2])):
        if 3 <= shape[axis] <= most and min(others) >= max(_PICTURE, shape[axis] + 1):
            warning = DataWarning(
                f"`{name}` (shape {shape}) is taken for an image with {len(shape)} axes of space, "
                f"though its axis {axis} has length {shape[axis]}, as one of channels has",
                argument=name,
                remedy=(
                    SetOption("channel_axis", axis, when=_IF_CHANNELS),
                    PickIndex((axis,), len(shape)),
                    *(("use affinities(array) if they are those of offsets",) * (len(shape) == 4)),
                ),
            )
            warn_caller(warning)
            return


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
        converted: Array = convert(np.moveaxis(unit, 0, -1)).astype(np.float32)
        return np.moveaxis(converted, -1, 0) / np.float32(100) if colour else converted[None]
    grey: Array = unit.mean(axis=0, keepdims=True)
    return unit if colour else grey


CueKind = Literal[
    "auto", "dark_ridges", "bright_ridges", "dark", "bright", "gradient", "colour", "oriented"
]
_ORIENTED = "oriented"
KINDS = tuple(kind for kind in get_args(CueKind) if kind != _ORIENTED)  # for any number of axes
_DEFAULT_SCALE = {"gradient": 2.0, "colour": 2.0}  # else 1: docs/superpixels.md has measurements
_TOP = 0.01  # the share of voxels that have the value 1
_LEAST = 1e-6  # of the range of the image: less is a rounding error
_PROBES, _PROBE = 4, 1 << 18  # slabs that "auto" samples, and the voxels of one
# With the values that a control offers.
CueScale = Annotated[float | None, {"min": 0.5, "max": 100.0, "step": 0.5}]
_THICK = 2.0  # least growth of the response to thick lines at twice the scale


def boundary_cue(
    image: object,
    kind: CueKind = "auto",
    *,
    scale: CueScale = None,
    spacing: Sequence[float] | None = None,
    channel_axis: int | None = None,
    progress: ProgressCallback | None = None,
) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Make a boundary map from an image alone: high on lines or edges, low inside objects.

    The map is input of `oversegment` and the mean policy. A map from a classifier that was trained
    on the tissue is better; see "A cue from the bare image" in docs/superpixels.md.

    Parameters
    ----------
    image : array or Volume, 1-D or more
        Any integer or float type and range, also lazy. Colours need `channel_axis`, except for a
        uint8 array whose last axis has length 3 or 4, which is RGB(A). NaN is refused.
    kind : str
        ``"dark_ridges"``: thin dark lines or sheets, as membranes in electron microscopy;
        ``"bright_ridges"``: thin bright ones, as a membrane stain; ``"dark"``, ``"bright"``: the
        image itself, less its wider surroundings, for stained walls more than some four voxels
        thick, inside which a ridge filter would find an object; ``"gradient"``: edges between grey
        levels; ``"colour"``: edges in L*a*b*, or in all channels together if there are not three;
        ``"oriented"``: the strongest direction of `oriented_boundary`, for photographs, in a plane.
        ``"auto"`` is "colour" where there are colours, else the stronger ridges: it compares the
        response that the strongest hundredth of the voxels reaches for dark and for bright ridges.
        If that more than doubles at twice the scale, the lines are too thick for ridges, and "auto"
        is "dark" or "bright" instead.
    scale : float, optional
        Standard deviation of the smoothing in voxels of the finest axis, about half the thickness
        of a membrane; 1 for ridges and brightness and 2 for edges by default.
    spacing : sequence of float, optional
        Distance between voxels along each axis but that of the channels; 1 by default, or that of
        the Volume. The image is not filtered along an axis where `scale` is less than half a voxel:
        a stack with thick planes is filtered plane by plane.
    channel_axis : int, optional
        The axis of colours or channels; -1 for the last. All other axes are of space. Ridges and
        "gradient" are filters of the luminance.
    progress : callable, optional
        Called several times a second with a `Progress`; cancels by raising `Cancelled`.

    Returns
    -------
    ndarray of float32
        Of the shape of the image without its channels, in [0, 1]: 0 is no response ("dark" and
        "bright": that of the lowest hundredth), 1 that of the strongest hundredth of the voxels.

    Raises
    ------
    InvalidInput
        If the image is constant, has NaN, or has no response of this kind.

    Warns
    -----
    DataWarning
        If an axis may be one of channels, as in a colour image of floats or with channels first, in
        a volume of three planes, or in affinities.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.superpixels import boundary_cue
    >>> image = np.full((9, 9), 200, np.uint8)
    >>> image[:, 4] = 50
    >>> boundary_cue(image).argmax(axis=1).tolist()
    [4, 4, 4, 4, 4, 4, 4, 4, 4]
    """
    return cue_and_kind(
        image, kind, scale=scale, spacing=spacing, channel_axis=channel_axis, progress=progress
    )[0]


def cue_and_kind(
    image: object,
    kind: CueKind = "auto",
    *,
    scale: float | None = None,
    spacing: Sequence[float] | None = None,
    channel_axis: int | None = None,
    progress: ProgressCallback | None = None,
) -> tuple[np.ndarray[Any, np.dtype[np.float32]], str]:
    """Return the map of `boundary_cue`, and its kind: the one that "auto" has chosen."""
    check_choice("kind", kind, get_args(CueKind))
    if kind == _ORIENTED:
        return _strongest(image, scale, channel_axis, progress), kind
    picture = Picture.of(unwrap(image, "image"), channel_axis)
    compare_axes(picture)
    if kind == "colour" and picture.channel_axis is None:
        raise InvalidInput(
            f"`image` (shape {picture.shape}) has no channels, so it has no colours",
            argument="image",
            remedy=(SetOption("channel_axis"), SetOption("kind", "gradient")),
        )
    if spacing is None:
        spacing = spacing_of(image, "image")
        if spacing is not None and len(spacing) == len(picture.shape) + 1:
            spacing = tuple(d for a, d in enumerate(spacing) if a != picture.channel_axis)
    spacings = check_spacing(spacing, len(picture.shape))
    width = _check_scale(scale, picture.shape)
    require_memory(picture.data, "image", 4)
    tick = partial(report, progress)
    limits = picture.limits(tick)
    chosen: str = kind
    if kind == "auto":
        colours = picture.channel_axis is not None
        chosen = "colour" if colours else _stronger(picture, limits, width, spacings, tick)
    filter_ = _filter(chosen, width, spacings, picture.shape)
    out = np.empty(picture.shape, np.float32)
    for start, stop in picture.ranges(filter_.reach):
        front, values = picture.around(start, stop, filter_.reach)
        response = filter_.response(to_channels(values, limits, chosen == "colour"))
        out[start:stop] = response[front : front + stop - start]
        tick("finding boundaries", stop, picture.shape[0])
    _normalise(out, filter_, tick)
    return out, chosen


def _strongest(
    image: object, scale: object, channel_axis: int | None, progress: ProgressCallback | None
) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return the strongest direction of the oriented map of an image."""
    from napari_agglo.superpixels._oriented_energy import oriented_boundary

    if scale is not None:
        raise InvalidInput(
            f"`scale`={scale!r} is not an option of the kind 'oriented', which has several sizes",
            argument="scale",
            remedy="leave it out, or resize the image: objects should be 20 to 300 pixels wide",
        )
    return oriented_boundary(image, channel_axis=channel_axis, progress=progress).boundary_map()


def _filter(
    kind: str, scale: float | None, spacings: tuple[float, ...], shape: tuple[int, ...]
) -> Filter:
    width = _DEFAULT_SCALE.get(kind, 1.0) if scale is None else scale
    filter_ = Filter.at(kind, width, spacings, shape)
    if not filter_.axes:
        raise InvalidInput(
            f"`scale`={width:g} is less than half a voxel along every axis of `image` (shape "
            f"{shape}) that is longer than 1",
            argument="scale",
            remedy="use a larger one, in voxels of the finest axis",
        )
    return filter_


def _check_scale(scale: object, shape: tuple[int, ...]) -> float | None:
    if scale is None:
        return None
    most = max(4.0, max(shape) / 4)
    if not is_number(scale) or not 0.5 <= float(scale) <= most:  # type: ignore[arg-type]
        raise InvalidInput(
            f"`scale` must be a number of voxels from 0.5 to {most:g} (a quarter of the "
            f"longest axis), not {scale!r}",
            argument="scale",
            remedy=SetOption("scale", 1, when="if a membrane is about two voxels thick"),
        )
    return float(scale)  # type: ignore[arg-type]


def _stronger(
    picture: Picture,
    limits: tuple[float, float],
    scale: float | None,
    spacings: tuple[float, ...],
    tick: Tick,
) -> str:
    """Return the kind of the strongest lines, dark or bright, thin or thick, of a few slabs."""
    length = picture.shape[0]
    thick = max(1, min(length, _PROBE // math.prod(picture.shape[1:])))
    starts = np.unique(np.linspace(0, length - thick, _PROBES).astype(int)).tolist()
    fine = _filter("dark_ridges", scale, spacings, picture.shape)
    strength = np.zeros((2, 2))  # dark or bright, at this scale or at twice the scale
    for number, start in enumerate(starts, 1):
        _, values = picture.around(start, start + thick, fine.reach)
        grey = to_channels(values, limits, False)
        for one, image in enumerate((grey, -grey)):
            for times in (1, 2):
                filter_ = replace(fine, sigmas=tuple(times * sigma for sigma in fine.sigmas))
                strength[one, times - 1] += robust_top(filter_.response(image), _TOP)
        tick("choosing the kind of lines", number, len(starts))
    bright = int(strength[1, 0] > strength[0, 0])
    at_scale, at_twice = strength[bright]
    thick = at_scale > 0 and at_twice > _THICK * at_scale
    return ("dark", "bright")[bright] + ("" if thick else "_ridges")


def _normalise(out: Array, filter_: Filter, tick: Tick) -> None:
    """Scale the responses to [0, 1], in place: the highest hundredth of the voxels is 1."""
    bottom = robust_top(out, 1 - _TOP) if filter_.kind in ("dark", "bright") else 0.0
    top = robust_top(out, _TOP)
    if top - bottom < _LEAST:  # lines of less than a hundredth of the voxels
        bottom, top = min(0.0, bottom), float(out.max(initial=-math.inf))
    if top - bottom < _LEAST:
        shown = filter_.kind.replace("_", " ")
        raise InvalidInput(
            f"`image` shows no {shown} at this `scale`",
            argument="image",
            remedy=f"try another `kind` (one of {', '.join(KINDS)}) or a larger `scale`",
        )
    for start, stop in slabs(out.shape):
        part = out[start:stop]
        part -= np.float32(bottom)
        part /= np.float32(top - bottom)
        np.clip(part, 0, 1, out=part)
        tick("normalising", stop, out.shape[0])
