"""Two segmentations of one image: which segments are the same, and where they differ."""

from __future__ import annotations

from napari_agglo.compare._disagreements import Disagreements
from napari_agglo.compare._images import disagreements, matched
from napari_agglo.compare._matching import Matching, match_tables
from napari_agglo.compare._overlaps import Overlaps, overlaps
from napari_agglo.compare._refined import refined
from napari_agglo.compare._tables import table_codes, table_disagreements

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
