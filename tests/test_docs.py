"""The Python in the README and the docs is run, block by block, each page with names of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import napari_agglo as agglo

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.compiled
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        exec(compile(block, str(page), "exec"), names)


def test_blocks_are_found():
    assert BLOCK.search((ROOT / "README.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_within_the_repository_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_public_name_is_in_the_list():
    """Those of the library, and those of a session, which is most of what users call."""
    said = set(re.findall(r"\w+", (ROOT / "docs" / "api.md").read_text(encoding="utf-8")))
    assert set(agglo.__all__) <= said
    assert {name for name in dir(agglo.Session) if not name.startswith("_")} <= said
