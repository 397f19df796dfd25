"""The napari plugin: dock widgets over the headless stages; nothing here computes by itself."""

from __future__ import annotations
