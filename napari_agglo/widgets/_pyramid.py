"""Superpixels at two resolutions: the whole, and one that a 3-D view can redraw quickly."""

from __future__ import annotations

from typing import Any

import numpy as np

# Voxels that are mapped and uploaded within a tick of the slider in 3-D, on a slow machine.
COARSE_VOXELS = 1 << 23
_SMALL = 2 * COARSE_VOXELS


def coarser(superpixels: Any) -> list[Any]:
    """Return the superpixels, and a coarser copy if they are a large volume.

    A coarse pixel has the label of one of the pixels that it stands for, so no label is invented.

    Examples
    --------
    >>> [level.shape for level in coarser(np.zeros((64, 64, 64), np.uint32))]
    [(64, 64, 64)]
    >>> [level.shape for level in coarser(np.zeros((256, 512, 512), np.uint32))]
    [(256, 512, 512), (128, 256, 256)]
    """
    shape = tuple(int(n) for n in superpixels.shape)
    if len(shape) < 3 or int(np.prod(shape, dtype=np.int64)) <= _SMALL:
        return [superpixels]
    return [superpixels, coarse_copy(superpixels)]


def coarse_copy(superpixels: Any) -> Any:
    """Return a copy with every second, third, ... pixel along the last three axes."""
    index = (..., *[slice(None, None, coarse_step(superpixels.shape))] * 3)
    return np.ascontiguousarray(np.asarray(superpixels[index]))


def coarse_step(shape: tuple[int, ...]) -> int:
    """Return how many pixels along an axis a pixel of the coarser copy stands for."""
    step = 1
    while int(np.prod([-(-int(n) // step) for n in shape[-3:]], dtype=np.int64)) > COARSE_VOXELS:
        step += 1
    return step
