from __future__ import annotations

import argparse
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr

import napari_agglo
from napari_agglo.cli import main
from napari_agglo.cli._main import make_parser
from napari_agglo.volumes import DEFAULT_VERSION, plan_image

ROOT = Path(__file__).parents[2]
COMMANDS = [
    "demo", "sample", "cue", "pixels", "oversegment", "train", "segment", "evaluate", "curve",
    "report", "movie", "mapping", "session", "export", "blocks", "plugins", "warm", "completion",
]  # fmt: skip


def test_version(run):
    status, out, _ = run("--version")
    assert status == 0
    assert out == f"napari-agglo {napari_agglo.__version__}\n"


def test_help_lists_the_commands(run):
    status, out, _ = run("--help")
    assert status == 0
    assert re.findall(r"^    (\w+)", out, re.MULTILINE) == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(run, command):
    status, out, _ = run(command, "--help")
    assert status == 0
    assert f"example:\n  napari-agglo {command} " in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "COMMAND"),
        (["nonsense"], "'nonsense'"),
        (["evaluate"], "LABELS, --gold (see napari-agglo evaluate --help)"),
        (
            ["evaluate", "a", "--gold", "b", "--colour"],
            ": --colour (see napari-agglo evaluate --help)",
        ),
        (["evaluate", "a", "b"], "napari-agglo evaluate a --gold b?"),
        (["oversegment", "--each", "-o", "s", "a", "b"], "quotes"),
        (["oversegment", "b.tif", "-o", "s.tif", "--spacing", "-1,1"], "--spacing: '-1,1'"),
        (["oversegment", "b.tif", "-o", "s.tif", "--spacing", "nan,1"], "--spacing: 'nan,1'"),
        (["oversegment", "b.tif", "-o", "s.tif", "--range", "1:1"], "--range: '1:1'"),
        (["oversegment", "b.tif", "-o", "s.tif", "--range", "-1:nan"], "--range: '-1:nan'"),
        (["segment", "--cues", "boundary="], "boundary=FILE"),
        (["segment", "--cues", "boundary:b.tif"], "boundary=b.tif"),
        (["segment", "--threshold", "nan"], "--threshold: 'nan'"),
        (["curve", "--threshold", "-inf"], "--threshold: '-inf'"),
        (["curve", "--threshold", "127"], "0.498"),
        (["oversegment", "b.tif", "-o", "s.tif", "--spacing", "4;4"], "40,4,4"),
        (["oversegment", "b.tif", "-o", "s.tif", "--range", "255"], "LOW:HIGH"),
        (["oversegment", "b.tif", "-o", "s.tif", "--min-size", "few"], "--min-size"),
    ],
)
def test_wrong_arguments(refused, arguments, words):
    assert words in refused(*arguments)


def test_a_missing_file_is_named(refused, files):
    assert "nowhere.tif" in refused("evaluate", "nowhere.tif", "--gold", "gold.tif")


EVALUATE = ["evaluate", "gold.tif", "--gold", "gold.tif"]


def failing(monkeypatch, error):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr("napari_agglo.evaluate.table_metrics", fail)


def test_interrupt(run, files, monkeypatch):
    failing(monkeypatch, KeyboardInterrupt())
    status, _, message = run(*EVALUATE)
    assert status == 130
    assert message.count("\n") == 1
    assert "interrupted" in message


def test_a_fault_of_ours_is_one_line_with_a_hint(run, files, monkeypatch):
    monkeypatch.delenv("NAPARI_AGGLO_DEBUG", raising=False)
    failing(monkeypatch, ZeroDivisionError("by\nzero"))
    status, _, message = run(*EVALUATE)
    assert status == 1
    assert message.count("\n") == 1
    assert "ZeroDivisionError: by zero" in message
    assert "NAPARI_AGGLO_DEBUG=1" in message


def test_an_error_of_a_users_function_is_not_called_a_fault_of_ours(run, files, monkeypatch):
    monkeypatch.delenv("NAPARI_AGGLO_DEBUG", raising=False)
    error = ZeroDivisionError("mine")
    error.add_note("raised by the policy 'own:policy'")
    failing(monkeypatch, error)
    status, _, message = run(*EVALUATE)
    assert status == 2
    assert all(words in message for words in ("ZeroDivisionError", "'own:policy'", ": mine"))
    assert "report" not in message


def test_a_fault_of_ours_in_full(files, monkeypatch):
    monkeypatch.setenv("NAPARI_AGGLO_DEBUG", "1")
    failing(monkeypatch, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        main(EVALUATE)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionError(13, "Permission denied", "x.tif"), "Permission denied: x.tif"),
        (OSError("odd"), "odd"),
        (MemoryError("8 TB"), "(8 TB)"),
    ],
)
def test_errors_that_a_user_can_mend(refused, files, monkeypatch, error, words):
    failing(monkeypatch, error)
    assert words in refused(*EVALUATE)


def test_an_interrupt_while_the_commands_are_imported(capsys, monkeypatch):
    class Interrupt:
        def find_spec(self, name, path=None, target=None):
            if name.startswith("napari_agglo.cli."):
                raise KeyboardInterrupt

    for name in [name for name in sys.modules if name.startswith("napari_agglo.cli.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Interrupt(), *sys.meta_path])
    assert main(["--version"]) == 130
    assert "interrupted" in capsys.readouterr().err


def module(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "napari_agglo", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_as_a_module(files):
    done = module("evaluate", "superpixels.tif", "--gold", "gold.tif", "-q", cwd=files)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("false_merge  0.0000\n")
    done = module("nonsense", cwd=files)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_a_damaged_chunk_is_one_sentence(tmp_path):
    """Zarr's event loop ends with reads in it, which it would tell of one by one."""
    array = np.random.default_rng(0).random((32, 64, 64), np.float32)
    zarr.create_array(str(tmp_path / "hole.zarr"), data=array, chunks=(8, 8, 8))
    chunk = tmp_path / "hole.zarr" / "c" / "1" / "2" / "3"
    chunk.write_bytes(chunk.read_bytes()[:500])
    done = module("oversegment", "hole.zarr", "-o", "s.tif", cwd=tmp_path)
    assert done.returncode == 2
    assert (done.stderr.count("\n"), "hole.zarr" in done.stderr) == (1, True)


@pytest.mark.skipif(os.name == "nt", reason="pipes break otherwise there")
def test_a_reader_that_leaves_is_no_error(files):
    command = f"{sys.executable!r} -m napari_agglo --help | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=files,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_versions_of_ome_zarr_are_those_of_the_library():
    """The parser repeats them, as the library is imported only when a command runs."""

    def actions(parser):
        for action in parser._actions:
            yield action
            if isinstance(action, argparse._SubParsersAction):
                for nested in action.choices.values():
                    yield from actions(nested)

    signature = inspect.signature(plan_image)
    told = [one for one in actions(make_parser()) if "--ome-version" in one.option_strings]
    assert told
    for one in told:
        assert one.choices[0] == DEFAULT_VERSION == signature.parameters["version"].default
        assert one.default in (None, DEFAULT_VERSION)
        assert f"default: {DEFAULT_VERSION}" in one.help
