"""The colours of napari's theme, for what napari's style sheet does not reach."""

from __future__ import annotations

from typing import Any

from napari.utils.theme import get_theme


def theme_colours(viewer: Any) -> tuple[str, str]:
    """Return the colours of background and text of a viewer's theme, in hexadecimal."""
    theme = get_theme(viewer.theme)
    return str(theme.background.as_hex()), str(theme.text.as_hex())
