"""Agglomerations in motion: frames of one or several merge trees side by side, and their files."""

from __future__ import annotations

from napari_agglo.movie._frames import Movie, movie
from napari_agglo.movie._steps import Steps, steps
from napari_agglo.movie._write import check_movie_path, write_movie

__all__ = ["write_movie", "movie", "Movie", "steps", "Steps", "check_movie_path"]
