"""The Python and the commands of the README and the docs are run, each page in a folder of its own.

A block of Python or of commands runs after those above it, with their names and files. Files that a
page takes as the reader's own are made by `GIVEN`. Commands that cannot run here are in `NOT_RUN`.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from configparser import ConfigParser
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path

import imageio
import numpy as np
import pytest
import tifffile
import zarr

import napari_agglo as agglo
from napari_agglo.cli import main

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```([\w{}-]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMANDS = ("sh", "console")
# Blocks of other kinds: diagrams, what a file has to contain, parts of Sphinx.
OTHER = ("text", "json", "toml", "{toctree}", "{eval-rst}")
QUICK = (
    "README.md",
    "start.md",
)  # commands of which `make test` runs; of other pages `make test-full`
APART = ("scale.md",)  # the commands have a folder of their own: Python writes the same names
OF_OTHERS = ("my_module.py", "napari/_vispy/canvas.py")  # a reader's file, and one of napari
# Beginnings of commands that are not run, with the reason.
NOT_RUN = {
    "make": "makes an environment, or runs all tests; the target must be in the Makefile",
    "pip install": "changes the environment of the tests; the extra must be in setup.cfg",
    "python -m benchmarks": "minutes to hours, volumes of others; the module must be there",
    "python -m pytest": "the tests themselves; the files must be there",
}
# First lines of Python that is compiled and not run, with the reason.
NOT_EXECUTED = {
    "from qtpy.QtWidgets import QApplication": "shows a fault of napari, which can end the process",
}
STORE = "s3://BUCKET"  # of the reader; in the tests the folder of the page, as a URL


def crop(kind: str = "neuropil2d", *shape: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return boundary map, gold and image of a part of a sample, as bytes but for the gold."""
    sample = agglo.sample(kind)
    part = tuple(slice(0, length) for length in shape)
    boundary = np.round(255 * sample.cues["boundary"][part]).astype(np.uint8)
    return boundary, sample.gold[part], sample.image[part]


def write(**images: np.ndarray) -> None:
    """Write images as TIFF; cues as floats from 0 to 1."""
    for name, image in images.items():
        cue = image.dtype == np.uint8 and name != "image"
        tifffile.imwrite(f"{name}.tif", image / np.float32(255) if cue else image)


def superpixels_of(boundary: np.ndarray) -> np.ndarray:
    return agglo.oversegment(boundary, value_range=(0, 255))


def a_prediction() -> None:
    """Affinities of the nearest voxels and one further away, as bytes; their gold."""
    boundary, gold, _ = crop("neuropil3d", 16, 48, 48)
    channels = [255 - np.maximum(boundary, np.roll(boundary, 1, axis)) for axis in range(3)]
    zarr.save_group("prediction.zarr", affs=np.stack(channels))
    write(gold=gold)


def a_session() -> None:
    """Session with edits, their table, and the superpixels and the gold of the session."""
    boundary, gold, _ = crop("neuropil2d", 96, 96)
    write(gold=gold)
    graph = agglo.region_graph(superpixels_of(boundary), boundary, ranges=(0, 255))
    with agglo.Session.create("cells.agglo", graph, gold=gold) as session:
        session.threshold = 0.3
        first = session.segments.ids()[0]
        session.merge(first, session.segments.neighbours(first)[0])
        session.export("edits.csv", "edits")


def a_plane() -> None:
    """Superpixels, boundary map, gold and image of one plane, by the names of several pages."""
    boundary, gold, image = crop("neuropil2d", 96, 96)
    write(boundary=boundary, cue_boundary=boundary, gold=gold, image=image)
    write(superpixels=superpixels_of(boundary))
    Path("my_module.py").write_text("def cautious(graph):\n    return graph.boundary_mean()\n")


def a_photograph() -> None:
    """Photograph and the regions in it."""
    rows, columns = np.mgrid[:96, :128]
    disc = np.hypot(rows - 40, columns - 40) < 24
    photo = np.where(disc[..., None], (170, 90, 60), (120, 140, 90)).astype(np.uint8)
    photo[:, 80:] += (20 * ((rows + columns)[:, 80:, None] // 3 % 2)).astype(np.uint8)
    imageio.v3.imwrite("photo.png", photo)
    write(gold=np.where(disc, 3, np.where(columns >= 80, 2, 1)).astype(np.uint16))


def a_stack() -> None:
    """Stack, the same as a boundary map with gold, a volume with two datasets, and folders."""
    boundary, gold, _ = crop("neuropil3d", 8, 64, 64)
    write(stack=boundary, boundary=boundary, gold=gold)
    for name, image in {
        "superpixels": superpixels_of(boundary),
        "maps": boundary,
        "gold": gold,
    }.items():
        Path(name).mkdir()
        for k in range(2):
            tifffile.imwrite(
                f"{name}/{k}.tif", image / np.float32(255) if name == "maps" else image
            )
    boundary, gold, _ = crop("neuropil3d", 8, 128, 48)
    tall = {"membrane": boundary, "neurons": gold}
    zarr.save_group(
        "volume.zarr", **{k: np.concatenate([v, v[:, ::-1]], 1) for k, v in tall.items()}
    )


def a_volume() -> None:
    """Boundary map as bytes, on the disk."""
    zarr.save_array("boundary.zarr", crop("neuropil2d", 128, 128)[0])


# Files that a page takes as the reader's own.
GIVEN = {
    "affinities.md": a_prediction,
    "cli.md": a_session,
    "learning.md": a_plane,
    "own_policy.md": a_plane,
    "partitions.md": a_plane,
    "photographs.md": a_photograph,
    "recipes.md": a_stack,
    "scale.md": a_volume,
    "stacks.md": a_stack,
}


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the language and the text of each block of code, in order."""
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        yield block[1], block[2]


def commands(text: str) -> list[str]:
    """Return the command lines of a block, without prompts and continued lines as one."""
    lines = text.replace("\\\n", " ").splitlines()
    return [line.removeprefix("$ ") for line in lines if line.strip()]


def reason_not_to_run(command: str) -> str | None:
    return next((why for begin, why in NOT_RUN.items() if command.startswith(begin)), None)


def all_commands() -> list[tuple[str, str]]:
    """Return page and line of every command in a block."""
    return [
        (page.name, line)
        for page in PAGES
        for language, text in blocks(page)
        if language in COMMANDS
        for line in commands(text)
    ]


PAGES_WITH_COMMANDS = [
    page
    for page in PAGES
    if page.name not in QUICK
    and any(name == page.name and not reason_not_to_run(line) for name, line in all_commands())
]


def coarse_superpixels_are_of_use() -> None:
    """Check that an example teaches (397 superpixels when it was written)."""
    assert 200 < agglo.open_volume("n/coarse.h5:superpixels").load().max() < 800


def the_policy_learned_something() -> None:
    with open("report/summary.csv", newline="", encoding="utf-8") as file:
        vi = {row["policy"]: float(row["vi"]) for row in csv.DictReader(file)}
    assert vi["agglo"] < vi["mean"]


# What the files that the commands of a page have written must hold.
AFTER = {"cli.md": coarse_superpixels_are_of_use, "report.md": the_policy_learned_something}


@pytest.fixture
def run_page(tmp_path, monkeypatch, capsys):
    """Return a function that runs the Python of a page, and with `also` its commands, in order."""

    def run_command(line: str) -> None:
        name, *words = shlex.split(line.replace(STORE, Path.cwd().as_uri()), comments=True)
        assert name == "napari-agglo", line
        capsys.readouterr()
        status = main(words)
        told = capsys.readouterr().err.splitlines()
        told = [one for one in told if not re.fullmatch(r"napari-agglo: .* \d+ %.*, \d+ s", one)]
        assert (status, told) == (0, []), line

    def run(page: Path, also: bool) -> None:
        apart = tmp_path / "commands" if page.name in APART else tmp_path
        apart.mkdir(exist_ok=True)
        monkeypatch.chdir(apart)
        names: dict[str, object] = {}
        if also and page.name in GIVEN:
            GIVEN[page.name]()
        for language, text in blocks(page):
            if language == "python":
                monkeypatch.chdir(tmp_path)
                code = compile(text, str(page), "exec")
                if text.splitlines()[0] not in NOT_EXECUTED:
                    exec(code, names)
            elif also and language in COMMANDS:
                monkeypatch.chdir(apart)
                for line in commands(text):
                    if not reason_not_to_run(line):
                        run_command(line)
        if also and page.name in AFTER:
            AFTER[page.name]()

    return run


@pytest.mark.compiled
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_runs(page, run_page):
    run_page(page, also=page.name in QUICK)


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("page", PAGES_WITH_COMMANDS, ids=lambda page: page.name)
def test_commands_run(page, run_page):
    run_page(page, also=True)


def test_a_page_that_does_not_run_is_noticed(run_page, tmp_path):
    page = tmp_path / "page.md"
    for block in (
        "```python\n1 / 0\n```",
        "```sh\n$ napari-agglo evaluate a.tif --gold b.tif\n```",
    ):
        page.write_text(block)
        with pytest.raises((ZeroDivisionError, AssertionError)):
            run_page(page, also=True)
    page.write_text("```sh\nnapari-agglo evaluate a.tif --gold b.tif\n```")
    run_page(page, also=False)


def test_blocks_are_found():
    """Their kinds are known too: a block that is neither run nor listed would be forgotten."""
    found = {language: page.name for page in PAGES for language, _ in blocks(page)}
    assert {"python", "sh"} <= found.keys()
    assert found.keys() - {"python", *COMMANDS, *OTHER} == set(), found
    assert commands("$ napari-agglo a \\\n  b\n\nmake demo") == ["napari-agglo a    b", "make demo"]
    for page in PAGES:
        fences = re.findall(r"^ *```(.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert set(fences[1::2]) <= {""}, f"{page.name}: a block that does not end"
        for _, text in blocks(page):
            long = [line for line in text.splitlines() if len(line) > 100]
            assert long == [], f"{page.name}: a line that is cut off on a screen of 1440 pixels"
    names = {page.name for page in PAGES}
    assert len(names) == len(PAGES), "names of pages are keys"
    assert {*GIVEN, *QUICK} <= names
    assert set(GIVEN) <= {page.name for page in PAGES_WITH_COMMANDS}


def test_commands_that_are_not_run_name_what_is_there():
    """No reason stays in the list that no command needs."""
    reasons, makefile = set(), (ROOT / "Makefile").read_text(encoding="utf-8")
    config = ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    for page, line in all_commands():
        if reason := reason_not_to_run(line):
            reasons.add(reason)
            words = shlex.split(line, comments=True)
            if words[0] == "make":
                assert re.search(rf"^{words[1]}:.*##", makefile, re.MULTILINE), (page, line)
            elif words[0] == "pip":
                for extras in re.findall(r"\[(.*?)\]", line):
                    assert set(extras.split(",")) <= set(config["options.extras_require"]), line
            else:
                files = [word for word in words if word.startswith("tests/")]
                assert find_spec(words[2]), (page, line)
                assert all((ROOT / file).exists() for file in files), (page, line)
    assert reasons == set(NOT_RUN.values())


def test_python_is_in_blocks_of_python():
    """Code in a block of another language would not run; the exceptions are on a page."""
    beginnings = set()
    for page in PAGES:
        for language, text in blocks(page):
            if language == "python":
                beginnings.add(text.splitlines()[0])
            else:
                assert not re.search(r"^(import|from) \w+|^>>> ", text, re.MULTILINE), page.name
    assert beginnings >= NOT_EXECUTED.keys()


def test_blocks_of_data_can_be_read():
    """JSON and TOML; the entry points are those of the example package."""
    example = ROOT / "tests" / "example_package" / "pyproject.toml"
    known = tomllib.loads(example.read_text(encoding="utf-8"))["project"]["entry-points"]
    groups = set()
    for page in PAGES:
        for language, text in blocks(page):
            if language == "json":
                assert json.loads(text if text.startswith("{") else f"{{{text}}}"), page
            elif language == "toml":
                for group, names in tomllib.loads(text)["project"]["entry-points"].items():
                    groups.add(group)
                    assert names.items() <= known[group].items(), page
    assert groups == known.keys(), "every group has its example"


@pytest.fixture(scope="module")
def options_of_commands():
    """Return the options of each command and of its commands, from their help."""
    found: dict[tuple[str, ...], set[str]] = {}
    commands: list[tuple[str, ...]] = [()]
    for command in commands:  # it grows by the commands of a command
        with contextlib.redirect_stdout(io.StringIO()) as out:
            main([*command, "--help"])
        found[command] = set(re.findall(r"(?<!\S)--[\w-]+", out.getvalue()))
        names = re.findall(r"^    (\w+)", out.getvalue(), re.MULTILINE)
        commands += [(*command, name) for name in names if "[-h]" in out.getvalue() or not command]
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_options_in_the_text_are_there(page, options_of_commands):
    """Those between backticks: a name that was changed stays on no page."""
    known = set().union(*options_of_commands.values())
    sources = [*(ROOT / "benchmarks").glob("*.py"), *(ROOT / "scripts").glob("*.py")]
    ours = " ".join(source.read_text(encoding="utf-8") for source in sources)
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    for code in re.findall(r"`([^`\n]+(?:\n[^`\n]+)?)`", text):
        if match := re.match(r"napari-agglo ([a-z]+)(?: ([a-z]+)\b)?", code):
            assert (match[1],) in options_of_commands, code
            parts = {one[1] for one in options_of_commands if one[:1] == (match[1],) and one[1:]}
            assert not parts or match[2] in parts or match[2] is None, code
        if match := re.match(r"python -m ([\w.]+)", code):
            assert find_spec(match[1]), code
        elif not code.startswith("sbatch"):
            for option in re.findall(r"(?<![\w-])--[a-z][\w-]+", code):
                assert option in known or f'"{option}"' in ours, code


# The program that draws each picture of docs/images.
DRAWN_BY = {
    "growth.png": "benchmarks/experiment_growth.py",
    "hierarchy.gif": "scripts/hierarchy_gif.py",
    "learning_*.png": "benchmarks/experiment_learning.py",
    "little_gold.png": "benchmarks/experiment_little_gold.py",
    "method_*.png": "scripts/method_pictures.py",
    "movie.png": "scripts/page_pictures.py",
    "plugin_*.png": "scripts/screenshots.py",
    "questions.png": "benchmarks/experiment_questions.py",
    "queue.png": "benchmarks/experiment_proofreader.py",
    "report*.png": "scripts/page_pictures.py",
    "stacks.png": "benchmarks/stacks.py",
    "tutorial_*.png": "scripts/tutorial_pictures.py",
}


def test_every_picture_is_drawn_by_a_program_and_shown():
    text = " ".join(page.read_text(encoding="utf-8") for page in PAGES)
    for picture in sorted((ROOT / "docs" / "images").iterdir()):
        programs = [one for name, one in DRAWN_BY.items() if fnmatch(picture.name, name)]
        assert len(programs) == 1, picture.name
        source = (ROOT / programs[0]).read_text(encoding="utf-8")
        assert picture.stem.partition("_")[0] in source, picture.name
        of_other_theme = {picture.name, re.sub("_(dark|light)", "_dark", picture.name)}
        of_other_theme.add(re.sub("_(dark|light)", "_light", picture.name))
        assert any(f"images/{name})" in text for name in of_other_theme), picture.name


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page):
    """A name without a folder is in the folder of the name before it, or among the tests."""
    tests = {path.name for path in (ROOT / "tests").rglob("*.py")}
    text = page.read_text(encoding="utf-8")
    for line in BLOCK.sub("", text).splitlines():
        folder = ""
        for name in re.findall(r"`([\w/]+\.py)`", line):
            folder = name.rpartition("/")[0] or folder
            places = (name, f"napari_agglo/{name}", f"napari_agglo/{folder}/{name}")
            assert name in {*tests, *OF_OTHERS} or any(
                (ROOT / place).exists() for place in places
            ), name


def test_every_public_name_is_in_the_list():
    """Those of the library, and those of a session, which is most of what users call."""
    words = set(re.findall(r"\w+", (ROOT / "docs" / "api.md").read_text(encoding="utf-8")))
    assert set(agglo.__all__) <= words
    assert {name for name in dir(agglo.Session) if not name.startswith("_")} <= words
