from __future__ import annotations

import shutil
from dataclasses import dataclass

import numpy as np
import pytest
import tifffile

from napari_agglo.cli import _terminal, main
from napari_agglo.errors import alternatives


@dataclass(frozen=True)
class Refusal:
    """The line that a refused command prints, and the error behind it; ``text in refusal``."""

    line: str
    error: Exception

    def __contains__(self, text):
        return text in self.line

    @property
    def argument(self):
        """The argument that was refused."""
        return self.error.argument

    @property
    def remedies(self):
        """The ways out, each by itself."""
        return alternatives(self.error.remedy)


@pytest.fixture(autouse=True)
def no_progress(monkeypatch):
    """Log no progress while kernels are compiled, so that stderr holds messages only."""
    monkeypatch.setattr(_terminal, "LOG_SECONDS", float("inf"))


@pytest.fixture
def run(capsys):
    """Run the command line; return status, stdout and stderr."""

    def call(*arguments):
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.fixture
def refused(run, monkeypatch):
    """Run the command line, which must end with status 2 and one line; return the refusal."""
    errors = []
    fail = _terminal.Console.fail

    def note(console, error, image=""):
        errors.append(error)
        return fail(console, error, image)

    monkeypatch.setattr(_terminal.Console, "fail", note)

    def call(*arguments):
        status, _, message = run(*arguments)
        assert status == 2, message
        assert message.count("\n") == 1
        assert message.startswith("napari-agglo: ")
        assert "Traceback" not in message
        return Refusal(message, errors[-1])

    return call


@pytest.fixture(scope="session")
def rooms_folder(tmp_path_factory):
    """Four rooms, with a weak wall between left and right above and strong walls elsewhere.

    ::

        superpixels  1 1 1 2 2 2     gold  5 5 5 5 5 5
                     1 1 1 2 2 2           5 5 5 5 5 5
                     3 3 3 4 4 4           0 0 0 7 7 7
                     3 3 3 4 4 4           6 6 6 7 7 7
    """
    folder = tmp_path_factory.mktemp("rooms")
    superpixels = np.repeat(np.repeat([[1, 2], [3, 4]], 2, axis=0), 3, axis=1).astype(np.uint16)
    boundary = np.zeros((4, 6), np.float32)
    boundary[1:3] = 0.8
    boundary[2:, 2:4] = 0.8
    boundary[0, 2:4] = 0.1
    boundary[1, 2:4] = 0.3
    gold = np.array([[5] * 6, [5] * 6, [0, 0, 0, 7, 7, 7], [6, 6, 6, 7, 7, 7]], np.uint16)
    for name, array in {"superpixels": superpixels, "boundary": boundary, "gold": gold}.items():
        tifffile.imwrite(folder / f"{name}.tif", array)
    tifffile.imwrite(folder / "boundary8.tif", np.round(boundary * 255).astype(np.uint8))
    tifffile.imwrite(folder / "inverted8.tif", 255 - np.round(boundary * 255).astype(np.uint8))
    return folder


@pytest.fixture
def files(rooms_folder, tmp_path, monkeypatch):
    """Work in a folder with the files of the rooms."""
    shutil.copytree(rooms_folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path
