"""Import graph of the package's folders, and counts of its modules.

``python scripts/import_graph.py`` prints both. ``--write`` draws the graph for the page
``docs/architecture.md``: the table between its two markers, and ``docs/import_graph.svg``.
``--check`` fails if the page is out of date. Sources are parsed, not imported.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "napari_agglo"
PAGE, PICTURE = ROOT / "docs" / "architecture.md", ROOT / "docs" / "import_graph.svg"
BEGIN, END = "<!-- import graph: begin -->", "<!-- import graph: end -->"
MAY_REPEAT = {"__init__", "__main__", "_widget"}
COMMANDS = "napari_agglo.cli._commands"  # a file of a command is named like the command


@dataclass(frozen=True)
class Module:
    """A source file: its dotted name, its text, and the modules of the package it imports."""

    name: str
    path: Path
    text: str
    imports: frozenset[str]

    @property
    def folder(self) -> str:
        """The dotted name of the folder: of an `__init__`, that of the package it opens."""
        return self.name if self.path.stem == "__init__" else self.name.rpartition(".")[0]

    @property
    def stage(self) -> str:
        """The folder below ``napari_agglo``; ``common`` for the files beside them."""
        parts = self.path.relative_to(PACKAGE).parts
        return parts[0] if len(parts) > 1 else "common"

    @property
    def lines(self) -> int:
        return self.text.count("\n")


def imported_names(text: str, parents: list[str]) -> set[str]:
    """Return the dotted names that a source imports; relative ones are resolved by `parents`."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = parents[: len(parents) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            names.update(f"{stem}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
            names.update(
                a.value for a in node.args if isinstance(a, ast.Constant) and "." in str(a.value)
            )
    return names


@cache
def read_modules() -> dict[str, Module]:
    """Return every module of the package by its dotted name."""
    paths = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    modules = {}
    for name, path in paths.items():
        text = path.read_text(encoding="utf-8")
        parents = name.split(".") if path.stem == "__init__" else name.split(".")[:-1]
        imports = set()
        for target in imported_names(text, parents):
            while target and target not in paths:  # a name in a module: the module
                target = target.rpartition(".")[0]
            imports.add(target)
        modules[name] = Module(name, path, text, frozenset(imports - {"", name}))
    return modules


def importers(modules: dict[str, Module]) -> dict[str, set[str]]:
    """Return the modules that import each module."""
    found = defaultdict(set)
    for module in modules.values():
        for target in module.imports:
            found[target].add(module.name)
    return found


def single_importers(modules: dict[str, Module]) -> dict[str, str]:
    """Return each private module that one module alone imports, of its own folder.

    A module that its folder's `__init__` imports is public: it is a door, whoever else uses it.
    """
    found = importers(modules)
    return {
        name: importer
        for name, module in modules.items()
        if module.path.stem not in MAY_REPEAT and len(found[name]) == 1
        for importer in found[name]
        if importer != module.folder and modules[importer].folder == module.folder
    }


def repeated_names(modules: dict[str, Module]) -> list[str]:
    """Return the file names that occur more than once, whether they begin with `_` or not.

    Files of commands are left out: they have the names of the commands.
    """
    stems = Counter(
        module.path.stem.strip("_")
        for module in modules.values()
        if module.path.stem not in MAY_REPEAT and module.folder != COMMANDS
    )
    return sorted(stem for stem, n in stems.items() if n > 1)


def stage_imports(modules: dict[str, Module]) -> dict[str, set[str]]:
    """Return the folders that each folder imports, without `_numba` and the common files."""
    left_out = {"common", "_numba"}
    found: dict[str, set[str]] = {}
    for module in modules.values():
        if module.stage not in left_out:
            stages = {modules[target].stage for target in module.imports}
            found.setdefault(module.stage, set()).update(stages - left_out - {module.stage})
    return found


def ranks(graph: dict[str, set[str]]) -> dict[str, int]:
    """Return the length of the longest chain of imports below each folder."""
    rank: dict[str, int] = {}
    while len(rank) < len(graph):
        ready = [one for one in graph if one not in rank and graph[one] <= rank.keys()]
        if not ready:
            raise SystemExit(f"Folders import each other in a circle: {graph.keys() - rank.keys()}")
        rank |= {one: 1 + max((rank[below] for below in graph[one]), default=-1) for one in ready}
    return rank


def reduced(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the graph without the imports that a chain of other imports implies."""
    rank = ranks(graph)
    below: dict[str, set[str]] = {}
    for one in sorted(graph, key=rank.__getitem__):
        below[one] = graph[one].union(*(below[other] for other in graph[one]))
    return {
        one: {other for other in graph[one] if not any(other in below[via] for via in graph[one])}
        for one in graph
    }


def as_text(modules: dict[str, Module]) -> str:
    """Return a table of the folders, each with all folders that it imports."""
    graph = stage_imports(modules)
    rank = ranks(graph)
    order = sorted(graph, key=lambda one: (rank[one], one))
    rows = ["| folder | imports |", "|---|---|"]
    for one in order:
        targets = sorted(graph[one], key=order.index)
        rows.append(f"| `{one}` | {', '.join(targets) or '-'} |")
    return "\n".join(rows)


def as_svg(modules: dict[str, Module]) -> str:
    """Return the reduced graph as a picture: each folder imports from those above it."""
    graph = stage_imports(modules)
    rank, edges = ranks(graph), reduced(graph)
    rows = [sorted(one for one in graph if rank[one] == r) for r in range(max(rank.values()) + 1)]
    wide, high, gap, margin = 120, 26, 24, 120
    width = 2 * margin + max(map(len, rows)) * (wide + gap)
    height = 50 + len(rows) * (high + gap) - gap
    place = {}  # the middle of each box
    for r, row in enumerate(rows):
        for i, one in enumerate(row):
            x = width // 2 + (2 * i + 1 - len(row)) * (wide + gap) // 2
            place[one] = (x, 10 + high // 2 + r * (high + gap))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for one in sorted(edges):
        for other in sorted(edges[one]):
            (x1, y1), (x2, y2) = place[other], place[one]
            if rank[one] - rank[other] == 1:
                line = f"M{x1} {y1 + high // 2}L{x2} {y2 - high // 2}"
            else:  # around the boxes between, and from below
                side = -1 if 2 * x1 < width else 1
                out = width // 2 + side * (width // 2 - 10)
                line = f"M{x1 + side * wide // 2} {y1}C{out} {y1} {out} {y2 + 60} {x2} {y2 + 13}"
            parts.append(f'<path d="{line}" fill="none" stroke="#678"/>')
    for one, (x, y) in sorted(place.items()):
        parts.append(
            f'<rect x="{x - wide // 2}" y="{y - high // 2}" width="{wide}" height="{high}" rx="4" '
            f'fill="#eef3f7" stroke="#345"/>'
            f'<text x="{x}" y="{y + 5}" text-anchor="middle">{one}</text>'
        )
    return "\n".join([*parts, "</svg>\n"])


def page_with(table: str) -> str:
    """Return the page with `table` between its markers."""
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{head}{BEGIN}\n\n{table}\n\n{END}{rest.partition(END)[2]}"


def counts(modules: dict[str, Module]) -> str:
    """Return the counts of modules, lines, single importers and repeated names."""
    lines = [module.lines for module in modules.values()]
    inner = [m.lines for m in modules.values() if m.path.stem != "__init__"]
    singles = single_importers(modules)
    longest = max(modules.values(), key=lambda module: module.lines)
    return "\n".join(
        [
            f"modules          {len(lines)}",
            f"lines            {sum(lines)}",
            f"median           {median(lines):.0f} ({median(inner):.0f} without __init__)",
            f"longest          {longest.lines} ({longest.name})",
            f"single importers {len(singles)} in their own folder",
            *(f"                   {name} <- {by}" for name, by in sorted(singles.items())),
            f"repeated names   {', '.join(repeated_names(modules)) or 'none'}",
        ]
    )


def main(arguments: list[str]) -> int:
    modules = read_modules()
    outputs = {PAGE: page_with(as_text(modules)), PICTURE: as_svg(modules)}
    if arguments == ["--write"]:
        for path, text in outputs.items():
            path.write_text(text, encoding="utf-8")
    elif arguments == ["--check"]:
        for path, text in outputs.items():
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                print(f"{path.name} is out of date; run: python scripts/import_graph.py --write")
                return 1
    else:
        print(as_text(modules), counts(modules), sep="\n\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
