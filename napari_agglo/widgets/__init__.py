"""The napari plugin: dock widgets over the headless stages, which do all the work.

::

    Project   the dataset, regions, policy, hierarchy and session of a viewer, with signals
    Scene     the project's layers in the viewer
    Jobs      long work in worker threads, with progress and cancel
    data, train, hierarchy, evaluate, proofread     the steps, a widget each
    Dock      the steps in order
    compare   several segmentations side by side
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from napari_agglo.errors import Install, InvalidInput

if TYPE_CHECKING:
    from napari_agglo.widgets._steps import StepWidget

# The steps of the dock in their order, each with its module.
_STEPS = {
    "DataWidget": "data._widget",
    "TrainWidget": "train._widget",
    "HierarchyWidget": "hierarchy._widget",
    "EvaluateWidget": "evaluate._widget",
    "ProofreadWidget": "proofread._widget",
}
_HOME = {"Dock": "_dock", **_STEPS, "CompareWidget": "compare._widget"}
__all__ = [*_HOME, "step_classes"]


_REQUIRED = ("napari", "qtpy", "superqt", "magicgui", "pyqtgraph")


def check_requirements() -> None:
    """Refuse an installation without what the docks need: pip installs the library alone."""
    missing = [name for name in _REQUIRED if find_spec(name) is None]
    if missing:
        raise InvalidInput(
            f"The docks need {', '.join(missing)}, which pip has not installed with the library",
            argument="napari",
            remedy=Install('"napari-agglo[napari]"'),
        )


def __getattr__(name: str) -> Any:
    """Load a widget at its first use: the manifest names them all, few are used."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    check_requirements()
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def step_classes() -> tuple[type[StepWidget], ...]:
    """Return the classes of the steps in the order of the dock; their modules are imported."""
    return tuple(__getattr__(name) for name in _STEPS)
