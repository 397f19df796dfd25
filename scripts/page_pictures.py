"""Draw the pictures of docs/compare.md and docs/report.md: ``python -m scripts.page_pictures``.

The commands of each page are run in a temporary folder, as the tests run them. The report is shown
by a browser without a window: Chromium or Chrome, from the path or from the variable CHROMIUM.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from napari_agglo.cli import main as run_command

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
COLOURS = 128  # few, so that the files stay small
FRAME = 12  # of the movie
WIDTH = 1240  # pixels of the page of the report
# Parts of the report: the style that leaves the others out, and the height of the picture.
PARTS = {
    "report": ("", 1060),
    "report_errors": ("header, section:not(:nth-of-type(5)) {display: none}", 890),
}


def run_page(name: str) -> None:
    """Run the commands of a page in the present folder."""
    for block in BLOCK.findall((DOCS / name).read_text(encoding="utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
            program, *words = shlex.split(line, comments=True)
            assert program == "napari-agglo", line
            print(line)
            with contextlib.redirect_stdout(io.StringIO()):
                status = run_command(words)
            if status:
                sys.exit(f"{name}: {line} ended with status {status}")


def save(picture: Image.Image, name: str) -> None:
    """Write a picture with few colours."""
    few = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(DOCS / "images" / f"{name}.png", optimize=True)
    print(f"docs/images/{name}.png", *picture.size)


def draw_movie() -> None:
    """Draw a frame of the movie of docs/compare.md."""
    run_page("compare.md")
    frames = sorted(Path("n/merging").glob("*.png"))
    save(Image.open(frames[FRAME - 1]), "movie")


def browser() -> str:
    """Return the program of a browser."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        sys.exit(f"No browser among {', '.join(BROWSERS)}: install one, or name it in CHROMIUM.")
    return found


def draw_report() -> None:
    """Draw two parts of the report of docs/report.md."""
    run_page("report.md")
    page = Path("report/report.html").read_text(encoding="utf-8")
    for name, (style, height) in PARTS.items():
        part = Path(f"{name}.html").absolute()
        part.write_text(page.replace("</head>", f"<style>{style}</style></head>"), "utf-8")
        picture = Path(f"{name}.png").absolute()
        subprocess.run(
            [browser(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             f"--window-size={WIDTH},{height}", f"--screenshot={picture}", part.as_uri()],
            check=True, capture_output=True,
        )  # fmt: skip
        with Image.open(picture) as shot:
            if np.ptp(np.asarray(shot.convert("L"))) < 100:
                sys.exit(f"{name}: the browser has drawn an empty page")
            save(shot, name)


def main() -> None:
    """Draw the pictures that are named, or all."""
    drawings = {"movie": draw_movie, "report": draw_report}
    for name in sys.argv[1:] or drawings:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            drawings[name]()


if __name__ == "__main__":
    main()
