"""Results of the benchmarks: rows with goals, kept as JSON, written into the documentation.

A page of the documentation has the table of a part between two comments,

    <!-- bench: engine -->
    <!-- /bench -->

and `write_pages` replaces what is between them. ``<!-- bench: machine -->`` gets a description of
the machine. The text around the comments is written by hand. Tables of errors, which are no rows of
times, are kept as they are to be written, each in a file NAME.md (`keep_text`).
"""

from __future__ import annotations

import json
import operator
import os
import platform
import re
import shutil
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

OURS = "napari-agglo"
HEADER = ("task", "library", "time", "rate or spread", "ratio", "goal")
LIBRARIES = ("numpy", "numba", "scipy", "scikit-learn", "scikit-image", "bioimage-cpp", "waterz",
             "higra", "napari")  # fmt: skip
BLOCK = re.compile(r"(<!-- bench: ([\w-]+) -->\n).*?(<!-- /bench -->)", re.DOTALL)
_RELATIONS = {"<": operator.lt, "<=": operator.le, ">=": operator.ge}
_UNITS = {"s": 1.0, "ms": 1e3}


@dataclass(frozen=True)
class Goal:
    """A bound on a figure, both in `unit`."""

    figure: float
    relation: str  # "<", "<=" or ">="
    bound: float
    unit: str

    @property
    def met(self) -> bool:
        """Whether the figure is within the bound."""
        return bool(_RELATIONS[self.relation](self.figure, self.bound))

    def __str__(self) -> str:
        # Of a goal in seconds that is met, the row has the figure already.
        told = "" if self.met and self.unit in _UNITS else f": {self.figure:,.4g}"
        return f"{self.relation} {self.bound:,g} {self.unit}{'' if self.met else ', missed'}{told}"


def below(seconds: float, bound: float, unit: str = "s", relation: str = "<") -> tuple[Goal]:
    """Return the goal that some seconds are below a bound in s or ms."""
    return (Goal(seconds * _UNITS[unit], relation, bound, unit),)


def faster(times: dict[str, float], bound: float, *libraries: str) -> tuple[Goal, ...]:
    """Return the goals to be `bound` times as fast as those of some libraries that were timed."""
    return tuple(
        Goal(times[one] / times[OURS], ">=", bound, f"x {one}") for one in libraries if one in times
    )


def always_faster(
    rounds: list[dict[str, float]], bound: float, *libraries: str
) -> tuple[Goal, ...]:
    """Return the goals to be `bound` times as fast as some libraries in each of several rounds."""
    return tuple(
        Goal(min(ratios(rounds, one)), ">=", bound, f"x {one} in each run")
        for one in libraries
        if one in rounds[0]
    )


def ratios(rounds: list[dict[str, float]], library: str) -> list[float]:
    """Return, for each round, the time of a library by ours."""
    return [times[library] / times[OURS] for times in rounds]


@dataclass(frozen=True)
class Row:
    """One measurement: a task done by a library."""

    task: str
    library: str
    seconds: float
    rate: str = ""
    ratio: str = ""
    goals: tuple[Goal, ...] = ()

    def cells(self) -> tuple[str, ...]:
        """Return the texts of the row in a table."""
        quick = self.seconds < 0.1
        time = f"{1e3 * self.seconds:.2f} ms" if quick else f"{self.seconds:.3f} s"
        goals = "; ".join(map(str, self.goals))
        return self.task, self.library, time, self.rate, self.ratio, goals

    def missed(self) -> list[str]:
        """Return a sentence for each goal that was missed."""
        return [
            f"{self.task}: {goal.figure:,.3g} {goal.unit}, goal {goal.relation} {goal.bound:,g}"
            for goal in self.goals
            if not goal.met
        ]


@dataclass
class Table:
    """Rows and notes of one part of the benchmarks; a row is printed when it is added."""

    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    folder: Path = Path("bench-output")  # for plots

    def add(self, task: str, seconds: float, rate: str = "", ratio: str = "",
            goals: tuple[Goal, ...] = (), library: str = OURS) -> None:  # fmt: skip
        """Add a row and print it."""
        self.rows.append(Row(task, library, float(seconds), rate, ratio, goals))
        print(line(self.rows[-1].cells()), flush=True)

    def compare(self, task: str, times: dict[str, float], amount: float, unit: str,
                goals: tuple[Goal, ...] = ()) -> None:  # fmt: skip
        """Add a row for each library; each of them did `amount` of `unit`."""
        for library, seconds in times.items():
            ours = library == OURS
            ratio = "" if ours else f"ours {seconds / times[OURS]:.2f} x as fast"
            rate = f"{short(amount / seconds)} {unit}/s"
            self.add(task, seconds, rate, ratio, goals if ours else (), library)

    def compare_rounds(self, task: str, rounds: list[dict[str, float]], amount: float, unit: str,
                       goals: tuple[Goal, ...] = ()) -> None:  # fmt: skip
        """Add a row for each library: its least time, and its ratio to ours in each round."""
        for library in rounds[0]:
            seconds, ours = min(times[library] for times in rounds), library == OURS
            each = "" if ours else ", ".join(f"{one:.2f}" for one in ratios(rounds, library))
            ratio = each and f"ours {each} x as fast"
            rate = f"{short(amount / seconds)} {unit}/s"
            self.add(task, seconds, rate, ratio, goals if ours else (), library)

    def note(self, text: str) -> None:
        """Add a sentence to be shown under the table."""
        self.notes.append(text)

    def markdown(self) -> str:
        """Return the table, without columns that say nothing, and the notes under it."""
        rows = [row.cells() for row in self.rows]
        kept = [k for k in range(len(HEADER)) if {row[k] for row in rows} - {"", OURS}]
        lines = [line([HEADER[k] for k in kept]), "|---" * len(kept) + "|"]
        lines += [line([row[k] for k in kept]) for row in rows]
        if self.notes:
            lines += ["", *(f"- {note}" for note in self.notes)]
        return "\n".join(lines)


def short(number: float) -> str:
    """Return a number to three digits, or as a whole number from 1,000 on."""
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"


def line(cells: Any) -> str:
    """Return cells as a line of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def machine() -> str:
    """Return the cores, the processor and the versions, without the name of the machine."""
    model = platform.processor() or platform.machine()
    if (info := Path("/proc/cpuinfo")).exists():
        found = re.search(r"^model name\s*:\s*(.+)$", info.read_text(), re.MULTILINE)
        model = found[1].strip() if found else model
    versions = [f"Python {platform.python_version()}"]
    for name in LIBRARIES:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return f"{os.cpu_count()} cores, {model}; {', '.join(versions)}"


def save(folder: Path, part: str, table: Table, small: bool) -> None:
    """Keep the results of a part as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [asdict(row) for row in table.rows]
    result = {"machine": machine(), "small": small, "rows": rows, "notes": table.notes}
    (folder / f"{part}.json").write_text(json.dumps(result, indent=1), encoding="utf-8")


def keep_text(name: str, text: str, folder: Path = Path("bench-output")) -> None:
    """Keep a table for the documentation as Markdown."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text.strip() + "\n", encoding="utf-8")


def load(folder: Path, part: str) -> tuple[Table, dict[str, Any]]:
    """Return the table of a part, and all of its file."""
    result = json.loads((folder / f"{part}.json").read_text(encoding="utf-8"))
    rows = [
        Row(**{**row, "goals": tuple(Goal(**goal) for goal in row["goals"])})
        for row in result["rows"]
    ]
    return Table(rows, result["notes"], folder), result


def first_run(compilation: Table) -> str:
    """Return the sentence of the README on the cost of the first run."""
    seconds = {row.task: row.seconds for row in compilation.rows}
    mean = seconds["compiling: demo by mean, evaluate"]
    training = mean + seconds["compiling: train and agglomerate by a forest"]
    return (
        "The first run also compiles the numerical kernels, and keeps them for later runs: about "
        f"{mean:.0f} CPU\nseconds up to a segmentation by the mean, and {training:.0f} with "
        "training\n([measured](docs/performance.md#compilation-of-the-kernels))."
    )


def write_pages(results: Path, docs: Path) -> list[str]:
    """Replace the tables in the pages of a folder; return the parts that were written.

    The README beside the folder has a sentence from the table of compilation. Parts without results
    stay as they are. Results of small volumes are refused. A plot replaces the one of its name in
    the folder "images".
    """
    parts = {path.stem: load(results, path.stem) for path in sorted(results.glob("*.json"))}
    if small := [part for part, (_, result) in parts.items() if result["small"]]:
        raise SystemExit(f"Measured with --small, not for the documentation: {', '.join(small)}.")
    texts = {part: table.markdown() for part, (table, _) in parts.items()}
    if "compilation" in parts:
        texts["first-run"] = first_run(parts["compilation"][0])
    for path in results.glob("*.md"):
        texts[path.stem] = path.read_text(encoding="utf-8").strip()
    machines: dict[str, list[str]] = {}
    for part, (_, result) in parts.items():
        machines.setdefault(result["machine"], []).append(part)
    if machines:
        texts["machine"] = "\n".join(f"- {', '.join(of)}: {one}." for one, of in machines.items())
    if len(machines) == 1:
        texts["machine"] = f"{next(iter(machines))}."
    written: list[str] = []

    def replace(block: re.Match[str]) -> str:
        if (text := texts.get(block[2])) is None:
            return block[0]
        written.append(block[2])
        return f"{block[1]}\n{text}\n\n{block[3]}"

    for page in filter(Path.exists, [docs.parent / "README.md", *sorted(docs.glob("*.md"))]):
        old = page.read_text(encoding="utf-8")
        if (new := BLOCK.sub(replace, old)) != old:
            page.write_text(new, encoding="utf-8")
    for plot in results.glob("*.png"):
        if (docs / "images" / plot.name).exists():
            shutil.copyfile(plot, docs / "images" / plot.name)
    return written
