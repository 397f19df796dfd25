"""Movies of agglomeration: frames of one or several merge trees side by side, and files."""

from __future__ import annotations

from napari_agglo.movie._frames import Movie, Steps, movie, steps
from napari_agglo.movie._write_movie import check_movie_path, write_movie

__all__ = ["write_movie", "movie", "Movie", "steps", "Steps", "check_movie_path"]
