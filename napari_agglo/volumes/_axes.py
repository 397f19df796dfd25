"""Names of axes, units and spacing, as files tell them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from napari_agglo.errors import InvalidInput
from napari_agglo.volumes._lazy import pick

_MICROMETRES = {
    "angstrom": 1e-4, "å": 1e-4, "nm": 1e-3, "nanometer": 1e-3, "nanometre": 1e-3,
    "um": 1.0, "µm": 1.0, "μm": 1.0, "\\u00b5m": 1.0, "micron": 1.0, "microns": 1.0,
    "micrometer": 1.0, "micrometre": 1.0,
    "mm": 1e3, "millimeter": 1e3, "millimetre": 1e3, "cm": 1e4, "centimeter": 1e4, "inch": 25400.0,
    "m": 1e6, "meter": 1e6, "metre": 1e6,
}  # fmt: skip


def to_micrometres(value: Any, unit: Any) -> float:
    """Return a length in µm; one without a unit, or with one that is not a length, as it is."""
    factor = _MICROMETRES.get(str(unit).strip().lower(), 1.0) if unit else 1.0
    product = float(value) * factor
    return float(f"{product:.12g}") if factor != 1.0 else product  # 40 nm is 0.04, not 0.0400...1


def usable_spacing(spacing: Sequence[Any] | None, ndim: int) -> tuple[float, ...] | None:
    """Return what a file says if it is one positive number an axis; else it says nothing."""
    if spacing is None:
        return None
    try:
        values = tuple(float(value) for value in spacing)
    except (TypeError, ValueError):
        return None
    if len(values) != ndim or not all(math.isfinite(v) and v > 0 for v in values):
        return None
    return values


def split_picks(key: str | None) -> tuple[str | None, dict[str, int]]:
    """Split ``"path/in/file,c=1"`` into the path, if any, and the axes to pick from.

    >>> split_picks("exported_data,c=1")
    ('exported_data', {'c': 1})
    >>> split_picks("t=0,c=2")
    (None, {'t': 0, 'c': 2})
    """
    picks: dict[str, int] = {}
    paths: list[str] = []
    for part in (key or "").split(","):
        found = re.fullmatch(r"([A-Za-z]|\d+)=(\d+)", part.strip())
        if found:
            picks[found[1].lower()] = int(found[2])
        elif part:
            paths.append(part)
    return ",".join(paths) or None, picks


def arrange(
    data: Any, axes: str, spacing: Sequence[Any] | None, picks: dict[str, int], name: str
) -> tuple[Any, tuple[float, ...] | None]:
    """Pick channels, drop time and channel axes of length 1, and keep the spacing in step.

    `axes` has a letter for each axis, or is empty where the file does not name them. An image with
    several channels is refused unless one is picked: a cue is one channel.
    """
    ndim = len(data.shape)
    letters = axes.lower() if len(axes) == ndim else "?" * ndim
    fixed: dict[int, int] = {}
    for axis_name, index in picks.items():
        axis = int(axis_name) if axis_name.isdigit() else letters.find(axis_name)
        if not 0 <= axis < ndim:
            known = letters if "?" not in letters else f"0 to {ndim - 1}"
            raise InvalidInput(f"{name} has no axis {axis_name!r}; its axes are {known}.")
        if index >= data.shape[axis]:
            raise InvalidInput(
                f"{name} has no {axis_name}={index}; that axis runs from 0 to "
                f"{data.shape[axis] - 1}."
            )
        fixed[axis] = index
    for axis, letter in enumerate(letters):
        if axis in fixed or letter not in "cst":
            continue
        if data.shape[axis] == 1:
            fixed[axis] = 0
        elif letter in "cs":
            grey = ", or convert it to grey." if axis == ndim - 1 and data.shape[axis] <= 4 else ""
            raise InvalidInput(
                f"{name} has {data.shape[axis]} channels (shape {tuple(data.shape)}, axes "
                f"{letters}); pick one by adding :{letter}=0 (or ,{letter}=0 after a key), "
                f"{letter}=1, ...{grey}"
            )
    kept = usable_spacing(spacing, ndim)
    if kept is not None:
        kept = tuple(value for axis, value in enumerate(kept) if axis not in fixed)
    return pick(data, fixed), kept
