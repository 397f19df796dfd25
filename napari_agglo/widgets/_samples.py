"""File > Open Sample > Agglo: the embedded samples as layers."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from napari_agglo.samples import Sample, sample
from napari_agglo.widgets._roles import role

if TYPE_CHECKING:
    from napari.types import LayerData

SAMPLE = "sample"  # the name of the job
_MAPS = ("magma", "bop blue", "bop orange", "bop purple")


def neuropil2d() -> list[LayerData]:
    """Tissue as an electron microscope shows it, a section."""
    return layers_of(sample("neuropil2d"))


def cells2d() -> list[LayerData]:
    """Cells in fluorescence."""
    return layers_of(sample("cells2d"))


def neuropil3d() -> list[LayerData]:
    """Tissue as an electron microscope shows it, a volume.

    It takes some seconds to make. Where there is a window, that is done in the background and the
    layers come when they are ready.
    """
    import napari

    viewer = napari.current_viewer()
    if viewer is None or getattr(viewer, "window", None) is None:
        return layers_of(sample("neuropil3d"))
    _add_soon(viewer, "neuropil3d")
    return []


def layers_of(drawn: Sample) -> list[LayerData]:
    """Return the layers of a sample: the image in view, its cues and gold hidden above it."""
    ndim = drawn.gold.ndim
    place: dict[str, Any] = {"scale": drawn.spacing, "units": ("um",) * ndim}
    image = {"name": f"{drawn.name} image", "colormap": "gray", "metadata": role("image"), **place}
    layers: list[LayerData] = [(drawn.image, image, "image")]
    for k, (name, cue) in enumerate(drawn.cues.items()):
        shown = {
            "name": f"{drawn.name} {name}",
            "colormap": _MAPS[k % len(_MAPS)],
            "contrast_limits": (0.0, 1.0),
            "blending": "additive",
            "visible": False,
            "metadata": role("cue", name),
        }
        layers.append((cue, {**shown, **place}, "image"))
    gold = {
        "name": f"{drawn.name} gold",
        "opacity": 0.5,
        "visible": False,
        "metadata": role("gold"),
    }
    layers.append((drawn.gold, {**gold, **place}, "labels"))
    return layers


def _add_soon(viewer: Any, kind: str) -> None:
    from napari.layers import Layer

    from napari_agglo.widgets._project import project_of

    held = weakref.ref(viewer)

    def add(drawn: Sample) -> None:
        live = held()
        if live is not None:
            for one in layers_of(drawn):
                live.add_layer(Layer.create(*one))

    title = "Making the sample"
    project_of(viewer).jobs.start(SAMPLE, title, lambda _: sample(kind), add)
