"""What a layer is for, written on it: so that its name may be anything."""

from __future__ import annotations

from typing import Any

KEY = "napari_agglo"


def role(kind: str, name: str = "") -> dict[str, str]:
    """Return the metadata of a layer that is an image, a cue of some name, or gold.

    Examples
    --------
    >>> role("cue", "mitochondria")
    {'napari_agglo': 'cue mitochondria'}
    """
    return {KEY: f"{kind} {name}".rstrip()}


def role_of(layer: Any) -> tuple[str, str]:
    """Return what a layer is for and its name as that; two empty words if it does not say."""
    written = layer.metadata.get(KEY)
    kind, _, name = written.partition(" ") if isinstance(written, str) else ("", "", "")
    return kind, name
