"""The superpixels as a precomputed volume for Neuroglancer, with the segments as equivalences."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from napari_agglo._progress import ProgressCallback, part_of
from napari_agglo.errors import InvalidInput
from napari_agglo.session._exports.csv_tables import table_of
from napari_agglo.session._exports.export_kinds import ExportView, check_target, exporter
from napari_agglo.session._segment_statistics import segments_of
from napari_agglo.volumes import check_spacing, mapped_labels, replacing
from napari_agglo.volumes._precomputed import PROPERTIES, is_own_segmentation, write_precomputed

STATE = "state.json"


@exporter("neuroglancer", label="Neuroglancer volume and mapping")
def export_neuroglancer(
    view: ExportView,
    path: str | PathLike[str],
    *,
    url: Annotated[str, "Address at which the folder will be served"] = "http://localhost:9000",
    unit: Annotated[
        str, "Unit of the spacing, where the session does not know it (default: nm)"
    ] = "",
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
) -> None:
    """Write a folder that Neuroglancer opens: superpixels, their segments, properties of segments.

    The folder is a precomputed segmentation of the superpixels with a pyramid. ``state.json`` in it
    is a state of Neuroglancer whose layer has the superpixels of each segment as `equivalences`;
    ``segment_properties`` has name, comment, size and reviewed flag. Neuroglancer shows a segment
    by the id of its smallest superpixel.
    """
    target = check_target(path, overwrite)
    graph, lut = view.graph, view.lut
    image = graph.superpixels.image
    if image.ndim > 3:
        raise InvalidInput(
            f"Neuroglancer takes up to 3 axes here, and these superpixels have {image.ndim}",
            argument="kind",
            remedy="export the labels instead",
        )
    nanometres = graph.voxel_size.in_unit(unit or None).in_unit("nm")
    # segments by the id of their smallest superpixel, which Neuroglancer chooses for a group
    segments, inverse = np.unique(lut[1:], return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    groups = np.split(graph.ids[1:][order], np.cumsum(np.bincount(inverse))[:-1])
    smallest = {
        int(segment): int(group.min()) for segment, group in zip(segments, groups, strict=True)
    }
    equivalences = [[str(one) for one in group] for group in groups if len(group) > 1]
    with replacing(target, may_replace=is_own_export) as temporary:
        write_precomputed(
            temporary, mapped_labels(image, graph.ids), *nanometres, properties=True,
            progress=part_of(progress, 0.0, 1.0),
        )  # fmt: skip
        (temporary / PROPERTIES).mkdir()
        _write_json(temporary / PROPERTIES / "info", _properties(view, smallest))
        address = f"{url.rstrip('/')}/{target.name}"
        distances = check_spacing(nanometres.spacing, image.ndim)
        _write_json(temporary / STATE, _state(address, distances, target.name, equivalences))


def _state(
    address: str, nanometres: tuple[float, ...], name: str, equivalences: list[list[str]]
) -> dict[str, Any]:
    spacing = (1.0,) * (3 - len(nanometres)) + nanometres
    dimensions = {
        axis: [value * 1e-9, "m"] for axis, value in zip("xyz", reversed(spacing), strict=True)
    }
    layer = {
        "type": "segmentation",
        "name": name,
        "source": f"precomputed://{address}",
        "equivalences": equivalences,
    }
    return {"dimensions": dimensions, "layers": [layer], "selectedLayer": {"layer": name}}


def _properties(view: ExportView, smallest: dict[int, int]) -> dict[str, Any]:
    """Return the segment properties: label, description, tags and size."""
    table = table_of(segments_of(view.graph, view.lut), view.marks)
    named = table["name"].where(table["name"] != "", table["id"].astype(str))
    reviewed = [[0] if flag else [] for flag in table["reviewed"]]
    size = {
        "id": "size", "type": "number", "data_type": "float32", "description": "voxels",
        "values": [float(one) for one in table["size"]],
    }  # fmt: skip
    tags = {"id": "tags", "type": "tags", "tags": ["reviewed"], "values": reviewed}
    return {
        "@type": "neuroglancer_segment_properties",
        "inline": {
            "ids": [str(smallest[int(one)]) for one in table["id"]],
            "properties": [
                {"id": "label", "type": "label", "values": list(named)},
                {"id": "comment", "type": "description", "values": list(table["comment"])},
                tags,
                size,
            ],
        },
    }


def _write_json(file: Path, content: dict[str, Any]) -> None:
    file.write_text(json.dumps(content) + "\n", encoding="utf-8")


def is_own_export(folder: Path) -> bool:
    """Return whether a folder is such an export and nothing else."""
    return is_own_segmentation(folder, also=(STATE,))
