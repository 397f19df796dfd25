"""The plugin's settings, which napari shows and keeps from 0.9 on."""

from __future__ import annotations

from typing import Any

DEFAULTS: dict[tuple[str, str], Any] = {  # as in the manifest, for older versions of napari
    ("sessions", "folder"): "~/napari-agglo",
    ("training", "epochs"): 5,
}


def setting(group: str, key: str) -> Any:
    """Return a setting; its default where napari has none."""
    try:
        from napari.settings import get_plugin_settings

        return getattr(getattr(get_plugin_settings("napari-agglo"), group), key)
    except (ImportError, AttributeError, KeyError, ValueError, OSError):
        return DEFAULTS[group, key]
