"""Segment n-D images by learned hierarchical agglomeration, and proofread at any scale.

The pipeline, in the order of its folders::

    volumes -> superpixels -> graph -> features -> policy -> agglomeration -> learning
            -> partition -> evaluate -> compare -> session

Beside it, ``pixels`` makes cues from an image and a few strokes, and ``shapes`` surfaces in 3-D.

Nothing here needs napari or Qt. Names are loaded on first use, so that the import is quick.

Examples
--------
>>> import napari_agglo as agglo
>>> sample = agglo.sample("neuropil2d")
>>> superpixels = agglo.oversegment(sample.cues["boundary"])
>>> graph = agglo.region_graph(superpixels, sample.cues)
>>> policy = agglo.train(graph, sample.gold, epochs=1)
>>> tree = agglo.agglomerate(graph, policy)  # or "mean", which needs no training
>>> labels = tree.segment(0.5)
>>> labels.shape == superpixels.shape
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from napari_agglo._version import __version__
from napari_agglo.errors import AggloError, Cancelled, DataWarning, InvalidInput

if TYPE_CHECKING:
    from napari_agglo._progress import Progress
    from napari_agglo.agglomeration import MergeTree, agglomerate
    from napari_agglo.compare import disagreements, matched
    from napari_agglo.evaluate import (
        best_agglomeration,
        boundary_scores,
        breakdown,
        cross_validate,
        merge_curve,
        metrics,
        split_vi,
        vi_curve,
    )
    from napari_agglo.graph import RegionGraph, region_graph
    from napari_agglo.learning import train
    from napari_agglo.movie import write_movie
    from napari_agglo.partition import adaptive_cut, multicut, mutex_watershed
    from napari_agglo.pixels import PixelClassifier, load_pixel_classifier, train_pixels
    from napari_agglo.policy import (
        CallablePolicy,
        DataDifference,
        LearnedPolicy,
        MeanPolicy,
        Policy,
        RandomPolicy,
        adapt_cues,
        data_differences,
        load_policy,
    )
    from napari_agglo.samples import Sample, sample
    from napari_agglo.session import Session
    from napari_agglo.shapes import Mesh, mesh
    from napari_agglo.superpixels import (
        boundary_cue,
        boundary_from_labels,
        oriented_boundary,
        oversegment,
    )
    from napari_agglo.volumes import Volume, affinities, open_volume, write_labels

# the public names, by the folder that defines them
_EXPORTS = {
    "_progress": "Progress",
    "samples": "Sample sample",
    "volumes": "Volume affinities open_volume write_labels",
    "superpixels": "boundary_cue boundary_from_labels oriented_boundary oversegment",
    "graph": "RegionGraph region_graph",
    "shapes": "Mesh mesh",
    "policy": "CallablePolicy DataDifference LearnedPolicy MeanPolicy Policy RandomPolicy"
    " adapt_cues data_differences load_policy",
    "learning": "train",
    "pixels": "PixelClassifier load_pixel_classifier train_pixels",
    "agglomeration": "MergeTree agglomerate",
    "partition": "adaptive_cut multicut mutex_watershed",
    "evaluate": "best_agglomeration boundary_scores breakdown cross_validate merge_curve metrics"
    " split_vi vi_curve",
    "compare": "disagreements matched",
    "movie": "write_movie",
    "session": "Session",
}
_HOME = {name: folder for folder, names in _EXPORTS.items() for name in names.split()}

__all__ = [
    "AggloError",
    "CallablePolicy",
    "Cancelled",
    "DataDifference",
    "DataWarning",
    "InvalidInput",
    "LearnedPolicy",
    "MeanPolicy",
    "MergeTree",
    "Mesh",
    "PixelClassifier",
    "Policy",
    "Progress",
    "RandomPolicy",
    "RegionGraph",
    "Sample",
    "Session",
    "Volume",
    "__version__",
    "adapt_cues",
    "adaptive_cut",
    "affinities",
    "agglomerate",
    "best_agglomeration",
    "boundary_cue",
    "boundary_from_labels",
    "boundary_scores",
    "breakdown",
    "cross_validate",
    "data_differences",
    "disagreements",
    "load_pixel_classifier",
    "load_policy",
    "matched",
    "merge_curve",
    "mesh",
    "metrics",
    "multicut",
    "mutex_watershed",
    "open_volume",
    "oriented_boundary",
    "oversegment",
    "region_graph",
    "sample",
    "split_vi",
    "train",
    "train_pixels",
    "vi_curve",
    "write_labels",
    "write_movie",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value  # the next look-up finds it here
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
