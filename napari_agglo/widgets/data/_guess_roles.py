"""Guess the role of a layer from its metadata or its name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from napari.layers import Labels

from napari_agglo.widgets._napari import role_of
from napari_agglo.widgets._readers import looks_labelled
from napari_agglo.widgets.data._layers import data_of, dtype_of, is_rgb, shape_of

BOUNDARY = "boundary"  # the name of the cue of superpixels and the mean policy
_START, _END = r"(?:^|[^a-z])", r"(?:[^a-z]|$)"
_AFFINITIES = rf"affinit|{_START}affs{_END}"
_NAMES = {  # of layers, by role
    "gold": rf"gold|truth|annot|manual|{_START}gt{_END}|{_START}gts{_END}",
    "superpixels": rf"super-?(?:pixel|voxel)|watershed|fragment|overseg|{_START}ws{_END}",
    "cue": rf"boundar|membrane|prob|{_START}edges?{_END}|{_START}ucm{_END}|{_AFFINITIES}",
    "affinities": _AFFINITIES,
    "inside": r"interior|inside|foreground|cell.?prob",  # high in objects
    "border": rf"boundar|membrane|{_START}edges?{_END}",
    "map": rf"{_START}maps?{_END}|predict",  # no picture, if there is another
}
_GRID = 64  # pixels along an axis that are enough to know a map
_NEARLY = 0.05  # of the range of values, from 0
_SIDE = 256  # pixels of a plane, along an axis, that are enough to know labels
_FEW = 32  # values that are labels although they are not equal side by side
_MOSTLY = 0.4  # of the pixels are background in a map


def has_role(layer: Any, role: str) -> bool:
    """Return whether a layer has a role by its metadata or, if they name none, by its name."""
    kind, _ = role_of(layer)
    fits = role == "cue" or isinstance(layer, Labels)
    return kind == role or (kind == "" and fits and _is_named(layer, role))


def boundary_rank(layer: Any) -> int:
    """Return the rank of a cue as the boundary cue: 0 if it is by its name, more if less likely.

    Examples
    --------
    >>> from napari.layers import Image
    >>> import numpy as np
    >>> names = ("membrane prob", "cytoplasm prob", "prob_interior", "Label_1")
    >>> [boundary_rank(Image(np.zeros((2, 2)), name=name)) for name in names]
    [0, 1, 2, 3]
    """
    kind, name = role_of(layer)
    if kind == "cue":
        return 0 if name == BOUNDARY else 3
    if is_high_inside(layer):
        return 2
    return 0 if _is_named(layer, "border") else 1 if _is_named(layer, "cue") else 3


def is_affinities(layer: Any) -> bool:
    """Return whether a layer has affinities, one volume for each of its channels, by its name."""
    return role_of(layer)[0] == "" and _is_named(layer, "affinities")


def is_high_inside(layer: Any) -> bool:
    """Return whether the values of a layer are high inside of objects, by its name.

    Examples
    --------
    >>> from napari.layers import Image
    >>> import numpy as np
    >>> names = ("affinities", "prob_interior", "foreground probability", "membrane probability")
    >>> [is_high_inside(Image(np.zeros((2, 2)), name=name)) for name in names]
    [True, True, True, False]
    """
    inside = _is_named(layer, "inside") and not _is_named(layer, "border")
    return is_affinities(layer) or (role_of(layer)[0] == "" and inside)


def cue_name(layer: Any) -> str:
    """Return the name of a layer as a cue, for the columns of features.

    Examples
    --------
    >>> from napari.layers import Image
    >>> import numpy as np
    >>> cue_name(Image(np.zeros((2, 2)), name="Mito prob. (v2)"))
    'mito_prob_v2'
    """
    kind, name = role_of(layer)
    if kind == "cue" and name:
        return name
    return re.sub(r"\W+", "_", layer.name.lower()).strip("_") or "cue"


def may_be_labels(layer: Any, role: str) -> bool:
    """Return whether an image has whole numbers and, by its name, labels of a role.

    Label files open in napari as images; the Data step offers to use such a layer as labels.
    """
    numbers = not is_rgb(layer) and dtype_of(layer).kind in "iub"
    named = role_of(layer)[0] == "" and _is_named(layer, role) and not _is_named(layer, "cue")
    return numbers and named and not isinstance(layer, Labels)


def may_hold_labels(layer: Any) -> bool:
    """Return whether the values of an image may be labels: equal side by side, or whole and few.

    The middle of one plane is read.
    """
    if is_rgb(layer):
        return False
    data = data_of(layer)
    plane = [n // 2 for n in data.shape[:-2]]
    middle = [slice(max(0, (n - _SIDE) // 2), (n + _SIDE) // 2) for n in data.shape[-2:]]
    values = np.asarray(data[(*plane, *middle)])
    if values.dtype.kind == "b":
        return True
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        return False
    whole = values.astype(np.int64)
    if (whole != values).any():
        return False
    return looks_labelled(whole) or len(np.unique(whole)) <= _FEW


def guess_image(images: Sequence[Any], cues: Sequence[Any] = ()) -> Any:
    """Return the latest image with the role of the picture, or else the latest that is no cue.

    An image that may be labels, that is like a map, or that is in use as a cue beside another of
    its shape, is the picture only if there is nothing else.
    """
    marked = [layer for layer in images if role_of(layer)[0] == "image"]
    plain = [layer for layer in images if not has_role(layer, "cue")]
    pictures = [
        layer
        for layer in plain
        if not any(may_be_labels(layer, role) for role in ("gold", "superpixels"))
    ]
    candidates = marked or pictures or (plain if len(plain) == len(images) else [])
    free = [layer for layer in candidates if not any(layer is cue for cue in cues)]
    shapes = {shape_of(layer) for layer in free}
    candidates = [one for one in candidates if one in free or shape_of(one) not in shapes]
    if len(candidates) > 1 and not marked:
        candidates = [one for one in candidates if not _is_like_map(one)] or candidates
    return candidates[-1] if candidates else None


def _is_like_map(layer: Any) -> bool:
    """Return whether a layer is a map by its name, or has nearly 0 in most pixels and 1 in some.

    1 is 255 for bytes. Some pixels of the middle plane are read, of arrays in memory alone.
    """
    if is_rgb(layer) or role_of(layer)[0]:
        return False
    if _is_named(layer, "map"):
        return True
    data = data_of(layer)
    if not isinstance(data, np.ndarray) or data.dtype.kind not in "iuf" or data.ndim < 2:
        return False
    plane = data[tuple(n // 2 for n in data.shape[:-2])]
    steps = tuple(slice(None, None, max(1, n // _GRID)) for n in plane.shape)
    values = plane[steps].astype(np.float64)
    if not values.size or not np.isfinite(values).all():
        return False
    top = np.iinfo(data.dtype).max if data.dtype == np.uint8 else 1.0
    if values.min() < 0 or not 0.5 * top < values.max() <= top:
        return False
    return bool((values <= _NEARLY * top).mean() >= _MOSTLY)


def latest(layers: Sequence[Any], shape: tuple[int, ...] | None) -> Any:
    """Return the latest layer of a shape (None for any); None if there is none."""
    fitting = [layer for layer in layers if shape is None or shape_of(layer) == shape]
    return fitting[-1] if fitting else None


def _is_named(layer: Any, role: str) -> bool:
    return re.search(_NAMES[role], layer.name.lower()) is not None
