"""Comparison of two segmentations: matched segments, and disagreements with their places."""

from __future__ import annotations

from napari_agglo.compare._disagreements import (
    Disagreements,
    disagreements,
    matched,
    table_codes,
    table_disagreements,
)
from napari_agglo.compare._matching import Matching, Overlaps, match_tables, overlaps
from napari_agglo.compare._refine_tree import refined

__all__ = [
    "matched",
    "match_tables",
    "Matching",
    "disagreements",
    "table_disagreements",
    "table_codes",
    "Disagreements",
    "overlaps",
    "Overlaps",
    "refined",
]
