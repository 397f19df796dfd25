"""Volumes for training and testing: real ones from the data folder, and the sample."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import napari_agglo as agglo
from benchmarks.volumes import data_folder
from napari_agglo.graph import RegionGraph

Lesson = tuple[RegionGraph, np.ndarray]


def _read(*names: str) -> list[Any]:
    import tifffile

    folder = data_folder()
    assert folder is not None
    return [tifffile.imread(folder / f"{name}.tif") for name in names]


def fibsem() -> tuple[Lesson, Lesson]:
    """Return FIBSEM of fly neuropil: one volume for training, another for testing."""
    out = []
    for part in ("train", "test"):
        names = [f"gala_fibsem/{part}_{what}" for what in ("superpixels", "prob", "gt")]
        superpixels, boundary, gold = _read(*names)
        out.append((agglo.region_graph(superpixels, boundary), gold))
    return out[0], out[1]


def _rows(volumes: list[Any], start: int, stop: int, **options: Any) -> Lesson:
    superpixels, boundary, gold = (np.ascontiguousarray(v[:, start:stop]) for v in volumes)
    return agglo.region_graph(superpixels, boundary, **options), gold


def snemi() -> tuple[Lesson, Lesson]:
    """Return anisotropic EM, superpixels plane by plane: rows 0-79 and 80-159."""
    volumes = _read(*(f"gala_snemi_mini/{w}" for w in ("superpixels", "prob_interior", "gt")))
    options = {"ranges": (255, 0), "spacing": (30, 6, 6)}
    return _rows(volumes, 0, 80, **options), _rows(volumes, 80, 160, **options)


def fib25() -> tuple[Lesson, Lesson]:
    """Return FIBSEM of fly medulla: rows 0-124 and 125-249."""
    names = ("superpixels", "derived_boundary_prob", "gt")
    volumes = _read(*(f"fib25_half/{what}" for what in names))
    return _rows(volumes, 0, 125, ranges=(0, 255)), _rows(volumes, 125, 250, ranges=(0, 255))


def neuropil() -> tuple[Lesson, Lesson]:
    """Return the sample by its boundary cue, seeds 0 and 1; superpixels from 1,000 voxels."""
    out = []
    for seed in (0, 1):
        sample = agglo.sample("neuropil3d", seed=seed)
        superpixels = agglo.oversegment(sample.cues["boundary"], min_size=1000)
        graph = agglo.region_graph(superpixels, sample.cues["boundary"])
        out.append((graph, sample.gold))
    return out[0], out[1]


def _arrays(name: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if name == "fibsem":
        return tuple(_read(*(f"gala_fibsem/train_{w}" for w in ("superpixels", "prob", "gt")))), {}
    if name == "snemi":
        volumes = _read(*(f"gala_snemi_mini/{w}" for w in ("superpixels", "prob_interior", "gt")))
        return tuple(v[:, :80] for v in volumes), {"ranges": (255, 0), "spacing": (30, 6, 6)}
    volumes = _read(*(f"fib25_half/{w}" for w in ("superpixels", "derived_boundary_prob", "gt")))
    return tuple(v[:, :125] for v in volumes), {"ranges": (0, 255)}


def training_volumes() -> dict[str, Callable[[], tuple[tuple[Any, ...], dict[str, Any]]]]:
    """Return superpixels, boundary and gold of each training part, and options of its graph."""
    real = ("fibsem", "snemi", "fib25") if data_folder() else ()
    return {name: functools.partial(_arrays, name) for name in real}


def lessons() -> dict[str, Callable[[], tuple[Lesson, Lesson]]]:
    """Return the volumes: name to a function that gives (training, test)."""
    real = {"fibsem": fibsem, "snemi": snemi, "fib25": fib25} if data_folder() else {}
    return {**real, "neuropil": neuropil}
