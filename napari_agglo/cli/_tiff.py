"""Write an image or a cue as TIFF, with its spacing where other programs look for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray


def write_tiff(path: Path, image: NDArray[Any], spacing: Sequence[float] | None) -> None:
    """Write a compressed OME-TIFF; an axis beyond those of `spacing` is that of colours.

    Where the spacing is not known, a plain TIFF, which does not pretend to know.
    """
    import tifffile

    if spacing is None:
        tifffile.imwrite(path, image, photometric="minisblack", compression="zlib")
        return

    axes = "ZYX"[-len(spacing) :]
    metadata: dict[str, Any] = {"axes": axes + ("S" if image.ndim > len(spacing) else "")}
    for axis, distance in zip(axes, spacing, strict=True):
        metadata[f"PhysicalSize{axis}"] = float(distance)
        metadata[f"PhysicalSize{axis}Unit"] = "µm"
    tifffile.imwrite(
        path,
        image,
        ome=True,
        photometric="rgb" if image.ndim > len(spacing) else "minisblack",
        compression="zlib",
        metadata=metadata,
    )
