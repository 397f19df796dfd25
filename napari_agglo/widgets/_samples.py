"""The samples of File > Open Sample > Agglo, as layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from napari_agglo.samples import Sample, sample
from napari_agglo.widgets._jobs import when_imported
from napari_agglo.widgets._napari import role, sample_mark
from napari_agglo.widgets._qt import per_viewer

if TYPE_CHECKING:
    from napari.types import LayerData

SAMPLE = "sample"  # the name of the job
_MAPS = ("magma", "bop blue", "bop orange", "bop purple")


# Samples that were computed in a worker before their layers are opened; each is used once.
_computed: dict[str, Sample] = {}


def neuropil2d() -> list[LayerData]:
    """Return a section of tissue as in electron microscopy."""
    return layers_of(_compute("neuropil2d"))


def cells2d() -> list[LayerData]:
    """Return cells in fluorescence."""
    return layers_of(_compute("cells2d"))


def neuropil3d() -> list[LayerData]:
    """Return a volume of tissue as in electron microscopy."""
    return layers_of(_compute("neuropil3d"))


def compute_ahead(kind: str) -> None:
    """Compute a sample, in a worker, for the next layers of that kind."""
    _computed[kind] = sample(kind)


def layers_of(drawn: Sample) -> list[LayerData]:
    """Return the layers of a sample: the visible image, its cues and gold hidden above it."""
    ndim = drawn.gold.ndim
    place: dict[str, Any] = {"scale": drawn.spacing, "units": ("um",) * ndim}
    mark = sample_mark(drawn.name)
    image = {
        "name": f"{drawn.name} image",
        "colormap": "gray",
        "metadata": role("image") | mark,
        **place,
    }
    layers: list[LayerData] = [(drawn.image, image, "image")]
    for k, (name, cue) in enumerate(drawn.cues.items()):
        hidden = {
            "name": f"{drawn.name} {name}",
            "colormap": _MAPS[k % len(_MAPS)],
            "contrast_limits": (0.0, 1.0),
            "blending": "additive",
            "visible": False,
            "metadata": role("cue", name) | mark,
        }
        layers.append((cue, {**hidden, **place}, "image"))
    gold = {
        "name": f"{drawn.name} gold",
        "opacity": 0.5,
        "visible": False,
        "metadata": role("gold") | mark,
    }
    layers.append((drawn.gold, {**gold, **place}, "labels"))
    return layers


def _compute(kind: str) -> Sample:
    """Return a sample; a window handles events while a worker computes it."""
    import napari

    viewer = napari.current_viewer()
    if kind not in _computed and getattr(viewer, "window", None) is not None:
        _compute_in_worker(viewer, kind)
    return _computed.pop(kind, None) or sample(kind)


def _compute_in_worker(viewer: Any, kind: str) -> None:
    from qtpy.QtCore import QEventLoop, QTimer

    loop = QEventLoop()

    def start() -> None:
        from napari_agglo.widgets._project import Project

        job = per_viewer(viewer, Project).jobs.start(
            SAMPLE, "Computing the sample", lambda _: compute_ahead(kind), lambda _: None
        )
        if job is None:
            QTimer.singleShot(0, loop.quit)
        else:
            job.ended.connect(lambda: loop.quit())

    when_imported(f"{__package__}._project", start)
    loop.exec()
