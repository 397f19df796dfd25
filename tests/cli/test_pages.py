"""Completeness of the API page, of the menu of the pages and of the help."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import napari_agglo

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", napari_agglo.__all__)
def test_every_public_name_is_explained(name):
    rows = [r for r in (DOCS / "api.md").read_text("utf-8").splitlines() if r.startswith("| ")]
    firsts = [row.split("|")[1] for row in rows]
    assert any(f"`{name}`" in first or f"`{name}(" in first for first in firsts)


def test_every_page_is_in_the_menu():
    pages = {page.relative_to(DOCS).with_suffix("").as_posix() for page in DOCS.rglob("*.md")}
    menus = [page for page in DOCS.rglob("*.md") if "{toctree}" in page.read_text("utf-8")]
    listed = {
        (menu.parent / line).resolve().relative_to(DOCS.resolve()).as_posix()
        for menu in menus
        for tree in re.findall(r"```{toctree}(.*?)```", menu.read_text("utf-8"), re.DOTALL)
        for line in tree.split()
        if not line.startswith(":")
    }
    assert pages - listed == {"index"}


@pytest.mark.parametrize("name", napari_agglo.__all__)
def test_every_public_name_has_a_page_of_its_own(name):
    listed = (DOCS / "reference.md").read_text("utf-8").splitlines()
    assert name == "__version__" or f"   {name}" in listed


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("oversegment", "in the unit of the spacing (default: half the finest spacing; 0: none)"),
        ("oversegment", "in voxels (default: 25 in a plane, 125 in a volume, 1 with --seeds)"),
        ("segment", "in micrometres if they have a unit"),
        ("segment", "a number from 0 to 1 (default: 0.5, or that of the session)"),
        ("curve", "a number from 0 to 1 (default: 0.5)"),
        ("curve", "--each"),
        ("evaluate", "--each"),
    ],
)
def test_units_and_defaults_are_in_the_help(run, command, words):
    assert words in " ".join(run(command, "--help")[1].split())
