"""The napari plugin: dock widgets over the headless stages, which do all the work.

::

    Project   what is worked on in a viewer, and who is told when it changes
    Scene     the project's layers in the viewer
    Jobs      long work in worker threads, with progress and cancel
    data, train, hierarchy, evaluate, proofread     the steps, a widget each
    Dock      the steps in order
    compare   several segmentations side by side
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from napari_agglo.widgets._dock import Dock
    from napari_agglo.widgets.compare import CompareWidget
    from napari_agglo.widgets.data import DataWidget
    from napari_agglo.widgets.evaluate import EvaluateWidget
    from napari_agglo.widgets.hierarchy import HierarchyWidget
    from napari_agglo.widgets.proofread import ProofreadWidget
    from napari_agglo.widgets.train import TrainWidget

_HOME = {
    "Dock": "_dock",
    "DataWidget": "data",
    "TrainWidget": "train",
    "HierarchyWidget": "hierarchy",
    "EvaluateWidget": "evaluate",
    "ProofreadWidget": "proofread",
    "CompareWidget": "compare",
}
__all__ = [
    "Dock",
    "DataWidget",
    "TrainWidget",
    "HierarchyWidget",
    "EvaluateWidget",
    "ProofreadWidget",
    "CompareWidget",
]


def __getattr__(name: str) -> Any:
    """Load a widget when it is first asked for: the manifest names them all, few are used."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
