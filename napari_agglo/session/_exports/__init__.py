"""What leaves a session: files for people and other programs, each whole or absent."""

from napari_agglo.session._exports._agglomerate import export_agglomerate
from napari_agglo.session._exports._edits import EditRow, export_edits
from napari_agglo.session._exports._graphml import export_graphml
from napari_agglo.session._exports._labels import export_labels
from napari_agglo.session._exports._regions import export_regions, segment_table
from napari_agglo.session._exports._target import check_target
from napari_agglo.session._exports._tree import export_tree

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
