"""What a file or a layer gives: an array, how far apart its voxels are, and what to call it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from napari_agglo.volumes._memory import require_memory


@dataclass(frozen=True, eq=False)
class Volume:
    """An n-D array that may still be on disk.

    Attributes
    ----------
    data
        Anything with ``shape``, ``dtype`` and ``__getitem__``: an array, a memory map, a Zarr
        array, a dask array.
    spacing
        Distance between voxel centres along each axis, in the order of the axes (plane, row,
        column), or None where the file does not say.
    name
        What messages call it. An image pyramid is opened at its full resolution and its name then
        ends in ``" (level 0)"``.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.volumes import Volume
    >>> Volume(np.zeros((4, 5), np.uint8), spacing=(2.0, 1.0), name="cells").shape
    (4, 5)
    """

    data: Any
    spacing: tuple[float, ...] | None = None
    name: str = "volume"

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of voxels along each axis."""
        return tuple(int(n) for n in self.data.shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.data.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a voxel."""
        dtype: np.dtype[Any] = np.dtype(self.data.dtype)
        return dtype

    def load(self) -> np.ndarray[Any, Any]:
        """Read the whole array into memory; one that is there already is returned as it is."""
        if type(self.data) is np.ndarray:
            return self.data
        require_memory(self.data, self.name)
        return np.array(self.data[...])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Let ``np.asarray(volume)`` work."""
        loaded = self.load()
        converted = loaded if dtype is None else loaded.astype(dtype, copy=False)
        return converted.copy() if copy and converted is self.data else converted
