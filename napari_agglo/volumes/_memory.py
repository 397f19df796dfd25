"""How much memory there is, asked before a large array is read."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from napari_agglo.errors import InvalidInput


def available_memory() -> int | None:
    """Bytes that can be taken without swapping, or None where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def require_memory(data: Any, name: str, extra_per_voxel: int = 0) -> None:
    """Refuse, before anything is read, a lazy array that cannot fit, with the figures."""
    free = available_memory()
    voxels = math.prod(data.shape)
    needed = voxels * (np.dtype(data.dtype).itemsize + extra_per_voxel)
    if free is not None and needed > free:
        raise InvalidInput(
            f"`{name}` (shape {tuple(data.shape)}, {np.dtype(data.dtype)}) needs about "
            f"{needed / 1e9:.1f} GB of memory and {free / 1e9:.1f} GB are free; pass a crop."
        )
