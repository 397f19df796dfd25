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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_sections_lead_to_a_heading(page):
    text = page.read_text(encoding="utf-8")
    for target, section in re.findall(r"\]\(([\w./-]*\.md)?#([\w-]+)\)", text):
        linked = (page.parent / target if target else page).read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.+)$", linked, re.MULTILINE)
        assert section in {slug(heading) for heading in headings}, (target, section)


def slug(heading: str) -> str:
    """Return the anchor that a heading has on the page."""
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())


def test_files_that_the_architecture_names_exist():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for line in text.splitlines():
        folder = ""
        for name in re.findall(r"`([\w/]+\.py)`", line):
            folder = name.rpartition("/")[0] or folder
            places = (name, f"napari_agglo/{name}", f"napari_agglo/{folder}/{name}")
            assert any((ROOT / place).exists() for place in places), name


def test_every_public_name_is_in_the_list():
    """Those of the library, and those of a session, which is most of what users call."""
    words = set(re.findall(r"\w+", (ROOT / "docs" / "api.md").read_text(encoding="utf-8")))
    assert set(agglo.__all__) <= words
    assert {name for name in dir(agglo.Session) if not name.startswith("_")} <= words
