"""The command line: file to file, for those without a screen."""

from __future__ import annotations

from napari_agglo.cli._main import main

__all__ = ["main"]
