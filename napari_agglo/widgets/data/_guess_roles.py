"""Guess the role of a layer from its metadata or its name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from napari.layers import Labels

from napari_agglo.widgets._napari import role_of
from napari_agglo.widgets.data._layers import shape_of

BOUNDARY = "boundary"  # the name of the cue that superpixels and the mean policy go by
_START, _END = r"(?:^|[^a-z])", r"(?:[^a-z]|$)"
_GOLD = re.compile(rf"gold|truth|annot|manual|{_START}gt{_END}|{_START}gts{_END}")
_SUPERPIXELS = re.compile(rf"super-?(?:pixel|voxel)|watershed|fragment|overseg|{_START}ws{_END}")
_EVIDENCE = re.compile(rf"boundar|membrane|prob|{_START}edges?{_END}|affinit|{_START}ucm{_END}")


def looks_gold(layer: Any) -> bool:
    """Return whether a layer seems to be a gold standard."""
    return _looks(layer, "gold", _GOLD)


def looks_superpixels(layer: Any) -> bool:
    """Return whether a layer seems to hold superpixels."""
    return _looks(layer, "superpixels", _SUPERPIXELS)


def looks_evidence(layer: Any) -> bool:
    """Return whether an image seems to be a cue rather than a picture."""
    return _looks(layer, "cue", _EVIDENCE)


def _looks(layer: Any, role: str, pattern: re.Pattern[str]) -> bool:
    """Return whether a layer has a role by its metadata, or by its name if they do not say."""
    fits = role == "cue" or isinstance(layer, Labels)
    return role_of(layer)[0] == role or (
        role_of(layer)[0] == "" and fits and _matches(pattern, layer)
    )


def looks_boundary(layer: Any) -> bool:
    """Return whether a cue seems to be the boundary cue."""
    kind, name = role_of(layer)
    return name == BOUNDARY if kind == "cue" else _matches(_EVIDENCE, layer)


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


def guess_image(images: Sequence[Any]) -> Any:
    """Return the picture among images: one marked as such, or else no cue; the latest."""
    marked = [layer for layer in images if role_of(layer)[0] == "image"]
    plain = [layer for layer in images if not looks_evidence(layer)]
    candidates = marked or plain
    return candidates[-1] if candidates else None


def latest(layers: Sequence[Any], shape: tuple[int, ...] | None) -> Any:
    """Return the latest layer, of this shape if there is one; None if there are none."""
    fitting = [layer for layer in layers if shape is None or shape_of(layer) == shape]
    return fitting[-1] if fitting else None


def _matches(pattern: re.Pattern[str], layer: Any) -> bool:
    return pattern.search(layer.name.lower()) is not None
