"""An export kind: the sizes of segments as text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np

from napari_agglo.session import ExportView, exporter


@exporter("sizes", label="Sizes of segments", suffixes=(".txt",))
def export_sizes(
    view: ExportView, path: Path, *, least: Annotated[int, "Smallest size to list"] = 1
) -> None:
    """Write a line for each segment: its id and its number of pixels."""
    ids, sizes = np.unique(view.lut[view.graph.superpixels.image], return_counts=True)
    rows = [f"{k} {n}\n" for k, n in zip(ids, sizes, strict=True) if k and n >= least]
    path.write_text("".join(rows))
