"""The one gate: whatever comes in is checked here, before any kernel sees it.

Every refusal names the argument, says what was expected and what came, and what to do. Kernels
rely on it: they check nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import InvalidInput
from napari_agglo.volumes._arrays import in_memory, is_lazy, native, pieces, unwrap
from napari_agglo.volumes._memory import require_memory
from napari_agglo.volumes._shape import check_same_shape


def check_labels(
    labels: object,
    name: str = "superpixels",
    *,
    mask_ok: bool | None = None,
    progress: ProgressCallback | None = None,
) -> np.ndarray[Any, Any]:
    """Return `labels` as a C-order integer array in memory, or say why it is not a label image.

    Parameters
    ----------
    labels
        A `Volume`, an array, a lazy array (dask, Zarr) or a pyramid, whose level 0 is taken. A
        lazy one is read only if it fits in memory.
    name
        What the message calls it.
    mask_ok
        Whether a binary mask (no id but 1, or 255, and that in several pieces) may pass. By default
        it may, except where superpixels are wanted.
    progress
        Called several times a second.

    Returns
    -------
    ndarray
        The same array where that is possible, never modified.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.volumes import check_labels
    >>> check_labels(np.asfortranarray([[1, 2], [1, 3]])).flags.c_contiguous
    True
    >>> check_labels(np.array([0.1, 0.9]))
    Traceback (most recent call last):
    ...
    napari_agglo.errors.InvalidInput: `superpixels` must hold integer labels, not float64; ...
    """
    data = unwrap(labels, name)
    dtype = np.dtype(data.dtype)
    if dtype == np.bool_:
        raise InvalidInput(
            f"`{name}` must hold integer labels, not a bool mask; "
            "label its components first, e.g. scipy.ndimage.label(mask)[0]."
        )
    if dtype.kind not in "iu":
        raise InvalidInput(
            f"`{name}` must hold integer labels, not {dtype}; "
            "pass the label image, or convert one that holds whole numbers with .astype(int)."
        )
    if len(data.shape) == 0:
        raise InvalidInput(f"`{name}` must have at least one axis, not be a single number.")
    if is_lazy(data):
        require_memory(data, name, extra_per_voxel=4)  # the dense ids come on top
    array = native(in_memory(data, name, progress))
    if dtype.kind == "i" and array.size:
        lowest = 0
        flat = array.reshape(-1)
        for start, stop in pieces(flat.size):
            lowest = min(lowest, int(flat[start:stop].min()))
            report(progress, f"checking {name}", stop, flat.size)
        if lowest < 0:
            raise InvalidInput(
                f"`{name}` must hold labels of 0 or more, but {int((array < 0).sum())} voxels are "
                f"negative (lowest {lowest}); 0 is no region, so set them to 0 or to a new id."
            )
    if mask_ok is None:
        mask_ok = name != "superpixels"
    if not mask_ok:
        _refuse_binary_mask(array, name)
    return array


def _refuse_binary_mask(array: np.ndarray[Any, Any], name: str) -> None:
    """Refuse an image of 0 and 1, or 0 and 255, in pieces: a mask that nobody has labelled yet.

    Any other id was given by someone: a crop may well hold one region, in several pieces.
    """
    only = _only_label(array.reshape(-1))
    if only not in (1, 255):
        return
    from scipy import ndimage  # slow to import, and seldom needed

    pieces = int(ndimage.label(array)[1])
    if pieces > 1:
        raise InvalidInput(
            f"`{name}` looks like a binary mask: its only label is {only}, in {pieces} separate "
            "pieces; label them first, e.g. scipy.ndimage.label(mask)[0], or, if they are one "
            "region, give it another id, e.g. labels * 2."
        )


def _only_label(flat: np.ndarray[Any, Any], block: int = 1 << 16) -> int:
    """Return the one non-zero label, or 0 if there are none or several; stops at the second."""
    only = 0
    for start in range(0, flat.size, block):
        part = flat[start : start + block]
        highest = int(part.max())
        if highest == 0:
            continue
        only = only or highest
        if highest != only or bool(((part != 0) & (part != only)).any()):
            return 0
    return only


def check_mask(mask: object, shape: Sequence[int], name: str = "mask") -> np.ndarray[Any, Any]:
    """Return `mask` as a C-order bool array of `shape`; integers count as true unless 0.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.volumes import check_mask
    >>> check_mask(np.array([0, 1, 255]), (3,))
    array([False,  True,  True])
    """
    data = unwrap(mask, name)
    dtype = np.dtype(data.dtype)
    if dtype.kind not in "biu":
        raise InvalidInput(
            f"`{name}` must be a mask of bool or integers, not {dtype}; "
            "compare it with a level first, e.g. mask > 0.5."
        )
    check_same_shape(data, shape, name, "the image")
    return np.ascontiguousarray(np.asarray(data[...]) != 0)
