"""Affinities in the plan of a block-wise run: their offsets, and the columns of their cues."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from napari_agglo.volumes import check_cues
from napari_agglo.volumes._oriented_cue import Offset, check_offsets, cues_of_channels
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
