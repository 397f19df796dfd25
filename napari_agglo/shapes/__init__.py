"""Surfaces of segments in three dimensions, and files of them for other programs."""

from __future__ import annotations

from napari_agglo.shapes._mesh import Mesh, mesh, mesh_of_regions
from napari_agglo.shapes._mesh_files import MESH_SUFFIXES, write_mesh, write_precomputed

__all__ = [
    "MESH_SUFFIXES",
    "Mesh",
    "mesh",
    "mesh_of_regions",
    "write_mesh",
    "write_precomputed",
]
