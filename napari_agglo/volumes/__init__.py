"""Files and arrays of the user: read, checked once, with dense ids and quantised cues."""

from __future__ import annotations

from napari_agglo.volumes._checks import (
    check_labels,
    check_mask,
    check_same_shape,
    check_same_spacing,
    check_spacing,
    refuse_colours,
    warn_of_places,
)
from napari_agglo.volumes._contingency import Contingency, add_tables, contingency
from napari_agglo.volumes._cues import Cues, check_cues, cues_of_rows
from napari_agglo.volumes._cues_on_disk import DiskCues, are_on_disk
from napari_agglo.volumes._disk_faces import DiskFaces
from napari_agglo.volumes._label_pyramid import (
    create_levels,
    downsample_labels,
    fill_level,
    shard_boxes,
)
from napari_agglo.volumes._labels import DenseLabels, dense_labels, split_components
from napari_agglo.volumes._labels_group import check_labels_place
from napari_agglo.volumes._labels_on_disk import (
    DiskLabels,
    MappedLabels,
    disk_labels,
    is_on_disk,
    mapped_labels,
    whole_image,
)
from napari_agglo.volumes._mapping import SegmentMapping, read_mapping
from napari_agglo.volumes._named_axes import check_same_axes, spacing_of, voxel_size_of
from napari_agglo.volumes._ome_zarr_metadata import (
    DEFAULT_VERSION,
    OmeAxis,
    OmeImage,
    OmeLevel,
    plan_image,
    read_image,
)
from napari_agglo.volumes._open import add_pick, open_channels, open_levels, open_volume
from napari_agglo.volumes._oriented_cue import (
    Affinities,
    OrientedCue,
    affinities,
    check_offsets,
    read_offsets,
)
from napari_agglo.volumes._oriented_map import (
    OrientedMap,
    border_channels,
    oriented_map,
    refuse_directions,
)
from napari_agglo.volumes._replace_file import replacing
from napari_agglo.volumes._units import (
    NO_UNIT,
    VoxelSize,
    check_unit,
    convert_all,
    unit_name,
    unit_symbol,
)
from napari_agglo.volumes._value_range import ValueFaults, ValueGate, check_nan, check_range
from napari_agglo.volumes._volume import (
    Volume,
    in_memory,
    is_lazy,
    require_memory,
    slabs,
    unwrap,
)
from napari_agglo.volumes._word_cue import Words, word_cue
from napari_agglo.volumes._write_labels import check_target, write_labels

__all__ = [
    "Volume",
    "open_volume",
    "open_channels",
    "open_levels",
    "add_pick",
    "write_labels",
    "check_target",
    "SegmentMapping",
    "read_mapping",
    "OmeImage",
    "OmeLevel",
    "DEFAULT_VERSION",
    "OmeAxis",
    "plan_image",
    "read_image",
    "create_levels",
    "fill_level",
    "shard_boxes",
    "downsample_labels",
    "DenseLabels",
    "dense_labels",
    "DiskLabels",
    "disk_labels",
    "is_on_disk",
    "MappedLabels",
    "mapped_labels",
    "whole_image",
    "DiskCues",
    "DiskFaces",
    "are_on_disk",
    "Affinities",
    "affinities",
    "OrientedCue",
    "check_offsets",
    "read_offsets",
    "OrientedMap",
    "Words",
    "word_cue",
    "oriented_map",
    "border_channels",
    "refuse_directions",
    "Cues",
    "check_cues",
    "cues_of_rows",
    "check_labels",
    "check_labels_place",
    "check_mask",
    "check_same_shape",
    "check_same_axes",
    "check_same_spacing",
    "VoxelSize",
    "voxel_size_of",
    "spacing_of",
    "check_spacing",
    "check_range",
    "check_unit",
    "convert_all",
    "unit_name",
    "unit_symbol",
    "NO_UNIT",
    "check_nan",
    "ValueGate",
    "ValueFaults",
    "refuse_colours",
    "warn_of_places",
    "unwrap",
    "is_lazy",
    "slabs",
    "in_memory",
    "require_memory",
    "Contingency",
    "contingency",
    "add_tables",
    "split_components",
    "replacing",
]
