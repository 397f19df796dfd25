"""`napari-agglo completion`: scripts made from the parser."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from napari_agglo.cli._commands.completion import SHELLS, subparsers
from napari_agglo.cli._main import COMMANDS, make_parser


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_and_option_is_in_the_script(run, shell):
    status, script, err = run("completion", shell)
    assert (status, err) == (0, "")
    commands = subparsers(make_parser())
    assert {module.NAME for module in COMMANDS} < set(commands)
    assert "session info" in commands
    for command in commands.values():
        for action in command._actions:
            for option in action.option_strings:
                typed = option if shell != "fish" else f"-l {option[2:]}"
                assert not option.startswith("--") or typed in script


def complete(run, *words):
    """Return the words that bash offers after `words`, the last of which is begun."""
    script = run("completion", "bash")[1]
    typed = " ".join(f'"{word}"' for word in ("napari-agglo", *words))
    ask = f"COMP_WORDS=({typed}); COMP_CWORD={len(words)}; _napari_agglo; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(
        ["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes(run):
    assert complete(run, "seg") == ["segment"]
    assert complete(run, "segment", "--thr") == ["--threshold"]
    assert complete(run, "train", "--strategy", "") == ["agglo", "flat", "lash", "mixed"]
    assert complete(run, "session", "re") == ["recover"]
    assert complete(run, "session", "info", "--js") == ["--json"]
    assert complete(run, "completion", "") == ["-h", "--help", *SHELLS, "-q", "--quiet", "-v",
                                               "--verbose"]  # fmt: skip


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_shell_can_read_it(run, shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    file = tmp_path / "script"
    file.write_text(run("completion", shell)[1])
    assert subprocess.run([shell, "-n", str(file)], check=False).returncode == 0
