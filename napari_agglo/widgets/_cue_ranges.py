"""The values of each cue that mean 0 and 1, found in the data where the user did not say."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import InvalidInput
from napari_agglo.volumes import unwrap
from napari_agglo.volumes._arrays import slabs

Ranges = dict[str, tuple[float, float]]
_SLACK = 0.01  # beyond 0 and 1 is rounding, as at the gate of the graph


def settled_ranges(
    cues: Mapping[str, Any],
    given: Mapping[str, tuple[float, float]],
    nan: str = "refuse",
    progress: ProgressCallback | None = None,
) -> Ranges:
    """Return a range for each cue: what is given, or 0 to 255 for bytes, 0 to 1 for floats.

    Other whole numbers have the range of their values. Floats that are not within 0 and 1 are
    refused: nobody but the user knows what they mean.

    Examples
    --------
    >>> cues = {"boundary": np.zeros((2, 2), np.uint8), "depth": np.array([[3, 900]], np.uint16)}
    >>> settled_ranges(cues, {})
    {'boundary': (0.0, 255.0), 'depth': (3.0, 900.0)}
    """
    ranges = dict(given)
    for name, cue in cues.items():
        if name in ranges:
            continue
        data = unwrap(cue, name)
        dtype = np.dtype(data.dtype)
        if dtype == np.uint8:
            ranges[name] = (0.0, 255.0)
            continue
        low, high, odd = _look_over(data, name, progress)
        if odd and nan == "refuse":
            raise InvalidInput(
                f"The cue “{name}” has {odd:,} values that are not numbers (NaN or infinite); "
                "tick “NaN is boundary” in the Data step, or choose another cue."
            )
        if dtype.kind == "f" and low >= -_SLACK and high <= 1 + _SLACK:
            low, high = 0.0, 1.0
        elif dtype.kind == "f":
            raise InvalidInput(
                f"The cue “{name}” has values from {low:g} to {high:g}, not from 0 to 1. Say which "
                f"mean “no boundary” and “boundary” under Range in the Data step, for instance "
                f"{math.floor(low):g}:{math.ceil(high):g}."
            )
        if low == high:
            raise InvalidInput(
                f"The cue “{name}” is {low:g} everywhere, so it tells nothing; choose another."
            )
        ranges[name] = (low, high)
    return ranges


def _look_over(data: Any, name: str, progress: ProgressCallback | None) -> tuple[float, float, int]:
    """Return the lowest and the highest finite value, and how many are not finite."""
    low, high, odd = math.inf, -math.inf, 0
    size = math.prod(data.shape)
    for _, stop, values in slabs(data):
        least, most = float(values.min()), float(values.max())
        if not math.isfinite(least + most):
            finite = values[np.isfinite(values)]
            odd += values.size - finite.size
            least = float(finite.min(initial=math.inf))
            most = float(finite.max(initial=-math.inf))
        low, high = min(low, least), max(high, most)
        report(progress, f"looking over {name}", stop, size)
    return low, high, odd
