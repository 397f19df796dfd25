"""Open the results of a block-wise run for proofreading: the session of the run, or a new one.

In its own file: nothing else of the plugin knows block-wise runs.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput
from napari_agglo.widgets._jobs import Job
from napari_agglo.widgets._readers import run_folder
from napari_agglo.widgets.proofread._open_session import open_session, sessions_folder


def open_run(viewer: Any, path: str | os.PathLike[str]) -> Job | None:
    """Open the session of a block-wise run, which is made if there is none; no volume is read.

    The session is ``NAME.agglo`` beside the results folder, or in the folder of new sessions if
    nothing can be written there. It refers to the superpixels and cues of the run.
    """
    folder = run_folder(os.fspath(path))
    if folder is None:
        raise InvalidInput(
            f"{os.fspath(path)} has no results of a block-wise run",
            argument="path",
            remedy="choose the folder that napari-agglo blocks run was given",
        )
    target = session_of(folder)

    def make(progress: ProgressCallback) -> None:
        from napari_agglo import blocks  # imported late, as few windows need it

        target.parent.mkdir(parents=True, exist_ok=True)
        blocks.open(folder).create_session(target, progress=progress).close()

    return open_session(viewer, target, make=None if target.exists() else make)


def session_of(folder: Path) -> Path:
    """Return the path of the session of a results folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     session_of(Path(place) / "cells.blocks").name
    'cells.agglo'
    """
    whole = folder.resolve()
    name = f"{whole.stem if whole.suffix == '.blocks' else whole.name}.agglo"
    beside = whole.with_name(name)
    return beside if os.access(whole.parent, os.W_OK) else sessions_folder() / name
