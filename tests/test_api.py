"""The public names and their signatures, written out in `api.txt`.

A change of the public door shows as a difference of that file. To accept it, run
``python tests/test_api.py``, and look at what `git diff` shows.
"""

from __future__ import annotations

import difflib
import inspect
import re
from importlib import import_module
from pathlib import Path

WRITTEN = Path(__file__).with_name("api.txt")
FOLDERS = (
    "", "volumes", "superpixels", "graph", "features", "policy", "agglomeration", "learning",
    "partition", "pixels", "shapes", "evaluate", "compare", "plots", "movie", "report", "samples",
    "session", "blocks", "errors",
)  # fmt: skip


def signature(value: object) -> str:
    """Return the parameters of a callable; addresses and long defaults are left out."""
    try:
        text = str(inspect.signature(value))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def members(kind: type) -> list[str]:
    """Return the public methods and properties that a class of this package defines."""
    lines = []
    for name in sorted(dir(kind)):
        if name.startswith("_"):
            continue
        value = inspect.getattr_static(kind, name)
        if isinstance(value, property) or not callable(getattr(kind, name)):
            lines.append(f"    .{name}")
        else:
            lines.append(f"    .{name}{signature(getattr(kind, name))}")
    return lines


def describe(name: str, value: object) -> list[str]:
    """Return the lines of one public name."""
    own = getattr(value, "__module__", "") or ""
    if inspect.isclass(value):
        if not own.startswith("napari_agglo"):
            return [f"  {name}"]
        inherited = ValueError if issubclass(value, Exception) else object
        public = [line for line in members(value) if not hasattr(inherited, line[5:].split("(")[0])]
        return [f"  class {name}{signature(value)}", *public]
    if callable(value):
        return [f"  {name}{signature(value)}"]
    return [f"  {name}: {type(value).__name__}"]


def api() -> str:
    """Return all public names, a folder at a time, in alphabetical order."""
    lines = []
    for folder in FOLDERS:
        module = import_module(".".join(filter(None, ["napari_agglo", folder])))
        names = getattr(module, "__all__", None) or [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
        ]
        lines.append(f"{module.__name__}")
        for name in sorted(names):
            lines += describe(name, getattr(module, name))
        lines.append("")
    return "\n".join(lines)


def test_every_public_folder_is_written():
    package = Path(import_module("napari_agglo").__file__).parent
    public = {path.parent.name for path in package.glob("[a-z]*/__init__.py")}
    assert public - set(FOLDERS) == {"cli", "widgets"}, "the drivers have no names for users"


def test_the_public_door_is_as_written():
    written, now = WRITTEN.read_text(encoding="utf-8"), api()
    difference = "\n".join(difflib.unified_diff(written.split("\n"), now.split("\n"), lineterm=""))
    assert not difference, f"run `python tests/test_api.py` if this is meant:\n{difference}"


def test_the_front_door_stays_small():
    front = import_module("napari_agglo").__all__
    assert 25 <= len(front) <= 60


if __name__ == "__main__":
    WRITTEN.write_text(api(), encoding="utf-8")
