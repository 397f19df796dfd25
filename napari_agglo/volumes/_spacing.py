"""The gate for spacing: one positive distance an axis, and one grid for all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from napari_agglo.errors import InvalidInput
from napari_agglo.volumes._volume import Volume

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
    wanted = f"`spacing` must be {ndim} positive numbers, one an axis (order: {order})"
    try:
        values = tuple(float(value) for value in spacing)
    except (TypeError, ValueError):
        raise InvalidInput(f"{wanted}, not {spacing!r}; e.g. {(1.0,) * ndim}.") from None
    if len(values) != ndim:
        raise InvalidInput(f"{wanted}, not {len(values)}: {values}; e.g. {(1.0,) * ndim}.")
    if not all(math.isfinite(value) and value > 0 for value in values):
        raise InvalidInput(f"{wanted}, not {values}; use 1 where the distance is not known.")
    return values


def check_same_spacing(inputs: Mapping[str, object]) -> tuple[float, ...] | None:
    """Return the spacing that the Volumes among `inputs` share; None if none of them has one.

    Parameters
    ----------
    inputs
        Name to input; those that are no `Volume`, or know no spacing, have no say.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.volumes import Volume, check_same_spacing
    >>> fine = Volume(np.zeros((2, 2)), (1.0, 1.0))
    >>> check_same_spacing({"superpixels": fine, "boundary": np.zeros((2, 2))})
    (1.0, 1.0)
    """
    found: tuple[str, tuple[float, ...]] | None = None
    for name, volume in inputs.items():
        if not isinstance(volume, Volume) or volume.spacing is None:
            continue
        if found is None:
            found = name, volume.spacing
        elif len(found[1]) != len(volume.spacing) or not np.allclose(
            found[1], volume.spacing, rtol=1e-4, atol=0
        ):
            raise InvalidInput(
                f"`{found[0]}` has spacing {found[1]} and `{name}` has {volume.spacing}; they must "
                "be on one grid: resample one, or correct the spacing with "
                "Volume(data, spacing=...)."
            )
    return found[1] if found else None
