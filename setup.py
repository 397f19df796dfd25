"""The text of the project's page on PyPI and the napari hub; all other metadata are in setup.cfg.

Links and pictures of the README are relative, so that they work in a clone. They do not work on
other pages, so they are made absolute here.
"""

import configparser
import re
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
PICTURES = (".png", ".gif", ".svg", ".jpg")


def absolute(text: str, url: str) -> str:
    """Return Markdown with absolute links to files of the repository at `url`."""

    def link(match: re.Match[str]) -> str:
        path = match[2]
        kind = "raw" if path.lower().endswith(PICTURES) else "blob"
        return f"{match[1]}({url}/{kind}/HEAD/{path})"

    return re.sub(r"(!?\[[^\]]*\])\((?![a-z]+:|#)([^)\s]+)\)", link, text)


if __name__ == "__main__":
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    setup(
        long_description=absolute(
            (ROOT / "README.md").read_text(encoding="utf-8"), config["metadata"]["url"]
        ),
        long_description_content_type="text/markdown",
    )
