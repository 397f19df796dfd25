"""Named features that a policy reads: presets, and blocks in a registry.

To add features, write a function from a graph to columns and make a `FeatureBlock` of it: in a new
file of this folder, or in another package with an entry point of the group
``napari_agglo.features``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo._data_warnings import warn_caller
from napari_agglo._numba import kernel
from napari_agglo._numba.callbacks import callback_address, raise_error
from napari_agglo._registry import Registry, named_errors
from napari_agglo.errors import DataWarning, InvalidInput, SetOption, did_you_mean
from napari_agglo.features._kernels import (
    ANGLES,
    ASSEMBLE,
    BLOCKS,
    FILL,
    HULLS,
    LINKS,
    N_ANGLES,
    N_HULL_FEATURES,
    N_LINKS,
    N_WORD_FEATURES,
    SHAPES,
    FeatureState,
    assemble,
    fill_edge,
    fill_node,
    shared_addresses,
)
from napari_agglo.graph import (
    NO_HULLS,
    Absent,
    Hulls,
    RegionGraph,
    graph_of_pairs,
    hull_lists,
    linked,
    pair_width,
    refuse_hulls,
    sample_of_pairs,
    with_hulls,
)

if TYPE_CHECKING:
    import pandas as pd

_MOST_PAIRS = 1024  # boundaries in one call of the function of a block: one or two megabytes

# Addresses of the shared kernels, by what decides the type of a record.
_addresses: dict[Any, tuple[int, int]] = {}


class Preset(NamedTuple):
    """Options of a preset: the features that it has besides moments, divergences and sizes."""

    histogram: bool
    quantiles: tuple[float, ...]
    orientation: bool = False
    shape: bool = False
    links: bool = False
    hulls: bool = False


_DECILES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
# Policy files have the name of a preset, so that its options cannot change; but see `FORMER`.
PRESETS: dict[str, Preset] = {
    "shape": Preset(False, (0.1, 0.5, 0.9), shape=True),
    "stack": Preset(False, (0.1, 0.5, 0.9), shape=True, links=True),
    "em": Preset(True, (0.1, 0.5, 0.9)),
    "minimal": Preset(False, (0.5,)),
    "natural": Preset(True, _DECILES, orientation=True, hulls=True),
    "angles": Preset(True, _DECILES, orientation=True),
}
# Presets that have had fewer features under the same name, and the preset that has these now.
FORMER = {"natural": "angles"}
_MOMENTS = ("mean", "variance", "moment_3", "moment_4")


@dataclass(frozen=True)
class FeatureBlock:
    """Further features of a boundary, computed by a Python function.

    A preset includes the block by its name in the registry: ``preset="shape+NAME"``. The function
    is called for the boundaries of each new region, all at once, and before the first merge for
    many at a time.

    Parameters
    ----------
    name : str
        The name in the registry.
    columns : tuple of str
        Names of the features.
    compute : callable
        Takes a `RegionGraph` and returns an array of shape (boundaries, columns). The row of a
        boundary must depend only on the statistics of the boundary and of its two regions, and not
        on the order of the two.
    adds : bool
        Whether the function reads only statistics that are sums over the pixels of regions and
        boundaries, as those of a graph are. Features of anything else, such as convex hulls, must
        say False, and block-wise runs refuse them.

    Examples
    --------
    >>> block = FeatureBlock("area", ("area",), lambda graph: graph.contact_area())
    >>> feature_blocks.register("area", block).columns
    ('area',)
    >>> FeatureMap("minimal+area", ("boundary",), 25).names[-1]
    'area/area'
    """

    name: str
    columns: tuple[str, ...]
    compute: Callable[[RegionGraph], Any]
    adds: bool = True


def _accept(name: str, block: FeatureBlock) -> FeatureBlock:
    """Return the block of an entry point; refuse columns that are no names, or have the same."""
    columns: Any = block.columns
    if not isinstance(columns, (tuple, list)) or not all(isinstance(one, str) for one in columns):
        raise InvalidInput(
            f"its columns must be a tuple of names, got {columns!r}",
            remedy=f"pass {(columns,)!r}" if isinstance(columns, str) else "pass names",
        )
    if twice := next((one for one in columns if columns.count(one) > 1), ""):
        raise InvalidInput(f"its column {twice!r} is there twice", remedy="pass a name for each")
    return block


feature_blocks: Registry[FeatureBlock] = Registry(
    "napari_agglo.features",
    "feature block",
    FeatureBlock,
    made_by="FeatureBlock(name, columns, function)",
    accept=_accept,
)


def _preset_first(words: str) -> str:
    """Return the words of a preset and blocks with the preset, else "shape", before the blocks."""
    parts = words.split("+")
    preset = next((one for one in parts if one in PRESETS), "shape")
    return "+".join([preset, *(one for one in parts if one != preset)])


@dataclass(frozen=True)
class FeatureMap:
    """Features of two regions and their boundary, for each cue and for their shape.

    The vector is ``node_min | node_max | edge | pair``. `node_min` is the smaller of the two
    regions (of equal ones, the one of the smaller id), so that their order does not matter. Each of
    the first three parts has, for each cue, the mean, three central moments, quantiles and, if the
    preset has it, the histogram; `pair` has, for each cue, the differences of the moments of the
    two regions and the Jensen-Shannon divergence of their histograms, and then sizes, contact area
    and its share of the surface of each region. If the preset has shapes, there follow the contact
    area over the area of a cube of the size of each region; the size of the union, and of each
    region, over that of the ellipsoid of the same moments; the share of the surface of each region
    on the border of the volume; and, for each cue, the mean on the boundary minus that of each
    region. If it has links, there follow those between planes, axis 0: the share of the contact
    area that is between planes; that area over the mean section of each region, and over that of
    their union; the distance of the two centroids within the planes, of the whole regions and of
    their straight continuations to the plane where they meet, over the width of a section; and the
    distance of their mean planes over the mean of the planes that they extend over. If it has
    orientation, there follow the angles of the regions. If it has hulls, there follow the size of
    the union, and of each region, over that of its convex hull, the difference of the two regions
    in it, and that of each to the union. Last are, for each cue of words, the Jensen-Shannon
    divergence and the chi-squared distance of the words of the two regions, and the entropy of the
    words of each.

    Attributes
    ----------
    preset : str
        Name of a preset, with further blocks as in ``"shape+sizes"``.
    cues : tuple of str
        Names of the cues.
    bins : int
        Bins of the histograms of the graph.
    words : tuple of str
        Names of the cues of words.

    Examples
    --------
    >>> FeatureMap("minimal", ("boundary",), bins=25).names[:6]
    ('boundary/node_min/mean', 'boundary/node_min/variance', 'boundary/node_min/moment_3',
     'boundary/node_min/moment_4', 'boundary/node_min/quantile_0.5', 'boundary/node_max/mean')
    """

    preset: str
    cues: tuple[str, ...]
    bins: int
    words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        preset: Any = self.preset
        if isinstance(preset, (list, tuple)):
            words = _preset_first("+".join(map(str, preset)))
            known = all(name in feature_blocks for name in words.split("+")[1:])
            raise InvalidInput(
                f"`preset` must be one text, a preset and blocks with + between, got {preset!r}",
                argument="preset",
                remedy=SetOption("preset", words if known else "shape"),
            )
        if not (isinstance(self.preset, str) and self.preset.split("+")[0] in PRESETS):
            is_block = isinstance(self.preset, str) and self.preset.split("+")[0] in feature_blocks
            more = ", which begins with a block: the preset comes first" if is_block else ""
            raise InvalidInput(
                f"`preset` must be one of {', '.join(PRESETS)}; got {self.preset!r}"
                f"{more or did_you_mean(self.preset, PRESETS)}",
                argument="preset",
                remedy=SetOption("preset", _preset_first(self.preset) if is_block else "shape"),
            )
        self.blocks  # noqa: B018 - refuses a block that is not in the registry

    @property
    def blocks(self) -> tuple[FeatureBlock, ...]:
        """The further blocks, ``shape+FIRST+SECOND``."""
        return tuple(feature_blocks[name] for name in self.preset.split("+")[1:])

    @property
    def options(self) -> Preset:
        """Options of the preset."""
        return PRESETS[self.preset.split("+")[0]]

    @property
    def block_width(self) -> int:
        """Features of one region or one boundary."""
        each = len(_MOMENTS) + len(self.options.quantiles)
        each += self.bins if self.options.histogram else 0
        return each * len(self.cues)

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each feature, in the order of the vector."""
        out = []
        for part in ("node_min", "node_max", "edge"):
            for cue in self.cues:
                out += [f"{cue}/{part}/{moment}" for moment in _MOMENTS]
                out += [f"{cue}/{part}/quantile_{q:g}" for q in self.options.quantiles]
                if self.options.histogram:
                    out += [f"{cue}/{part}/bin_{k}" for k in range(self.bins)]
        for cue in self.cues:
            out += [f"{cue}/difference/{moment}" for moment in _MOMENTS]
            out.append(f"{cue}/difference/jensen_shannon")
        out += ["shape/node_min/log_size", "shape/node_max/log_size", "shape/edge/log_area"]
        out += ["shape/node_min/contact_share", "shape/node_max/contact_share"]
        if self.options.shape:
            out += ["shape/node_min/relative_contact", "shape/node_max/relative_contact"]
            out += [f"shape/{part}/ellipsoid_share" for part in ("union", "node_min", "node_max")]
            out += ["shape/node_min/border_share", "shape/node_max/border_share"]
            for cue in self.cues:
                out += [f"{cue}/contrast/node_min", f"{cue}/contrast/node_max"]
        if self.options.links:
            out += ["link/between_share", "link/node_min/overlap", "link/node_max/overlap"]
            out += ["link/overlap_of_union", "link/displacement", "link/continued_displacement"]
            out.append("link/plane_distance")
        if self.options.orientation:
            out += ["shape/angle", "shape/node_min/angle_to_other", "shape/node_max/angle_to_other"]
        if self.options.hulls:
            out += [f"shape/{part}/hull_share" for part in ("union", "node_min", "node_max")]
            out.append("shape/difference/hull_share")
            out += ["shape/node_min/above_union_hull", "shape/node_max/above_union_hull"]
        for name in self.words:
            out += [f"{name}/difference/jensen_shannon", f"{name}/difference/chi_squared"]
            out += [f"{name}/node_min/entropy", f"{name}/node_max/entropy"]
        out += [f"{block.name}/{column}" for block in self.blocks for column in block.columns]
        return tuple(out)

    @property
    def width(self) -> int:
        """Number of features."""
        more = sum(len(block.columns) for block in self.blocks)
        more += (7 + 2 * len(self.cues)) * self.options.shape
        more += N_LINKS * self.options.links + N_ANGLES * self.options.orientation
        more += N_HULL_FEATURES * self.options.hulls
        more += N_WORD_FEATURES * len(self.words)
        return 3 * self.block_width + 5 * len(self.cues) + 5 + more


def feature_map(graph: RegionGraph, preset: str = "shape") -> FeatureMap:
    """Return the feature map of a preset for the cues of `graph`.

    Parameters
    ----------
    graph : RegionGraph
        A graph with all statistics.
    preset : str
        Name of a preset, with further blocks as in ``"shape+sizes"``.

    Returns
    -------
    FeatureMap
        The features, by their names.

    Examples
    --------
    >>> import napari_agglo as agglo
    >>> graph = agglo.region_graph(np.array([[1, 2, 3]]), np.array([[0.0, 0.2, 0.6]]))
    >>> feature_map(graph, "minimal").cues
    ('boundary',)
    """
    if graph.layout.powers == 1:
        raise InvalidInput(
            "`graph` has only the means of its cues, and features need all statistics",
            argument="graph",
            remedy="score a graph of weights by its mean, or by a function of boundary_mean, sizes "
            "and contact_area"
            if graph.face_parts > 1
            else SetOption("statistics", "all"),
        )
    features = FeatureMap(preset, graph.cue_names, graph.layout.bins, graph.word_names)
    if features.options.links and graph.layout.ndim < 3:
        raise InvalidInput(
            f"The features {preset!r} link regions from plane to plane, and `graph` has no planes: "
            f"{graph.layout.ndim} axes",
            argument="preset",
            remedy=SetOption("preset", "shape"),
        )
    if features.options.hulls:
        refuse_hulls(graph)
    return features


def feature_state(
    graph: RegionGraph, features: FeatureMap, rows: NDArray[np.int64] | None = None
) -> FeatureState:
    """Return copies of the rows of `graph`, and the features of each region and boundary.

    `rows` replaces the rows of the boundaries, where constraints add boundaries without a face.
    """
    boundaries = graph.boundaries.copy() if rows is None else rows
    regions = graph.regions.copy()
    boxes: Any = graph.boxes
    if isinstance(boxes, Absent):  # of a part of a graph: no feature reads them
        boxes = np.zeros((len(regions), 2, graph.layout.ndim), np.int32)
    else:
        boxes = boxes.copy()
    state = empty_features(graph, features, regions, boxes, boundaries)
    if features.options.hulls:
        hulls = with_hulls(graph).hulls
        assert hulls is not None
        state = state._replace(hulls=linked(hulls))
    fill_features(np.arange(1, len(graph.regions)), np.arange(len(boundaries)), state)
    return state


def empty_features(
    graph: RegionGraph,
    features: FeatureMap,
    regions: NDArray[np.int64],
    boxes: NDArray[np.int32],
    boundaries: NDArray[np.int64],
    hulls: Hulls | None = None,
) -> FeatureState:
    """Return empty arrays for the features of these rows, which have the layout of `graph`.

    `hulls` are of superpixels that will be added to the rows.
    """
    layout, n, width = graph.layout, len(regions), features.block_width
    numbers = [layout.ndim, layout.n_cues, layout.powers, layout.bins]
    preset = features.options
    options = ANGLES * preset.orientation + SHAPES * preset.shape + LINKS * preset.links
    options += HULLS * preset.hulls
    numbers += [preset.histogram, len(preset.quantiles), options, 0, 0, 0]
    sampled = layout.source_table()[:, 2:] >= 0
    numbers += (sampled @ (1 << np.arange(layout.ndim))).tolist()
    numbers += layout.word_table()[:, 1:].ravel().tolist()
    places = np.array(numbers, np.int64)
    n_more = sum(len(block.columns) for block in features.blocks)
    room = min(max(len(boundaries), 1), _MOST_PAIRS) if n_more else 0
    pairs = np.zeros((room, pair_width(layout) if n_more else 0), np.int64)
    columns = np.zeros((room, n_more), np.float32)

    def compute(m: int) -> None:
        columns[:m] = _block_columns(graph_of_pairs(graph, pairs[:m]), features)

    if n_more:
        places[BLOCKS] = callback_address(compute, places)
    half = 0.5 * layout.ndim
    volume = np.pi**half / math.gamma(half + 1.0) * (layout.ndim + 2.0) ** half
    state = FeatureState(
        regions=regions,
        boxes=boxes,
        boundaries=boundaries,
        layout=places,
        quantiles=np.array(preset.quantiles),
        scale=np.concatenate(
            [
                [graph.spacing],
                [graph.face_areas()],
                np.zeros((2 * layout.ndim, layout.ndim)),
                np.full((1, layout.ndim), volume),
            ]
        ),
        node_block=np.zeros((n, width), np.float32),
        edge_block=np.zeros((len(boundaries), width), np.float32),
        entropy=np.zeros((n, layout.n_cues + len(layout.words))),
        axis=np.zeros((n, layout.ndim)),
        shapes=np.zeros((n, 3)),
        pairs=pairs,
        columns=columns,
        more=np.zeros((len(boundaries), n_more), np.float32),
        versions_read=np.full((len(boundaries) if n_more else 0, 4), -1, np.int64),
        versions=np.zeros(n if n_more else 0, np.int64),
        hulls=NO_HULLS if hulls is None or not preset.hulls else hull_lists(hulls, n),
    )
    # The type of the record follows from these; numba takes a millisecond to tell the type.
    kind = tuple((array.dtype, array.flags.num) for array in (regions, boxes, boundaries))
    if kind not in _addresses:
        _addresses[kind] = shared_addresses(state)
    places[[ASSEMBLE, FILL]] = _addresses[kind]
    return state


def _block_columns(graph: RegionGraph, features: FeatureMap) -> NDArray[np.float32]:
    """Return the columns of the further blocks for each boundary, checked."""
    return np.concatenate([block_columns(block, graph) for block in features.blocks], axis=1)


def block_columns(block: FeatureBlock, graph: RegionGraph) -> NDArray[np.float32]:
    """Return the columns of one block for each boundary; refuse all but finite numbers."""
    shape = (graph.n_boundaries, len(block.columns))
    with named_errors("feature block", block.name):
        returned = block.compute(graph)
    try:
        part = np.asarray(returned, np.float32)
    except (TypeError, ValueError):
        part = np.zeros(0, np.float32)
    if part.size == shape[0] * shape[1] and part.ndim < 2:
        part = part.reshape(shape)
    got = ""
    if part.shape != shape:
        got = f"shape {part.shape}" if isinstance(returned, np.ndarray) else f"{returned!r:.40}"
    elif not np.isfinite(part).all():
        row, column = np.argwhere(~np.isfinite(part))[0]
        n = int(np.count_nonzero(~np.isfinite(part)))
        got = f"{part[row, column]} in {block.columns[column]!r} ({n} numbers that are not finite)"
    if got:
        raise InvalidInput(
            f"The feature block {block.name!r} must return finite numbers of shape {shape}, a row "
            f"for each boundary, got {got}",
            argument="preset",
            remedy="fix its function, or remove the block from the preset",
        )
    return part


_SAMPLE = 64  # boundaries on which blocks are tried before a training or an agglomeration


def check_blocks(graph: RegionGraph, features: FeatureMap) -> None:
    """Try the blocks on some boundaries: refuse what cannot be used, warn of what is not local.

    A boundary alone, or with its regions swapped, must have the columns that it has among others. A
    column that is the same for all tells nothing, which is most often a fault.
    """
    if not features.blocks or graph.n_boundaries == 0:
        return
    rows = sample_of_pairs(graph, _SAMPLE)
    few = rows[:: max(len(rows) // 4, 1)]
    column, width = 2 + graph.layout.boundary_width, graph.layout.region_width
    swapped = few.copy()
    swapped[:, column : column + width], swapped[:, column + width :] = (
        few[:, column + width :], few[:, column : column + width],
    )  # fmt: skip
    swapped[:, :2] = few[:, 1::-1]
    grown = few.copy()  # the first region of each as if it were two alike
    grown[:, 2 : column + width] *= 2
    for block in features.blocks:
        among = block_columns(block, graph_of_pairs(graph, rows))
        of_few = among[:: max(len(rows) // 4, 1)]
        alone = [block_columns(block, graph_of_pairs(graph, row[None])) for row in few]
        other = block_columns(block, graph_of_pairs(graph, swapped))
        later = block_columns(block, graph_of_pairs(graph, grown))
        # Superpixels may be alike: a column is constant if it does not change with the regions.
        same = (among == among[0]).all(axis=0) & (later == among[0]).all(axis=0)
        problem = ""
        if not np.allclose(np.concatenate(alone), of_few, 1e-4, 1e-6):
            problem = "is not local: a boundary has other numbers alone than among others"
        elif not np.allclose(other, of_few, 1e-4, 1e-6):
            problem = "depends on which of two regions comes first"
        elif len(rows) > 1 and same.any():
            constant = block.columns[int(np.argmax(same))]
            problem = f"has the same number in {constant!r} for all of {len(rows)} boundaries"
        if problem:
            remedy = "compute each row from the statistics of the boundary and its two regions"
            warn_caller(
                DataWarning(
                    f"The feature block {block.name!r} {problem}", argument="preset", remedy=remedy
                )
            )


def feature_matrix(graph: RegionGraph, features: FeatureMap) -> NDArray[np.float32]:
    """Return the features of each boundary of `graph`.

    Parameters
    ----------
    graph : RegionGraph
        The graph that the feature map was made for.
    features : FeatureMap
        The features to compute.

    Returns
    -------
    ndarray of float32, shape (m, features.width)
        A row for each boundary, in the order of `graph.edges`.

    Examples
    --------
    >>> import napari_agglo as agglo
    >>> graph = agglo.region_graph(np.array([[1, 2, 3]]), np.array([[0.0, 0.2, 0.6]]))
    >>> features = feature_map(graph, "minimal")
    >>> feature_matrix(graph, features).shape == (2, features.width)
    True
    """
    out = np.zeros((graph.n_boundaries, features.width), np.float32)
    ends, ids = graph.edges.astype(np.int32), np.arange(len(graph.regions), dtype=np.int32)
    assemble_all(np.arange(len(ends)), ends, ids, out, feature_state(graph, features))
    if features.blocks:  # these run in Python, and their exceptions are kept until here
        raise_error()
    return out


def feature_table(graph: RegionGraph, preset: str = "shape") -> pd.DataFrame:
    """Return the features of each boundary as a table.

    Parameters
    ----------
    graph : RegionGraph
        A graph with all statistics.
    preset : str
        Name of a preset, with further blocks as in ``"shape+sizes"``.

    Returns
    -------
    DataFrame
        A row for each boundary: ``u`` and ``v``, the user's ids of the two regions, then a column
        for each feature.

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
def fill_features(nodes: Any, edges: Any, features: FeatureState) -> None:
    """Compute the blocks of regions and boundaries. No bounds checking."""
    for k in range(nodes.size):
        fill_node(nodes[k], features)
    for k in range(edges.size):
        fill_edge(edges[k], features)


@kernel
def assemble_all(edges: Any, ends: Any, ids: Any, out: Any, features: FeatureState) -> None:
    """Write the features of each edge to its row of `out`. No bounds checking."""
    assemble(edges, 0, edges.size, ends, ids, 0, out, features)
