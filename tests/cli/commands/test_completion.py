"""`napari-agglo completion`: scripts made from the parser."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

SHELLS = ("bash", "zsh", "fish")


def options_of(run, *command):
    """Return the long options and the commands that the help of a command tells."""
    out = run(*command, "--help")[1]
    return re.findall(r"(?<!\S)--[\w-]+", out), re.findall(r"^    (\w+)", out, re.MULTILINE)


def test_every_command_and_option_is_in_the_scripts(run):
    scripts = {}
    for shell in SHELLS:
        status, scripts[shell], err = run("completion", shell)
        assert (status, err) == (0, "")
    commands = [[]]
    for command in commands:  # it grows by the commands of a command
        options, below = options_of(run, *command)
        commands += [[*command, one] for one in below]
        assert "--help" in options
        for option in options if command else []:
            for shell, script in scripts.items():
                assert (option if shell != "fish" else f"-l {option[2:]}") in script
    assert ["session", "info"] in commands
    assert len(commands) > 15, "test invalid: the commands were not found"


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
