"""Arrays whose axes have names and coordinates, as those of xarray.

The package takes axes in the order plane, row, column, by position. An array with names of axes is
taken if its z, y and x are in this order, and refused otherwise; its spacing is that of its
coordinates. xarray itself is not imported: `dims` and `coords` are enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from napari_agglo.errors import InvalidInput
from napari_agglo.volumes._units import VoxelSize, unit_name

_ORDER = {"z": 0, "plane": 0, "y": 1, "row": 1, "x": 2, "column": 2}
_EVEN = 1e-3  # of the spacing: coordinates are often rounded


def axis_names(source: object) -> tuple[str, ...] | None:
    """Return the names of the axes of an array; None if they have none.

    Examples
    --------
    >>> import numpy as np
    >>> axis_names(np.zeros((2, 3))) is None
    True
    """
    names = getattr(source, "dims", None)
    if isinstance(names, tuple) and hasattr(source, "coords") and hasattr(source, "shape"):
        return tuple(map(str, names))
    return None


def check_axis_order(source: Any, name: str) -> None:
    """Refuse an array whose axes z, y, x are named, and in another order."""
    names = axis_names(source)
    if names is None:
        return
    places = [k for k, one in enumerate(names) if one.lower() in _ORDER]
    ordered = sorted(places, key=lambda k: _ORDER[names[k].lower()])
    if ordered == places:
        return
    right = list(names)
    for place, axis in zip(places, ordered, strict=True):
        right[place] = names[axis]
    raise InvalidInput(
        f"`{name}` has the axes {', '.join(names)}, and axes must be in the order plane (z), row "
        "(y), column (x)",
        argument=name,
        remedy=f"transpose it: .transpose({', '.join(map(repr, right))})",
    )


def check_same_axes(inputs: Mapping[str, object]) -> None:
    """Refuse arrays with the same names of axes in different orders."""
    first: tuple[str, tuple[str, ...]] | None = None
    for name, source in inputs.items():
        names = axis_names(source)
        if names is None:
            continue
        if first is None:
            first = name, names
        elif names != first[1] and sorted(names) == sorted(first[1]):
            raise InvalidInput(
                f"`{first[0]}` has the axes {', '.join(first[1])} and `{name}` has "
                f"{', '.join(names)}",
                argument=name,
                remedy=f"transpose it: .transpose({', '.join(map(repr, first[1]))})",
            )


def spacing_of(source: Any, name: str = "array") -> tuple[float, ...] | None:
    """Return the spacing of a Volume, or of the coordinates of an array; None if it has none.

    An axis without coordinates, or whose coordinates are not numbers, has the spacing 1.

    Examples
    --------
    >>> from napari_agglo.volumes import Volume
    >>> spacing_of(Volume(np.zeros((2, 3)), spacing=(2.0, 1.0)))
    (2.0, 1.0)
    """
    names = axis_names(source)
    if names is None:
        spacing = getattr(source, "spacing", None)
        return spacing if isinstance(spacing, tuple) else None
    steps = [_step(source, axis, name) for axis in names]
    if all(step is None for step in steps):
        return None
    return tuple(1.0 if step is None else step for step in steps)


def unit_of(source: Any) -> str | None:
    """Return the unit of the spacing of a Volume or of coordinates; None if it is not known."""
    names = axis_names(source)
    if names is None:
        return unit_name(getattr(source, "unit", None))
    units = {
        unit_name(source.coords[axis].attrs.get("units"))
        for axis in names
        if axis in source.coords and _step(source, axis, "array") is not None
    }
    return units.pop() if len(units) == 1 else None


def voxel_size_of(source: Any, name: str = "array") -> VoxelSize:
    """Return the spacing of a Volume or of coordinates, and its unit; None for what is not known.

    Examples
    --------
    >>> from napari_agglo.volumes import Volume
    >>> voxel_size_of(Volume(np.zeros((2, 3)), spacing=(2.0, 1.0), unit="nm"))
    VoxelSize(spacing=(2.0, 1.0), unit='nanometer')
    """
    spacing = spacing_of(source, name)
    return VoxelSize(spacing, None if spacing is None else unit_of(source))


def _step(source: Any, axis: str, name: str) -> float | None:
    """Return the distance between the coordinates along an axis; refuse uneven ones."""
    if axis not in source.coords:
        return None
    values = np.asarray(source.coords[axis])
    if values.ndim != 1 or values.dtype.kind not in "iuf" or values.size < 2:
        return None
    steps = np.diff(values.astype(np.float64))
    mean = float(steps.mean())
    if not np.isfinite(mean) or mean == 0 or (abs(steps - mean) > _EVEN * abs(mean)).any():
        raise InvalidInput(
            f"`{name}` has coordinates along {axis} that are not evenly spaced",
            argument=name,
            remedy=f"resample it, or remove them: .drop_vars({axis!r})",
        )
    return float(f"{abs(mean):.9g}")
