"""What leaves a session: files for people and other programs, each whole or absent."""

from napari_agglo.session._exports.csv_tables import (
    EditRow,
    export_edits,
    export_regions,
    export_tree,
    segment_table,
)
from napari_agglo.session._exports.graphml import export_graphml
from napari_agglo.session._exports.labels import check_target, export_labels
from napari_agglo.session._exports.webknossos import export_agglomerate

__all__ = [
    "EditRow",
    "check_target",
    "export_agglomerate",
    "export_edits",
    "export_graphml",
    "export_labels",
    "export_regions",
    "export_tree",
    "segment_table",
]
