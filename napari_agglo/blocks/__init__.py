"""Block-wise segmentation of volumes that do not fit in memory: the same stages, exactly.

`plan` writes what is to be done to a folder, `run` does what is left of it, `status` reads how far
it is, and `open` gives graph, tree, superpixels and labels, lazily.
"""

from napari_agglo.blocks._budget import Estimate, estimate
from napari_agglo.blocks._chunk_census import LostChunks
from napari_agglo.blocks._engine import Run, run
from napari_agglo.blocks._make_plan import make_plan as plan
from napari_agglo.blocks._plan import Plan, Source
from napari_agglo.blocks._result import Result, StageStatus, Status, status
from napari_agglo.blocks._result import open_result as open

__all__ = [
    "Estimate",
    "LostChunks",
    "Plan",
    "Result",
    "Run",
    "Source",
    "StageStatus",
    "Status",
    "estimate",
    "open",
    "plan",
    "run",
    "status",
]
