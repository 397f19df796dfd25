"""The curve of one image, or of a session: made, and written if that is wanted."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


def curve_of_files(
    files: dict[str, str], cues: dict[str, str], output: str | None, arguments: argparse.Namespace
) -> tuple[pd.DataFrame, int]:
    """Return the curve of one image, and the voxels compared, of the gold that has the most."""
    from napari_agglo.cli._golds import gold_names, load_golds
    from napari_agglo.cli._inputs import open_inputs
    from napari_agglo.cli._pipeline import build_tree, library_names
    from napari_agglo.cli._terminal import progress_line
    from napari_agglo.cli._words import command_words
    from napari_agglo.evaluate import vi_curve

    evidence = {name: files[f"--cues {name}"] for name in cues}
    truth = gold_names(files)
    names = library_names(files["--superpixels"], evidence) | truth
    inputs = open_inputs(names, arguments.spacing)
    with command_words(names):
        golds = load_golds(inputs.volumes, truth, "superpixels")
    with progress_line() as progress:
        tree = build_tree(inputs, evidence, arguments, progress)
        with command_words(names):
            curve = vi_curve(tree, golds, progress=progress)
    _write(curve, output, arguments.each)
    return curve, _voxels(golds)


def curve_of_session(path: str, arguments: argparse.Namespace) -> tuple[pd.DataFrame, int]:
    """Return the curve of a session with all edits, and the voxels compared."""
    from napari_agglo.cli._sessions import WITH, open_session, session_golds, session_trees
    from napari_agglo.cli._terminal import progress_line
    from napari_agglo.evaluate import vi_curve

    with (
        progress_line() as progress,
        open_session(path, arguments.superpixels, progress) as session,
    ):
        golds = session_golds(session, arguments.gold)
        tree = session_trees(session, progress, before=False)[WITH]
        curve = vi_curve(tree, golds, progress=progress)
    _write(curve, arguments.output, False)
    return curve, _voxels(golds)


def _voxels(golds: Sequence[NDArray[Any]]) -> int:
    import numpy as np

    return max(int(np.count_nonzero(gold)) for gold in golds)


def _write(curve: pd.DataFrame, output: str | None, make_folder: bool) -> None:
    from napari_agglo.volumes import replacing

    if output:
        if make_folder:
            Path(output).parent.mkdir(exist_ok=True)
        with replacing(Path(output)) as temporary:
            curve.to_csv(temporary, index=False)
