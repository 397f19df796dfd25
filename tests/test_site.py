"""The site of the documentation builds without a warning, and its search finds words."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site as `make docs` does, in an environment of its own and without a network."""
    folder = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "VENV": str(folder / "venv"), "DOCS_OFFLINE": "1"}
    made = subprocess.run(
        ["bash", str(ROOT / "scripts" / "setup.sh"), "docs"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if re.search("No matching distribution|Connection", made.stderr):
        pytest.skip("there is no package index")
    assert made.returncode == 0, made.stderr
    # Sphinx writes a page of each name beside the others: not into the folder of a developer.
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("reference"))
    built = subprocess.run(
        [folder / "venv" / "bin" / "python", "-m", "sphinx", "--quiet", "--fail-on-warning",
         "--keep-going", "-b", "html", "docs", "site"],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    return folder / "site"


@pytest.mark.slow
def test_every_page_is_in_the_site(site):
    pages = [page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")]
    assert [page for page in pages if not (site / page.with_suffix(".html")).exists()] == []
    assert (site / "reference" / "napari_agglo.Session.html").exists()


@pytest.mark.slow
def test_search_finds_names_of_packages_and_parameters(site):
    """The index has the stem of each word, and the pages with it."""
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text[text.index("{") : text.rindex("}") + 1])
    for word, page in (("dask", "scale"), ("networkx", "exports"), ("min_siz", "superpixels")):
        names = set()
        for terms in (index["terms"], index["titleterms"]):
            found = terms.get(word, [])
            numbers = [found] if isinstance(found, int) else found
            names |= {index["docnames"][number] for number in numbers}
        assert page in names, word
    assert "no_such_word" not in index["terms"]
