"""The segmentation as it leaves the viewer: with the user's ids, whole, and as it is now.

The layer on the screen holds dense numbers, only the segments that are to be seen and, of a large
volume, a coarser level beside the full one. napari hands layers on, to whoever saves or duplicates
them, by one method: what that gives is exchanged here, so that every writer writes the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from napari.layers import Labels

from napari_agglo.widgets._lut_array import LutArray
from napari_agglo.widgets._project import Project

_ROOM = 4096  # entries after the last superpixel: one may be divided for a moment, for a preview


class OwnIds(LutArray):
    """The segments that a project has now, by the ids and in the type of its superpixels."""

    def __init__(self, project: Project) -> None:
        graph = project.graph
        assert graph is not None
        self.project = project
        labels = graph.superpixels
        names = project.table()
        table = np.zeros(len(names) + _ROOM, labels.dtype)
        table[: len(names)] = graph.ids[names].astype(labels.dtype)
        # A session draws divisions in its own image: what is kept must not change with it.
        image = labels.image if project.session is None else labels.image.copy()
        super().__init__(image, table)

    @property
    def is_current(self) -> bool:
        """Whether the project still shows this."""
        project = self.project
        if project.graph is None:
            return False
        now = project.graph.ids[project.table()]
        return np.array_equal(now, self.table.values[: len(now)]) and (
            len(now) + _ROOM == len(self.table.values)
        )


def give_own_ids(layer: Labels, project: Project) -> None:
    """Have a layer of the project's segments handed on with the user's ids."""
    as_shown = layer.as_layer_data_tuple

    def as_layer_data_tuple() -> tuple[Any, dict[str, Any], str]:
        data, state, kind = as_shown()
        if not project.has_hierarchy or project.graph is None:
            return data, state, kind
        # Features and the mark of whose layer it is are for dense numbers on the screen.
        state |= {"multiscale": False, "features": {}, "metadata": {}}
        return OwnIds(project), state, kind

    # Of a subclass of Labels napari knows neither how to save it nor how to duplicate it.
    layer.as_layer_data_tuple = as_layer_data_tuple
