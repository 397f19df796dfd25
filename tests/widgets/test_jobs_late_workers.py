"""Workers that outlive their window say nothing; in a program of its own, which ends meanwhile."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("late_workers.py")


@pytest.mark.slow
def test_twenty_windows_are_closed_while_workers_run(qapp):
    ran = subprocess.run(
        [sys.executable, str(PROGRAM), "20", "0"], capture_output=True, text=True, check=False,
        timeout=1800,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "deleted" not in ran.stderr
    assert "Traceback" not in ran.stderr
    late = re.search(r"(\d+) of 20", ran.stdout)
    assert late is not None
    assert int(late[1]) >= 10, "test invalid: the workers were done before"
