"""The samples of File > Open Sample > Agglo, as layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from napari_agglo.samples import Sample, sample
from napari_agglo.widgets._napari import role
from napari_agglo.widgets._qt import per_viewer

if TYPE_CHECKING:
    from napari.types import LayerData

SAMPLE = "sample"  # the name of the job
_MAPS = ("magma", "bop blue", "bop orange", "bop purple")


def neuropil2d() -> list[LayerData]:
    """Return a section of tissue as in electron microscopy."""
    return layers_of(sample("neuropil2d"))


def cells2d() -> list[LayerData]:
    """Return cells in fluorescence."""
    return layers_of(sample("cells2d"))


def neuropil3d() -> list[LayerData]:
    """Return a volume of tissue as in electron microscopy.

    It takes some seconds to compute; a window stays responsive meanwhile.
    """
    import napari

    viewer = napari.current_viewer()
    if viewer is None or getattr(viewer, "window", None) is None:
        return layers_of(sample("neuropil3d"))
    return layers_of(_compute_in_worker(viewer, "neuropil3d"))


def layers_of(drawn: Sample) -> list[LayerData]:
    """Return the layers of a sample: the visible image, its cues and gold hidden above it."""
    ndim = drawn.gold.ndim
    place: dict[str, Any] = {"scale": drawn.spacing, "units": ("um",) * ndim}
    image = {"name": f"{drawn.name} image", "colormap": "gray", "metadata": role("image"), **place}
    layers: list[LayerData] = [(drawn.image, image, "image")]
    for k, (name, cue) in enumerate(drawn.cues.items()):
        hidden = {
            "name": f"{drawn.name} {name}",
            "colormap": _MAPS[k % len(_MAPS)],
            "contrast_limits": (0.0, 1.0),
            "blending": "additive",
            "visible": False,
            "metadata": role("cue", name),
        }
        layers.append((cue, {**hidden, **place}, "image"))
    gold = {
        "name": f"{drawn.name} gold",
        "opacity": 0.5,
        "visible": False,
        "metadata": role("gold"),
    }
    layers.append((drawn.gold, {**gold, **place}, "labels"))
    return layers


def _compute_in_worker(viewer: Any, kind: str) -> Sample:
    """Compute a sample in a worker and return it; the window handles events meanwhile."""
    from qtpy.QtCore import QEventLoop

    from napari_agglo.widgets._project import Project

    results: list[Sample] = []
    job = per_viewer(viewer, Project).jobs.start(
        SAMPLE, "Computing the sample", lambda _: sample(kind), results.append
    )
    if job is not None:
        loop = QEventLoop()
        job.ended.connect(lambda: loop.quit())
        loop.exec()
    return results[0] if results else sample(kind)
