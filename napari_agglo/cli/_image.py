"""Open an image in grey or in colours: the one input of a command that may have channels."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from napari_agglo.errors import InvalidInput

if TYPE_CHECKING:
    from napari_agglo.volumes import Volume


def open_image(file: str) -> tuple[Volume, bool]:
    """Return an image and whether it is in colours: red, green and blue along a last axis."""
    from dataclasses import replace

    import numpy as np

    from napari_agglo.volumes import open_volume

    try:
        return open_volume(file), False
    except InvalidInput:
        keyed = ":" in file and not os.path.exists(file)
        for axis in ("c", "s"):
            try:
                channels = [
                    open_volume(f"{file}{',' if keyed else ':'}{axis}={k}") for k in range(3)
                ]
            except InvalidInput:
                continue
            stacked = np.stack([channel.load() for channel in channels], axis=-1)
            return replace(channels[0], data=stacked), True
        raise
