"""A region graph as named arrays and back; what comes back is checked, for kernels are not wary."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.graph import Layout, RegionGraph
from napari_agglo.session._store._digest import digest_all, digest_bytes
from napari_agglo.session._store._errors import SessionDamaged
from napari_agglo.session._store._manifest import ArrayNote
from napari_agglo.volumes import DenseLabels

Arrays = Mapping[str, NDArray[Any]]
STATISTICS = ("edges", "regions", "boundaries", "boxes")
_TYPES = {"edges": "<i8", "regions": "<i8", "boundaries": "<i8", "boxes": "<i4", "cues": "|u1"}


def described(graph: RegionGraph) -> dict[str, Any]:
    """Return what is known of a graph beside its arrays, as plain JSON."""
    return {
        "labels_dtype": graph.superpixels.dtype.str,
        "spacing": [float(v) for v in graph.spacing],
        "cue_names": list(graph.cue_names),
        "cue_ranges": [[float(low), float(high)] for low, high in graph.cue_ranges],
        "bins": graph.layout.bins,
        "powers": graph.layout.powers,
        "dams": graph.dams,
    }


def packed(graph: RegionGraph) -> dict[str, NDArray[Any]]:
    """Return the arrays of a graph by name; the cues in the shape of the image, if it has them."""
    arrays: dict[str, NDArray[Any]] = {name: getattr(graph, name) for name in STATISTICS}
    if graph.cues is not None:
        arrays["cues"] = graph.cues.reshape(len(graph.cue_names), *graph.superpixels.image.shape)
    return arrays


def statistics_checksum(graph: Mapping[str, Any], notes: Mapping[str, ArrayNote]) -> str:
    """Return one checksum of all statistics; the type of the user's labels does not count."""
    plain = {key: graph[key] for key in graph if key != "labels_dtype"}
    sums = [notes[name].checksum for name in STATISTICS]
    return digest_all([*sums, digest_bytes(json.dumps(plain, sort_keys=True).encode())])


def unpacked(superpixels: DenseLabels, graph: Mapping[str, Any], arrays: Arrays) -> RegionGraph:
    """Return the graph that `packed` and `described` were made from, or say what is wrong."""
    layout = Layout(len(graph["spacing"]), len(graph["cue_names"]), graph["bins"], graph["powers"])
    _check(superpixels, layout, arrays)
    cues = arrays.get("cues")
    if cues is not None:
        cues = cues.reshape(layout.n_cues, -1)
        cues.flags.writeable = False
    return RegionGraph(
        superpixels=superpixels,
        spacing=tuple(graph["spacing"]),
        cue_names=tuple(graph["cue_names"]),
        cue_ranges=tuple((low, high) for low, high in graph["cue_ranges"]),
        layout=layout,
        **{name: arrays[name] for name in STATISTICS},
        dams=bool(graph["dams"]),
        cues=cues,
    )


def labels_from(image: NDArray[Any], ids: NDArray[Any], dtype: str) -> DenseLabels:
    """Return a label image on dense ids, having checked that it is one."""
    kind = np.dtype(dtype)
    _require(image.dtype == np.uint32, "superpixels", f"are {image.dtype}, not uint32")
    _require(ids.dtype == np.uint64 and ids.ndim == 1 and len(ids) > 0, "ids", "are not a list")
    _require(int(ids[0]) == 0 and bool((ids[1:] > ids[:-1]).all()), "ids", "do not ascend from 0")
    _require(int(ids[-1]) <= np.iinfo(kind).max, "ids", f"do not fit in {kind}")
    _require(image.size == 0 or int(image.max()) < len(ids), "superpixels", "have unknown ids")
    image.flags.writeable = False
    ids.flags.writeable = False
    return DenseLabels(image, ids, kind)


def _check(superpixels: DenseLabels, layout: Layout, arrays: Arrays) -> None:
    shape = superpixels.image.shape
    n = superpixels.n_labels
    m = len(arrays["edges"])
    shapes = {
        "edges": (m, 2),
        "regions": (n + 1, layout.region_width),
        "boundaries": (m, layout.boundary_width),
        "boxes": (n + 1, 2, layout.ndim),
        "cues": (layout.n_cues, *shape),
    }
    _require(len(shape) == layout.ndim, "superpixels", f"have {len(shape)} axes")
    for name, expected in shapes.items():
        if name in arrays or name != "cues":
            found = arrays[name]
            right = found.shape == expected and found.dtype == np.dtype(_TYPES[name])
            _require(right, name, f"are {found.dtype} of shape {found.shape}, not {expected}")
    edges, boxes = arrays["edges"], arrays["boxes"]
    inside = (edges[:, 0] >= 1) & (edges[:, 0] < edges[:, 1]) & (edges[:, 1] <= n)
    _require(bool(inside.all()), "edges", "name regions that are not there")
    key = edges[:, 0] * (n + 1) + edges[:, 1]  # both below 2**32 / 2, or no image could hold them
    _require(bool((key[1:] > key[:-1]).all()), "edges", "are not in order")
    for name in ("regions", "boundaries"):
        lowest = arrays[name].min() if arrays[name].size else 0
        _require(lowest >= 0, name, "have negative sums")
    right_boxes = (boxes[:, 0] >= 0) & (boxes[:, 0] <= boxes[:, 1]) & (boxes[:, 1] <= shape)
    _require(bool(right_boxes.all()), "boxes", "reach out of the image")


def _require(condition: bool, name: str, otherwise: str) -> None:
    if not condition:
        raise SessionDamaged(f"The array {name!r} cannot be used: its values {otherwise}.")
