"""The view of a session in ``view.json`` beside it, which is optional."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from napari_agglo.graph import RegionGraph
from napari_agglo.samples import SAMPLES
from napari_agglo.volumes._replace_file import write_whole
from napari_agglo.widgets._dataset import Placement
from napari_agglo.widgets._napari import KEY, camera
from napari_agglo.widgets._scene import SEGMENTATION

NAME = "view.json"
State = dict[str, Any]


def state_of(
    viewer: Any, placement: Placement | None, owns: Any, inputs: Mapping[str, Any] | None = None
) -> State:
    """Return the camera, the look of the layers of a session, and the sources of its images.

    `inputs` are layers that the session itself remembers, by their keys. With them, all other
    layers are of other data, and are no part of the session. Without them, any layer may be the
    image that the user looks at.
    """
    keys = {id(layer): key for key, layer in (inputs or {}).items()}
    layers = [one for one in viewer.layers if not keys or id(one) in keys or owns(one)]
    lens = camera(viewer)
    state: State = {
        "camera": {
            "center": [float(x) for x in lens.center],
            "zoom": float(lens.zoom),
            "angles": [float(x) for x in lens.angles],
        },
        "point": [float(x) for x in viewer.dims.point],
        "ndisplay": int(viewer.dims.ndisplay),
        "hidden": [layer.name for layer in layers if not layer.visible],
        "images": [
            source
            for layer in layers
            if not owns(layer) and id(layer) not in keys and (source := _source(layer)) is not None
        ],
        "layers": [
            {
                "name": layer.name,
                "input": keys.get(id(layer)),
                "ours": _own_role(layer, owns),
                **look_of(layer),
            }
            for layer in layers
        ],
    }
    if placement is not None:
        state["placement"] = asdict(placement)
    return state


def _source(layer: Any) -> State | None:
    """Return the file or sample of a layer, to open it again."""
    source = layer.source
    if source.path is not None:
        return {"name": layer.name, "path": str(source.path), "plugin": source.reader_plugin}
    if source.sample is not None:
        return {"name": layer.name, "sample": list(source.sample)}
    return None


# Attributes of layers that a user sets by looking, in the order of setting.
_LOOK = ("visible", "opacity", "blending", "gamma", "contour", "rendering", "interpolation2d",
         "contrast_limits", "colormap", "scale", "translate")  # fmt: skip


def look_of(layer: Any) -> State:
    """Return the look of a layer, as plain JSON."""
    look: State = {}
    for name in _LOOK:
        value = getattr(layer, name, None)
        if name == "colormap":
            value = getattr(value, "name", None) if layer._type_string == "image" else None
        elif isinstance(value, (list, tuple, np.ndarray)):
            value = [float(x) for x in value]
        elif value is not None and not isinstance(value, (bool, int, float)):
            value = str(value)
        if value is not None:
            look[name] = value
    return look


def apply_look(layer: Any, look: State) -> None:
    """Give a layer a look, as far as its values can be used."""
    for name in _LOOK:
        value = look.get(name)
        if value is None or not hasattr(layer, name):
            continue
        if name in ("scale", "translate"):
            value = _numbers(value, layer.ndim)
            if value is None or (name == "scale" and not all(value)):
                continue
        with suppress(Exception):  # a file may say anything, and another version know other names
            if str(getattr(layer, name)) != str(value):
                setattr(layer, name, value)


def apply_layers(viewer: Any, state: State, inputs: Mapping[str, Any]) -> None:
    """Restore the look of the inputs, and of the segmentation."""
    for entry, layer in _placed(viewer, state, inputs):
        if entry.get("input") is not None or entry.get("ours") == SEGMENTATION:
            apply_look(layer, entry)


def apply_order(viewer: Any, state: State, inputs: Mapping[str, Any]) -> None:
    """Restore the order of the layers; others stay on top of them."""
    for at, (_, layer) in enumerate(_placed(viewer, state, inputs)):
        now = next(k for k, one in enumerate(viewer.layers) if one is layer)
        if now != at:
            viewer.layers.move(now, at)


def _placed(viewer: Any, state: State, inputs: Mapping[str, Any]) -> list[tuple[State, Any]]:
    """Return the saved layers that are in the viewer, in their order, each once."""
    entries = state.get("layers")
    placed: list[tuple[State, Any]] = []
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, dict):
            continue
        if isinstance(entry.get("input"), str):
            layers = [inputs.get(entry["input"])]
        elif isinstance(entry.get("ours"), str):
            layers = [one for one in viewer.layers if one.metadata.get(KEY) == entry["ours"]]
        else:
            layers = [one for one in viewer.layers if one.name == entry.get("name")]
        for layer in layers[:1]:
            known = any(layer is one for _, one in placed)
            if layer is not None and not known and layer in viewer.layers:
                placed.append((entry, layer))
    return placed


def _own_role(layer: Any, owns: Any) -> str | None:
    own = layer.metadata.get(KEY) if owns(layer) else None
    return own if isinstance(own, str) else None


def write_state(folder: Path, state: State) -> None:
    """Write the state atomically; errors are ignored, as the file is optional."""
    with suppress(OSError):
        write_whole(folder / NAME, json.dumps(state, indent=1).encode())


def read_state(folder: Path) -> State:
    """Return the state in a folder; empty if there is none or it is damaged."""
    try:
        state = json.loads((folder / NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return state if isinstance(state, dict) else {}


def placement_of(state: State, graph: RegionGraph) -> Placement:
    """Return the placement of the volume, from the spacing of its graph if the state has none."""
    entry = state.get("placement")
    ndim = len(graph.spacing)
    if isinstance(entry, dict):
        scale, translate = (_numbers(entry.get(key), ndim) for key in ("scale", "translate"))
        if scale is not None and translate is not None and all(scale):
            names = [_names(entry.get(key), ndim) for key in ("units", "axis_labels")]
            return Placement(scale, translate, *names)
    units = (graph.unit,) * ndim if graph.unit else None
    return Placement(tuple(float(x) for x in graph.spacing), (0.0,) * ndim, units)


def apply_state(viewer: Any, state: State) -> None:
    """Restore the camera and hidden layers, as far as they fit the viewer."""
    if state.get("ndisplay") in (2, 3) and viewer.dims.ndim >= state["ndisplay"]:
        viewer.dims.ndisplay = state["ndisplay"]
    point = _numbers(state.get("point"), viewer.dims.ndim)
    if point is not None:
        viewer.dims.point = point
    saved = state.get("camera")
    if isinstance(saved, dict):
        lens = camera(viewer)
        center, angles = _numbers(saved.get("center"), 3), _numbers(saved.get("angles"), 3)
        zoom = _numbers([saved.get("zoom")], 1)
        if center is not None:
            lens.center = center
        if angles is not None and angles != tuple(lens.angles):  # napari imports scipy.spatial
            lens.angles = angles
        if zoom is not None and zoom[0] > 0:
            lens.zoom = zoom[0]
    hidden = state.get("hidden")
    if isinstance(hidden, list):
        for layer in viewer.layers:
            if layer.name in hidden:
                layer.visible = False


def missing_samples(state: State, names: set[str]) -> list[str]:
    """Return the kinds of our samples that have images, none of them among `names`."""
    samples = {_sample(entry) for entry in _images(state) if entry["name"] not in names}
    return [kind for kind in SAMPLES if ("napari-agglo", kind) in samples]


def open_images(viewer: Any, state: State) -> list[str]:
    """Open the images missing in the viewer; return the names of those not found."""
    missing: list[str] = []
    for entry in _images(state):
        name, sample = entry["name"], _sample(entry)
        if name in viewer.layers:
            continue
        try:
            if sample is not None:
                viewer.open_sample(*sample)
            elif isinstance(entry.get("path"), str) and Path(entry["path"]).exists():
                viewer.open(entry["path"], plugin=entry.get("plugin") or None)
            else:
                missing.append(name)
        except Exception:  # a reader of another plugin may raise anything; the session is open
            missing.append(name)
    return missing


def image_names(state: State) -> set[str]:
    """Return the names of the images beside a session that has no layers of its own."""
    return {entry["name"] for entry in _images(state)}


def _images(state: State) -> list[State]:
    """Return the images beside a session; none if the session has brought back its own layers."""
    layers, images = state.get("layers"), state.get("images")
    for entry in layers if isinstance(layers, list) else []:
        if isinstance(entry, dict) and entry.get("input") is not None:
            return []
    return [
        entry
        for entry in (images if isinstance(images, list) else [])
        if isinstance(entry, dict) and isinstance(entry.get("name"), str)
    ]


def _sample(entry: State) -> tuple[str, str] | None:
    sample = entry.get("sample")
    if not isinstance(sample, list) or len(sample) != 2:
        return None
    return str(sample[0]), str(sample[1])


def _numbers(entry: Any, n: int) -> tuple[float, ...] | None:
    if not isinstance(entry, list) or len(entry) != n:
        return None
    if not all(isinstance(x, (int, float)) and np.isfinite(x) for x in entry):
        return None
    return tuple(float(x) for x in entry)


def _names(entry: Any, n: int) -> tuple[str, ...] | None:
    if not isinstance(entry, list) or len(entry) != n or not all(isinstance(x, str) for x in entry):
        return None
    return tuple(entry)
