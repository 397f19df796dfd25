"""The library and the command line need neither napari nor Qt."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import tifffile

ROOT = Path(__file__).parents[1]
WINDOW = {"napari", "magicgui", "qtpy", "superqt", "pyqtgraph", "imageio_ffmpeg", "dask", "pyarrow"}
SCRIPT = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names}:
            raise ImportError(name)

sys.meta_path.insert(0, Block())
from napari_agglo.cli import main
pipeline = ["--superpixels", "s.tif", "--cues", "b.tif"]
for words in (
    ["oversegment", "b.tif", "-o", "s.tif", "--min-size", "1"],
    ["segment", *pipeline, "-o", "l.tif"],
    ["evaluate", "l.tif", "--gold", "s.tif"],
    ["curve", *pipeline, "--gold", "s.tif"],
    ["completion", "bash"],
    ["movie", *pipeline, "-o", "m.gif", "--frames", "2"],
):
    assert main(words) == 0, words
assert main(["movie", *pipeline, "-o", "m.mp4"]) == 2
"""


def test_commands_run_without_the_window(tmp_path):
    rng = np.random.default_rng(0)
    tifffile.imwrite(tmp_path / "b.tif", rng.random((6, 8)).astype(np.float32))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("{names}", repr(WINDOW))],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert 'pip install "napari-agglo[movie]"' in done.stderr
