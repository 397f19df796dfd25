"""The gate for shapes: one for all that belongs together, and no colours among them."""

from __future__ import annotations

from typing import Any

import numpy as np

from napari_agglo.errors import InvalidInput


def refuse_colours(data: Any, name: str) -> None:
    """Refuse bytes whose last axis has length 3 or 4: a colour picture, not a volume so thin.

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
    if len(shape) >= 3 and shape[-1] in (3, 4) and np.dtype(data.dtype) == np.uint8:
        raise InvalidInput(
            f"`{name}` (shape {shape}, uint8) looks like an RGB(A) image; convert it to grey or "
            f"pick a channel, e.g. image[..., 0]. If it is a volume {shape[-1]} voxels wide, pass "
            "it as image.astype('uint16')."
        )


def check_same_shape(first: object, second: object, first_name: str, second_name: str) -> None:
    """Refuse two arrays (or shapes) that are not of one shape, with a hint at what is the matter.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.volumes import check_same_shape
    >>> check_same_shape(np.zeros((2, 3)), (2, 3), "mask", "image")
    """
    one, two = _shape(first), _shape(second)
    if one == two:
        return
    said = f"{_quoted(first_name)} (shape {one}) must match {_quoted(second_name)} (shape {two})"
    for a, b, name in ((one, two, first_name), (two, one, second_name)):
        if len(b) == len(a) + 1 and b[:-1] == a and b[-1] in (3, 4):
            other = second_name if name == first_name else first_name
            raise InvalidInput(
                f"{said}; {_quoted(other)} looks like an RGB(A) image: convert it to grey or pick "
                "a channel, e.g. image[..., 0]."
            )
        axes = _singletons_to_drop(b, a)
        if axes is not None:
            other = second_name if name == first_name else first_name
            which = f"axis {axes[0]}" if len(axes) == 1 else f"axes {axes}"
            drop = axes[0] if len(axes) == 1 else axes
            raise InvalidInput(
                f"{said}; {_quoted(other)} has {which} of length 1 in excess: drop it with "
                f"np.squeeze(..., axis={drop})."
            )
        extra = _axis_to_pick(b, a)
        if extra is not None:
            other = second_name if name == first_name else first_name
            array = f"array[{':, ' * extra}0]"
            raise InvalidInput(
                f"{said}; {_quoted(other)} has an extra axis, axis {extra} of length {b[extra]}: "
                f"pick one index of it, e.g. FILE:{extra}=0 for a file or {array} for an array."
            )
    if len(one) == len(two) and sorted(one) == sorted(two):
        raise InvalidInput(f"{said}; the axes seem to be in another order: transpose one of them.")
    raise InvalidInput(f"{said}; pass the same crop of both.")


def _shape(thing: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in getattr(thing, "shape", thing))


def _quoted(name: str) -> str:
    return name if name.startswith("the ") else f"`{name}`"


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
