"""Which features a policy looks at, each with a name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import kernel
from napari_agglo.errors import InvalidInput, SetOption
from napari_agglo.features._kernels import FeatureState, assemble, fill_edge, fill_node
from napari_agglo.graph import RegionGraph

if TYPE_CHECKING:
    import pandas as pd


# What a preset takes of a cue: whole histograms, which quantiles, orientation of the regions.
PRESETS: dict[str, tuple[bool, tuple[float, ...], bool]] = {
    "em": (True, (0.1, 0.5, 0.9), False),
    "minimal": (False, (0.5,), False),
    "natural": (True, (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9), True),
}
_MOMENTS = ("mean", "variance", "moment_3", "moment_4")


@dataclass(frozen=True)
class FeatureMap:
    """What is read off two regions and their boundary, for each cue and for their shape.

    The vector is ``node_min | node_max | edge | pair``. `node_min` is the smaller of the two
    regions (of equal ones, the one of the smaller id), so that it does not matter which is called
    u. Each of the first three holds, for each cue, the mean, three central moments, quantiles and,
    if the preset has it, the histogram; `pair` holds, for each cue, how far the moments of the two
    regions differ and the Jensen-Shannon divergence of their histograms, and then sizes, contact
    area, its share of the surface of each region and, if the preset has it, their angles.

    Examples
    --------
    >>> FeatureMap("minimal", ("boundary",), bins=25).names[:6]
    ('boundary/node_min/mean', 'boundary/node_min/variance', 'boundary/node_min/moment_3',
     'boundary/node_min/moment_4', 'boundary/node_min/quantile_0.5', 'boundary/node_max/mean')
    """

    preset: str
    cues: tuple[str, ...]
    bins: int

    def __post_init__(self) -> None:
        if not (isinstance(self.preset, str) and self.preset in PRESETS):
            raise InvalidInput(
                f"`preset` must be one of {', '.join(PRESETS)}; got {self.preset!r}",
                argument="preset",
                remedy=SetOption("preset", "em"),
            )

    @property
    def histogram(self) -> bool:
        """Whether whole histograms are features."""
        return PRESETS[self.preset][0]

    @property
    def quantiles(self) -> tuple[float, ...]:
        """Which quantiles are features."""
        return PRESETS[self.preset][1]

    @property
    def orientation(self) -> bool:
        """Whether angles of the regions are features."""
        return PRESETS[self.preset][2]

    @property
    def block_width(self) -> int:
        """Features of one region or one boundary."""
        each = len(_MOMENTS) + len(self.quantiles) + (self.bins if self.histogram else 0)
        return each * len(self.cues)

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each feature, in the order of the vector."""
        out = []
        for part in ("node_min", "node_max", "edge"):
            for cue in self.cues:
                out += [f"{cue}/{part}/{moment}" for moment in _MOMENTS]
                out += [f"{cue}/{part}/quantile_{q:g}" for q in self.quantiles]
                if self.histogram:
                    out += [f"{cue}/{part}/bin_{k}" for k in range(self.bins)]
        for cue in self.cues:
            out += [f"{cue}/difference/{moment}" for moment in _MOMENTS]
            out.append(f"{cue}/difference/jensen_shannon")
        out += ["shape/node_min/log_size", "shape/node_max/log_size", "shape/edge/log_area"]
        out += ["shape/node_min/contact_share", "shape/node_max/contact_share"]
        if self.orientation:
            out += ["shape/angle", "shape/node_min/angle_to_other", "shape/node_max/angle_to_other"]
        return tuple(out)

    @property
    def width(self) -> int:
        """Number of features."""
        return 3 * self.block_width + 5 * len(self.cues) + 5 + 3 * self.orientation


def feature_map(graph: RegionGraph, preset: str = "em") -> FeatureMap:
    """Return the feature map of a preset for the cues of `graph`."""
    if graph.layout.powers == 1:
        raise InvalidInput(
            "`graph` has only the means of its cues, and features need all statistics",
            argument="graph",
            remedy=SetOption("statistics", "all"),
        )
    return FeatureMap(preset, graph.cue_names, graph.layout.bins)


# Features of all boundaries of a graph at once, as a matrix or a table.


def feature_state(
    graph: RegionGraph, features: FeatureMap, rows: NDArray[np.int64] | None = None
) -> FeatureState:
    """Return copies of the rows of `graph`, and what is read off each region and boundary.

    `rows` stands in for the rows of the boundaries, where constraints add some without a face.
    """
    layout = graph.layout
    boundaries = graph.boundaries.copy() if rows is None else rows
    spacing = np.asarray(graph.spacing)
    state = FeatureState(
        regions=graph.regions.copy(),
        boxes=graph.boxes.copy(),
        boundaries=boundaries,
        layout=np.array(
            [
                layout.ndim,
                layout.n_cues,
                layout.powers,
                layout.bins,
                features.histogram,
                len(features.quantiles),
                features.orientation,
            ],
            np.int64,
        ),
        quantiles=np.array(features.quantiles),
        scale=np.stack([spacing, graph.face_areas()]),
        node_block=np.zeros((len(graph.regions), features.block_width), np.float32),
        edge_block=np.zeros((len(boundaries), features.block_width), np.float32),
        entropy=np.zeros((len(graph.regions), layout.n_cues)),
        axis=np.zeros((len(graph.regions), layout.ndim)),
    )
    _fill_all(state)
    return state


def feature_matrix(graph: RegionGraph, features: FeatureMap) -> NDArray[np.float32]:
    """Return the features of each boundary of `graph`, shape (m, features.width)."""
    out = np.zeros((graph.n_boundaries, features.width), np.float32)
    _assemble_all(graph.edges, out, feature_state(graph, features))
    return out


def feature_table(graph: RegionGraph, preset: str = "em") -> pd.DataFrame:
    """Return the features of each boundary as a table: the user's ids, then a column each.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo import region_graph
    >>> graph = region_graph(np.array([[1, 1, 2, 2]]), np.array([[0.0, 0.2, 0.8, 1.0]]))
    >>> table = feature_table(graph, "minimal")
    >>> float(table["boundary/edge/mean"].round(3).iloc[0])
    0.5
    """
    import pandas as pd

    features = feature_map(graph, preset)
    table = pd.DataFrame(feature_matrix(graph, features), columns=list(features.names))
    table.insert(0, "u", graph.ids[graph.edges[:, 0]])
    table.insert(1, "v", graph.ids[graph.edges[:, 1]])
    return table


@kernel
def _fill_all(features: FeatureState) -> None:
    """Compute the blocks of every region and every boundary. No bounds checking."""
    for node in range(1, features.regions.shape[0]):
        fill_node(node, features)
    for edge in range(features.boundaries.shape[0]):
        fill_edge(edge, features)


@kernel
def _assemble_all(edges: Any, out: Any, features: FeatureState) -> None:
    """Write the features of each edge to its row of `out`. No bounds checking."""
    for edge in range(edges.shape[0]):
        u = edges[edge, 0]
        v = edges[edge, 1]
        assemble(edge, u, v, u, v, out, edge, features)
