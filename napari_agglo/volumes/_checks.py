"""Checks of arrays, shapes and spacings at the public doors of the package.

Every error names the argument, the value expected, the value that came, and a remedy. Kernels rely
on these checks and make none of their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from napari_agglo._data_warnings import warn_caller
from napari_agglo._progress import ProgressCallback, check_progress, report
from napari_agglo.errors import (
    ConvertTo,
    DataWarning,
    InvalidInput,
    LabelComponents,
    PickIndex,
    Remedy,
    SetOption,
)
from napari_agglo.volumes._named_axes import check_same_axes, voxel_size_of
from napari_agglo.volumes._units import VoxelSize
from napari_agglo.volumes._volume import (
    in_memory,
    is_lazy,
    native,
    pieces,
    require_memory,
    unwrap,
)

_AXES = ("plane", "row", "column")


def check_spacing(spacing: Sequence[float] | None, ndim: int) -> tuple[float, ...]:
    """Return the distance between voxels along each axis; None means 1 along all of them.

    The order is that of the axes: plane, row, column.

    Examples
    --------
    >>> from napari_agglo.volumes import check_spacing
    >>> check_spacing((40, 4, 4), 3)
    (40.0, 4.0, 4.0)
    >>> check_spacing(None, 2)
    (1.0, 1.0)
    """
    if spacing is None:
        return (1.0,) * ndim
    order = ", ".join(_AXES[-ndim:]) if ndim <= len(_AXES) else "that of the axes"
    expected = f"`spacing` must be {ndim} positive numbers, one per axis (order: {order})"
    ones = SetOption("spacing", (1.0,) * ndim, when="if it is not known")
    try:
        values = tuple(float(value) for value in spacing)
    except (TypeError, ValueError):
        raise InvalidInput(
            f"{expected}, not {spacing!r}", argument="spacing", remedy=ones
        ) from None
    if len(values) != ndim:
        problem = f"{expected}, not {len(values)} ({', '.join(f'{value:g}' for value in values)})"
        raise InvalidInput(problem, argument="spacing", remedy=ones)
    if not all(math.isfinite(value) and value > 0 for value in values):
        problem = f"{expected}, not {', '.join(f'{value:g}' for value in values)}"
        raise InvalidInput(
            problem, argument="spacing", remedy="use 1 where the distance is not known"
        )
    return values


def check_same_spacing(inputs: Mapping[str, object]) -> VoxelSize:
    """Return the spacing that the Volumes among `inputs` share, and its unit, as far as known.

    The unit is the first that is known. Spacings in other units are converted to it, and those
    whose unit is not known are taken to be in it.

    Parameters
    ----------
    inputs
        Name to input; an input other than a `Volume`, affinities or an array with coordinates, or
        without a spacing, is left out.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.volumes import Volume, check_same_spacing
    >>> fine = Volume(np.zeros((2, 2)), (0.004, 0.004), unit="um")
    >>> same = Volume(np.zeros((2, 2)), (4.0, 4.0), unit="nm")
    >>> check_same_spacing({"superpixels": fine, "mito": same, "boundary": np.zeros((2, 2))})
    VoxelSize(spacing=(0.004, 0.004), unit='micrometer')
    """
    check_same_axes(inputs)
    voxels = {name: voxel_size_of(one, name) for name, one in inputs.items()}
    unit = next((voxel.unit for voxel in voxels.values() if voxel.unit), None)
    first: tuple[str, tuple[float, ...]] | None = None
    for name, voxel in voxels.items():
        spacing = voxel.in_unit(unit).spacing
        if spacing is None:
            continue
        if first is None:
            first = name, spacing
        elif len(first[1]) != len(spacing) or not np.allclose(first[1], spacing, rtol=1e-4, atol=0):
            raise InvalidInput(
                f"`{first[0]}` has spacing {first[1]} and `{name}` has {spacing}, but they must be "
                "on one grid",
                argument=name,
                remedy=("resample one", SetOption("spacing", when="for all")),
            )
    return VoxelSize(first[1] if first else None, unit)


def warn_of_places(inputs: Mapping[str, object]) -> list[str]:
    """Warn if inputs state that they are crops from different places of a volume.

    Parameters
    ----------
    inputs
        Name to input; one that is no `Volume` or `DenseLabels`, or has no `origin`, is left out.

    Returns
    -------
    list of str
        Names of inputs from another place than the first.

    Examples
    --------
    >>> import numpy as np, warnings
    >>> from napari_agglo.volumes import Volume, warn_of_places
    >>> image, gold = (Volume(np.zeros((4, 4)), origin=at) for at in ((0.0, 0.0), (0.0, 64.0)))
    >>> with warnings.catch_warnings(record=True, action="always") as told:
    ...     warn_of_places({"image": image, "gold": gold})
    ['gold']
    >>> len(told)
    1
    """
    stated = {name: getattr(one, "origin", None) for name, one in inputs.items()}
    placed = {name: origin for name, origin in stated.items() if isinstance(origin, tuple)}
    elsewhere = []
    for k, (name, origin) in enumerate(placed.items()):
        first, other = next(iter(placed.items()))
        if k and len(origin) == len(other) and not np.allclose(origin, other, rtol=0, atol=0.5):
            elsewhere.append(name)
            there, here = (", ".join(f"{value:g}" for value in at) for at in (other, origin))
            warn_caller(
                DataWarning(
                    f"`{first}` begins at voxel ({there}) of its volume, and `{name}` at ({here})",
                    argument=name,
                    remedy="check that both are the same crop",
                )
            )
    return elsewhere


def refuse_colours(data: Any, name: str) -> None:
    """Refuse an array whose last axis has length 3 or 4: a colour picture, not a thin volume.

    Floats only if the other axes are those of a picture: a small volume may have any shape.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.volumes import refuse_colours
    >>> refuse_colours(np.zeros((5, 6, 3), np.uint8), "boundary")
    Traceback (most recent call last):
    ...
    napari_agglo.errors.InvalidInput: `boundary` (shape (5, 6, 3), uint8) looks like an RGB(A) ...
    """
    shape = tuple(data.shape)
    if len(shape) < 3 or shape[-1] not in (3, 4):
        return
    dtype = np.dtype(data.dtype)
    volume = f"if it is a volume {shape[-1]} voxels wide"
    first = "np.moveaxis(array, -1, 0)"
    ways: list[Remedy | str] = ["convert it to grey", PickIndex((len(shape) - 1,), len(shape))]
    large = min(shape[-3:-1]) >= _PICTURE
    if dtype != np.uint8 and not (dtype.kind == "f" and large):
        return
    if large and len(shape) == 4:
        ways.append(f"pass affinities({first}) if its channels are those of offsets")
    if dtype == np.uint8:
        ways.append(ConvertTo("uint16", when=volume))
    elif len(shape) == 3:
        ways.append(f"put its last axis first {volume}, e.g. {first}")
    raise InvalidInput(
        f"`{name}` (shape {shape}, {dtype}) looks like an RGB(A) image",
        argument=name,
        remedy=tuple(ways),
    )


_PICTURE = 16  # pixels: the least side of a picture


def check_same_shape(first: object, second: object, first_name: str, second_name: str) -> None:
    """Refuse two arrays (or shapes) of different shapes, and name the likely cause.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.volumes import check_same_shape
    >>> check_same_shape(np.zeros((2, 3)), (2, 3), "mask", "image")
    """
    one, two = _shape(first), _shape(second)
    if one == two:
        return
    problem = f"{_quoted(first_name)} (shape {one}) must match {_quoted(second_name)} (shape {two})"
    for shorter, longer, name in ((one, two, second_name), (two, one, first_name)):
        ndim = len(longer)
        if ndim == len(shorter) + 1 and longer[:-1] == shorter and longer[-1] in (3, 4):
            raise InvalidInput(
                f"{problem}, but {_quoted(name)} looks like an RGB(A) image",
                argument=name,
                remedy=("convert it to grey", PickIndex((ndim - 1,), ndim)),
            )
        axes = _singletons_to_drop(longer, shorter)
        if axes is not None:
            listed = f"axis {axes[0]}" if len(axes) == 1 else f"axes {axes}"
            problem += f", but {_quoted(name)} has {listed} of length 1 in excess"
            raise InvalidInput(problem, argument=name, remedy=PickIndex(axes, ndim))
        extra = _axis_to_pick(longer, shorter)
        if extra is not None:
            problem += f", but {_quoted(name)} has an extra axis {extra} of length {longer[extra]}"
            raise InvalidInput(problem, argument=name, remedy=PickIndex((extra,), ndim))
    if sorted(one) == sorted(two):
        turned = "in reverse order" if one == two[::-1] else "in another order"
        # superpixels have the axes of their cues: gold is the one to transpose
        is_gold = first_name.startswith("gold")
        call = _transposed(first_name, one, two) if is_gold else _transposed(second_name, two, one)
        raise InvalidInput(
            f"{problem}, but the axes seem to be {turned}",
            argument=first_name,
            remedy=f"transpose one of them (in Python: {call})",
        )
    raise InvalidInput(problem, argument=first_name, remedy="use the same crop of both")


def _transposed(name: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    """Return the call that gives an array a shape by exchanging its axes."""
    if wanted == shape[::-1]:
        return f"{_plain(name)}.T"
    left = list(range(len(shape)))
    axes = []
    for length in wanted:
        axes.append(next(axis for axis in left if shape[axis] == length))
        left.remove(axes[-1])
    return f"np.transpose({_plain(name)}, {tuple(axes)})"


def _plain(name: str) -> str:
    return name.removeprefix("the ")


def _shape(thing: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in getattr(thing, "shape", thing))


def _quoted(name: str) -> str:
    return name if name.startswith("the ") else f"`{name}`"  # "the image": no argument


def _axis_to_pick(longer: tuple[int, ...], shorter: tuple[int, ...]) -> int | None:
    """Return the first axis without which `longer` would equal `shorter`, else None."""
    if len(longer) == len(shorter) + 1:
        for axis in range(len(longer)):
            if longer[:axis] + longer[axis + 1 :] == shorter:
                return axis
    return None


def _singletons_to_drop(
    longer: tuple[int, ...], shorter: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Return axes of length 1 whose removal makes `longer` equal to `shorter`, else None."""
    axes: list[int] = []
    position = 0
    for axis, length in enumerate(longer):
        if position < len(shorter) and length == shorter[position]:
            position += 1
        elif length == 1:
            axes.append(axis)
        else:
            return None
    return tuple(axes) if axes and position == len(shorter) else None


def check_labels(
    labels: object,
    name: str = "superpixels",
    *,
    mask_ok: bool | None = None,
    progress: ProgressCallback | None = None,
) -> np.ndarray[Any, Any]:
    """Return `labels` as a C-order integer array in memory; refuse anything but a label image.

    Parameters
    ----------
    labels
        A `Volume`, an array, a lazy array (dask, Zarr) or a pyramid, whose level 0 is taken. A
        lazy array is read only if it fits in memory.
    name
        Name of the argument in messages.
    mask_ok
        Whether a binary mask (1, or 255, as the only id, in several pieces) is accepted. By default
        it is, unless `name` is "superpixels".
    progress
        Called several times a second.

    Returns
    -------
    ndarray
        The same array where that is possible, never modified.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.volumes import check_labels
    >>> check_labels(np.asfortranarray([[1, 2], [1, 3]])).flags.c_contiguous
    True
    >>> check_labels(np.array([0.1, 0.9]))
    Traceback (most recent call last):
    ...
    napari_agglo.errors.InvalidInput: `superpixels` must hold integer labels, not float64; ...
    """
    check_progress(progress)
    data = unwrap(labels, name)
    dtype = np.dtype(data.dtype)
    if dtype == np.bool_:
        raise InvalidInput(
            f"`{name}` must hold integer labels, not a bool mask",
            argument=name,
            remedy=LabelComponents(),
        )
    if dtype.kind not in "iu":
        raise InvalidInput(
            f"`{name}` must hold integer labels, not {dtype}",
            argument=name,
            remedy=("use the label image", ConvertTo("int64", when="if it holds whole numbers")),
        )
    if len(data.shape) == 0:
        raise InvalidInput(
            f"`{name}` must have at least one axis, not be a single number",
            argument=name,
            remedy="pass the whole label image",
        )
    if is_lazy(data):
        require_memory(data, name, extra_per_voxel=4)  # the dense ids come on top
    array = native(in_memory(data, name, progress))
    if dtype.kind == "i" and array.size:
        lowest = 0
        flat = array.reshape(-1)
        for start, stop in pieces(flat.size):
            lowest = min(lowest, int(flat[start:stop].min()))
            report(progress, f"checking {name}", stop, flat.size)
        if lowest < 0:
            raise InvalidInput(
                f"`{name}` must hold labels of 0 or more, but {int((array < 0).sum())} voxels are "
                f"negative (lowest {lowest})",
                argument=name,
                remedy="set them to 0, which is no region, or to a new id",
            )
    if mask_ok is None:
        mask_ok = name != "superpixels"
    if not mask_ok:
        _refuse_binary_mask(array, name)
    return array


def _refuse_binary_mask(array: np.ndarray[Any, Any], name: str) -> None:
    """Refuse an image of 0 and 1, or 0 and 255, in several pieces: a mask without labels.

    An image with another single id may be a crop that has one region in several pieces.
    """
    only = _only_label(array.reshape(-1))
    if only not in (1, 255):
        return
    from scipy import ndimage  # slow to import, and seldom needed

    pieces = int(ndimage.label(array)[1])
    if pieces > 1:
        raise InvalidInput(
            f"`{name}` looks like a binary mask: its only label is {only}, in {pieces} separate "
            "pieces",
            argument=name,
            remedy=(LabelComponents(), "give it another id than 1 or 255 if it is one region"),
        )


def _only_label(flat: np.ndarray[Any, Any], block: int = 1 << 16) -> int:
    """Return the one non-zero label, or 0 if there are none or several; stops at the second."""
    only = 0
    for start in range(0, flat.size, block):
        part = flat[start : start + block]
        highest = int(part.max())
        if highest == 0:
            continue
        only = only or highest
        if highest != only or bool(((part != 0) & (part != only)).any()):
            return 0
    return only


def check_mask(mask: object, shape: Sequence[int], name: str = "mask") -> np.ndarray[Any, Any]:
    """Return `mask` as a C-order bool array of `shape`; integers count as true unless 0.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.volumes import check_mask
    >>> check_mask(np.array([0, 1, 255]), (3,))
    array([False,  True,  True])
    """
    data = unwrap(mask, name)
    dtype = np.dtype(data.dtype)
    if dtype.kind not in "biu":
        raise InvalidInput(
            f"`{name}` must be a mask of bool or integers, not {dtype}",
            argument=name,
            remedy="convert it to bool first, e.g. mask > 0.5",
        )
    check_same_shape(data, shape, name, "the image")
    return np.ascontiguousarray(np.asarray(data[...]) != 0)
