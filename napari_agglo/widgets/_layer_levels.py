"""Levels of a volume in a layer: those of its file, and a coarse one for 3-D.

napari shows the coarsest level in 3-D, and in a plane the one that fits the zoom. So the coarsest
must be small enough to be read as a whole, also that of a volume larger than memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.volumes import is_on_disk, require_memory
from napari_agglo.widgets._lut_array import Extent

# Voxels that a slow machine can map and upload in a tick of the slider in 3-D.
COARSE_VOXELS = 1 << 23
_SMALL = 2 * COARSE_VOXELS
_READ = 1 << 27  # voxels that are read as a whole to be shown more coarsely
EMPTY_3D = (
    "This volume is too large for the 3-D view, because its file has no coarser levels. Write it "
    "as OME-Zarr with a pyramid, as napari-agglo blocks does, and open that file. Surfaces of "
    "segments can be shown: Proofread > 3-D."
)


def coarser(superpixels: Any) -> list[Any]:
    """Return the superpixels, and coarser levels if they are a large volume.

    A coarse pixel has the label of one of its pixels, so no label is new. Levels of superpixels on
    disk are those of their file.

    Examples
    --------
    >>> [level.shape for level in coarser(np.zeros((64, 64, 64), np.uint32))]
    [(64, 64, 64)]
    >>> [level.shape for level in coarser(np.zeros((256, 512, 512), np.uint32))]
    [(256, 512, 512), (128, 256, 256)]
    """
    if is_on_disk(superpixels):
        return lazy_levels(superpixels.levels)
    if not _is_large(superpixels.shape):
        return [superpixels]
    index = (..., *[slice(None, None, coarse_step(superpixels.shape))] * 3)
    return [superpixels, np.ascontiguousarray(np.asarray(superpixels[index]))]


def lazy_levels(levels: Sequence[Any]) -> list[Any]:
    """Return levels on disk down to one that 3-D can show; a further one if there is none.

    Examples
    --------
    >>> [level.shape for level in lazy_levels([np.zeros((256, 512, 512), np.uint8)])]
    [(256, 512, 512), (128, 256, 256)]
    """
    last = levels[-1]
    if not _is_large(last.shape):
        small = next(k for k, one in enumerate(levels) if not _is_large(one.shape))
        return list(levels[: small + 1] if len(last.shape) >= 3 else levels)
    return [*levels, Strided(last, coarse_step(last.shape))]


def _is_large(shape: Sequence[int]) -> bool:
    return len(shape) >= 3 and int(np.prod(shape, dtype=np.int64)) > _SMALL


def coarse_step(shape: Sequence[int]) -> int:
    """Return the number of pixels along an axis in a pixel of the coarser copy."""
    step = 1
    while int(np.prod([-(-int(n) // step) for n in shape[-3:]], dtype=np.int64)) > COARSE_VOXELS:
        step += 1
    return step


def level_steps(levels: Sequence[Any], level: Any) -> list[int]:
    """Return the number of pixels along each axis in a pixel of one of the levels.

    Examples
    --------
    >>> levels = coarser(np.zeros((256, 512, 512), np.uint32))
    >>> level_steps(levels, levels[1])
    [2, 2, 2]
    """
    fine, ndim = levels[0], len(levels[0].shape)
    if level is fine:
        return [1] * ndim
    if isinstance(level, Strided):
        before = level_steps(levels, level.source)
        return [a * b for a, b in zip(before, level.steps, strict=True)]
    if isinstance(level, np.ndarray):
        return [coarse_step(fine.shape) if axis >= ndim - 3 else 1 for axis in range(ndim)]
    return [max(1, round(n / m)) for n, m in zip(fine.shape, level.shape, strict=True)]


class Strided:
    """Array on disk, subsampled by a step along its last three axes, read where it is used.

    A plane reads only a plane. In 3-D all voxels are read if there are not too many; else it is
    empty.

    Examples
    --------
    >>> coarse = Strided(np.arange(24).reshape(2, 3, 4), 2)
    >>> coarse.shape, coarse[0, :, 1:]
    ((1, 2, 2), array([[ 2],
           [10]]))
    """

    def __init__(self, source: Any, step: int) -> None:
        self.source, self._shape = source, tuple(int(n) for n in source.shape)
        self.dtype = np.dtype(source.dtype)
        self.ndim = len(self._shape)
        self.steps = [step if axis >= self.ndim - 3 else 1 for axis in range(self.ndim)]
        self.shape = tuple(-(-n // f) for n, f in zip(self._shape, self.steps, strict=True))
        self.size = int(np.prod(self.shape, dtype=np.int64))

    @property
    def is_empty_in_3d(self) -> bool:
        """Whether the array is too large to be read as a whole."""
        return int(np.prod(self._shape, dtype=np.int64)) > _READ

    def __getitem__(self, index: Any) -> NDArray[Any]:
        keys = list(index) if isinstance(index, tuple) else [index]
        dots = [k for k, key in enumerate(keys) if key is Ellipsis]
        if dots:
            keys[dots[0] : dots[0] + 1] = [slice(None)] * (self.ndim - len(keys) + 1)
        keys += [slice(None)] * (self.ndim - len(keys))
        fine: list[Any] = []
        shape, flips = [], []
        for key, n, step in zip(keys, self.shape, self.steps, strict=True):
            if not isinstance(key, slice):
                fine.append(int(key) % n * step)
                continue
            chosen = range(n)[slice(*(None if x is None else int(x) for x in
                                      (key.start, key.stop, key.step)))]  # fmt: skip
            shape.append(len(chosen))
            flips.append(slice(None, None, -1 if chosen.step < 0 else None))
            ordered = chosen[::-1] if chosen.step < 0 else chosen
            ends = (ordered[0] * step, ordered[-1] * step + 1) if ordered else (0, 0)
            fine.append(slice(*ends, ordered.step * step))
        if sum(n > 1 for n in shape) > 2 and self.is_empty_in_3d:
            return np.zeros(shape, self.dtype)
        return np.asarray(self.source[tuple(fine)])[tuple(flips)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        whole = self[...]
        return whole if dtype is None else whole.astype(dtype, copy=False)


class LazyArray:
    """An array on disk as the data of a layer: only what is shown is read.

    napari cuts the visible part out of all planes, and then takes one of them: parts of more than
    two axes are not read yet.

    Examples
    --------
    >>> lazy = LazyArray(np.arange(24).reshape(2, 3, 4))
    >>> lazy[:, 1:3, :2].shape, lazy[:, 1:3, :2][1]
    ((2, 2, 2), array([[16, 17],
           [20, 21]]))
    """

    def __init__(self, source: Any, extent: Extent | None = None) -> None:
        self.source, self.dtype = source, np.dtype(source.dtype)
        self._extent = Extent.whole(source.shape) if extent is None else extent
        self.shape, self.size = self._extent.shape, self._extent.size
        self.ndim = len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        extent = self._extent.narrowed(index)
        if extent is None:  # by arrays of indices
            return np.asarray(self)[index]
        part = LazyArray(self.source, extent)
        return part if part.ndim > 2 else np.asarray(part)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if self.size > _SMALL:
            require_memory(self, "array")
        read = np.asarray(self.source[self._extent.index])
        return read if dtype is None else read.astype(dtype, copy=False)


def lazy_data(levels: Sequence[Any]) -> dict[str, Any]:
    """Return the data of a layer of levels on disk, as keyword arguments."""
    arrays = [LazyArray(one) for one in lazy_levels(levels)]
    several = len(arrays) > 1
    return {"data": arrays if several else arrays[0], "multiscale": several}


def is_empty_in_3d(levels: Sequence[Any]) -> bool:
    """Return whether a volume of such levels cannot be shown in 3-D."""
    return isinstance(levels[-1], Strided) and levels[-1].is_empty_in_3d
