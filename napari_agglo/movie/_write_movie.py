"""Movie files: MP4, GIF, or a folder of PNG, each written completely or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import Install, InvalidInput, SetOption, is_number
from napari_agglo.movie._frames import movie
from napari_agglo.volumes import replacing

Frames = Iterator[NDArray[np.uint8]]
Rate = Annotated[float, {"min": 1.0, "max": 120.0}]  # as a control offers it
_FRAME = re.compile(r"frame_\d+\.png")


def write_movie(
    path: str | PathLike[str],
    panels: Mapping[str, Any],
    *,
    fps: Rate = 12,
    progress: ProgressCallback | None = None,
    **options: Any,
) -> Path:
    """Write a movie of agglomerations, side by side and synchronised.

    Parameters
    ----------
    path : path-like
        ``NAME.mp4`` or ``NAME.gif``; a name without a suffix is a folder, for ``frame_0000.png``
        and so on. An existing movie is replaced when the new one is complete.
    panels : mapping of str to MergeTree or label image
        As for `napari_agglo.movie.movie`.
    fps : float
        Frames per second, above 0 and up to 120; unused for a folder.
    progress : callable, optional
        Called with a `Progress` at each frame; if it raises `Cancelled` nothing is written.
    **options
        Options of `napari_agglo.movie.movie`: ``image``, ``gold``, ``plane``, ``by``, ``frames``,
        ``start``, ``stop``, ``spacing``, ``size``.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile, napari_agglo as agglo
    >>> sample = agglo.sample("neuropil2d")
    >>> graph = agglo.region_graph(agglo.oversegment(sample.cues["boundary"]), sample.cues)
    >>> folder = tempfile.TemporaryDirectory()
    >>> tree = agglo.agglomerate(graph)
    >>> write_movie(f"{folder.name}/mean.gif", {"mean": tree}, frames=5, size=100).name
    'mean.gif'
    >>> folder.cleanup()
    """
    target = check_movie_path(path)
    if not (is_number(fps) and 0 < fps <= 120):
        raise InvalidInput(
            f"`fps` must be a number above 0 and up to 120, got {fps!r}",
            argument="fps",
            remedy=SetOption("fps", 12),
        )
    film = movie(panels, progress=progress, **options)
    may_replace = None if target.suffix else _only_frames
    with replacing(target, may_replace=may_replace) as temporary:
        frames = film.frames(progress)
        if target.suffix.lower() == ".mp4":
            _write_mp4(temporary, frames, float(fps))
        elif target.suffix.lower() == ".gif":
            _write_gif(temporary, frames, float(fps))
        else:
            _write_png(temporary, frames, len(film))
    return target


def check_movie_path(path: str | PathLike[str]) -> Path:
    """Return the path of a movie; refuse a path that no movie can be written to.

    Parameters
    ----------
    path : path-like
        The file to write, ``.mp4`` or ``.gif``, or a folder of PNG, without a suffix.

    Returns
    -------
    Path
        The same.

    Raises
    ------
    InvalidInput
        If the suffix is another one, or a package for it is not installed.

    Examples
    --------
    >>> check_movie_path("merging.gif").name
    'merging.gif'
    """
    target = Path(path)
    if target.suffix.lower() not in (".mp4", ".gif", ""):
        raise InvalidInput(
            f"`path` must end in .mp4 or .gif, or have no suffix for a folder of PNG, got {target}",
            argument="path",
            remedy=SetOption("path", str(target.with_suffix(".mp4"))),
        )
    if target.suffix.lower() == ".mp4" and not _has_ffmpeg():
        raise InvalidInput(
            f"{target}: MP4 needs imageio-ffmpeg, which is not installed",
            argument="path",
            remedy=(
                Install('"napari-agglo[movie]"'),
                SetOption("path", str(target.with_suffix(".gif"))),
            ),
        )
    if not target.suffix and target.is_dir() and not _only_frames(target):
        raise InvalidInput(
            f"`path` {target} is a folder with other files than frames of a movie",
            argument="path",
            remedy="choose another name",
        )
    return target


def _has_ffmpeg() -> bool:
    try:
        import imageio_ffmpeg  # noqa: F401
    except ImportError:
        return False
    return True


def _only_frames(folder: Path) -> bool:
    """Return whether a folder has only frames of a movie."""
    return all(_FRAME.fullmatch(item.name) for item in folder.iterdir())


def _write_mp4(path: Path, frames: Frames, fps: float) -> None:
    import imageio_ffmpeg

    first = next(frames)
    height, width = first.shape[:2]
    writer = imageio_ffmpeg.write_frames(
        str(path), (width, height), fps=fps, codec="libx264", pix_fmt_out="yuv420p", quality=8,
        macro_block_size=2, output_params=["-f", "mp4", "-movflags", "+faststart"],
        ffmpeg_log_level="error",
    )  # fmt: skip
    try:
        writer.send(None)
        writer.send(np.ascontiguousarray(first))
        for frame in frames:
            writer.send(np.ascontiguousarray(frame))
    finally:
        writer.close()  # also after a cancel: ffmpeg must release the file


def _write_gif(path: Path, frames: Frames, fps: float) -> None:
    from PIL import Image

    def reduced() -> Iterator[Image.Image]:
        for frame in frames:
            yield Image.fromarray(frame).quantize(256, dither=Image.Dither.NONE)

    pictures = reduced()
    first = next(pictures)
    # A GIF counts in hundredths of a second, and viewers slow down frames of less than two.
    duration = max(20, 10 * round(100 / fps))
    first.save(
        path, "GIF", save_all=True, append_images=pictures, duration=duration, loop=0, disposal=1
    )


def _write_png(path: Path, frames: Frames, n: int) -> None:
    from PIL import Image

    path.mkdir()
    digits = max(4, len(str(n - 1)))
    for k, frame in enumerate(frames):
        Image.fromarray(frame).save(path / f"frame_{k:0{digits}d}.png", "PNG")
